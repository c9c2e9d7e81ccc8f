"""The checks as tests, for pytest."""

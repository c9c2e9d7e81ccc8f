"""Where the server keeps its records."""

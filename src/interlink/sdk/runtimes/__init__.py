"""How one container becomes an argument list; pure functions."""

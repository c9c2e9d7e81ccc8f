"""The command `interlink`: one file a noun."""

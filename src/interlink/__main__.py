"""`python -m interlink` is the command `interlink`."""

from interlink.cli.main import main

main()

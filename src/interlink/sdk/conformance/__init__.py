"""The conformance suite: is a plugin, in any language, what a server may rely on?

`interlink conformance --plugin URL` runs it and prints a report; as a pytest plugin each check is a test.
"""

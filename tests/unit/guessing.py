"""How hypothesis guesses in unit tests: a few examples, and no deadline, for the machine may be busy."""

from hypothesis import settings

few = settings(max_examples=30, deadline=None)

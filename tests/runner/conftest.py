"""The interpreter that the runner is started with."""

import pytest

from interlink.testing import UnavailableError
from tests.support import pythons
from tests.support.pythons import Python


@pytest.fixture(name="python")
def _python(request: pytest.FixtureRequest) -> Python:
    """The oldest Python of this machine, or the one of the age that a test asks for."""
    age = getattr(request, "param", None)
    try:
        return pythons.find(age or "oldest")
    except UnavailableError as error:
        return pythons.find("ours") if age is None else pytest.skip(str(error))

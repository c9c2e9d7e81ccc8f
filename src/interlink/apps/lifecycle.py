"""How the loops of our programs tell of trouble."""

import structlog

from interlink.kube.errors import KubeError
from interlink.sdk import running
from interlink.sdk.errors import SDKError
from interlink.server.errors import ServerError

log = structlog.get_logger(__name__)


def log_trouble(name: str, error: Exception) -> None:
    """Trouble with the other side is expected: one line, no traceback."""
    if not isinstance(error, SDKError | KubeError | ServerError):
        running.log_failure(name, error)
        return
    log.warning("loop.trouble", loop=name, error=str(error))

"""When the tokens of a pod are due."""

from datetime import datetime
from typing import Any

import pytest

from interlink.kubelet.pods import renewing
from tests.unit.builders import Document, at, pod

RUNNING = {"phase": "Running", "startTime": "2026-07-14T10:00:00Z"}


def token(seconds: int | None) -> Document:
    projection = {"path": "token"} | ({"expirationSeconds": seconds} if seconds else {})
    return {"name": "v", "projected": {"sources": [{"serviceAccountToken": projection}]}}


TABLE: list[tuple[str, Any, Document, float | None, float, bool]] = [
    # what                        volumes        status   renewed  now   due
    ("a young token", [token(600)], RUNNING, None, 479, False),
    ("an old token", [token(600)], RUNNING, None, 480, True),
    ("the default life", [token(None)], RUNNING, None, 2880, False),
    ("the default life, old", [token(None)], RUNNING, None, 2886, True),
    ("the shortest life counts", [token(3600), token(600)], RUNNING, None, 480, True),
    ("a renewed token", [token(600)], RUNNING, 480, 900, False),
    ("a renewed token, old again", [token(600)], RUNNING, 480, 960, True),
    ("no token", [{"name": "v", "emptyDir": {}}], RUNNING, None, 9999, False),
    ("a pod that does not run", [token(600)], {"phase": "Pending"}, None, 9999, False),
    ("a pod that has ended", [token(600)], RUNNING | {"phase": "Succeeded"}, None, 9999, False),
]


@pytest.mark.parametrize(("volumes", "status", "renewed", "now", "is_due"), [row[1:] for row in TABLE])
def test_a_token_is_due(volumes: Any, status: Document, renewed: float | None, now: float, is_due: bool) -> None:
    """After 80 % of its life."""
    renewed_at: datetime | None = None if renewed is None else at(renewed)

    assert renewing.is_due(pod(status=status, volumes=volumes), renewed_at, at(now)) is is_due


def test_a_pod_that_is_being_deleted_gets_no_token() -> None:
    """It needs none any more."""
    deleted = {"deletionTimestamp": "2026-07-14T10:00:30Z"}

    assert not renewing.is_due(pod(status=RUNNING, volumes=[token(600)], metadata=deleted), None, at(9999))

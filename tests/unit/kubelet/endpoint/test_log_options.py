"""The query of `kubectl logs` in the form of the contract."""

from datetime import datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from interlink.aio import clock
from interlink.kubelet.endpoint import logs
from interlink.wire.messages import LogOptions


def options(query: str) -> LogOptions:
    return logs.log_options(make_mocked_request("GET", f"/containerLogs/ns/p/c?{query}"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", LogOptions()),
        ("tailLines=5", LogOptions(tail=5)),
        ("limitBytes=9", LogOptions(limit_bytes=9)),
        ("sinceSeconds=60", LogOptions(since_seconds=60)),
        ("sinceTime=2026-07-14T10:00:00Z", LogOptions(since_time="2026-07-14T10:00:00Z")),
        ("timestamps=true", LogOptions(timestamps=True)),
        ("follow=true&previous=true", LogOptions(follow=True, previous=True)),
        ("follow=false&timestamps=false", LogOptions()),
        ("stream=All&container=c", LogOptions()),
    ],
)
def test_each_option_of_the_query(query: str, expected: LogOptions) -> None:
    """Each has its place in the contract; unknown ones are ignored."""
    assert options(query) == expected


def test_no_lines_means_only_what_comes_from_now_on() -> None:
    """`--tail=0` cannot be said in the contract, where zero lines are all of them: it becomes a time."""
    found = options("tailLines=0")

    assert clock.now() - datetime.fromisoformat(found.since_time or "") < timedelta(seconds=60)
    assert found.tail == 0


def test_no_lines_of_the_last_minute_are_no_lines() -> None:
    """`--tail=0 --since=1m` shows nothing of the past either."""
    assert options("tailLines=0&sinceSeconds=60").since_seconds == 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("sinceSeconds=1&sinceTime=2026-07-14T10:00:00Z", "at most one of sinceTime or sinceSeconds"),
        ("tailLines=-1", "tailLines must be a number, 0 at least, not '-1'"),
        ("limitBytes=0", "limitBytes must be a number, 1 at least"),
        ("sinceTime=yesterday", "sinceTime must be a time"),
        ("tailLines=", "tailLines"),
        ("tailLines=many", "tailLines"),
        ("limitBytes=-1", "limitBytes"),
        ("limitBytes=1.5", "limitBytes"),
        ("sinceSeconds=-1", "sinceSeconds"),
    ],
)
def test_options_that_make_no_sense_are_refused(query: str, text: str) -> None:
    """As a kubelet does, with 422 and the name of the option."""
    with pytest.raises(web.HTTPUnprocessableEntity) as caught:
        options(query)

    assert text in (caught.value.text or "")

"""What `kubectl logs` asks for, in the contract's form, and when there is no log to give; pure."""

from collections.abc import Mapping
from datetime import datetime

from aiohttp import web

from interlink.aio import clock
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus
from interlink.wire.messages import LogOptions


def log_options(request: web.Request) -> LogOptions:
    """The query of `kubectl logs` in the contract's form, in which zero lines would mean all.

    Raises HTTPUnprocessableEntity for what contradicts itself.
    """
    query = request.query
    if "sinceSeconds" in query and "sinceTime" in query:
        raise web.HTTPUnprocessableEntity(text="at most one of sinceTime or sinceSeconds may be specified")
    is_news_only = query.get("tailLines") == "0"
    since = clock.now().isoformat() if is_news_only else _moment(query.get("sinceTime", "0001-01-01T00:00:00Z"))
    return LogOptions(
        tail=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes", at_least=1),
        since_seconds=0 if is_news_only else _number(query, "sinceSeconds", at_least=1),
        since_time=since,
        timestamps=query.get("timestamps") == "true",
        follow=query.get("follow") == "true",
        previous=query.get("previous") == "true",
    )


def _number(query: Mapping[str, str], name: str, *, at_least: int = 0) -> int:
    text = query.get(name)
    if text is None:
        return 0
    if not text.isdecimal() or int(text) < at_least:
        raise web.HTTPUnprocessableEntity(text=f"{name} must be a number, {at_least} at least, not {text!r}")
    return int(text)


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise web.HTTPUnprocessableEntity(text=f"sinceTime must be a time as 2026-07-14T10:00:00Z, not {text!r}") from (
            error
        )
    return text


def check_readable(pod: Pod, container: str, *, is_previous: bool) -> None:
    """Raises HTTPNotFound for a container that the pod has not, HTTPBadRequest for one without the log asked for.

    What nothing is known of may have a log: the plugin is asked. So may a container of a pod that has failed before it
    could start: the words with which the site refused it.
    """
    specs = [*(pod.spec.containers or []), *(pod.spec.init_containers or [])]
    if container not in {spec.name for spec in specs}:
        raise web.HTTPNotFound(text=f"container {container} not found in pod {pod.metadata.name}")
    entry = _status_of(pod, container)
    has_ended_before = entry is not None and entry.last_state is not None and entry.last_state.terminated is not None
    if is_previous and not has_ended_before:
        raise web.HTTPBadRequest(
            text=f'previous terminated container "{container}" in pod "{pod.metadata.name}" not found'
        )
    if entry is None or entry.waiting is None or has_ended_before or pod.is_terminal:
        return
    reason = entry.waiting.reason or "ContainerCreating"
    raise web.HTTPBadRequest(text=f'container "{container}" in pod "{pod.metadata.name}" is waiting to start: {reason}')


def _status_of(pod: Pod, container: str) -> ContainerStatus | None:
    entries = [*(pod.status.container_statuses or []), *(pod.status.init_container_statuses or [])]
    return next((entry for entry in entries if entry.name == container), None)

"""The OpenAPI document of what crosses HTTP, made from the message structs."""

from typing import Any

import msgspec

from interlink.model.pods import Pod
from interlink.wire import messages
from interlink.wire.messages import (
    Announcement,
    AnnouncementAnswer,
    Changes,
    ChangesRequest,
    ContainerUsage,
    CreateAnswer,
    Job,
    JobStatus,
    LogRequest,
    PingAnswer,
    PodCreateRequest,
    Problem,
    Refresh,
    RetrievedPodData,
    UsageRequest,
)

Document = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"


class _Call(msgspec.Struct, frozen=True):
    """`body` and `answer` are message types; a str answer is plain text, None nothing in particular."""

    summary: str
    answer: Any
    body: Any = None
    may_wait: bool = False


_SERVER = {
    "/create": _Call("Start a pod's job, once.", CreateAnswer, PodCreateRequest),
    "/delete": _Call("End a pod's job, for good.", str, Pod),
    "/status": _Call("The states of these pods' jobs, from memory.", list[JobStatus], list[Pod]),
    "/getLogs": _Call("A container's log.", str, LogRequest),
    "/pinglink": _Call("What the plugin says of its site.", None),
    "/updateCache": _Call("Kept for existing virtual kubelets; does nothing.", str),
    messages.ANNOUNCE: _Call("Tell an owner's complete pod list.", AnnouncementAnswer, Announcement),
    messages.CHANGES: _Call("What changed for an owner since a revision; waits for news.", Changes, ChangesRequest),
    messages.REFRESH: _Call("Replace the files of a running pod's projected volumes.", str, Refresh),
    messages.USAGE: _Call("What an owner's running containers use.", list[ContainerUsage], UsageRequest),
}
_PLUGIN = {
    "/create": _Call("Submit a job for the pod, once.", CreateAnswer, RetrievedPodData),
    "/delete": _Call("Ask the pod's job to end.", str, Pod),
    "/status": _Call(
        "The states of these pods' jobs; for an empty list, the ping.",
        list[JobStatus] | PingAnswer,
        list[Pod],
        may_wait=True,
    ),
    "/getLogs": _Call("A container's log.", str, LogRequest),
    messages.JOBS: _Call("Every job that carries our tag.", list[Job]),
    messages.REFRESH: _Call("Replace the files of a running pod's projected volumes.", str, Refresh),
    messages.USAGE: _Call("What these pods' running containers use.", list[ContainerUsage], UsageRequest),
}
_WAITING = [
    {
        "name": name,
        "in": "header",
        "required": False,
        "description": text,
        "schema": {"type": "string"},
    }
    for name, text in (
        ("If-None-Match", "The tag (ETag) of the last answer to the same question."),
        (messages.PREFER_HEADER, "`wait=N`: with the tag, how many seconds the plugin may wait for news."),
    )
]
_ERRORS = {
    "400": "The body is not the message it should be.",
    "404": "There is no such job.",
    "409": "The pod is deleted, or another owner's.",
    "413": "The body is too large.",
    "422": "Rejected: the same request will never succeed.",
    "429": "As much as is taken on at a time is under way.",
    "502": "The outcome is unknown: ask before repeating.",
    "503": "Nothing has been done: repeat later.",
}


def server(version: str) -> Document:
    """What virtual kubelets ask of the server. Any method is accepted on the routes of the existing contract."""
    return _document("interLink server", version, _SERVER)


def plugin(version: str) -> Document:
    """What the server asks of a plugin."""
    return _document("interLink plugin", version, _PLUGIN)


def _document(title: str, version: str, calls: dict[str, _Call]) -> Document:
    kinds = [kind for call in calls.values() for kind in (call.body, call.answer) if kind not in (None, str)]
    schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REFERENCE)
    by_kind = dict(zip([str(kind) for kind in [*kinds, Problem]], schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": {path: {"post": _operation(call, by_kind)} for path, call in calls.items()},
        "components": {"schemas": components},
    }


def _operation(call: _Call, schemas: Document) -> Document:
    problem = {"application/json": {"schema": schemas[str(Problem)]}, "text/plain": {"schema": {"type": "string"}}}
    answers: Document = {"200": {"description": "Done.", "content": _content(call.answer, schemas)}}
    if call.may_wait:
        answers["304"] = {"description": "Nothing has changed since the answer with the tag in If-None-Match."}
    errors = {code: {"description": text, "content": problem} for code, text in _ERRORS.items()}
    body = {"requestBody": {"required": True, "content": _content(call.body, schemas)}} if call.body else {}
    parameters = {"parameters": _WAITING} if call.may_wait else {}
    return {"summary": call.summary, **parameters, **body, "responses": answers | errors}


def _content(kind: Any, schemas: Document) -> Document:
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    return {"application/json": {"schema": {} if kind is None else schemas[str(kind)]}}

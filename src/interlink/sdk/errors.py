"""Errors by what the caller can do.

SDKError
├── Rejected        definitive: the same request will never succeed; tell the user the text
├── Refused         definitive for this request: the pod is deleted or another owner's
├── NotFound        there is no such job
├── Unreachable     nothing has been done; repeat later
│   └── Overloaded  as many as are taken on at a time are under way
└── OutcomeUnknown  it may have been done; ask before repeating
"""


class SDKError(Exception):
    """The text says what happened, to what, and the next step."""


class Rejected(SDKError):
    pass


class Refused(SDKError):
    pass


class NotFound(SDKError):
    pass


class Unreachable(SDKError):
    pass


class Overloaded(Unreachable):
    pass


class OutcomeUnknown(SDKError):
    pass

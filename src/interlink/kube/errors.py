"""Answers of the Kubernetes API by what the caller can do.

KubeError
├── NotFound     the object is not there
├── Conflict     it is another object than meant, or it changed meanwhile
├── Gone         the resource version is too old: list again
├── Refused      not allowed, or not valid: repeating does not help
├── Superseded   another instance has taken our place: stop
└── Unavailable  repeat later; `retry_after_s` when the server said when
    └── Fenced   nothing was sent: we may not be the active instance
"""


class KubeError(Exception):
    pass


class NotFound(KubeError):
    pass


class Conflict(KubeError):
    pass


class Gone(KubeError):
    pass


class Refused(KubeError):
    pass


class Unavailable(KubeError):
    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Superseded(KubeError):
    pass


class Fenced(Unavailable):
    pass

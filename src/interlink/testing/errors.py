"""What can go wrong in the test-bed itself.

HarnessError
├── UnavailableError   nothing to run on: skip the test, the text says how to get it
├── DaemonError        a daemon died or never became ready: the text holds the end of its log
└── KubectlError       kubectl answered with an error: the text is its own
"""


class HarnessError(Exception):
    """Root of all errors of the test-bed."""


class UnavailableError(HarnessError):
    """There is no control plane here; the text says how to get one."""


class DaemonError(HarnessError):
    """A daemon ended by itself, or was not ready in time."""


class KubectlError(HarnessError):
    """kubectl ended with an error."""

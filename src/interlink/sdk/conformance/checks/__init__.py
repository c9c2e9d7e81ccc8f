"""The checks, by what they look at. Importing this package fills the list."""

from interlink.sdk.conformance.checks import creating, deleting, inputs, logs, restarting, statuses, strangers

__all__ = ["creating", "deleting", "inputs", "logs", "restarting", "statuses", "strangers"]

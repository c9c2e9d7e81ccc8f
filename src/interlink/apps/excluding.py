"""One program to a directory: two of a kind would undo each other's work."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from interlink.aio import files
from interlink.aio.files import LockedError
from interlink.model.errors import ConfigurationError
from interlink.sdk.addresses import Address


@contextlib.contextmanager
def only_one(directory: Path, *, kind: str, key: str, lock: str, address: Address) -> Iterator[None]:
    """Hold `directory`, which is made if need be, as its only `kind`. The hold ends with the process, however it ends.

    key: what the directory is called in the configuration. Raises ConfigurationError, which names the holder.
    """
    try:
        files.make_directory(directory)
        held = files.lock_exclusively(directory / lock, f"process {os.getpid()} at {address}")
    except LockedError as error:
        raise ConfigurationError(f"another {kind} uses {directory}: {error.holder}") from error
    except OSError as error:
        raise ConfigurationError(f"cannot use {key} {directory}: {error.strerror}") from error
    with held:
        yield

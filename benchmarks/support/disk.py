"""What the disk itself can do: small files written as the server must write them, without a server."""

import os
import threading
import time
from pathlib import Path

from interlink.aio import files


def durable_writes_per_s(folder: Path, *, at_once: int, count: int, size_bytes: int) -> float:
    """Temporary file, fsync, rename, fsync of the directory, each for itself, by so many threads at a time."""
    folder.mkdir()
    numbers = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        data = os.urandom(size_bytes)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            files.write_durably(folder / f"{number}.yaml", data)

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.monotonic() - started)

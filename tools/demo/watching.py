"""The watcher: looks at pods, jobs and the ledger again and again, in a thread of its own."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from interlink.sdk.batch import jobdir
from tools.demo import ledger
from tools.demo.places import AwayError, Place
from tools.demo.scene import Scene

FILES_EVERY_S = 0.25


class Watcher:
    """`place_every_s`: how often the place is asked; each time a program starts, which costs."""

    def __init__(self, scene: Scene, place: Place, *, jobs: Path, ledger_file: Path, place_every_s: float) -> None:
        self._scene = scene
        self._place = place
        self._jobs = jobs
        self._ledger_file = ledger_file
        self._place_every_s = place_every_s
        self._has_ended = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        threads = [threading.Thread(target=run, daemon=True) for run in (self._run_files, self._run_place)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._has_ended.set()
            for thread in threads:
                thread.join()

    def look(self) -> None:
        """Look now, at everything. Raises AwayError."""
        self._look_at_place()
        self._look_at_files()

    def _run_files(self) -> None:
        while not self._has_ended.wait(FILES_EVERY_S):
            self._look_at_files()

    def _run_place(self) -> None:
        """While the place is away, what was seen last stays."""
        while not self._has_ended.is_set():
            began = time.monotonic()
            with contextlib.suppress(AwayError):
                self._look_at_place()
            self._has_ended.wait(max(0.1, self._place_every_s - (time.monotonic() - began)))

    def _look_at_place(self) -> None:
        self._scene.looked(self._place.look())

    def _look_at_files(self) -> None:
        self._scene.seen_files(ledger.read(self._ledger_file), alive(self._jobs))


def alive(jobs: Path) -> frozenset[str]:
    """The pod UIDs of the jobs whose runner lives."""
    directories = jobdir.below(jobs) if jobs.exists() else ()
    return frozenset(job.pod_uid for job in directories if job.runner_process() is not None)

"""huey on SQLite, the fastest Python queue that we know of: the peer of the queue and context benchmarks.

It is given every advantage: its tasks are queued before the clock starts, it runs with its own defaults and with
more threads, and what counts is its fastest configuration. It deletes a message before it runs it, so a killed
worker's job is lost; ours is leased, run, and deleted after that.
"""

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import huey.api

from bench.measure import PATIENCE_S, timed


class HueyQueue:
    """A filled queue file, copied for every round."""

    def __init__(self, folder: Path, messages: int) -> None:
        self._folder = folder
        self._messages = messages
        self._numbers = count(1)
        self._filled = folder / f"huey-{messages}-filled.db"
        self._filled.unlink(missing_ok=True)
        queue = huey.api.SqliteHuey(filename=str(self._filled), fsync=False)
        job = _task(queue, lambda: None)
        for _ in range(messages):
            job()
        queue.storage.sql("pragma wal_checkpoint(truncate)")
        queue.storage.close()

    def messages_per_second(self, workers: int, *, fsync: bool | None) -> float:
        """From the consumer's start to the end of the last job."""
        done = _Countdown(self._messages)
        with self._consumer(done.tick, workers, fsync=fsync) as consumer, timed() as watch:
            consumer.start()
            done.wait()
            watch.stop()
        return self._messages / watch.seconds

    def run(self, job: Callable[[], None], workers: int) -> None:
        """Every message once, as this job."""
        done = _Countdown(self._messages)

        def counted() -> None:
            job()
            done.tick()

        with self._consumer(counted, workers, fsync=None) as consumer:
            consumer.start()
            done.wait()

    def synchronous(self, *, fsync: bool | None) -> int:
        """SQLite's own word on what such a queue flushes: 2 is every commit, 0 none."""
        queue = huey.api.SqliteHuey(filename=str(self._filled), fsync=fsync)
        ((value,),) = queue.storage.sql("pragma synchronous", results=True)
        queue.storage.close()
        return int(value)

    @contextmanager
    def _consumer(self, job: Callable[[], None], workers: int, *, fsync: bool | None) -> Iterator[Any]:
        path = self._folder / f"huey-{next(self._numbers)}.db"
        shutil.copyfile(self._filled, path)
        queue = huey.api.SqliteHuey(filename=str(path), fsync=fsync)
        _task(queue, job)
        consumer = queue.create_consumer(workers=workers, periodic=False)
        with _own_signals():
            try:
                yield consumer
            finally:
                consumer.stop(graceful=True)
                queue.storage.close()
                path.unlink()


class _Countdown:
    """Reaches its end when every job has run."""

    def __init__(self, jobs: int) -> None:
        self._left = count(jobs - 1, -1)
        self._over = threading.Event()

    def tick(self) -> None:
        if next(self._left) == 0:
            self._over.set()

    def wait(self) -> None:
        if not self._over.wait(PATIENCE_S):
            raise TimeoutError("huey did not run every job")


def _task(queue: Any, job: Callable[[], None]) -> Any:
    # The name stands in the queued messages, so it is the same for every job.
    return queue.task(name="job")(job)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Its consumer takes the process's signals; they are given back."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.getsignal(name) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)

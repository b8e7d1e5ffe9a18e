"""Counts what the SQLite writer does during a measurement: how many operations share one flush to the disk."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vskill_platform.database.writer import Writer


class WriterCounts:
    """What one writer thread did."""

    def __init__(self) -> None:
        self.transactions = 0
        self.operations = 0
        self.seconds = 0.0

    @property
    def operations_each(self) -> float:
        return self.operations / self.transactions if self.transactions else 0.0

    @property
    def ms_each(self) -> float:
        return self.seconds / self.transactions * 1000 if self.transactions else 0.0


@contextmanager
def watch_writer() -> Iterator[WriterCounts]:
    """Count every transaction of every writer of this process while the body runs."""
    counts = WriterCounts()
    finish = Writer._finish  # noqa: SLF001 - its one step that is a transaction

    def counted(writer: Writer, jobs: list[Any]) -> Any:
        started = time.perf_counter()
        finished = finish(writer, jobs)
        counts.transactions += 1
        counts.operations += len(finished[0])
        counts.seconds += time.perf_counter() - started
        return finished

    setattr(Writer, "_finish", counted)  # noqa: B010 - the type checker is right that methods are not assigned
    try:
        yield counts
    finally:
        setattr(Writer, "_finish", finish)  # noqa: B010 - as above

"""What one backlog cost, and what the run says about all of them: figures for every setup, and the goals, which are
ratios to one worker."""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from bench.results import Figure, Goal, Report, at_least, at_most

MOST_GROWTH = 1.2
LEAST_TOTAL = 0.9


class Setup(msgspec.Struct, frozen=True):
    """How many processes of each role; no web process is `serve` for everything, on SQLite."""

    web: int
    workers: int

    def __str__(self) -> str:
        if not self.web:
            return "serve on SQLite"
        return f"{self.web} web, {self.workers} {'worker' if self.workers == 1 else 'workers'}"


ALONE, ONE, FOUR = Setup(0, 1), Setup(4, 1), Setup(4, 4)
SETUPS = (ONE, Setup(4, 2), FOUR, Setup(1, 4), ALONE)


class Sample(msgspec.Struct, frozen=True):
    """What one drained backlog cost."""

    jobs: int
    #: Jobs a second, while all workers were at it.
    rate: float
    #: CPU seconds by role; workers with their scanning processes.
    worker_cpu: float
    web_cpu: float
    postgres_cpu: float
    nats_cpu: float
    #: Memory in MB: a worker, of `serve` its server too, without and with its scanning processes; a web process.
    worker_mb: float
    worker_family_mb: float
    web_mb: float
    #: Bytes of the database and of the stored content for each published skill.
    database_bytes: float
    content_bytes: float

    def __str__(self) -> str:
        return (
            f"{self.rate:.0f} jobs/s, {self.worker_ms:.1f} ms of CPU in workers, {self.all_ms:.1f} in all "
            f"({self.postgres_cpu:.1f} s PostgreSQL, {self.nats_cpu:.1f} s NATS, {self.web_cpu:.1f} s web)"
        )

    @property
    def worker_ms(self) -> float:
        """CPU of the workers for one job."""
        return self.worker_cpu * 1000 / self.jobs

    @property
    def all_ms(self) -> float:
        """CPU of everything for one job."""
        return (self.worker_cpu + self.web_cpu + self.postgres_cpu + self.nats_cpu) * 1000 / self.jobs


Samples = Mapping[Setup, Sequence[Sample]]


def report(jobs: int, samples: Samples) -> Report:
    figures = [figure for setup, taken in samples.items() for figure in _figures(setup, taken)]
    return Report(
        name="scale",
        title=f"{jobs} uploaded skills through real processes on PostgreSQL and NATS, "
        f"{os.cpu_count()} cores for all of them",
        figures=tuple(figures),
        goals=goals(samples),
        notes=("Every event stream, one of each web process, told every submission as published.",),
    )


def _figures(setup: Setup, taken: Sequence[Sample]) -> Iterator[Figure]:
    def figure(what: str, unit: str, of: Callable[[Sample], float]) -> Figure:
        return Figure.of(f"{setup}: {what}", unit, [of(one) for one in taken])

    yield figure("jobs", "jobs/s", lambda one: one.rate)
    yield figure("CPU of the workers", "ms per job", lambda one: one.worker_ms)
    yield figure("database for each published skill", "KB", lambda one: one.database_bytes / 1000)
    yield figure("content for each published skill", "KB", lambda one: one.content_bytes / 1000)
    yield figure("memory of a worker", "MB", lambda one: one.worker_mb)
    yield figure("memory of a worker and its scanners", "MB", lambda one: one.worker_family_mb)
    if setup.web:
        yield figure("CPU of PostgreSQL", "ms per job", lambda one: one.postgres_cpu * 1000 / one.jobs)
        yield figure("CPU of NATS", "ms per job", lambda one: one.nats_cpu * 1000 / one.jobs)
        yield figure("CPU of the web processes", "ms per job", lambda one: one.web_cpu * 1000 / one.jobs)
        yield figure("CPU of all", "ms per job", lambda one: one.all_ms)
        yield figure("memory of a web process", "MB", lambda one: one.web_mb)


def goals(samples: Samples) -> tuple[Goal, ...]:
    """Ratios to one worker of the same run, beside the same web processes."""
    found: list[Goal] = []
    for setup, taken in samples.items():
        if setup == ONE or setup.web != ONE.web:
            continue
        if setup == FOUR:
            for what, of in _COSTS.items():
                growth = _median(taken, of) / _median(samples[ONE], of)
                found.append(at_most(f"CPU per job of {what}: {setup} ÷ {ONE}", growth, MOST_GROWTH))
        total = _median(taken, lambda one: one.rate) / _median(samples[ONE], lambda one: one.rate)
        found.append(at_least(f"jobs/s: {setup} ÷ {ONE}", total, LEAST_TOTAL))
    return tuple(found)


_COSTS: dict[str, Callable[[Sample], float]] = {
    "the workers": lambda one: one.worker_ms,
    "all processes and servers": lambda one: one.all_ms,
}


def _median(taken: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    return statistics.median(map(of, taken))

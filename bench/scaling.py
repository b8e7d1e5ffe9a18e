"""What a job costs with 1, 2 and 4 worker processes beside 4 web processes, all real ones, on one PostgreSQL and one
NATS, which share the machine's cores with them; and with `serve` on SQLite: the guide to sizes (docs/how-to/sizing.md).

A job is an uploaded skill with content of its own, from RECEIVED to PUBLISHED: read, scanned, signed, published. The
backlog is submitted while the queue is paused, and the clock runs from the end of the pause until all of it is
published. Every worker has worked before, so no start is measured.
"""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import asyncpg
import msgspec

from bench.consuming import from_clients, until_published
from bench.measure import PATIENCE_S
from bench.processes import cpu_seconds, family, memory_mb, table
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.workshop import Workshop
from tests.processes.workers import REAL_WORKER, WorkerProcess, Workers, workers_on
from tests.support import nats, postgres
from tests.support.envs import active_env
from tests.support.role_processes import worker_of
from vskill_core.content import SkillFile
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.intake.submit import IntakeOutcome, submit_upload
from vskill_platform.queue.control import pause_queue, resume_queue
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env

WHOLE = ("-m", "vskill_platform", "serve")
REAL_WEB = ("-m", "vskill_platform", "serve", "--web-only")
_SUBMITTERS = 20
#: While it is paused, a worker looks again after a second.
_PAUSED_S = 1.5
_WARM_JOBS = 40
_PAUSE_MS = 600_000
#: A look at the counts is work for the database that is measured.
_LOOK_EVERY_S = 0.1


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


class Servers(msgspec.Struct, frozen=True):
    """The two servers of a run."""

    postgres: postgres.Server
    nats: nats.Server


def run(workshop: Workshop) -> Report:
    """A backlog for every setup in every round, on two servers that all share."""
    jobs = workshop.scale.backlog
    servers = Servers(postgres.Server(durable=True), nats.Server())
    try:
        samples: dict[Setup, list[Sample]] = {setup: [] for setup in SETUPS}
        for number in range(workshop.scale.backlog_rounds):
            for setup, taken in samples.items():
                taken.append(run_async(measure(servers, setup, jobs, workshop.folder)))
                workshop.say(f"round {number + 1}, {setup}: {taken[-1]}")
        return report(jobs, samples)
    finally:
        servers.postgres.remove()
        servers.nats.remove()


async def measure(servers: Servers, setup: Setup, jobs: int, folder: Path) -> Sample:
    """A fresh database, queue and folder; processes that have worked already; then the backlog."""
    place = Path(tempfile.mkdtemp(prefix="scaling-", dir=folder))
    name = place.name.replace("_", "-")
    settings = Settings(data_dir=str(place), log_level="error")
    if setup.web:
        store = await postgres.new_database(servers.postgres)
        settings = msgspec.structs.replace(settings, store=store, broker=f"{servers.nats.url}/{name}")
    given = {"VSKILL_BROKER": settings.broker}
    try:
        async with env_for(settings) as env, workers_on(settings, place, **given) as processes:
            with active_env(env):
                return await _measure(env, servers, processes, setup, jobs)
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _measure(env: Env, servers: Servers, processes: Workers, setup: Setup, jobs: int) -> Sample:
    webs = [await processes.start(REAL_WEB, VSKILL_PORT="0") for _ in range(setup.web)]
    command = REAL_WORKER if webs else WHOLE
    workers = [await processes.start(command, VSKILL_PORT="0") for _ in range(setup.workers)]
    for process in (*webs, *workers):
        await process.until_up()
    warm = await _warm_up(workers)
    before = await _database_bytes(env)
    await pause_queue(_PAUSE_MS, reason="the backlog is submitted", by="bench")
    await asyncio.sleep(_PAUSED_S)
    await _submit(warm, jobs)
    groups = (
        [one.pid for one in workers],
        [one.pid for one in webs],
        [servers.postgres.pid],
        [servers.nats.pid],
    )
    spent = [cpu_seconds(pids) for pids in groups]
    await resume_queue(by="bench")
    # Workers look at a pause once a second: the clock runs from when they are at it.
    already = await until_published(warm + 1, _LOOK_EVERY_S)
    began = time.perf_counter()
    await until_published(warm + jobs, _LOOK_EVERY_S)
    seconds = time.perf_counter() - began
    worker_cpu, web_cpu, postgres_cpu, nats_cpu = (
        cpu_seconds(pids) - was for pids, was in zip(groups, spent, strict=True)
    )
    content = (Path(env.settings.data_dir) / "blobs").rglob("*")
    known = table()
    first, beside = family(workers[0].pid, known), worker_of(workers[0].pid)
    return Sample(
        jobs,
        (warm + jobs - already) / seconds,
        worker_cpu,
        web_cpu,
        postgres_cpu,
        nats_cpu,
        worker_mb=memory_mb(workers[0].pid) + (memory_mb(beside) if beside else 0.0),
        worker_family_mb=sum(map(memory_mb, first)),
        web_mb=memory_mb(webs[0].pid) if webs else 0.0,
        database_bytes=(await _database_bytes(env) - before) / jobs,
        content_bytes=sum(one.stat().st_blocks * 512 for one in content if one.is_file()) / (warm + jobs),
    )


async def _warm_up(workers: Sequence[WorkerProcess]) -> int:
    """Until every worker has a scanning process; how many jobs that took. It starts more only if scans wait for one."""
    done = 0
    async with asyncio.timeout(PATIENCE_S):
        while done == 0 or any(len(family(worker_of(one.pid) or one.pid, table())) < 2 for one in workers):
            await _submit(done, _WARM_JOBS * len(workers))
            done += _WARM_JOBS * len(workers)
            await until_published(done, _LOOK_EVERY_S)
    return done


async def _submit(first: int, count: int) -> None:
    await from_clients(_SUBMITTERS, range(first, first + count), _upload)


async def _upload(number: int) -> None:
    name = f"skill-{number}"
    text = f"---\nname: {name}\ndescription: Sorts the lines of text number {number}.\n---\n"
    files = (SkillFile("SKILL.md", "100644", (text + "Sort the lines.\n" * 40).encode()),)
    done = await submit_upload(files, namespace="bench", slug=name)
    assert done.outcome is IntakeOutcome.CREATED, done


# What is on the disk.


async def _database_bytes(env: Env) -> int:
    """Of SQLite, the file itself, without the log beside it, which is a few megabytes whatever it holds."""
    if env.kv.engine == "sqlite":
        file = Path(env.settings.data_dir) / "vskill.db"
        with contextlib.closing(sqlite3.connect(file)) as database:
            ((pages,),) = database.execute("PRAGMA page_count")
            ((size,),) = database.execute("PRAGMA page_size")
        return int(pages) * int(size)
    connection = await asyncpg.connect(env.settings.store)
    try:
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))
    finally:
        await connection.close()


# What the run says about all of them: figures for every setup, and the goals, which are ratios to one worker.


def report(jobs: int, samples: Samples) -> Report:
    figures = [figure for setup, taken in samples.items() for figure in _figures(setup, taken)]
    return Report(
        name="scale",
        title=f"{jobs} uploaded skills through real processes on PostgreSQL and NATS, "
        f"{os.cpu_count()} cores for all of them",
        figures=tuple(figures),
        goals=goals(samples),
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

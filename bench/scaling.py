"""`python -m bench.scaling`: what a job costs with 1, 2 and 4 worker processes beside 4 web processes, all real ones,
on one PostgreSQL and one NATS, which share the machine's cores with them; and with one process on SQLite, for the guide
to sizes (docs/how-to/sizing.md).

A job is an uploaded skill with content of its own, from RECEIVED to PUBLISHED: read, scanned, signed, published. The
backlog is submitted while the queue is paused, and the clock runs from the end of the pause until all of it is
published. Every worker has worked before, so no start is measured. Every web process has one open event stream, on
which every submission must be told.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import click
import msgspec
from rich.console import Console

from bench.machine import describe
from bench.processes import cpu_seconds, family, memory_mb, table
from bench.render import show
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.scale import FULL
from bench.suite import Run
from tests.processes.workers import REAL_WORKER, WorkerProcess, Workers, workers_on
from tests.support import nats, postgres
from tests.support.envs import active_env
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async, tune_process
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.states import State
from vskill_platform.env import Env
from vskill_platform.intake.submit import Outcome, submit_upload
from vskill_platform.observability import configure_logging
from vskill_platform.queue.control import pause_queue, resume_queue
from vskill_platform.settings import Settings
from vskill_platform.submission_store import count_submissions

WHOLE = ("-m", "vskill_platform", "serve")
REAL_WEB = ("-m", "vskill_platform", "serve", "--web-only")
MOST_GROWTH = 1.2
LEAST_TOTAL = 0.9
PATIENCE_S = 300.0
_SUBMITTERS = 20
#: While it is paused, a worker looks again after a second.
_PAUSED_S = 1.5
_WARM_JOBS = 40
_PAUSE_MS = 600_000


class Setup(msgspec.Struct, frozen=True):
    """How many processes of each role; no web process is one process for everything, on SQLite."""

    web: int
    workers: int

    def __str__(self) -> str:
        if not self.web:
            return "one process on SQLite"
        return f"{self.web} web, {self.workers} {'worker' if self.workers == 1 else 'workers'}"


ALONE, ONE, FOUR = Setup(0, 1), Setup(4, 1), Setup(4, 4)
SETUPS = (ONE, Setup(4, 2), FOUR, Setup(1, 4), ALONE)


class Size(msgspec.Struct, frozen=True):
    """How many jobs, and how often."""

    jobs: int = 1_000
    rounds: int = 3
    setups: tuple[Setup, ...] = SETUPS


QUICK = Size(jobs=300, rounds=1)


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
    #: Memory in MB: a worker without and with its scanning processes, a web process.
    worker_mb: float
    worker_family_mb: float
    web_mb: float
    #: Connections to PostgreSQL of a worker and of a web process, at the most.
    connections: int
    #: Bytes of the database and of the stored content for each published skill.
    database_bytes: float
    content_bytes: float

    @property
    def worker_ms(self) -> float:
        """CPU of the workers for one job."""
        return self.worker_cpu * 1000 / self.jobs

    @property
    def all_ms(self) -> float:
        """CPU of everything for one job."""
        return (self.worker_cpu + self.web_cpu + self.postgres_cpu + self.nats_cpu) * 1000 / self.jobs


class Servers(msgspec.Struct, frozen=True):
    """The two servers of a run."""

    postgres: postgres.Server
    nats: nats.Server


def run(size: Size, folder: Path, say: Callable[[str], None]) -> Report:
    servers = Servers(postgres.Server(durable=True), nats.Server())
    try:
        samples: dict[Setup, list[Sample]] = {setup: [] for setup in size.setups}
        for number in range(size.rounds):
            for setup in size.setups:
                sample = run_async(measure(servers, setup, size.jobs, folder))
                say(
                    f"round {number + 1}, {setup}: {sample.rate:.0f} jobs/s, {sample.worker_ms:.1f} ms of CPU in "
                    f"workers, {sample.all_ms:.1f} in all ({sample.postgres_cpu:.1f} s PostgreSQL, "
                    f"{sample.nats_cpu:.1f} s NATS, {sample.web_cpu:.1f} s web)"
                )
                samples[setup].append(sample)
        return report(size, samples)
    finally:
        servers.postgres.remove()
        servers.nats.remove()


# One backlog.


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
    ports = [_free_port() for _ in range(setup.web)]
    webs = [await processes.start(REAL_WEB, VSKILL_PORT=str(port)) for port in ports]
    command = REAL_WORKER if webs else WHOLE
    workers = [await processes.start(command, VSKILL_PORT="0") for _ in range(setup.workers)]
    for process in (*webs, *workers):
        await process.until_up(60)
    warm = await _warm_up(workers)
    before = await _database_bytes(env)
    await pause_queue(_PAUSE_MS, reason="the backlog is submitted", by="bench")
    await asyncio.sleep(_PAUSED_S)
    await _submit(warm, jobs)
    async with _streams(ports) as told:
        groups = (
            [one.pid for one in workers],
            [one.pid for one in webs],
            [servers.postgres.pid],
            [servers.nats.pid],
        )
        spent = [cpu_seconds(pids) for pids in groups]
        await resume_queue()
        # Workers look at a pause once a second: the clock runs from when they are at it.
        already = await _until_published(warm + 1)
        began = time.perf_counter()
        await _until_published(warm + jobs)
        seconds = time.perf_counter() - began
        worker_cpu, web_cpu, postgres_cpu, nats_cpu = (
            cpu_seconds(pids) - was for pids, was in zip(groups, spent, strict=True)
        )
        await _until_told(told, jobs)
    known = table()
    first = family(workers[0].pid, known)
    return Sample(
        jobs,
        (warm + jobs - already) / seconds,
        worker_cpu,
        web_cpu,
        postgres_cpu,
        nats_cpu,
        worker_mb=memory_mb(workers[0].pid),
        worker_family_mb=sum(map(memory_mb, first)),
        web_mb=memory_mb(webs[0].pid) if webs else 0.0,
        connections=await _most_connections(env, (*webs, *workers)),
        database_bytes=(await _database_bytes(env) - before) / jobs,
        content_bytes=_folder_bytes(Path(env.settings.data_dir) / "blobs") / (warm + jobs),
    )


async def _warm_up(workers: Sequence[WorkerProcess]) -> int:
    """Until every worker has every scanning process that it will have; how many jobs that took."""
    done = 0
    wanted = os.cpu_count() or 1
    async with asyncio.timeout(PATIENCE_S):
        while done == 0 or any(len(family(one.pid, table())) <= wanted for one in workers):
            await _submit(done, _WARM_JOBS * len(workers))
            done += _WARM_JOBS * len(workers)
            await _until_published(done)
    return done


async def _submit(first: int, count: int) -> None:
    numbers = iter(range(first, first + count))

    async def client() -> None:
        for number in numbers:
            name = f"skill-{number}"
            text = f"---\nname: {name}\ndescription: Sorts the lines of text number {number}.\n---\n"
            files = (SkillFile("SKILL.md", "100644", (text + "Sort the lines.\n" * 40).encode()),)
            done = await submit_upload(files, namespace="bench", slug=name)
            assert done.outcome is Outcome.CREATED, done

    await asyncio.gather(*(client() for _ in range(_SUBMITTERS)))


async def _until_published(count: int) -> int:
    """Wait until so many are; how many there are then."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := (await count_submissions()).by_state[State.PUBLISHED]) < count:  # noqa: ASYNC110 - nobody says
            await asyncio.sleep(0.1)
    return found


# Event streams.


@asynccontextmanager
async def _streams(ports: Sequence[int]) -> AsyncIterator[list[set[str]]]:
    """One stream of each web process: the submissions that it said were published."""
    told: list[set[str]] = [set() for _ in ports]
    tasks = [asyncio.create_task(_follow(port, heard)) for port, heard in zip(ports, told, strict=True)]
    await asyncio.sleep(0.5)
    try:
        yield told
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(port: int, heard: set[str]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    writer.write(
        b"GET /api/v1/submissions/stream HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n"
    )
    with contextlib.closing(writer):
        while line := await reader.readline():
            if line.startswith(b"data:") and b'"PUBLISHED"' in line:
                heard.add(msgspec.json.decode(line[5:])["id"])


async def _until_told(told: Sequence[set[str]], count: int) -> None:
    """Events reach every web process."""
    async with asyncio.timeout(30):
        while any(len(heard) < count for heard in told):  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0.1)


# Sizes.


async def _database_bytes(env: Env) -> int:
    if env.kv.engine == "sqlite":
        return _pages_bytes(Path(env.settings.data_dir) / "vskill.db")
    connection = await asyncpg.connect(env.settings.store)
    try:
        found: int = await connection.fetchval("SELECT pg_database_size(current_database())")
    finally:
        await connection.close()
    return found


async def _most_connections(env: Env, processes: Sequence[WorkerProcess]) -> int:
    """Of any one process, by the sockets that the server sees; they come from this machine."""
    if env.kv.engine == "sqlite":
        return 0
    connection = await asyncpg.connect(env.settings.store)
    try:
        rows = await connection.fetch(
            "SELECT client_port FROM pg_stat_activity WHERE datname = current_database() AND client_port > 0"
        )
    finally:
        await connection.close()
    ports = {row[0] for row in rows}
    return max(len(ports & _ports_of(one.pid)) for one in processes)


def _ports_of(pid: int) -> set[int]:
    """Local ports of a process's connections."""
    links = Path(f"/proc/{pid}/fd")
    sockets = {_target(one) for one in links.iterdir()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if f"socket:[{line[9]}]" in sockets}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _pages_bytes(file: Path) -> int:
    """The database itself, without the log beside it, which is a few megabytes whatever it holds."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((size,),) = connection.execute("PRAGMA page_size")
    return int(pages) * int(size)


def _folder_bytes(folder: Path) -> int:
    """What the files take on the disk."""
    return sum(one.stat().st_blocks * 512 for one in folder.rglob("*") if one.is_file())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# What came of it.


def report(size: Size, samples: dict[Setup, list[Sample]]) -> Report:
    figures = [figure for setup, taken in samples.items() for figure in _figures(setup, taken)]
    return Report(
        name="scaling",
        title=f"{size.jobs} uploaded skills through real processes on PostgreSQL and NATS, "
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
        yield figure("connections of one process", "at most", lambda one: float(one.connections))


def goals(samples: dict[Setup, list[Sample]]) -> tuple[Goal, ...]:
    """Ratios to one worker of the same run, beside the same web processes."""
    found: list[Goal] = []
    for setup, taken in samples.items():
        if setup == ONE or setup.web != ONE.web:
            continue
        if setup == FOUR:
            for what, of in _COSTS.items():
                growth = _median(taken, of) / _median(samples[ONE], of)
                found.append(at_most(f"CPU per job of {what}: {setup} ÷ {ONE}", growth, MOST_GROWTH))
        total = _median(taken, _rate) / _median(samples[ONE], _rate)
        found.append(at_least(f"jobs/s: {setup} ÷ {ONE}", total, LEAST_TOTAL))
    return tuple(found)


def _rate(sample: Sample) -> float:
    return sample.rate


_COSTS: dict[str, Callable[[Sample], float]] = {
    "the workers": lambda one: one.worker_ms,
    "all processes and servers": lambda one: one.all_ms,
}


def _median(taken: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    return statistics.median(map(of, taken))


@click.command()
@click.option("--quick", is_flag=True, help="Fewer jobs, one round.")
@click.option("--rounds", type=click.IntRange(1), help="How often each is measured.")
@click.option("--jobs", type=click.IntRange(10), help="How many jobs each time.")
def main(*, quick: bool, rounds: int | None, jobs: int | None) -> None:
    """Measure what a job costs with one and with several processes."""
    size = QUICK if quick else Size()
    size = msgspec.structs.replace(size, rounds=rounds or size.rounds, jobs=jobs or size.jobs)
    configure_logging(Settings(log_level="error"))
    tune_process()
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as folder:
        machine = describe(Path(folder))
        found = Run(
            FULL, machine, (run(size, Path(folder), lambda text: progress.print(f"scaling: {text}")),)
        )
    show(found, Console())
    sys.exit(0 if found.all_met else 1)


if __name__ == "__main__":
    main()

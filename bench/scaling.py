"""What a job costs with 1, 2 and 4 worker processes beside 4 web processes, all real ones, on one PostgreSQL and one
NATS, which share the machine's cores with them; and with `serve` on SQLite: the guide to sizes (docs/how-to/sizing.md).

A job is an uploaded skill with content of its own, from RECEIVED to PUBLISHED: read, scanned, signed, published. The
backlog is submitted while the queue is paused, and the clock runs from the end of the pause until all of it is
published. Every worker has worked before, so no start is measured. Every web process has one open event stream, on
which every submission must be told.
"""

import asyncio
import contextlib
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec

from bench.consuming import from_clients, until_published
from bench.measure import PATIENCE_S
from bench.processes import cpu_seconds, family, memory_mb, table
from bench.results import Report
from bench.scaling_costs import SETUPS, Sample, Setup, report
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
    ports = [_free_port() for _ in range(setup.web)]
    webs = [await processes.start(REAL_WEB, VSKILL_PORT=str(port)) for port in ports]
    command = REAL_WORKER if webs else WHOLE
    workers = [await processes.start(command, VSKILL_PORT="0") for _ in range(setup.workers)]
    for process in (*webs, *workers):
        await process.until_up()
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
        await resume_queue(by="bench")
        # Workers look at a pause once a second: the clock runs from when they are at it.
        already = await until_published(warm + 1, _LOOK_EVERY_S)
        began = time.perf_counter()
        await until_published(warm + jobs, _LOOK_EVERY_S)
        seconds = time.perf_counter() - began
        worker_cpu, web_cpu, postgres_cpu, nats_cpu = (
            cpu_seconds(pids) - was for pids, was in zip(groups, spent, strict=True)
        )
        await _until_told(told, jobs)
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
        content_bytes=_folder_bytes(Path(env.settings.data_dir) / "blobs") / (warm + jobs),
    )


async def _warm_up(workers: Sequence[WorkerProcess]) -> int:
    """Until every worker has a scanning process; how many jobs that took. It starts more only if scans wait for one."""
    done = 0
    async with asyncio.timeout(PATIENCE_S):
        while done == 0 or not all(map(_has_scanner, workers)):
            await _submit(done, _WARM_JOBS * len(workers))
            done += _WARM_JOBS * len(workers)
            await until_published(done, _LOOK_EVERY_S)
    return done


def _has_scanner(worker: WorkerProcess) -> bool:
    return len(family(worker_of(worker.pid) or worker.pid, table())) > 1


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


def _folder_bytes(folder: Path) -> int:
    return sum(one.stat().st_blocks * 512 for one in folder.rglob("*") if one.is_file())


# Event streams.


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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

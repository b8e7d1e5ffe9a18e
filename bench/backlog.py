"""A registry with many submissions waiting, and its server killed in the middle of them: how long the interrupted ones
wait for their next worker, who overtakes them, and how long reads take meanwhile. One process serves, works and
schedules, on SQLite."""

import asyncio
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from bench.command import end, measured
from bench.consuming import from_clients
from bench.results import Figure, Report, at_most
from bench.scale import FULL, QUICK
from bench.workshop import Workshop
from tests.support.envs import submit_skill
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.states import ACTIVE_STATES, State
from vskill_platform.domain.submission import CLAIM_MS, Submission
from vskill_platform.kv.collections import SUBMISSIONS
from vskill_platform.kv.query import In
from vskill_platform.records import decode
from vskill_platform.settings import Settings
from vskill_platform.submission_store import get_submissions
from vskill_platform.worker_context import require_env, run_with_worker_env

T = TypeVar("T")

ROOT = Path(__file__).parent.parent
#: What a person or a client reads, in turn.
PATHS = ("/", "/queue", "/skills", "/api/v1/skills?limit=30", "/api/v1/queue/health")
#: Submissions that wait in a full run, and how long reads are measured.
WAITING = 10_000
READ_S = 10.0
#: Skills that are there from the beginning.
PUBLISHED = 30
#: Clients that submit at the same time.
SUBMITTERS = 16
UP_S = 60.0
#: A claim's end, a round of recovery, and a free slot.
MOST_WAIT_S = 8.0
MOST_SLOWER = 2.0


class Times(msgspec.Struct, frozen=True):
    """Milliseconds that reads took."""

    each: tuple[float, ...]

    def at(self, share: float) -> float:
        ordered = sorted(self.each)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Interrupted(msgspec.Struct, frozen=True):
    """What became of the work of a killed server."""

    count: int
    #: Seconds from the end of each claim to the next one.
    waits: tuple[float, ...]
    #: Submissions that were taken up for the first time after an interrupted one could be, and before it was: the most.
    overtaken: int


def run(workshop: Workshop) -> Report:
    waiting = WAITING if workshop.scale.name == "full" else workshop.scale.submissions
    folder = workshop.new_file().with_suffix("")
    settings = Settings(data_dir=str(folder), log_level="error", rate_limits="off")
    _in_env(workshop, settings, lambda: _submit(PUBLISHED, "early"))
    with _serving(settings, folder) as (port, _):
        _in_env(workshop, settings, _until_idle)
        idle = _read_for(port, READ_S)
    workshop.say(f"submitting {waiting:,}")
    _in_env(workshop, settings, lambda: _submit(waiting, "waits"))
    with _serving(settings, folder) as (port, server):
        busy = _read_for(port, READ_S)
        server.send_signal(signal.SIGKILL)
        server.wait()
    held = _in_env(workshop, settings, _held)
    with _serving(settings, folder) as (port, _):
        again = _read_for(port, CLAIM_MS / 1000 + MOST_WAIT_S)
        found = _in_env(workshop, settings, lambda: _look_at(held))
    return _report(waiting, idle, Times((*busy.each, *again.each)), found)


def _report(waiting: int, idle: Times, busy: Times, found: Interrupted) -> Report:
    figures = [Figure.of(f"read, {name}", "ms", times.each) for name, times in _named(waiting, idle, busy)]
    for name, times in _named(waiting, idle, busy):
        figures.append(Figure.of(f"read, {name}, 99 of 100 within", "ms", [times.at(0.99)]))
    waits = found.waits or (0.0,)
    figures.append(Figure.of("interrupted: from the end of its claim to the next", "s", waits))
    return Report(
        name="backlog",
        title=f"{waiting:,} submissions wait and the server is killed: one process, SQLite",
        figures=tuple(figures),
        goals=(
            at_most("interrupted: longest wait for the next worker", max(waits), MOST_WAIT_S, unit=" s"),
            at_most("interrupted: overtaken by, at most", found.overtaken, 30, unit=" submissions"),
            at_most(
                f"read, half of them: {waiting:,} waiting ÷ idle",
                statistics.median(busy.each) / statistics.median(idle.each),
                MOST_SLOWER,
            ),
        ),
        notes=(
            (
                f"{found.count} submissions were in the server's hands when it was killed. Reads are "
                f"{', '.join(PATHS)} in turn, by one client. The server scans on the same cores, so a read also waits "
                "for its share of them."
            ),
        ),
    )


def _named(waiting: int, idle: Times, busy: Times) -> tuple[tuple[str, Times], ...]:
    return ("idle", idle), (f"{waiting:,} waiting", busy)


def _in_env(workshop: Workshop, settings: Settings, work: Callable[[], Awaitable[T]]) -> T:
    async def inside() -> T:
        async with env_for(settings) as env:
            return await run_with_worker_env(env, work)

    return workshop.run(inside())


async def _submit(count: int, name: str) -> None:
    async def submit(number: int) -> None:
        # Ten accounts' worth of namespaces, so that no owner is a bulk of its own.
        await submit_skill(f"{name}-{number}", f"Sorts table {number}.", namespace=f"team-{number % 10}")

    await from_clients(SUBMITTERS, range(count), submit)


async def _until_idle() -> None:
    while await _records(ACTIVE_STATES):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.2)


async def _records(states: frozenset[State]) -> list[Submission]:
    wanted = {"state": In(tuple(sorted(states)))}
    page = await require_env("kv").kv.select(
        SUBMISSIONS.prefix, audiences=EVERYTHING, where=wanted, order_by="due_at", limit=1_000
    )
    return [decode(entry, Submission) for entry in page.items]


async def _held() -> list[Submission]:
    return [one for one in await _records(ACTIVE_STATES - {State.RECEIVED}) if one.claim is not None]


async def _look_at(held: list[Submission]) -> Interrupted:
    now = {one.id: one for one in await get_submissions([one.id for one in held], audiences=EVERYTHING)}
    waits, spans = [], []
    for one in held:
        assert one.claim is not None
        begun = [event.at for event in now[one.id].history if event.to is State.TIER1_SCANNING]
        # One that was about to be published goes on where it stood, without a step.
        taken_at = begun[-1] if len(begun) > 1 else now[one.id].updated_at
        waits.append((taken_at - one.claim.until) / 1000)
        spans.append((one.claim.until, taken_at))
    ended = await _records(frozenset(State) - ACTIVE_STATES)
    first = [_first_taken(one) for one in ended if one.id not in now]
    # Recovery comes round within five seconds; only who is taken after it has overtaken.
    overtaken = [sum(since + 5_000 < at < taken for at in first) for since, taken in spans]
    return Interrupted(len(held), tuple(waits), max(overtaken, default=0))


def _first_taken(record: Submission) -> int:
    return next((event.at for event in record.history if event.to is State.TIER1_SCANNING), 0)


@contextmanager
def _serving(settings: Settings, folder: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """The product's server on this folder, once it answers."""
    port = _free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")},
        "VSKILL_DATA_DIR": str(folder),
        "VSKILL_PORT": str(port),
        "VSKILL_LOG_LEVEL": "error",
        "VSKILL_RATE_LIMITS": settings.rate_limits,
    }
    command = [sys.executable, "-m", "vskill_platform", "serve"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL) as server:
        try:
            _until_up(port)
            yield port, server
        finally:
            if server.poll() is None:
                server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _until_up(port: int) -> None:
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        try:
            _read(port, "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not start")


def _read_for(port: int, seconds: float) -> Times:
    for path in PATHS:
        _read(port, path)
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in PATHS:
            began = time.perf_counter()
            _read(port, path)
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)
    return Times(tuple(times))


def _read(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise OSError(f"{path} answered {answer.status}")
    finally:
        connection.close()


@click.command()
@click.option("--quick", is_flag=True, help="150 submissions wait, not 10,000.")
def main(*, quick: bool) -> None:
    """Measure what waits, what was interrupted, and reads beside it."""
    end(measured({"backlog": run}, QUICK if quick else FULL), quick=quick)


if __name__ == "__main__":
    main()

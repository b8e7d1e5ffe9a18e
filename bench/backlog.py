"""A registry with many submissions waiting, and whoever works killed in the middle of them: how long the interrupted
ones wait for their next worker, who overtakes them, and how long reads take meanwhile. What `serve` starts, on SQLite.
"""

import asyncio
import math
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import msgspec

from bench.backlog_processes import UP_S, read, serving
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
from vskill_platform.submission_store import count_submissions, get_submissions
from vskill_platform.worker_context import require_env, run_with_worker_env

T = TypeVar("T")

#: What a person or a client reads, in turn.
PATHS = ("/", "/queue", "/skills", "/api/v1/skills?limit=30", "/api/v1/queue/health")
#: Submissions that wait in a full run, and how long reads are measured.
WAITING = 10_000
READ_S = 10.0
#: Skills that are there from the beginning: as many as the longest of these reads looks at (`ENDS_SAMPLE`).
PUBLISHED = 100
#: Clients that submit at the same time.
SUBMITTERS = 16
#: A claim's end, a round of recovery, and a free slot.
MOST_WAIT_S = 8.0
#: How many times as long as when idle a round of reads may take, and as when idle and written to.
MOST_SLOWER, MOST_SLOWER_THAN_CHANGED = 1.3, 1.2


class Times(msgspec.Struct, frozen=True):
    """Milliseconds that reads took: of each round, one for each path."""

    rounds: tuple[tuple[float, ...], ...]

    @property
    def in_all(self) -> tuple[float, ...]:
        """Of each round as a whole: a median over all reads would be that of the path in the middle."""
        return tuple(map(sum, self.rounds))

    def of(self, path: str) -> tuple[float, ...]:
        return tuple(one[PATHS.index(path)] for one in self.rounds)

    @property
    def median(self) -> float:
        return statistics.median(self.in_all)

    def at(self, share: float) -> float:
        ordered = sorted(time for one in self.rounds for time in one)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Reads(msgspec.Struct, frozen=True):
    """The same reads of an idle registry, of one that is written to before each of them, and beside a backlog."""

    idle: Times
    changed: Times
    busy: Times


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
    with serving(settings, folder) as platform:
        _in_env(workshop, settings, _until_idle)
        idle = _read_for(platform.port, READ_S)
        changed = _in_env(workshop, settings, lambda: _read_changed(platform.port, READ_S))
    workshop.say(f"submitting {waiting:,}")
    _in_env(workshop, settings, lambda: _submit(waiting, "waits"))
    with serving(settings, folder) as platform:
        before, began = _until_working(platform.port), time.monotonic()
        busy = _read_for(platform.port, READ_S)
        platform.kill_worker()
        worked_s = time.monotonic() - began
    ended, held = _in_env(workshop, settings, _ended), _in_env(workshop, settings, _held)
    with serving(settings, folder) as platform:
        _until_working(platform.port)
        again = _read_for(platform.port, CLAIM_MS / 1000 + MOST_WAIT_S)
        found = _in_env(workshop, settings, lambda: _look_at(held))
    per_s = (ended - before) / worked_s
    reads = Reads(idle, changed, Times((*busy.rounds, *again.rounds)))
    return _report(waiting, reads, per_s, found)


def _report(waiting: int, reads: Reads, per_s: float, found: Interrupted) -> Report:
    named = (("idle", reads.idle), ("idle, written to", reads.changed), (f"{waiting:,} waiting", reads.busy))
    figures = [Figure.of(f"all five, {name}", "ms", times.in_all) for name, times in named]
    figures += [Figure.of(f"{path}, {name}", "ms", times.of(path)) for path in PATHS for name, times in named]
    figures += [
        Figure.of(f"any one, {name}, 99 of 100 within", "ms", [times.at(0.99)]) for name, times in named
    ]
    figures.append(Figure.of("submissions worked beside the reads", "a second", [per_s]))
    waits = found.waits or (0.0,)
    figures.append(Figure.of("interrupted: from the end of its claim to the next", "s", waits))
    return Report(
        name="backlog",
        title=f"{waiting:,} submissions wait and whoever works is killed: `serve` on SQLite",
        figures=tuple(figures),
        goals=(
            at_most("interrupted: longest wait for the next worker", max(waits), MOST_WAIT_S, unit=" s"),
            at_most("interrupted: overtaken by, at most", found.overtaken, 30, unit=" submissions"),
            at_most(
                f"reads, all five: {waiting:,} waiting ÷ idle",
                reads.busy.median / reads.idle.median,
                MOST_SLOWER,
            ),
            at_most(
                f"reads, all five: {waiting:,} waiting ÷ idle, written to",
                reads.busy.median / reads.changed.median,
                MOST_SLOWER_THAN_CHANGED,
            ),
        ),
        notes=(
            (
                f"{found.count} submissions were in hand at the kill. Reads are the five paths in turn, by one client "
                "on the same cores, on which skills are scanned too. What was kept of an answer no longer holds after "
                "a write, and work writes between the reads: an idle registry that is written to before each read has "
                "the same to do."
            ),
        ),
    )


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


async def _records(states: frozenset[State], order_by: str = "due_at") -> list[Submission]:
    """All of them that have this field."""
    kv, found, after = require_env("kv").kv, list[Submission](), None
    while True:
        page = await kv.select(
            SUBMISSIONS.prefix,
            audiences=EVERYTHING,
            where={"state": In(tuple(sorted(states)))},
            order_by=order_by,
            after=after,
            limit=1_000,
        )
        found += [decode(entry, Submission) for entry in page.items]
        after = page.after
        if after is None:
            return found


async def _ended() -> int:
    counts = await count_submissions(audiences=EVERYTHING)
    return counts.total - counts.active


async def _held() -> list[Submission]:
    return [one for one in await _records(ACTIVE_STATES - {State.RECEIVED}) if one.claim is not None]


async def _look_at(held: list[Submission]) -> Interrupted:
    now = {one.id: one for one in await get_submissions([one.id for one in held], audiences=EVERYTHING)}
    waits, spans = [], []
    for one in held:
        assert one.claim is not None
        taken_at = _taken_again(now[one.id], one.claim.until)
        waits.append((taken_at - one.claim.until) / 1000)
        spans.append((one.claim.until, taken_at))
    others = await _records(frozenset(State), order_by="updated_at")
    first = [_first_taken(one) for one in others if one.id not in now]
    # Recovery comes round within five seconds; only who is taken after it has overtaken.
    overtaken = [sum(since + 5_000 < at < taken for at in first) for since, taken in spans]
    return Interrupted(len(held), tuple(waits), max(overtaken, default=0))


def _taken_again(record: Submission, since: int) -> float:
    begun = [event.at for event in record.history if event.to is State.TIER1_SCANNING and event.at > since]
    if begun:
        return begun[0]
    # One that was about to be published goes on where it stood, without a step.
    return math.inf if record.state.active else record.updated_at


def _first_taken(record: Submission) -> int:
    return next((event.at for event in record.history if event.to is State.TIER1_SCANNING), 0)


def _until_working(port: int) -> int:
    """Wait until a submission more has ended than had, or none is left; how many have, by then."""
    deadline = time.monotonic() + UP_S
    first, active = _look_at_counts(port)
    while time.monotonic() < deadline:
        ended, active = _look_at_counts(port)
        if ended > first or not active:
            return ended
        time.sleep(0.05)
    raise TimeoutError(f"nobody works, and {active} submissions wait")


def _look_at_counts(port: int) -> tuple[int, int]:
    """How many have ended, and how many have not."""
    counts = msgspec.json.decode(read(port, "/api/v1/queue/health"))["counts"]
    return counts["total"] - counts["active"], counts["active"]


def _read_for(port: int, seconds: float) -> Times:
    _read_round(port)
    rounds: list[tuple[float, ...]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rounds.append(_read_round(port))
    return Times(tuple(rounds))


def _read_round(port: int) -> tuple[float, ...]:
    return tuple(_timeread(port, path) for path in PATHS)


async def _read_changed(port: int, seconds: float) -> Times:
    kv, rounds = require_env("kv").kv, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        times = []
        for path in PATHS:
            await kv.put("bench:change", str(time.monotonic_ns()).encode())
            times.append(_timeread(port, path))
        rounds.append(tuple(times))
    return Times(tuple(rounds))


def _timeread(port: int, path: str) -> float:
    """Milliseconds, after a pause as of somebody who looks at the page before."""
    time.sleep(0.02)
    began = time.perf_counter()
    read(port, path)
    return (time.perf_counter() - began) * 1000


@click.command()
@click.option("--quick", is_flag=True, help="150 submissions wait, not 10,000.")
def main(*, quick: bool) -> None:
    """Measure what waits, what was interrupted, and reads beside it."""
    end(measured({"backlog": run}, QUICK if quick else FULL), quick=quick)


if __name__ == "__main__":
    main()

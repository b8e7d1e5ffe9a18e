"""The reads that the requirements name on SQLite, beside the raw engine, beside single reads, and in stores of two
sizes."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec

from bench import driver_reads
from bench.catalogue import filled
from bench.measure import take_turns, timed, timed_calls
from bench.processes import resident_bytes
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.workshop import Workshop, open_env
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.records import decode
from vskill_platform.submission_store import (
    enumerate_published_skills,
    get_stuck_submissions,
)
from vskill_platform.worker_context import Env, run_with_worker_env

ENUMERATE = "enumerate_published_skills"
RAW_MSGSPEC = "raw SQLite range scan, msgspec into dicts"
RAW_JSON = "raw SQLite range scan, json.loads"
SEQUENTIAL = "gets awaited one after the other with aiosqlite"

_MB = 1_000_000
_WARM_PAGES = 10
_STUCK_CALLS = 20

_GETS_NOTE = (
    "The 20 times are those over gets that are awaited one after the other with aiosqlite, the usual driver of SQLite "
    "for an event loop, which sends each step of each read to a thread. Our own `get` reads its key inline, without a "
    "thread; enumerating is only a few times faster than those, and that is no goal."
)
_NO_DRIVER = "aiosqlite is not installed, so nothing is compared with it; `make bench` installs it."


def run(workshop: Workshop) -> Report:
    enumerating, goals = _enumerate(workshop)
    stuck, stuck_goal = _stuck(workshop)
    memory, memory_goal = _memory(workshop)
    return Report(
        name="reads",
        title=f"Reads: {workshop.scale.skills:,} published skills, {workshop.scale.stuck} stuck submissions, "
        f"{workshop.scale.large:,} records iterated",
        figures=(*enumerating, *stuck, memory),
        goals=(*goals, stuck_goal, memory_goal),
        notes=(_GETS_NOTE if driver_reads.installed() else _NO_DRIVER,),
    )


# Enumerating.


def _enumerate(workshop: Workshop) -> tuple[tuple[Figure, ...], tuple[Goal, ...]]:
    count = workshop.scale.skills
    path = filled(workshop, count)
    rivals: dict[str, Callable[[], float]] = {
        RAW_MSGSPEC: partial(_raw_ms, path, count, msgspec.json.decode),
        RAW_JSON: partial(_raw_ms, path, count, json.loads),
        ENUMERATE: partial(_enumerate_ms, workshop, path, count),
    }
    if driver_reads.installed():
        rivals[SEQUENTIAL] = partial(driver_reads.milliseconds, path, count)
    samples = take_turns(workshop.scale.rounds, rivals)
    figures = {name: Figure.of(name, "ms", taken) for name, taken in samples.items()}
    ours = figures[ENUMERATE].median
    goals = [
        at_most(f"{ENUMERATE} ÷ {raw}", ours / figures[raw].median, 2.0) for raw in (RAW_JSON, RAW_MSGSPEC)
    ]
    if SEQUENTIAL in figures:
        goals.append(at_least(f"{SEQUENTIAL} ÷ {ENUMERATE}", figures[SEQUENTIAL].median / ours, 20.0))
    return tuple(figures.values()), tuple(goals)


def _enumerate_ms(workshop: Workshop, path: Path, expected: int) -> float:
    async def work(env: Env) -> float:
        # Each reads the file once before the clock starts: caches are warm for all alike.
        await env.kv.list(SKILLS.prefix, limit=expected)
        with timed() as watch:
            found = await enumerate_published_skills()
        assert len(found) == expected, f"{len(found)} found of {expected}"
        return watch.seconds * 1000

    return workshop.run(_in_env(path, work))


def _raw_ms(path: Path, expected: int, decode_json: Callable[[bytes], object]) -> float:
    """The least that Python can do with the same rows of the same file."""
    connection = sqlite3.connect(path)
    before, after = SKILLS.exclude[0], SKILLS.exclude[0][:-1] + ";"
    with timed() as watch:
        found = []
        for least, end in ((SKILLS.prefix, before), (after, SKILLS.prefix[:-1] + ";")):
            rows = connection.execute(
                "SELECT key, CAST(value AS BLOB) FROM records WHERE key >= ? AND key < ? ORDER BY key",
                (least, end),
            )
            found += [(key, decode_json(value)) for key, value in rows]
    connection.close()
    assert len(found) == expected, f"{len(found)} found of {expected}"
    return watch.seconds * 1000


# Stuck submissions.


def _stuck(workshop: Workshop) -> tuple[tuple[Figure, ...], Goal]:
    sizes = (workshop.scale.small, workshop.scale.large)
    stuck = workshop.scale.stuck
    rivals = {
        f"get_stuck_submissions, {stuck} stuck among {size:,}": partial(
            _stuck_ms, workshop, workshop.submissions(size)
        )
        for size in sizes
    }
    samples = take_turns(workshop.scale.rounds, rivals)
    small, large = (Figure.of(name, "ms", taken) for name, taken in samples.items())
    goal = at_most(
        f"get_stuck_submissions among {sizes[1]:,} ÷ among {sizes[0]:,}", large.median / small.median, 2.0
    )
    return (small, large), goal


def _stuck_ms(workshop: Workshop, path: Path) -> float:
    async def work(_: Env) -> float:
        found = await get_stuck_submissions()
        assert len(found) == workshop.scale.stuck, f"{len(found)} stuck, not {workshop.scale.stuck}"
        return await timed_calls(_STUCK_CALLS, get_stuck_submissions) * 1000

    return workshop.run(_in_env(path, work))


# Iterating.


def _memory(workshop: Workshop) -> tuple[Figure, Goal]:
    size = workshop.scale.large
    grown = workshop.run(_in_env(workshop.submissions(size), partial(_iterate_mb, expected=size)))
    figure = Figure.of(f"memory gained while iterating {size:,} records", "MB", [grown])
    # Flat means that it does not follow the number of records: all of them decoded would be gigabytes.
    return figure, at_most(f"memory gained while iterating {size:,} records", grown, 16.0, unit=" MB")


async def _iterate_mb(env: Env, expected: int) -> float:
    """Resident memory at its highest, over what it was after the first pages."""
    records = pages = 0
    before = highest = 0
    async for page in iterate_pages(env.kv, SUBMISSIONS.prefix):
        for entry in page.items:
            decode(entry, Submission)
        records += len(page.items)
        pages += 1
        resident = await asyncio.to_thread(resident_bytes)
        before = resident if pages <= _WARM_PAGES else before
        highest = max(highest, resident)
    assert records == expected, f"{records} read of {expected}"
    return max(highest - before, 0) / _MB


async def _in_env(path: Path, work: Callable[[Env], Awaitable[float]]) -> float:
    async with open_env(path) as env:
        return await run_with_worker_env(env, lambda: work(env))

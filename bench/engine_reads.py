"""Enumerating published skills on each engine, with and without a latency of 10 ms for every call: the product's own
way, single reads one after the other, some at once, all at once, and the raw engine.

A latency is what a store across a network has. It is injected above the engine, once for each call to it, so the raw
engine's scan pays it once.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import msgspec

from bench.measure import timed
from bench.queue_peers.servers import Servers, open_servers
from bench.records import skill_puts
from bench.results import TIMES, Figure, Goal, Plot, Report, Table, at_least, at_most, readable
from bench.slow_kv import Delayed, GetOnly
from bench.workshop import Workshop
from vskill_platform.bootstrap import env_for
from vskill_platform.clock import SystemClock
from vskill_platform.env import Env
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.contract import KV, PAGE, READS_AT_ONCE
from vskill_platform.kv.entries import Put
from vskill_platform.settings import Settings
from vskill_platform.submission_store import enumerate_published_skills
from vskill_platform.worker_context import run_with_worker_env

OURS = "enumerate_published_skills"
SEQUENTIAL = "gets one after the other"
BOUNDED = f"gets, {READS_AT_ONCE} at once"
UNBOUNDED = "gets, all at once"
RAW = "the raw engine, a range scan"
WAYS = (OURS, RAW, SEQUENTIAL, BOUNDED, UNBOUNDED)

LATENCY_S = 0.010
MEMORY, SQLITE, POSTGRESQL = "memory", "SQLite", "PostgreSQL"
_ALL = 1_000_000_000
_CHUNK = 500

_RANGES = ((SKILLS.prefix, SKILLS.exclude[0]), (SKILLS.exclude[0][:-1] + ";", SKILLS.prefix[:-1] + ";"))
_SELECT = "SELECT key, value FROM records WHERE key >= {0} AND key < {1} ORDER BY key"

#: Reads every record of the range, decoded, once.
Reading = Callable[[], Awaitable[int]]


class Found(msgspec.Struct, frozen=True):
    """Milliseconds of every way on one engine."""

    engine: str
    latency_ms: int
    keys: int
    samples: dict[str, list[float]]

    @property
    def label(self) -> str:
        return f"{self.engine} at {self.latency_ms} ms"

    def figure(self, way: str) -> Figure:
        return Figure.of(f"{self.label}, {way}", "ms", self.samples[way])


def run(workshop: Workshop) -> Report:
    engines = engines_of(workshop.scale.name)
    sizes = ((0.0, workshop.scale.engine_keys), (LATENCY_S, workshop.scale.slow_keys))
    with open_servers() as servers:
        found = [
            workshop.run(measure(workshop, servers, engine, latency, keys))
            for latency, keys in sizes
            for engine in engines
        ]
    return report(found)


def engines_of(scale: str) -> tuple[str, ...]:
    """A quick run starts no server."""
    return (MEMORY, SQLITE, POSTGRESQL) if scale == "full" else (MEMORY, SQLITE)


def report(found: Sequence[Found]) -> Report:
    tried = {one.engine for one in found}
    left_out = () if POSTGRESQL in tried else ("PostgreSQL is left out of a run of this size.",)
    return Report(
        name="engines",
        title=f"Enumerating published skills on each engine, at once and with {LATENCY_S * 1000:.0f} ms for every call",
        figures=tuple(one.figure(way) for one in found for way in WAYS),
        goals=tuple(goal for one in found for goal in _goals(one)),
        notes=(
            "Medians of the rounds, and how many times ours; one after the other with a latency is tried once.",
            (
                "Single reads are what a store that can only `get` would do. The bound is the contract's default: it "
                "keeps a large enumeration from asking a server for everything in one moment."
            ),
            "The raw engine decodes into plain dictionaries; ours into typed summaries.",
            *left_out,
        ),
        tables=(_table(found),),
        plots=tuple(Plot(f"engines-{ms}ms", _title(found, ms), "ms", f" at {ms} ms") for ms in (0, 10)),
    )


def _title(found: Sequence[Found], ms: int) -> str:
    keys = next(one.keys for one in found if one.latency_ms == ms)
    return f"Enumerating {keys:,} skills" + (f", every call {ms} ms away" if ms else "")


def _goals(one: Found) -> Sequence[Goal]:
    ours, raw, single = (one.figure(way).median for way in (OURS, RAW, SEQUENTIAL))
    if one.latency_ms:
        return [at_least(f"{one.label}: {SEQUENTIAL} ÷ {OURS}", single / ours, 20.0)]
    # In memory the raw engine is a dictionary; there is no price to compare with.
    return [] if one.engine == MEMORY else [at_most(f"{one.label}: {OURS} ÷ raw", ours / raw, 2.0)]


def _table(found: Sequence[Found]) -> Table:
    columns = ("way", *(f"{one.label}, {one.keys:,} skills" for one in found))
    return Table(columns, tuple((way, *(_cell(one, way) for one in found)) for way in WAYS))


def _cell(one: Found, way: str) -> str:
    median, ours = one.figure(way).median, one.figure(OURS).median
    return f"{readable(median)} ms" + ("" if way == OURS else f" ({readable(median / ours)}{TIMES})")


# Measuring.


async def measure(workshop: Workshop, servers: Servers, engine: str, latency: float, keys: int) -> Found:
    path = workshop.new_file()
    if engine == SQLITE:
        place = f"sqlite:{path}"
    else:
        place = await asyncio.to_thread(servers.place, engine)
    settings = Settings(store=place, blobs="memory:", data_dir=str(path.with_suffix("")))
    puts = list(skill_puts(keys, SystemClock().now()))
    async with env_for(settings) as env:
        waiting = iter(puts)
        while chunk := list(islice(waiting, _CHUNK)):
            await env.kv.commit(chunk)
        async with _raw(engine, path, place, puts, latency) as raw:
            readings = {**_ways(env, latency), RAW: raw}
            samples = {
                way: await _sample(
                    workshop.scale.rounds, readings[way], keys, once=bool(latency) and way == SEQUENTIAL
                )
                for way in WAYS
            }
    return Found(engine, round(latency * 1000), keys, samples)


async def _sample(rounds: int, reading: Reading, expected: int, *, once: bool) -> list[float]:
    """Milliseconds of each round, after one that does not count; what takes seconds is done once."""
    samples = []
    for number in range(1 if once else rounds + 1):
        with timed() as watch:
            found = await reading()
        assert found == expected, f"{found} found of {expected}"
        if once or number:
            samples.append(watch.seconds * 1000)
    return samples


def _ways(env: Env, latency: float) -> dict[str, Reading]:
    kv = env.kv
    stores: dict[str, tuple[KV, int]] = {
        OURS: (Delayed(kv, latency) if latency else kv, PAGE),
        SEQUENTIAL: (GetOnly(kv, 1, latency), PAGE),
        BOUNDED: (GetOnly(kv, READS_AT_ONCE, latency), PAGE),
        UNBOUNDED: (GetOnly(kv, _ALL, latency), _ALL),
    }

    def reading(store: KV, page: int) -> Reading:
        own = msgspec.structs.replace(env, kv=store)
        return lambda: run_with_worker_env(own, lambda: _count(page))

    return {way: reading(store, page) for way, (store, page) in stores.items()}


async def _count(page: int) -> int:
    return len(await enumerate_published_skills(page))


# The raw engines.


@asynccontextmanager
async def _raw(
    engine: str, path: Path, place: str, puts: Sequence[Put], latency: float
) -> AsyncIterator[Reading]:
    """The least that Python can do with the same records: one range, decoded."""
    if engine == POSTGRESQL:
        async with _raw_postgresql(place, latency) as reading:
            yield reading
    elif engine == SQLITE:
        yield lambda: _raw_sqlite(path, latency)
    else:
        known = {put.key: put.value for put in puts}
        yield lambda: _raw_memory(known, latency)


async def _raw_memory(known: dict[str, bytes], latency: float) -> int:
    await asyncio.sleep(latency)
    found = []
    for least, end in _RANGES:
        keys = sorted(key for key in known if least <= key < end)
        found += [(key, msgspec.json.decode(known[key])) for key in keys]
    return len(found)


async def _raw_sqlite(path: Path, latency: float) -> int:
    await asyncio.sleep(latency)
    return await asyncio.to_thread(_scan_sqlite, path)


def _scan_sqlite(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = []
    for ends in _RANGES:
        rows = connection.execute(_SELECT.format("?", "?").replace("value", "CAST(value AS BLOB)"), ends)
        found += [(key, msgspec.json.decode(value)) for key, value in rows]
    connection.close()
    return len(found)


@asynccontextmanager
async def _raw_postgresql(place: str, latency: float) -> AsyncIterator[Reading]:
    import asyncpg  # noqa: PLC0415 - an extra

    connection = await asyncpg.connect(place)

    async def reading() -> int:
        await asyncio.sleep(latency)
        found = []
        for ends in _RANGES:
            rows = await connection.fetch(_SELECT.format("$1", "$2"), *ends)
            found += [(key, msgspec.json.decode(value)) for key, value in rows]
        return len(found)

    try:
        yield reading
    finally:
        await connection.close()

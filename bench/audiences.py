"""Lists, pages, searches and counts of readers who may read 1, 2, 10, 100 or 199 of 200 audiences, beside the same in a
registry where everything is public; and again where the newest import, half of all skills, may not be read."""

import base64
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from typing import Any

import msgspec

from bench.engine_reads import POSTGRESQL, SQLITE
from bench.measure import timed_calls
from bench.queue_peers.servers import Servers, open_servers
from bench.records import skill_puts
from bench.results import TIMES, Figure, Goal, Report, Table, at_most, readable
from bench.workshop import Workshop
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.clock import SystemClock
from vskill_platform.domain.audience import PUBLIC, PUBLIC_ONLY
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.contract import KV
from vskill_platform.kv.entries import Put
from vskill_platform.kv.query import Is
from vskill_platform.settings import Settings

AUDIENCES = 200
#: How many of them a reader has.
READABLE = (1, 2, 10, 100, 199)
PAGE_SIZE = 30
#: The stores: nothing is private; each skill is of one of the audiences; so is the older half, and the newer is hidden.
OPEN, MIXED, HIDDEN = "all public", "200 audiences", "newest import hidden"
LIST, MIDDLE, FILTERED, SEARCH, COUNTS = (
    "first page",
    "page in the middle",
    "page of a category",
    "search for a common word",
    "counts of all facets",
)
QUESTIONS = (LIST, MIDDLE, FILTERED, SEARCH, COUNTS)
#: Milliseconds that a list may take for a reader of nearly all audiences.
MOST_MS = {SQLITE: 1.0, POSTGRESQL: 3.0}
_SCANS = (
    "For a common word and readers of 100 or 199 audiences PostgreSQL walks through the table. It begins where the "
    "last walk ended, so that one in hundreds crosses the hidden import; where the table is smaller than a quarter of "
    "the server's shared buffers, all begin at its start."
)
_CHUNK = 2_000
_CATEGORIES = ("data", "design", "testing", "other")

Ask = Callable[[], Awaitable[object]]


class Asked(msgspec.Struct, frozen=True):
    """One question of one reader."""

    engine: str
    store: str
    readable: int
    question: str

    @property
    def name(self) -> str:
        return f"{self.engine}, {self.store}, {self.readable} readable: {self.question}"


def run(workshop: Workshop) -> Report:
    engines = (SQLITE, POSTGRESQL) if workshop.scale.name == "full" else (SQLITE,)
    samples: dict[Asked, list[float]] = {}
    with open_servers() as servers:
        for engine in engines:
            places = _fill_stores(workshop, servers, engine)
            samples.update(workshop.run(_measure(workshop, places, engine)))
    figures = {asked: Figure.of(asked.name, "ms", taken) for asked, taken in samples.items()}
    return Report(
        name="audiences",
        title=f"Reading {workshop.scale.listed:,} skills in {AUDIENCES} audiences",
        figures=tuple(figures.values()),
        goals=tuple(_goals(figures, engines)),
        notes=(
            "In brackets, how many times the same question where everything is public.",
            "The reader of one audience is anonymous. The hidden import is half of all skills, newer than all others.",
            _SCANS if POSTGRESQL in engines else "PostgreSQL is left out of a run of this size.",
        ),
        tables=tuple(_table(figures, engine) for engine in engines),
    )


def _goals(figures: dict[Asked, Figure], engines: Sequence[str]) -> Iterator[Goal]:
    for engine in engines:
        for question in QUESTIONS:
            public = figures[Asked(engine, OPEN, 1, question)].median
            worst = max(
                figures[Asked(engine, store, readable, question)].median
                for store in (MIXED, HIDDEN)
                for readable in READABLE
                if readable <= 10
            )
            yield at_most(f"{engine}: {question}, up to 10 audiences ÷ public", worst / public, 1.5)
        lists = [
            figures[Asked(engine, store, readable, question)].median
            for store in (MIXED, HIDDEN)
            for readable in (100, 199)
            for question in (LIST, MIDDLE, FILTERED)
        ]
        yield at_most(f"{engine}: a list with 100 or 199 audiences", max(lists), MOST_MS[engine], unit="ms")


def _table(figures: dict[Asked, Figure], engine: str) -> Table:
    columns = (engine, "public", *(f"{store}, {n}" for store in (MIXED, HIDDEN) for n in READABLE))
    rows = []
    for question in QUESTIONS:
        public = figures[Asked(engine, OPEN, 1, question)].median
        cells = [
            figures[Asked(engine, store, readable, question)].median
            for store in (MIXED, HIDDEN)
            for readable in READABLE
        ]
        shown = [f"{readable(one)} ms ({readable(one / public)}{TIMES})" for one in cells]
        rows.append((question, f"{readable(public)} ms", *shown))
    return Table(columns, tuple(rows))


# Measuring.


async def _measure(
    workshop: Workshop, places: Mapping[str, Settings], engine: str
) -> dict[Asked, list[float]]:
    """All stores of an engine at once, so that its readers take turns."""
    samples: dict[Asked, list[float]] = {}
    asks: dict[Asked, Ask] = {}
    async with AsyncExitStack() as stack:
        for store, settings in places.items():
            kv = (await stack.enter_async_context(env_for(settings))).kv
            for readable in READABLE if store != OPEN else (1,):
                for question in QUESTIONS:
                    asked = Asked(engine, store, readable, question)
                    asks[asked] = await _ask(kv, question, _readers(readable), workshop.scale.listed)
                    samples[asked] = []
        for number in range(-1, workshop.scale.rounds):
            for asked, ask in asks.items():
                taken = await timed_calls(workshop.scale.answers, ask) * 1000
                if number >= 0:
                    samples[asked].append(taken)
    return samples


def _fill_stores(workshop: Workshop, servers: Servers, engine: str) -> dict[str, Settings]:
    """Where the three stores are, filled."""
    found: dict[str, Settings] = {}
    for store in (OPEN, MIXED, HIDDEN):
        path = workshop.new_file()
        place = f"sqlite:{path}" if engine == SQLITE else servers.place(engine)
        found[store] = Settings(store=place, blobs="memory:", data_dir=str(path.with_suffix("")))
        workshop.say(f"filling {engine} with {workshop.scale.listed:,} skills: {store}")
        # As long as it takes: what is measured comes after it.
        run_async(_fill(found[store], workshop.scale.listed, store))
    return found


async def _fill(settings: Settings, count: int, store: str) -> None:
    waiting = _puts(count, store)
    async with env_for(settings) as env:
        while chunk := list(islice(waiting, _CHUNK)):
            await env.kv.commit(chunk)
        await env.kv.sweep(changes_before=0)


def _name(number: int) -> str:
    return PUBLIC if number == 0 else f"ns:owner-{number}"


def _readers(count: int) -> frozenset[str]:
    """The last audience is never among them."""
    return frozenset(map(_name, range(count))) if count > 1 else PUBLIC_ONLY


def _audience(number: int, count: int, store: str) -> str:
    if store == OPEN:
        return PUBLIC
    if store == HIDDEN and number < count // 2:
        return "ns:import"
    return _name(number * 7919 % AUDIENCES)


def _puts(count: int, store: str) -> Iterator[Put]:
    now = SystemClock().now()
    number = 0
    for put in skill_puts(count, now):
        if not SKILLS.holds(put.key):
            continue
        fields = msgspec.json.decode(put.value)
        listing = {**(fields["listing"] or {}), "updated_at": now - number}
        listing |= {"category": _CATEGORIES[number // 7 % 4], "installs": number % 50}
        fields |= {"audience": _audience(number, count, store), "listing": listing}
        yield Put(put.key, msgspec.json.encode(fields))
        number += 1


async def _ask(kv: KV, question: str, audiences: frozenset[str], count: int) -> Ask:
    """The question, asked once to see that it finds nothing else."""
    order: dict[str, Any] = {"order_by": "listed_at", "descending": True, "limit": PAGE_SIZE}
    if question == SEARCH:
        return lambda: kv.search(SKILLS.prefix, "skill", audiences=audiences, limit=PAGE_SIZE)
    if question == COUNTS:
        return lambda: kv.count_all(SKILLS.prefix, audiences=audiences)
    if question == FILTERED:
        order["where"] = {"category": Is("design")}
    elif question == MIDDLE:
        first = await kv.select(SKILLS.prefix, audiences=audiences, **order)
        newest = SKILLS.fields["listed_at"].read(first.items[0].value)
        assert isinstance(newest, int)
        place = (newest - count // 4, SKILLS.prefix)
        order["after"] = base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()
    found = await kv.select(SKILLS.prefix, audiences=audiences, **order)
    assert all(SKILLS.audience_of(one.value) in audiences for one in found.items)
    return lambda: kv.select(SKILLS.prefix, audiences=audiences, **order)

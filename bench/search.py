"""Searches as the marketplace makes them, from the text to the ranked skills, in stores of several sizes: for a name, a
question, a word with a typing error, words that no skill has together, and the most common words."""

import statistics
import time
from collections.abc import Iterator, Sequence

import msgspec

from bench.catalogue import COMMON, KINDS, SEVERAL, filled, queries, skill_puts
from bench.queue_peers.servers import Servers, open_servers
from bench.results import Figure, Goal, Report, at_most
from bench.workshop import Workshop, fill
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.settings import Settings
from vskill_platform.store.skills.catalogue import search_skills
from vskill_platform.store.skills.vocabulary import write_vocabulary
from vskill_platform.worker_context import Env, run_with_worker_env

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
_MS = 1000
#: Milliseconds for half of the searches of a kind, 99 of 100, and each for the most common words, of 100,000 skills.
MOST_MS, MOST_P99_MS, MOST_COMMON_MS = 50.0, 250.0, 500.0
_GOAL_AT = 100_000


class Searched(msgspec.Struct, frozen=True):
    """Searches of one kind in one store."""

    engine: str
    size: int
    kind: str
    taken_ms: list[float]
    #: The share of them that found something, in per cent.
    found: float

    @property
    def name(self) -> str:
        return f"{self.engine}, {self.size:,} skills: {self.kind}"

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.taken_ms, n=100, method="inclusive")[98]


def run(workshop: Workshop) -> Report:
    searched: list[Searched] = []
    with open_servers() as servers:
        for engine, size in _stores(workshop):
            settings = _fill(workshop, servers, engine, size)
            run_async(_count_words(settings))
            searched += workshop.run(_measure(workshop, settings, engine, size))
    return Report(
        name="search",
        title="Searching among skills, from the text to the ranked answer",
        figures=tuple(
            figure
            for one in searched
            for figure in (
                Figure.of(one.name, "ms", one.taken_ms),
                Figure.of(f"{one.name}, 99 of 100 within", "ms", [one.p99]),
                Figure.of(f"{one.name}, with results", "%", [one.found]),
            )
        ),
        goals=tuple(_goals(searched)),
        notes=(
            "Texts are made up, with words used as unevenly as in real ones.",
            f"Each kind has {workshop.scale.searches} searches, each for another text where there are as many.",
            *(() if workshop.scale.name == "full" else ("PostgreSQL is left out of a run of this size.",)),
        ),
    )


def _stores(workshop: Workshop) -> Iterator[tuple[str, int]]:
    """A quick run starts no server."""
    for engine in (SQLITE, POSTGRESQL) if workshop.scale.name == "full" else (SQLITE,):
        yield from ((engine, size) for size in workshop.scale.searched)


def _goals(searched: Sequence[Searched]) -> Iterator[Goal]:
    """For the stores of the size that the goals are about, or the largest of a smaller run."""
    for engine in dict.fromkeys(one.engine for one in searched):
        size = min(_GOAL_AT, max(one.size for one in searched if one.engine == engine))
        among = [one for one in searched if (one.engine, one.size) == (engine, size)]
        common = [one for one in among if one.kind in (COMMON, SEVERAL)]
        among = [one for one in among if one not in common]
        slowest = max(statistics.median(one.taken_ms) for one in among)
        yield at_most(f"{engine}, {size:,} skills: p50 of the slowest kind", slowest, MOST_MS, unit=" ms")
        latest = max(one.p99 for one in among)
        yield at_most(f"{engine}, {size:,} skills: p99 of the slowest kind", latest, MOST_P99_MS, unit=" ms")
        longest = max(max(one.taken_ms) for one in common)
        yield at_most(
            f"{engine}, {size:,} skills: common words, the slowest", longest, MOST_COMMON_MS, unit=" ms"
        )


# Filling and measuring.


def _fill(workshop: Workshop, servers: Servers, engine: str, size: int) -> Settings:
    if engine == SQLITE:
        place = f"sqlite:{filled(workshop, size)}"
    else:
        place = servers.place(engine)
        workshop.say(f"filling {engine} with {size:,} skills")
        run_async(fill(place, workshop.folder, skill_puts(size, SystemClock().now())))
    return Settings(data_dir=str(workshop.folder), store=place, blobs="memory:")


async def _count_words(settings: Settings) -> None:
    """The job that reads every skill."""
    async with env_for(settings) as env:
        await run_with_worker_env(env, write_vocabulary)


async def _measure(workshop: Workshop, settings: Settings, engine: str, size: int) -> list[Searched]:
    async with env_for(settings) as env:
        return [await _search_all(env, engine, size, kind, workshop.scale.searches) for kind in KINDS]


async def _search_all(env: Env, engine: str, size: int, kind: str, samples: int) -> Searched:
    """Every text once, after one that does not count."""
    taken: list[float] = []
    found = 0
    texts = queries(kind, size, samples)
    for number, text in enumerate([texts[0], *texts]):

        async def search(text: str = text) -> bool:
            return bool((await search_skills(text, audiences=PUBLIC_ONLY)).items)

        began = time.perf_counter()
        has_results = await run_with_worker_env(env, search)
        if number:
            taken.append((time.perf_counter() - began) * _MS)
            found += has_results
    return Searched(engine, size, kind, taken, 100 * found / len(taken))

"""Answers of the API and pages for people among few and among many published skills: how long one takes, and how often
it asks the store, with nothing kept from a request before and with everything.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from bench.measure import take_turns
from bench.results import Figure, Goal, Report, at_most
from bench.web_store import ASKED, Forgetful, body_of, filled, names_of, opened
from bench.workshop import Workshop
from tests.support.counting_kv import CountingKV
from vskill_platform.web.app import create_app

MOST_ROUND_TRIPS = 4
MOST_GROWTH = 3.0
COLD, WARM = "nothing kept", "again at once"
_MS = 1000

_HOME_NOTE = (
    "The home page also says whether anything is stuck, and chooses skills from two lists. That is done once in two "
    "and five seconds for everybody who asks, so its first answer is shown here and only the others have a limit."
)
_FIRST_NOTE = (
    "The API marks what is blocked by the whole blocklist, which a process reads when it needs it first; that one "
    "reading is not counted. Pages ask only for the entries that could hit what they show, and all they ask is counted."
)


class Asked(msgspec.Struct, frozen=True):
    """One kind of answer."""

    name: str
    #: Its address, for a store with so many skills.
    path_of: Callable[[int], str]
    is_page: bool = False
    #: How often it may ask the store.
    most_trips: int = MOST_ROUND_TRIPS


def _one(count: int) -> str:
    names = names_of(count)
    return names[ASKED // 2 % len(names)]


def _word(count: int) -> str:
    return names_of(count)[3].rpartition("/")[2]


#: Who may read, the skills shown, and collections.
HOME = Asked("home page", lambda _: "/", is_page=True, most_trips=3)
ANSWERS = (
    Asked("list", lambda _: "/api/v1/skills?limit=30"),
    Asked("list of a category", lambda _: "/api/v1/skills?category=testing"),
    Asked("search for one skill", lambda count: f"/api/v1/skills/search?q={_word(count)}"),
    Asked("search for a common word", lambda _: "/api/v1/skills/search?q=invoices"),
    Asked("detail", lambda count: f"/api/v1/skills/{_one(count)}"),
    HOME,
    Asked("list page", lambda _: "/skills", is_page=True),
    Asked("category page", lambda _: "/skills?category=testing", is_page=True),
    Asked("search page, one skill", lambda count: f"/skills?q={_word(count)}", is_page=True),
    Asked("search page, a common word", lambda _: "/skills?q=invoices", is_page=True),
    # It also names related skills, of its owner and of its topic: a question each.
    Asked("skill page", lambda count: f"/skills/{_one(count)}", is_page=True, most_trips=5),
)


def run(workshop: Workshop) -> Report:
    small, large = min(1_000, workshop.scale.skills), workshop.scale.listed
    figures, goals = _measure(workshop, small, large)
    return Report(
        name="web",
        title=f"Answers of the API and pages, with {small:,} and {large:,} published skills",
        figures=figures,
        goals=goals,
        notes=(_FIRST_NOTE, _HOME_NOTE),
    )


def _measure(workshop: Workshop, small: int, large: int) -> tuple[tuple[Figure, ...], tuple[Goal, ...]]:
    """Figures and goals of every kind of answer."""
    stores = {count: filled(workshop, count) for count in (small, large)}
    rivals: dict[str, Callable[[], float]] = {}
    for one in ANSWERS:
        for count, store in stores.items():
            rivals[_among(one, count)] = partial(_time, workshop, store, one.path_of(count))
    samples = take_turns(workshop.scale.rounds, rivals, workshop.scale.warm_rounds)
    times = {name: Figure.of(name, "ms", taken) for name, taken in samples.items()}
    growth = [
        at_most(
            f"{one.name}: among {large:,} ÷ among {small:,}",
            times[_among(one, large)].median / times[_among(one, small)].median,
            MOST_GROWTH,
        )
        for one in ANSWERS
    ]
    trips, limits = _round_trips(workshop, stores)
    return (*times.values(), *trips), (*growth, *limits)


def _among(one: Asked, count: int) -> str:
    return f"{one.name} among {count:,}"


# Time.


def _time(workshop: Workshop, store: Path, path: str) -> float:
    return workshop.run(_timed(store, path, workshop.scale.answers))


async def _timed(store: Path, path: str, answers: int) -> float:
    """Milliseconds that one answer takes that is made anew."""
    async with opened(store) as env:
        app = Forgetful(env)
        await body_of(app, path)
        began = time.perf_counter()
        for _ in range(answers):
            await body_of(app, path)
        return (time.perf_counter() - began) / answers * _MS


# Round trips.


def _round_trips(workshop: Workshop, stores: dict[int, Path]) -> tuple[list[Figure], list[Goal]]:
    figures, goals = [], []
    for one in ANSWERS:
        counted = [workshop.run(_counted(store, one.path_of(count), one)) for count, store in stores.items()]
        cold, warm = (max(taken) for taken in zip(*counted, strict=True))
        for when, most in ((COLD, cold), (WARM, warm)):
            figures.append(Figure.of(f"{one.name}, {when}", "round trips", [most]))
        most = warm if one is HOME else max(cold, warm)
        goals.append(at_most(f"{one.name}: store round trips", most, one.most_trips, unit=""))
    return figures, goals


async def _counted(store: Path, path: str, one: Asked) -> tuple[int, int]:
    """How often the store is asked by a process that knows nothing yet, and how often right afterwards."""
    async with opened(store) as env:
        kv = CountingKV(env.kv)
        app = create_app(msgspec.structs.replace(env, kv=kv))
        await body_of(app, path)
        cold = kv.total if one.is_page else kv.total - kv.calls["scan"]
        kv.calls.clear()
        await body_of(app, path)
        return cold, kv.total

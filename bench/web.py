"""What an answer of the API costs: beside a bare Starlette route that returns the same bytes, and among 1,000 and
100,000 published skills.

The server is the product's own, in this process; the client is a process of its own, so the CPU time that is counted
is the server's alone, its threads included. `python -m bench.web` runs it alone.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bench.measure import take_turns
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.scale import FULL
from bench.workshop import Workshop, open_env, open_workshop
from tests.support.counting_kv import CountingKV
from vskill_platform.clock import SystemClock
from vskill_platform.domain import keys
from vskill_platform.domain.content import SkillFile, content_hash, digest_of_files, manifest_of, pack
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.listing import about
from vskill_platform.domain.scan import Verdict
from vskill_platform.domain.skill import Certification, Publication, publish_version
from vskill_platform.domain.trust import TrustFacts
from vskill_platform.env import Env
from vskill_platform.kv.entries import Put
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.web.kept import KeptThings
from vskill_platform.web.server import bind, serve

#: Skills whose detail is asked for in turn.
ASKED = 200
DETAIL, LIST = "detail JSON", "list JSON"
OURS, BARE = "vskill-platform", "bare Starlette"
MOST_ROUND_TRIPS = 3
_MS = 1000

CONTENT = (
    SkillFile(
        "SKILL.md",
        "100644",
        b"---\nname: tables\ndescription: Turns measurements into tables.\n---\n"
        + b"Read the file first, then write one row for each measurement, and say what is missing.\n" * 45,
    ),
)

_NOTE = (
    "Both are served by the same server over real sockets. Ours reads the skill's record and the blocklist's version "
    "(detail), or the position of the last change (list), for every answer, and uses what it made before only where "
    "these are the same; 'anew' keeps nothing between two requests."
)


def run(workshop: Workshop) -> Report:
    small, large = min(1_000, workshop.scale.skills), 10 * workshop.scale.skills
    costs = _costs(workshop, small)
    times, goals = _times(workshop, small, large)
    figures = {figure.name: figure.median for figure in costs}
    ratios = tuple(
        at_least(f"{what}: {OURS} ÷ {BARE}", figures[f"{what}, {OURS}"] / figures[f"{what}, {BARE}"], goal)
        for what, goal in ((DETAIL, 0.6), (LIST, 0.3))
    )
    return Report(
        name="web",
        title=f"Answers of the API, with {small:,} and {large:,} published skills",
        figures=(*costs, *times),
        goals=(*ratios, *goals),
        notes=(_NOTE,),
    )


# A store with skills.


def skill_records(count: int, now: int) -> Iterator[Put]:
    """Published skills with one version each, all of one content."""
    manifest = manifest_of(CONTENT)
    for number in range(count):
        name = f"{_TOPICS[number % len(_TOPICS)]}-{number}"
        place = Identity("github.com", f"owner{number % 997}", f"tools{number % 13}", f"skills/{name}")
        text = (
            f"Turns {_TOPICS[number * 7 % len(_TOPICS)]} into a page that people can read, number {number}."
        )
        canonical = f"{place.owner}/{place.repo}/{name}"
        skill, _ = publish_version(
            None,
            Publication(
                canonical=canonical,
                identity=place,
                slug=name,
                name=name,
                description=text,
                repo_url=place.url,
                digest=digest_of_files(CONTENT),
                content_hash=content_hash(CONTENT[0].data),
                tree_hash="2" * 64,
                manifest=manifest,
                certification=Certification.SCANNED,
                score=100,
                at=now - number,
                by="worker:bench",
                about=about(name=name, description=text),
                trust=TrustFacts(static=Verdict.PASS),
            ),
        )
        yield Put(keys.skill(canonical), msgspec.json.encode(skill))


_TOPICS = (
    "tables",
    "charts",
    "letters",
    "invoices",
    "tests",
    "diagrams",
    "queries",
    "notes",
    "forms",
    "maps",
)


def _filled(workshop: Workshop, count: int) -> Path:
    return workshop.fill(f"{count:,} catalogue entries", skill_records(count, SystemClock().now()))


def names_of(count: int) -> list[str]:
    """Canonical names, spread over the store."""
    step = max(1, count // ASKED)
    numbers = range(0, count, step)[:ASKED]
    return [
        f"owner{number % 997}/tools{number % 13}/{_TOPICS[number % len(_TOPICS)]}-{number}"
        for number in numbers
    ]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Env]:
    async with open_env(path) as env:
        await env.blobs.put(digest_of_files(CONTENT), pack(CONTENT))
        yield env


# Requests per second of CPU.


def _costs(workshop: Workshop, count: int) -> tuple[Figure, ...]:
    path = _filled(workshop, count)
    requests = max(400, workshop.scale.messages // 2)
    paths = {
        DETAIL: [f"/api/v1/skills/{name}" for name in names_of(count)],
        LIST: ["/api/v1/skills"],
    }
    rivals: dict[str, Callable[[], float]] = {}
    for what, asked in paths.items():
        for who in (OURS, BARE):
            once = partial(_served, path, asked, requests, bare=who == BARE)
            rivals[f"{what}, {who}"] = partial(_once, workshop, once)
        anew = partial(_served, path, asked, requests // 4, bare=False, anew=True)
        rivals[f"{what}, {OURS}, made anew"] = partial(_once, workshop, anew)
    samples = take_turns(workshop.scale.rounds, rivals)
    return tuple(Figure.of(name, "requests per CPU-second", taken) for name, taken in samples.items())


def _once(workshop: Workshop, work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    return workshop.run(work())


async def _served(path: Path, asked: list[str], requests: int, *, bare: bool, anew: bool = False) -> float:
    async with opened(path) as env:
        app: ASGIApp = create_app(env)
        if bare:
            app = bare_app({one: await _body(app, one) for one in asked})
        elif anew:
            app = Forgetful(app)
        settings = Settings(store="memory:", port=0)
        listener, stop = bind(settings), asyncio.Event()
        port = listener.getsockname()[1]
        serving = asyncio.create_task(serve(app, settings, listener, stop))
        await _client(port, max(80, requests // 10), asked)
        began = time.process_time()
        await _client(port, requests, asked)
        spent = time.process_time() - began
        stop.set()
        await serving
        return requests / spent


async def _client(port: int, requests: int, asked: list[str]) -> None:
    command = [sys.executable, "-m", "bench.web_client", str(port), str(requests), *asked]
    root = Path(__file__).parent.parent
    client = await asyncio.create_subprocess_exec(*command, cwd=root, stdout=asyncio.subprocess.DEVNULL)
    assert await client.wait() == 0, "the client failed"


def bare_app(bodies: dict[str, bytes]) -> ASGIApp:
    """The least that Starlette can do for the same bytes."""

    async def view(request: Request) -> Response:
        return Response(bodies[request.url.path], media_type="application/json")

    paths = ("/api/v1/skills", "/api/v1/skills/{owner}/{repo}/{slug}")
    return Starlette(routes=[Route(path, view) for path in paths])


class Forgetful:
    """The application without what it keeps from one request to the next."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self._app.application.kept = KeptThings()
        await self._app(scope, receive, send)


async def _body(app: ASGIApp, path: str) -> bytes:
    """One answer, without a network."""
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "headers": [],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert sent[0]["status"] == 200, (path, sent)
    return b"".join(message.get("body", b"") for message in sent)


# However many there are.


def _times(workshop: Workshop, small: int, large: int) -> tuple[tuple[Figure, ...], tuple[Goal, ...]]:
    what: dict[str, Callable[[int], str]] = {
        "list": lambda _: "/api/v1/skills?limit=30",
        "list of a category": lambda _: "/api/v1/skills?category=testing",
        "search for one skill": lambda count: (
            f"/api/v1/skills/search?q={names_of(count)[3].rpartition('/')[2]}"
        ),
        "search for a common word": lambda _: "/api/v1/skills/search?q=invoices",
        "detail": lambda count: f"/api/v1/skills/{names_of(count)[ASKED // 2 % len(names_of(count))]}",
    }
    stores = {count: _filled(workshop, count) for count in (small, large)}
    rivals: dict[str, Callable[[], float]] = {}
    trips: dict[str, int] = {}
    for name, path_of in what.items():
        for count, store in stores.items():
            label = f"{name} among {count:,}"
            work = partial(_timed, store, path_of(count), trips, label)
            rivals[label] = partial(_once, workshop, work)
    samples = take_turns(workshop.scale.rounds, rivals)
    figures = {name: Figure.of(name, "ms", taken) for name, taken in samples.items()}
    goals = [
        at_most(
            f"{name}: among {large:,} ÷ among {small:,}",
            figures[f"{name} among {large:,}"].median / figures[f"{name} among {small:,}"].median,
            3.0,
        )
        for name in what
    ]
    most = at_most(
        "store round trips of the costliest of them", max(trips.values()), MOST_ROUND_TRIPS, unit=""
    )
    return tuple(figures.values()), (*goals, most)


async def _timed(path: Path, asked: str, trips: dict[str, int], label: str, calls: int = 30) -> float:
    """Milliseconds that one answer takes that is made anew, and how often it asks the store."""
    async with opened(path) as env:
        kv = CountingKV(env.kv)
        counting = Forgetful(create_app(msgspec.structs.replace(env, kv=kv)))
        app = Forgetful(create_app(env))
        work: Callable[[], Awaitable[bytes]] = partial(_body, app, asked)
        await _body(counting, asked)
        # A blocklist that nobody has read yet is read once by a process, not once by an answer.
        trips[label] = kv.total - kv.calls["scan"]
        await work()
        began = time.perf_counter()
        for _ in range(calls):
            await work()
        return (time.perf_counter() - began) / calls * _MS


def main() -> None:
    """Alone, with what it says on the standard output."""
    with open_workshop(msgspec.structs.replace(FULL, rounds=3)) as workshop:
        report = run(workshop)
    for figure in report.figures:
        print(
            f"{figure.name}: {figure.median:,.2f} {figure.unit} ({figure.least:,.2f} to {figure.most:,.2f})"
        )
    for goal in report.goals:
        print(f"{goal.name}: {goal.value:.2f}, wanted {goal.limit}: {'met' if goal.met else 'NOT MET'}")


if __name__ == "__main__":
    main()

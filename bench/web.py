"""What an answer of the API costs: beside a bare Starlette route that returns the same bytes, and, with the pages for
people (`web_pages`), among 1,000 and 100,000 published skills.

The server is the product's own, in this process; the client is a process of its own, so the CPU time that is counted
is the server's alone, its threads included.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bench import web_pages
from bench.measure import take_turns
from bench.results import Figure, Report, at_least
from bench.web_store import Forgetful, body_of, filled, names_of, opened
from bench.workshop import Workshop
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.web.server import bind, serve

DETAIL, LIST = "detail JSON", "list JSON"
OURS, BARE = "vskill-platform", "bare Starlette"

_NOTE = (
    "Both are served by the same server over real sockets. Ours reads the skill's record and the blocklist's version "
    "(detail), or the position of the last change (list), for every answer, and uses what it made before only where "
    "these are the same; 'anew' keeps nothing between two requests."
)


def run(workshop: Workshop) -> Report:
    small, large = min(1_000, workshop.scale.skills), workshop.scale.listed
    costs = _costs(workshop, small)
    times, goals = web_pages.measure(workshop, small, large)
    figures = {figure.name: figure.median for figure in costs}
    ratios = tuple(
        at_least(f"{what}: {OURS} ÷ {BARE}", figures[f"{what}, {OURS}"] / figures[f"{what}, {BARE}"], goal)
        for what, goal in ((DETAIL, 0.6), (LIST, 0.3))
    )
    return Report(
        name="web",
        title=f"Answers of the API and pages, with {small:,} and {large:,} published skills",
        figures=(*costs, *times),
        goals=(*ratios, *goals),
        notes=(_NOTE, web_pages.FIRST_NOTE, web_pages.HOME_NOTE),
    )


# Requests per second of CPU.


def _costs(workshop: Workshop, count: int) -> tuple[Figure, ...]:
    path = filled(workshop, count)
    requests = workshop.scale.messages // 2
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
    samples = take_turns(workshop.scale.rounds, rivals, workshop.scale.warm_rounds)
    return tuple(Figure.of(name, "requests per CPU-second", taken) for name, taken in samples.items())


def _once(workshop: Workshop, work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    return workshop.run(work())


async def _served(path: Path, asked: list[str], requests: int, *, bare: bool, anew: bool = False) -> float:
    async with opened(path) as env:
        app: ASGIApp = create_app(env)
        if bare:
            app = bare_app({one: await body_of(app, one) for one in asked})
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

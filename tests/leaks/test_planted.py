"""The leak test finds a leak of every kind: each is planted as a route of its own, and the checks must see it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.leaks.requests import requests_for
from tests.leaks.test_routes import (
    ask,
    check_for_canaries,
    check_for_movement,
    leaks_in,
    withdraw,
    without_names,
    written,
)
from tests.leaks.world import HIDDEN_OWNER, REASON, LeakWorld, open_leak_world
from tests.support.envs import active_env
from vskill_core.errors import NotFound, NotPermitted, SourceGone
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, name_target
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.sources.contract import Repositories
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.revocations import read_serial
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.routing import Endpoint, NoQuery, get, post
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio

View = Callable[[Request], Awaitable[Response]]


def is_hidden(request: Request) -> bool:
    return request.path_params.get("owner") == HIDDEN_OWNER


async def in_a_list(_request: Request) -> Response:
    page = await require_env("kv").kv.select(SKILLS.prefix, order_by="key", audiences=EVERYTHING)
    return JSONResponse([entry.key for entry in page.items])


async def in_a_header(request: Request) -> Response:
    return JSONResponse({}, headers={"x-owner": HIDDEN_OWNER.upper() if request else ""})


async def in_an_error(_request: Request) -> Response:
    raise NotFound(f"There is no such skill; did you mean {HIDDEN_OWNER}?")


async def in_a_count(request: Request) -> Response:
    return JSONResponse({"installs": 1 if is_hidden(request) else 0})


async def in_the_status(request: Request) -> Response:
    if is_hidden(request):
        raise NotPermitted("You may not read this.")
    raise NotFound("There is nothing here.")


async def in_the_caching(request: Request) -> Response:
    kept = {"cache-control": "private"} if is_hidden(request) else {}
    return JSONResponse({}, headers=kept)


async def in_the_length(request: Request) -> Response:
    return JSONResponse({"padding": " " * (5 if is_hidden(request) else 4)})


async def in_a_read_of_the_store(request: Request) -> Response:
    if is_hidden(request):
        await require_env("kv").kv.get(keys.skill("a/b/c"))
    return JSONResponse({})


async def in_a_read_of_content(request: Request) -> Response:
    if is_hidden(request):
        await require_env("blobs").blobs.has("0" * 64)
    return JSONResponse({})


async def in_a_look_at_the_host(request: Request) -> Response:
    """What is hidden was refused at once, and what is not there after its host was asked."""
    sources = require_env("sources").sources
    if not is_hidden(request) and isinstance(sources, Repositories):
        with suppress(SourceGone):
            await sources.inspect(normalise("https://github.com/nobody/here"))
    return JSONResponse({})


async def in_a_serial(_request: Request) -> Response:
    return JSONResponse({"serial": await read_serial()})


CANARY: tuple[View, ...] = (in_a_list, in_a_header, in_an_error)
DIFFERENCE: tuple[View, ...] = (in_a_count, in_the_status, in_the_caching, in_the_length)
COST: tuple[View, ...] = (in_a_read_of_the_store, in_a_read_of_content, in_a_look_at_the_host)


def planted(view: View) -> Endpoint:
    path = f"/planted/{view.__name__}/{{owner}}"
    if view is in_a_look_at_the_host:
        return post(path, view, no_scope="a test")
    return get(path, view, query=NoQuery)


@pytest.fixture(scope="module")
async def world(tmp_path_factory):
    endpoints = (*ENDPOINTS, *(planted(view) for view in (*CANARY, *DIFFERENCE, *COST)))
    async with open_leak_world(tmp_path_factory.mktemp("planted"), endpoints=endpoints) as opened:
        yield opened


async def answers(world: LeakWorld, view: View) -> tuple[str, str, dict[str, int], dict[str, int]]:
    who = world.askers["zoe by token"]
    (hidden,), (absent,) = (
        requests_for(planted(view), world.hidden),
        requests_for(planted(view), world.absent),
    )
    first = without_names(written(await ask(world, who, hidden)), world.hidden)
    cost = dict(world.probe.cost)
    second = without_names(written(await ask(world, who, absent)), world.absent)
    return first, second, cost, dict(world.probe.cost)


@pytest.mark.parametrize("view", CANARY, ids=lambda view: view.__name__)
async def test_a_planted_canary_is_found(world, view):
    (asked,) = requests_for(planted(view), world.visible)
    text = written(await ask(world, world.askers["anonymous"], asked))
    assert leaks_in(world, asked, text)


@pytest.mark.parametrize("view", DIFFERENCE, ids=lambda view: view.__name__)
async def test_a_planted_difference_is_found(world, view):
    first, second, _, _ = await answers(world, view)
    assert first != second


@pytest.mark.parametrize("view", COST, ids=lambda view: view.__name__)
async def test_a_planted_read_is_found(world, view):
    first, second, cost, other = await answers(world, view)
    assert first == second
    assert cost != other


async def test_a_planted_serial_that_moves_with_what_is_hidden_is_found(tmp_path):
    route = get("/planted/in_a_serial", in_a_serial, query=NoQuery)
    async with (
        open_leak_world(tmp_path / "one", endpoints=(*ENDPOINTS, route)) as one,
        open_leak_world(tmp_path / "two", endpoints=(*ENDPOINTS, route), signing=one.env.signing) as two,
    ):
        await check_for_movement(one, two, "anonymous", route)
        await withdraw(one, hidden=True)
        await withdraw(two, hidden=False)
        with pytest.raises(AssertionError, match="in_a_serial"):
            await check_for_movement(one, two, "anonymous", route)


@pytest.mark.parametrize("path", ["/api/v1/blocklist", "/api/v1/blocklist/check", "/revocations"])
async def test_a_planted_name_in_a_block_is_found(world, path):
    """An entry for everybody that names what only some may read; no pass over the blocklist has come by."""
    endpoint = next(one for one in ENDPOINTS if (one.method, one.path) == ("GET", path))
    target = name_target(world.hidden.slug)
    with active_env(world.env):
        await add_block(BlockEntry(target, Severity.HIGH, REASON, "admin:ada", world.env.kv.now()))
        try:
            with pytest.raises(AssertionError):
                await check_for_canaries(world, "anonymous", (world.visible, world.hidden), endpoint)
        finally:
            await remove_block(target)


@pytest.mark.parametrize(
    ("endpoint", "what"),
    [
        (get("/new/{shelf}", in_a_count), "the part 'shelf'"),
        (get("/new", in_a_count, query=msgspec.defstruct("New", [("shelf", str)])), "the parameters"),
    ],
)
def test_a_route_without_a_case_fails(endpoint, what):
    with pytest.raises(AssertionError, match=what):
        list(requests_for(endpoint, None))  # type: ignore[arg-type]

"""The front door over real sockets: slow clients are sent away by name, too many make room, and whoever sends a whole
request is answered."""

import asyncio
import resource
from contextlib import asynccontextmanager

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.processes.workers import until
from tests.support.patience import PATIENCE_S
from tests.support.slow_clients import HALF_BODY, HALF_HEAD, NOTHING, connect, slow_clients
from vskill_platform.settings import Settings
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.door.front_door import descriptors_kept, door_limits, raise_descriptor_limit
from vskill_platform.web.door.server import address_of, bind, serve
from vskill_platform.web.routing import get, post

pytestmark = pytest.mark.anyio

SOON = {"header_s": 0.3, "body_s": 0.3, "idle_s": 0.3}
WHOLE = b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
NEVER = {"header_s": 600.0, "body_s": 600.0, "idle_s": 600.0}


@asynccontextmanager
async def opened(env, *extra, trusted_proxies=(), **limits):
    """The web side with these limits and endpoints; its address."""
    settings = Settings(store="memory:", port=0, trusted_proxies=trusted_proxies)
    listener, stop = bind(settings), asyncio.Event()
    app = create_app(env, [*ENDPOINTS, *extra])
    door = msgspec.structs.replace(door_limits(settings, raise_descriptor_limit()), **limits)
    task = asyncio.create_task(serve(app, settings, listener, stop, metrics=env.metrics, limits=door))
    try:
        yield address_of(listener)
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_S)


def refused(env, reason: str) -> float:
    return env.metrics.registry.get_sample_value("vskill_refused_total", {"reason": reason}) or 0


async def waiting(env, count: int) -> bool:
    return bool(env.metrics.registry.get_sample_value("vskill_requests_waiting") == count)


async def hung_up(*clients):
    async with asyncio.timeout(PATIENCE_S):
        for client in clients:
            await client.closed.wait()


def problem(client):
    head, _, body = client.got.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return msgspec.json.decode(body)["code"]


# Time limits.


async def test_a_request_that_is_never_whole_is_sent_away_by_name(env):
    async with opened(env, **SOON) as address, slow_clients(address, 24, [HALF_HEAD, HALF_BODY]) as clients:
        await hung_up(*clients)
        assert {client.status for client in clients} == {408}
        assert {problem(client) for client in clients[::2]} == {"headers_too_slow"}
        assert {problem(client) for client in clients[1::2]} == {"body_too_slow"}
    assert refused(env, "headers_too_slow") == refused(env, "body_too_slow") == 12


async def test_a_connection_that_sends_nothing_ends(env):
    async with opened(env, **SOON) as address, slow_clients(address, 8, [NOTHING]) as clients:
        await hung_up(*clients)
        assert {client.status for client in clients} == {408}


async def test_a_connection_that_stays_idle_after_its_answer_ends_without_another(env):
    async with opened(env, **SOON) as address:
        client = await connect(address, b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        await hung_up(client)
        assert client.got.count(b"HTTP/1.1") == 1
        assert client.status == 200
        await client.end()


@pytest.mark.machine
async def test_a_body_that_arrives_slowly_but_steadily_is_waited_for(env):
    """More than the time for a body passes; each piece adds to it."""

    async def measure(request: Request) -> Response:
        return Response(str(len(await request.body())))

    piece, pieces = b"x" * 65_536, 8
    async with opened(env, post("/measure", measure, no_scope="a test"), **SOON) as address:
        head = f"POST /measure HTTP/1.1\r\nhost: a\r\ncontent-length: {len(piece) * pieces}\r\n\r\n"
        client = await connect(address, head.encode())
        for _ in range(pieces):
            client.writer.write(piece)
            await asyncio.sleep(0.1)
        await client.hears(b"\r\n\r\n")
        assert client.got.endswith(str(len(piece) * pieces).encode())
        await client.end()


async def test_headers_have_a_limit_and_the_refusal_names_it(env):
    async with opened(env, **NEVER) as address:
        client = await connect(address, HALF_HEAD + b"x" * 70_000)
        await hung_up(client)
        assert (client.status, problem(client)) == (431, "headers_too_large")
        await client.end()


# Bodies.


async def test_a_declared_gigabyte_is_refused_and_the_connection_ends_without_reading_it(env):
    async with opened(env, **NEVER) as address:
        head = b"POST /api/v1/submissions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        client = await connect(address, head + b"content-length: 1000000000\r\n\r\n")
        sent = 0
        while not client.closed.is_set():
            try:
                client.writer.write(b"x" * 65_536)
                await asyncio.wait_for(client.writer.drain(), 5)
            except (OSError, TimeoutError):
                break
            sent += 65_536
            await asyncio.sleep(0)
        await hung_up(client)
        assert client.status == 413
        assert problem(client) == "limit_exceeded"
        assert sent < 100_000_000
        await client.end()


async def test_a_body_without_a_length_is_cut_at_its_limit(env):
    async with opened(env, **NEVER) as address:
        head = b"POST /api/v1/submissions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        client = await connect(address, head + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(40):
            client.writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await asyncio.sleep(0)
        await hung_up(client)
        assert (client.status, problem(client)) == (413, "limit_exceeded")
        await client.end()


async def test_a_client_that_waits_for_our_word_before_its_body_gets_it(env):
    async with opened(env, **NEVER) as address:
        head = b"POST /api/v1/submissions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        client = await connect(address, head + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        await client.hears(b"100 Continue")
        client.writer.write(b"{}")
        await client.hears(b"HTTP/1.1 400")
        await client.end()


# Caps.


async def test_where_it_is_full_those_without_a_whole_request_make_room(env):
    """Slow clients fill every place, and each honest one is answered still."""
    limits = {"connections": 20, "per_address": 20, **NEVER}
    async with (
        opened(env, **limits) as address,
        slow_clients(address, 40, [HALF_HEAD, HALF_BODY, NOTHING]) as slow,
    ):
        honest = [await connect(address, WHOLE) for _ in range(30)]
        await hung_up(*honest)
        assert {client.status for client in honest} == {200}
        told = [client for client in slow if client.closed.is_set()]
        assert len(told) > 20
        assert {problem(client) for client in told} == {"too_many_connections"}
        assert {client.status for client in told} == {503}
        assert all(b"retry-after: 5" in client.got for client in told)
        for client in honest:
            await client.end()


async def test_one_address_takes_no_more_than_its_share(env):
    """The address makes room for its own next connection, and other addresses lose none."""
    limits = {"connections": 20, "per_address": 5, **NEVER}
    async with (
        opened(env, **limits) as address,
        slow_clients(address, 3, [HALF_HEAD], ["127.0.0.3"]) as others,
        slow_clients(address, 30, [HALF_HEAD], ["127.0.0.2"]) as greedy,
    ):
        await hung_up(*greedy[:25])
        assert {(client.status, problem(client)) for client in greedy[:25]} == {
            (429, "too_many_connections_of_address")
        }
        assert not any(client.closed.is_set() for client in (*others, *greedy[25:]))


async def test_a_trusted_proxy_may_have_more(env):
    limits = {
        "connections": 20,
        "per_address": 5,
        "trusted_proxies": ("127.0.0.2",),
        **NEVER,
    }
    async with (
        opened(env, **limits) as address,
        slow_clients(address, 15, [HALF_HEAD], ["127.0.0.2"]) as proxied,
    ):
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"{address}/healthz")).status_code == 200
        assert not any(client.closed.is_set() for client in proxied)


async def test_the_limit_of_open_files_is_raised_and_leaves_enough_for_the_process():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1_000, hard), hard))
        raised = raise_descriptor_limit()
        assert raised == min(hard, 65_536) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    settings = Settings()
    assert door_limits(settings, 1_024).connections + descriptors_kept(settings) == 1_024
    assert door_limits(settings, 1_024).per_address == door_limits(settings, 1_024).connections // 2


# Turns.


class Station:
    """A view that stays until it is let go."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.release = asyncio.Event()

    async def __call__(self, _request: Request) -> Response:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.release.wait()
        self.inside -= 1
        return Response("done")


async def test_requests_that_would_wait_too_long_are_refused_with_503_and_retry_after(env):
    station = Station()
    limits = {"requests": 4, "wait_s": 0.3, **NEVER}
    async with (
        opened(env, get("/station", station), **limits) as address,
        httpx2.AsyncClient(timeout=PATIENCE_S) as client,
    ):
        asked = [asyncio.create_task(client.get(f"{address}/station")) for _ in range(20)]
        for _, task in zip(range(16), asyncio.as_completed(asked), strict=False):
            await task
        shed = [task.result() for task in asked if task.done()]
        assert {answer.status_code for answer in shed} == {503}
        assert {answer.headers["retry-after"] for answer in shed} == {"2"}
        assert {answer.json()["code"] for answer in shed} == {"busy"}
        page = await client.get(f"{address}/station", headers={"accept": "text/html"})
        assert "This registry is busy" in page.text
        assert (await client.get(f"{address}/healthz")).status_code == 200
        station.release.set()
        answered = [await task for task in asked]
        assert sorted(answer.status_code for answer in answered) == [200] * 4 + [503] * 16
        assert station.most == 4
    assert refused(env, "busy") == 17


async def test_slow_bodies_take_nobodys_turn(env):
    limits = {"requests": 2, "wait_s": 0.3, **NEVER}
    async with (
        opened(env, **limits) as address,
        slow_clients(address, 40, [HALF_BODY]),
        httpx2.AsyncClient() as client,
    ):
        answers = [await client.get(f"{address}/api/v1/skills") for _ in range(5)]
        assert {answer.status_code for answer in answers} == {200}


async def test_an_address_with_many_requests_delays_another_by_one_turn(env):
    """Addresses take turns: the only request of one is the next, whatever another has waiting."""
    order: list[str] = []
    station = Station()

    async def noted(request: Request) -> Response:
        order.append(str(request.scope["client"][0]))
        return await station(request)

    limits = {"requests": 1, "wait_s": 600.0, **NEVER}
    head = b"GET /noted HTTP/1.1\r\nhost: a\r\n\r\n"
    async with (
        opened(env, get("/noted", noted), **limits) as address,
        slow_clients(address, 20, [head], ["127.0.0.2"]) as busy,
    ):
        await until(lambda: waiting(env, 19), PATIENCE_S, "not all requests wait")
        async with slow_clients(address, 1, [head], ["127.0.0.3"]) as (single,):
            await until(lambda: waiting(env, 20), PATIENCE_S, "not all requests wait")
            station.release.set()
            for client in (single, *busy):
                await client.hears(b"200 OK")
    assert order.index("127.0.0.3") <= 2


async def test_requests_sent_ahead_on_one_connection_are_answered_in_order(env):
    async with opened(env, **NEVER) as address:
        heads = [
            b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
            b"GET /nothing-here HTTP/1.1\r\nhost: a\r\n\r\n",
        ]
        client = await connect(address, b"".join(heads * 3))
        await client.hears(b"HTTP/1.1 ", times=6)
        assert [part[:3] for part in client.got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404"] * 3
        await client.end()

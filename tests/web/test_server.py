"""The server: bound before it is announced, stopped within its grace, and clear about a place it cannot have."""

import asyncio
import socket

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.support.patience import PATIENCE_S
from vskill_core.errors import InvalidSettings
from vskill_platform.settings import Settings
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.door.server import address_of, bind, serve
from vskill_platform.web.routing import get

pytestmark = pytest.mark.anyio


def free(**changes) -> Settings:
    return Settings(store="memory:", port=0, **changes)


async def test_a_port_in_use_is_an_error_that_names_it_and_the_fix():
    with bind(free()) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSettings, match=f"Port {port} on 127.0.0.1 is in use.*VSKILL_PORT"):
            bind(Settings(port=port))


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "a" * 300])
async def test_an_address_that_is_not_ours_is_an_error_that_names_it(host):
    with pytest.raises(InvalidSettings, match="cannot be listened on"):
        bind(free(host=host))


async def test_the_address_is_one_that_a_client_here_can_use():
    with bind(free()) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
    with bind(free(host="0.0.0.0")) as everywhere:
        assert address_of(everywhere).startswith("http://127.0.0.1:")


async def test_the_address_of_a_listener_for_ipv6_is_written_in_brackets():
    if not socket.has_ipv6:
        return
    with bind(free(host="::1")) as listener:
        assert address_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


async def test_it_serves_until_it_is_told_to_stop_and_lets_running_requests_finish(env):
    entered, release, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Response:
        entered.set()
        await release.wait()
        return Response("whole")

    listener = bind(free())
    address = address_of(listener)
    serving = asyncio.create_task(
        serve(create_app(env, [*ENDPOINTS, get("/slow", slow)]), free(), listener, stop, metrics=env.metrics)
    )
    async with httpx2.AsyncClient() as client:
        assert (await client.get(f"{address}/healthz")).status_code == 200
        running = asyncio.create_task(client.get(f"{address}/slow"))
        await entered.wait()
        stop.set()
        await asyncio.sleep(0.2)
        assert not serving.done()
        release.set()
        assert (await running).text == "whole"
        await asyncio.wait_for(serving, PATIENCE_S)
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"{address}/healthz")

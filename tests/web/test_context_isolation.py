"""AC-US3-04: requests over a real socket never see each other's environment or log context.

The trap: on the asyncio loop a body over 64 KB makes the server pause and resume reading inside the request. The
callback that then reads the next request keeps that request's context.
"""

import asyncio
import sys
from contextlib import asynccontextmanager

import msgspec
import pytest
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vskill_platform.settings import Settings
from vskill_platform.web import routing as declare
from vskill_platform.web.app import create_app
from vskill_platform.web.door import server
from vskill_platform.web.door.front_door import FrontDoor, door_limits, raise_descriptor_limit
from vskill_platform.worker_context import Env, get_worker_env

pytestmark = pytest.mark.anyio

LARGE = b"x" * 400_000


async def echo(request: Request) -> Response:
    """Says what it sees of the environment and of the log context, before and after it has read the body."""
    before = structlog.contextvars.get_contextvars()
    size = len(await request.body())
    structlog.contextvars.bind_contextvars(left_behind=request.headers["x-request-id"])
    env = get_worker_env()
    seen = {"size": size, "before": before, "environment": env is not None and env.worker_id}
    return Response(msgspec.json.encode(seen))


class Probe:
    """Stands before everything of ours and notes what a request's task was born with."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.born_with: list[tuple[Env | None, dict[str, object]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.born_with.append((get_worker_env(), structlog.contextvars.get_contextvars()))
        await self.app(scope, receive, send)


@asynccontextmanager
async def served(env, *, reset: bool):
    probe = Probe(create_app(env, [declare.post("/echo", echo, no_scope="writes nothing")]))
    settings = Settings(store="memory:", port=0)
    config = server.server_config(probe, settings)
    assert config.reset_contextvars, "the one place that configures the server switches it on"
    config.reset_contextvars = reset
    listener = server.bind(settings)
    door = FrontDoor(settings, door_limits(settings, raise_descriptor_limit()), env.metrics)
    running = server._Server(config, door)
    task = asyncio.create_task(running.serve([listener]))
    try:
        yield probe, listener.getsockname()[1]
    finally:
        running.should_exit = True
        await task
        listener.close()


async def post(reader, writer, request_id: str, body: bytes):
    head = (
        f"POST /echo HTTP/1.1\r\nhost: a\r\nx-request-id: {request_id}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    answer = await reader.readuntil(b"\r\n\r\n")
    lines = answer.decode().lower().splitlines()
    length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
    assert f"x-request-id: {request_id}" in lines
    return msgspec.json.decode(await reader.readexactly(length))


async def two_requests(env, *, reset: bool):
    """A large and a small request on one connection that is kept alive, another large one on a second."""
    async with served(env, reset=reset) as (probe, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
        answers = [await post(reader, writer, "large", LARGE)]
        answers += [await post(other_reader, other_writer, "other", LARGE)]
        answers += [await post(reader, writer, "small", b"hello")]
        answers += [await post(reader, writer, "again", LARGE)]
        for one in (writer, other_writer):
            one.close()
            await one.wait_closed()
        return probe.born_with, answers


async def test_AC_US3_04_a_request_is_born_with_nothing_of_another(env):
    born_with, answers = await two_requests(env, reset=True)
    assert born_with == [(None, {})] * 4
    assert [answer["size"] for answer in answers] == [len(LARGE), len(LARGE), 5, len(LARGE)]
    for answer, request_id in zip(answers, ["large", "other", "small", "again"], strict=True):
        assert answer["environment"] == env.worker_id
        assert answer["before"] == {"request_id": request_id, "method": "POST", "path": "/echo"}


async def test_AC_US3_04_the_trap_is_real_where_the_server_does_not_reset(env):
    """Without the option the small request begins with the environment and the log context of the large one.

    Python mends it in 3.15.
    """
    born_with, answers = await two_requests(env, reset=False)
    inherited_env, inherited_log = born_with[2]
    if sys.version_info < (3, 15):
        assert inherited_env.kv is env.kv
        assert inherited_log["request_id"] == "large"
    assert answers[2]["size"] == 5

"""A real server on loopback and a real client of its event streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import msgspec

from tests.support.patience import PATIENCE_S
from vskill_platform.store.people.stream_key import read_stream_key
from vskill_platform.web.app import create_app
from vskill_platform.web.door.server import address_of, bind, serve
from vskill_platform.web.streams.follower import Hub
from vskill_platform.web.streams.stream import DEFAULT_LIMITS, Cursors, StreamLimits
from vskill_platform.worker_context import Env, run_with_worker_env


async def sealed_cursor(env: Env, position: str) -> str:
    """A cursor of the store as a client gets it."""
    return Cursors(await run_with_worker_env(env, read_stream_key)).of_now(position)


async def store_cursor(env: Env, sealed: str) -> str:
    """The store's cursor in one that a client got."""
    return Cursors(await run_with_worker_env(env, read_stream_key)).position(sealed)


class Frame(msgspec.Struct, frozen=True):
    """One event as a browser would dispatch it; a comment with a cursor has no data."""

    event: str
    data: Any
    id: str


class Events:
    """What came over one stream."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.last_id = ""
        self.retry_ms: int | None = None
        self._lines = response.aiter_lines()

    async def next(self, event: str | None = None) -> Frame:
        """The next event, or the next of that name; comments only move the cursor."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self._frame()
                if frame.data is not None and event in {None, frame.event}:
                    return frame

    async def until_connected(self) -> str:
        """The cursor that the stream begins at."""
        async with asyncio.timeout(PATIENCE_S):
            return (await self._frame()).id

    async def ended(self) -> bool:
        """Whether the server ends it, after whatever still comes."""
        await self.rest()
        return True

    async def rest(self) -> list[Frame]:
        """Whatever still comes until the server ends it."""
        frames: list[Frame] = []
        async with asyncio.timeout(PATIENCE_S):
            with suppress(StopAsyncIteration):
                while True:
                    frames.append(await self._frame())
        return frames

    async def _frame(self) -> Frame:
        event, data, seen = "message", None, False
        while True:
            line = await anext(self._lines)
            if not line and seen:
                return Frame(event, None if data is None else msgspec.json.decode(data), self.last_id)
            name, _, value = line.partition(": ")
            if not name:
                continue
            seen = True
            match name:
                case "event":
                    event = value
                case "data":
                    data = value
                case "id":
                    self.last_id = value
                case "retry":
                    self.retry_ms = int(value)


@asynccontextmanager
async def serving(env: Env, port: int = 0, limits: StreamLimits = DEFAULT_LIMITS) -> AsyncIterator[str]:
    """The web side of this environment on a real socket; its address."""
    settings = msgspec.structs.replace(env.settings, port=port)
    listener, stop, hub = bind(settings), asyncio.Event(), Hub(env, limits)
    task = asyncio.create_task(
        serve(create_app(env, hub=hub), settings, listener, stop, hub.close, metrics=env.metrics)
    )
    try:
        yield address_of(listener)
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_S)


@asynccontextmanager
async def listening(address: str, headers: dict[str, str] | None = None) -> AsyncIterator[Events]:
    """An open stream; the server has accepted it when this enters."""
    async with (
        httpx2.AsyncClient(timeout=httpx2.Timeout(PATIENCE_S, read=None)) as client,
        client.stream("GET", address, headers=headers or {}) as response,
    ):
        yield Events(response)

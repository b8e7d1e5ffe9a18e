"""Work gives way to whoever reads in the same process, and never stops for them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.server import ServerState

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.patience import PATIENCE_S
from vskill_platform.gate import ReadersFirst
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.web.connection import ClientConnection
from vskill_platform.web.front_door import FrontDoor, door_limits
from vskill_platform.web.routing import get, post
from vskill_platform.web.server import address_of, bind, serve, server_config

pytestmark = pytest.mark.anyio


class Counting(ReadersFirst):
    """Counts which steps give way."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    async def give_way(self) -> None:
        self.steps += 1
        await super().give_way()


@contextmanager
def reading(readers: ReadersFirst) -> Iterator[None]:
    reader = object()
    readers.begin(reader)
    try:
        yield
    finally:
        readers.end(reader)


async def test_every_step_of_a_submission_gives_way(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        readers = Counting()
        with active_env(opened, readers=readers) as env:
            await submit_skill("quiet")
            assert await run_until_quiet(env) == 1
    assert readers.steps == 5


async def test_nothing_waits_for_an_answer_that_takes_long():
    readers = ReadersFirst(PATIENCE_S, long_s=0)
    with reading(readers):
        async with asyncio.timeout(PATIENCE_S / 2):
            await readers.give_way()


async def test_work_that_waits_for_a_page_goes_on_when_it_ends_beside_an_answer_that_takes_long():
    now = 0.0
    readers = ReadersFirst(PATIENCE_S, 1.0, lambda: now)
    with reading(readers):
        now = 2.0
        with reading(readers):
            work = asyncio.create_task(readers.give_way())
            await turns(3)
            assert not work.done()
        async with asyncio.timeout(PATIENCE_S / 2):
            await work


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_step_begins_once_nobody_reads():
    readers, begun = ReadersFirst(PATIENCE_S, PATIENCE_S), asyncio.Event()

    async def step() -> None:
        await readers.give_way()
        begun.set()

    with reading(readers):
        with reading(readers):
            work = asyncio.create_task(step())
            await turns(3)
        await turns(3)
        assert not begun.is_set()
    await turns(3)
    assert begun.is_set()
    await work


async def test_work_goes_on_beside_readers_that_never_stop():
    readers = ReadersFirst()
    with reading(readers):
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(readers.give_way() for _ in range(20)))


async def test_work_has_as_long_for_itself_as_it_waited_for_readers():
    now = 0.0
    readers = ReadersFirst(PATIENCE_S, PATIENCE_S, lambda: now)
    with reading(readers):
        waited = asyncio.create_task(readers.give_way())
        await turns(3)
        now = 5.0
    await waited
    with reading(readers):
        now = 9.9
        async with asyncio.timeout(PATIENCE_S / 2):
            await readers.give_way()
        now = 10.0
        waits = asyncio.create_task(readers.give_way())
        await turns(3)
        assert not waits.done()
    await waits


async def test_one_step_begins_in_each_turn():
    """A reader that comes between two turns is served before the next step."""
    readers, begun = ReadersFirst(), []

    async def step(number: int) -> None:
        await readers.give_way()
        begun.append(number)

    with reading(readers):
        pass
    work = [asyncio.create_task(step(number)) for number in range(5)]
    most = 0
    while len(begun) < 5:
        before = len(begun)
        await asyncio.sleep(0)
        most = max(most, len(begun) - before)
    assert begun == [0, 1, 2, 3, 4]
    assert most == 1
    await asyncio.gather(*work)


async def test_a_step_that_is_cancelled_while_it_waits_keeps_nobody_back():
    readers = ReadersFirst(PATIENCE_S, PATIENCE_S)
    with reading(readers):
        waiting = asyncio.create_task(readers.give_way())
        await turns(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE_S):
        await readers.give_way()


async def waits(readers: ReadersFirst) -> bool:
    """Whether a step of the work waits now."""
    step = asyncio.create_task(readers.give_way())
    await turns(5)
    waits = not step.done()
    step.cancel()
    await asyncio.wait({step})
    return waits


async def until_work(readers: ReadersFirst, *, waiting: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await waits(readers) is not waiting:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def test_work_waits_from_when_somebody_comes_until_their_page_is_sent_and_for_no_submission(tmp_path):
    readers, entered, release = ReadersFirst(PATIENCE_S, PATIENCE_S), asyncio.Event(), asyncio.Event()

    async def held(_request: Request) -> Response:
        entered.set()
        await release.wait()
        return Response("whole")

    settings = Settings(store="memory:", port=0)
    listener, stop = bind(settings), asyncio.Event()
    async with open_test_env("memory", tmp_path) as opened:
        with active_env(opened, readers=readers) as env:
            app = create_app(env, [get("/held", held), post("/held", held, no_scope="a test")])
            async with asyncio.TaskGroup() as tasks, httpx2.AsyncClient() as client:
                tasks.create_task(
                    serve(app, settings, listener, stop, metrics=env.metrics, readers=env.readers)
                )
                address = address_of(listener)
                _, silent = await asyncio.open_connection(*listener.getsockname())
                await until_work(readers, waiting=True)
                silent.close()
                await until_work(readers, waiting=False)
                page = tasks.create_task(client.get(f"{address}/held"))
                await entered.wait()
                assert await waits(readers)
                release.set()
                assert (await page).text == "whole"
                # The connection stays for the next request.
                await until_work(readers, waiting=False)
                entered.clear()
                release.clear()
                sent = tasks.create_task(client.post(f"{address}/held", content=b"x"))
                await entered.wait()
                assert not await waits(readers)
                release.set()
                await sent
                stop.set()


async def test_work_waits_for_a_request_that_came_before_the_answer_to_the_one_before_it(tmp_path):
    readers = ReadersFirst(PATIENCE_S, PATIENCE_S)
    entered: asyncio.Queue[None] = asyncio.Queue()
    release: asyncio.Queue[None] = asyncio.Queue()

    async def held(_request: Request) -> Response:
        entered.put_nowait(None)
        await release.get()
        return Response("whole")

    settings = Settings(store="memory:", port=0)
    listener, stop = bind(settings), asyncio.Event()
    async with open_test_env("memory", tmp_path) as opened, asyncio.TaskGroup() as tasks:
        app = create_app(opened, [get("/held", held)])
        tasks.create_task(serve(app, settings, listener, stop, metrics=opened.metrics, readers=readers))
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET /held HTTP/1.1\r\nhost: a\r\n\r\n" * 2)
        await entered.get()
        release.put_nowait(None)
        await entered.get()
        assert await waits(readers)
        release.put_nowait(None)
        await until_work(readers, waiting=False)
        writer.close()
        stop.set()


async def test_work_waits_for_nobody_who_has_gone_before_they_were_let_in(tmp_path):
    """What the entrance does with a connection that cannot be set up any more."""
    readers, settings = ReadersFirst(PATIENCE_S, PATIENCE_S), Settings(store="memory:", port=0)
    async with open_test_env("memory", tmp_path) as env:
        door = FrontDoor(settings, door_limits(settings, 1_024), env.metrics, readers)
        config = server_config(create_app(env), settings)
        connection = ClientConnection(config, ServerState(), {}, door, "127.0.0.1")
        assert await waits(readers)
        connection.leave_door()
        assert not await waits(readers)

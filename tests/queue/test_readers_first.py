"""Work gives way to whoever reads in the same process, and never stops for them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.patience import PATIENCE_S
from vskill_platform.gate import ReadersFirst
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio


class Counting(ReadersFirst):
    """Counts who reads and which steps give way."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.steps = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        self.reads += 1
        with super().reading():
            yield

    async def give_way(self) -> None:
        self.steps += 1
        await super().give_way()


async def test_every_step_of_a_submission_gives_way_to_pages_and_to_nothing_else(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        readers = Counting()
        with active_env(opened, readers=readers) as env:
            await submit_skill("quiet")
            assert await run_until_quiet(env) == 1
            assert (readers.reads, readers.steps) == (0, 5)
            transport = httpx2.ASGITransport(create_app(env))
            async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
                assert (await client.get("/skills")).status_code == 200
                assert readers.reads == 1
                assert (await client.post("/api/v1/submissions", json={})).status_code == 400
    assert (readers.reads, readers.steps) == (1, 5)


async def test_nothing_waits_for_an_answer_that_takes_long():
    readers = ReadersFirst(PATIENCE_S, long_s=0)
    with readers.reading():
        async with asyncio.timeout(PATIENCE_S / 2):
            await readers.give_way()


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_step_begins_once_nobody_reads():
    readers, begun = ReadersFirst(PATIENCE_S, PATIENCE_S), asyncio.Event()

    async def step() -> None:
        await readers.give_way()
        begun.set()

    with readers.reading():
        with readers.reading():
            work = asyncio.create_task(step())
            await turns(3)
        await turns(3)
        assert not begun.is_set()
    await turns(3)
    assert begun.is_set()
    await work


async def test_work_goes_on_beside_readers_that_never_stop():
    readers = ReadersFirst()
    with readers.reading():
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(readers.give_way() for _ in range(20)))


async def test_one_step_begins_in_each_turn():
    """A reader that comes between two turns is served before the next step."""
    readers, begun = ReadersFirst(), []

    async def step(number: int) -> None:
        await readers.give_way()
        begun.append(number)

    with readers.reading():
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
    with readers.reading():
        waiting = asyncio.create_task(readers.give_way())
        await turns(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE_S):
        await readers.give_way()

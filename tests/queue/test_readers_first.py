"""Work gives way to whoever reads in the same process, and never stops for them."""

import asyncio

import pytest

from tests.support.patience import PATIENCE_S
from vskill_platform.gate import ReadersFirst

pytestmark = pytest.mark.anyio


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_step_begins_once_nobody_reads():
    readers, begun = ReadersFirst(PATIENCE_S), asyncio.Event()

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
    readers = ReadersFirst(PATIENCE_S)
    with readers.reading():
        waiting = asyncio.create_task(readers.give_way())
        await turns(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE_S):
        await readers.give_way()

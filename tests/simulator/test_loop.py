"""The virtual loop keeps what asyncio promises, without taking time, in an order that its seed decides."""

import asyncio
from random import Random

import pytest

from simulator.clocks import EPOCH_MS, LOOKED_S, StoreClock
from simulator.loop import NothingLeft, VirtualLoop


def run(coroutine, seed: int = 1):
    loop = VirtualLoop(Random(seed))
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


async def _order() -> list[int]:
    done: list[int] = []

    async def one(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    await asyncio.gather(*map(one, range(8)))
    return done


def test_a_day_of_sleep_takes_no_time_and_ends_at_its_time():
    async def sleep() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert run(sleep()) == 86_400


def test_what_is_ready_runs_in_an_order_that_the_seed_decides():
    assert run(_order(), 1) == run(_order(), 1)
    assert len({tuple(run(_order(), seed)) for seed in range(20)}) > 10


def test_timeouts_and_cancellation_work_as_in_asyncio():
    async def late() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(60)
        except TimeoutError:
            return f"at {asyncio.get_running_loop().time()}"
        return "never"

    assert run(late()) == "at 5.0"


def test_after_a_suspension_what_was_due_meanwhile_happens_at_once():
    async def suspended() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        sleeper = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(1)
        loop.jump(60)
        await sleeper
        return loop.time()

    assert run(suspended()) == 61


def test_waiting_for_what_can_never_happen_is_an_error_and_no_hang():
    loop = VirtualLoop(Random(1))
    never = loop.create_future()
    with pytest.raises(NothingLeft):
        loop.run_until_complete(never)
    loop.close()


def test_the_clock_remembers_for_a_while_what_it_said_on_both_sides_of_a_jump():
    """Seed 806716: who saw a deadline too far ahead to be true may act when it is near again."""
    loop = VirtualLoop(Random(0))
    clock = StoreClock(loop)
    loop.jump(60)
    clock.jump(-24_000)
    loop.jump(10)
    assert clock.now() == EPOCH_MS + 46_000
    assert (clock.lowest, clock.highest) == (EPOCH_MS + 36_000, EPOCH_MS + 60_000)
    loop.jump(LOOKED_S)
    assert (clock.lowest, clock.highest) == (clock.now(), clock.now())
    clock.jump(50_000)
    loop.jump(1)
    assert clock.lowest == clock.highest == clock.now(), "a jump ahead makes nothing look too far ahead"
    loop.close()

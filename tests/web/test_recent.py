"""Answers that may be a few seconds old are made once for everybody, and a failure is never kept."""

import asyncio

import pytest

from tests.support.manual_clock import ManualClock
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.web.kept import MOST_RECENT, KeptThings

pytestmark = pytest.mark.anyio


async def test_everybody_who_asks_meanwhile_gets_the_same_answer():
    clock, made = ManualClock(), []

    async def make() -> int:
        await asyncio.sleep(0.01)
        made.append(1)
        return len(made)

    kept = KeptThings(clock)
    assert await asyncio.gather(*(kept.recent("count", PUBLIC_ONLY, 2, make) for _ in range(20))) == [1] * 20
    clock.advance(1_000)
    assert await kept.recent("count", PUBLIC_ONLY, 2, make) == 1
    clock.advance(1_500)
    assert await kept.recent("count", PUBLIC_ONLY, 2, make) == 2
    assert await kept.recent("another", PUBLIC_ONLY, 2, make) == 3


async def test_C4_a_failure_is_not_kept_and_hides_behind_no_older_answer():
    clock, fails = ManualClock(), False

    async def make() -> str:
        if fails:
            raise StoreUnavailable
        return "there"

    kept = KeptThings(clock)
    assert await kept.recent("x", PUBLIC_ONLY, 1, make) == "there"
    clock.advance(2_000)
    fails = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await kept.recent("x", PUBLIC_ONLY, 1, make)
    fails = False
    assert await kept.recent("x", PUBLIC_ONLY, 1, make) == "there"


async def test_an_answer_is_kept_for_those_only_who_may_read_the_same():
    async def make(answer: str) -> str:
        return answer

    kept = KeptThings(ManualClock())
    assert await kept.recent("x", PUBLIC_ONLY, 9, lambda: make("public")) == "public"
    mine = PUBLIC_ONLY | {"ns:acme"}
    assert await kept.recent("x", mine, 9, lambda: make("mine")) == "mine"
    assert await kept.recent("x", PUBLIC_ONLY, 9, lambda: make("again")) == "public"
    for number in range(MOST_RECENT):
        await kept.recent("x", frozenset({str(number)}), 9, lambda: make("others"))
    assert await kept.recent("x", mine, 9, lambda: make("anew")) == "anew", "those asked for last are kept"

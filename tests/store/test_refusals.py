"""Refusals in the audit: whatever strangers do costs the store at most sixty lines in a minute, and nothing is lost of
how often it was. The clock is the test's own; lines are counted."""

import pytest

from tests.support.envs import active_env, open_test_env
from tests.support.faults import HookedKV
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain.people.refusal import (
    ANONYMOUS,
    MANY,
    MOST_KEPT,
    MOST_OF_ACCOUNT,
    AuditOutcome,
    RefusalCounts,
)
from vskill_platform.store.people.audit import ReadEntry, list_audit
from vskill_platform.store.people.refusals import MINUTE_MS, MOST_LINES, note_refusal, write_refusals
from vskill_platform.worker_context import RequestOrigin

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def lines() -> list[ReadEntry]:
    return list((await list_audit(limit=1_000)).items)


async def refused_to_strangers(env, count: int, addresses: int, action: str = "queue.pause", **told) -> None:
    for number in range(count):
        place = number % addresses
        origin = RequestOrigin(f"r-{number}", f"10.{place >> 16}.{place >> 8 & 255}.{place & 255}")
        with active_env(env, origin=origin):
            await note_refusal(action, "Sign in.", **told)


async def next_minute(env) -> None:
    env.clock.advance(MINUTE_MS)
    await write_refusals(before=env.kv.now() // MINUTE_MS)


@pytest.mark.parametrize("addresses", [1, 61, 10_000])
async def test_ten_thousand_anonymous_refusals_in_a_minute_cost_at_most_sixty_lines(env, addresses):
    await refused_to_strangers(env, 10_000, addresses)
    assert await lines() == [], "nothing is written while they come"
    await next_minute(env)
    written = await lines()
    assert len(written) == min(addresses, MOST_LINES)
    assert sum(one.count for one in written) == 10_000
    assert {(one.by, one.outcome) for one in written} == {(ANONYMOUS, AuditOutcome.REFUSED)}
    stored = [key async for key in _keys(env, "refused:")]
    assert len(stored) == 1, "beside them there is one counter, which ends"


async def _keys(env, prefix: str):
    for key in (await env.kv.list(prefix)).items:
        yield key


async def test_one_line_per_address_kind_and_minute_with_a_count(env):
    await refused_to_strangers(env, 6, 2)
    await refused_to_strangers(env, 4, 2, "policy.set")
    await next_minute(env)
    await refused_to_strangers(env, 3, 1)
    await next_minute(env)
    told = sorted((one.action, one.address, one.count) for one in await lines())
    assert told == [
        ("policy.set", "10.0.0.0", 2),
        ("policy.set", "10.0.0.1", 2),
        ("queue.pause", "10.0.0.0", 3),
        ("queue.pause", "10.0.0.0", 3),
        ("queue.pause", "10.0.0.1", 3),
    ]
    assert all(one.since is not None and one.at - one.since == MINUTE_MS for one in await lines())


async def test_several_processes_share_the_sixty_lines_and_lose_no_count(env):
    processes = [RefusalCounts() for _ in range(3)]
    for counts in processes:
        with active_env(env, refusals=counts) as process:
            await refused_to_strangers(process, 100, 50)
    env.clock.advance(MINUTE_MS)
    for counts in processes:
        with active_env(env, refusals=counts):
            await write_refusals(before=env.kv.now() // MINUTE_MS)
    written = await lines()
    assert len(written) == MOST_LINES
    assert sum(one.count for one in written) + sum(one.others for one in processes) == 300
    env.clock.advance(MINUTE_MS)
    for counts in processes:
        with active_env(env, refusals=counts):
            await write_refusals(before=env.kv.now() // MINUTE_MS)
    assert sum(one.count for one in await lines()) == 300


async def test_noise_does_not_hide_who_was_tried_to_sign_in_as(env):
    await refused_to_strangers(env, MOST_KEPT - 1, MOST_KEPT - 1)
    await refused_to_strangers(env, 1, 1, "sign-in", account="ann")
    await refused_to_strangers(env, 3_000, 3_000, "sign-in")
    await next_minute(env)
    written = await lines()
    assert len(written) == MOST_LINES and sum(one.count for one in written) == 3_000 + MOST_KEPT
    assert ("sign-in", "ann", 1) in {(one.action, one.target, one.count) for one in written}


async def test_what_an_account_is_refused_stands_there_at_once_and_repeats_are_counted(env):
    with active_env(env, origin=RequestOrigin("r-1", "192.0.2.1")):
        for _ in range(10_000):
            await note_refusal("queue.pause", "Only admins may do this.", by="user:ann")
    (first,) = await lines()
    assert (first.by, first.request_id, first.address, first.count) == ("user:ann", "r-1", "192.0.2.1", 1)
    await next_minute(env)
    assert sorted(one.count for one in await lines()) == [1, 9_999]
    await next_minute(env)
    assert len(await lines()) == 2


@pytest.mark.parametrize("kinds", [MOST_OF_ACCOUNT, MOST_OF_ACCOUNT + 1, 10_000])
async def test_ten_thousand_refusals_of_an_account_cost_few_lines_which_say_what_was_left_out(env, kinds):
    """As many kinds as an account likes: each of its tokens at each action is one."""
    for number in range(10_000):
        await note_refusal(f"action.{number % kinds}", "Only admins may do this.", by="user:ann")
    await note_refusal("queue.pause", "Only admins may do this.", by="user:bob")
    at_once = await lines()
    assert len(at_once) == MOST_OF_ACCOUNT + 1, "another account has lines of its own"
    await next_minute(env)
    anns = [one for one in await lines() if one.by == "user:ann"]
    assert len(anns) <= 2 * MOST_OF_ACCOUNT + 1 and sum(one.count for one in anns) == 10_000
    beyond = [one for one in anns if one.action == MANY]
    left_out = sum(number % kinds >= MOST_OF_ACCOUNT for number in range(10_000))
    assert [one.count for one in beyond] == [left_out] * bool(left_out)
    await note_refusal("action.9999", "Only admins may do this.", by="user:ann")
    assert (await lines())[0].action == "action.9999", "the next minute begins anew"


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
async def test_a_commit_with_an_unknown_outcome_writes_each_line_once(env, moment):
    hooked = HookedKV(env.kv)

    async def fail(_operations):
        setattr(hooked, moment, None)
        raise StoreUnavailable("the connection died")

    await refused_to_strangers(env, 100, 10)
    setattr(hooked, moment, fail)
    with active_env(env, kv=hooked) as flaky:
        await next_minute(flaky)
    assert (len(await lines()), sum(one.count for one in await lines())) == (10, 100)


async def test_a_store_that_is_away_takes_no_count_along(env):
    hooked = HookedKV(env.kv)

    async def fail(_operations):
        raise StoreUnavailable("gone")

    hooked.before_commit = fail
    with active_env(env, kv=hooked) as away:
        await refused_to_strangers(away, 100, 10)
        await note_refusal("queue.pause", "Only admins may do this.", by="user:ann")
        with pytest.raises(StoreUnavailable):
            await next_minute(away)
    await next_minute(env)
    assert sum(one.count for one in await lines()) == 101


async def test_a_stop_writes_the_minute_that_runs(env):
    await refused_to_strangers(env, 5, 1)
    await write_refusals()
    assert [one.count for one in await lines()] == [5]

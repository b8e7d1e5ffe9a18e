"""A job has one runner: whoever is overtaken while it renews its hold hears of it."""

import pytest

from tests.support.envs import active_env, open_test_env
from tests.support.faults import HookedKV
from vskill_platform.store.operation.jobs import LEASE_MS, read_job, renew_tick, take_tick

pytestmark = pytest.mark.anyio


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def test_a_job_that_is_taken_over_in_the_moment_of_renewing_is_not_held_any_more(env):
    held = await take_tick("demo", every_ms=1_000)
    assert held is not None
    hooked = HookedKV(env.kv)

    async def overtake(_operations):
        env.clock.advance(LEASE_MS)
        with active_env(env):
            assert await take_tick("demo", every_ms=1_000) is not None

    hooked.before_commit = overtake
    with active_env(env, kv=hooked):
        assert not await renew_tick(held)
    record, _ = await read_job("demo")
    assert record.running is not None and held.running is not None
    assert record.running.token != held.running.token
    assert record.running.until == env.kv.now() + LEASE_MS

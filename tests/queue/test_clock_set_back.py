"""The clock is set back by hours (ADR 4): work that was held, waiting or delayed goes on within a lease or a
backoff, never after the length of the jump; and what a living worker holds stays its own."""

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_platform.domain.messages import TaskMessage
from vskill_platform.domain.operation.task import LONGEST_DELAY_MS
from vskill_platform.domain.submissions.attempts import CLAIM_MS, FAILED_DELAYS_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.queue.control import current_pause, pause_queue
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import AHEAD_AT_ONCE, recover_stuck_submissions, recover_tasks
from vskill_platform.queue.schedule import run_job
from vskill_platform.queue.tasks import handle_task
from vskill_platform.store.claims import HeldClaim, NotClaimed, claim_submission
from vskill_platform.store.operation.jobs import take_tick
from vskill_platform.store.tasks import HeldTask, TaskEnd, TaskKind, ask_for, claim_task, read_task

pytestmark = pytest.mark.anyio

HOURS_BACK = -2 * 3_600_000


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


async def submitted(slug: str = "demo") -> str:
    record = (await submit_skill(slug)).submission
    assert record is not None
    return record.id


async def held(env, number: str) -> HeldClaim:
    """Received and claimed, as a worker does."""
    await env.broker.receive(1, 0)
    claim = await claim_submission(number, 1)
    assert isinstance(claim, HeldClaim)
    return claim


# Submissions.


async def test_B8_what_a_dead_worker_held_is_taken_up_at_the_next_recovery(env):
    number = await submitted()
    await held(env, number)
    env.clock.advance(HOURS_BACK)
    assert (await recover_stuck_submissions()).found == 1
    await run_until_quiet(env)
    record = await get_submission(number)
    assert (record.state, record.attempts.interrupted) == (State.PUBLISHED, 1)


async def test_what_waited_is_taken_up_at_the_next_recovery(env):
    number = await submitted()
    env.clock.advance(HOURS_BACK)
    assert await env.broker.receive(1, 0) == ()
    await recover_stuck_submissions()
    await run_until_quiet(env)
    assert (await get_submission(number)).state is State.PUBLISHED


async def test_what_a_living_worker_holds_stays_its_own_once_it_has_renewed(env):
    """A renewal that kept the old end would leave it open to everybody for as long as the jump."""
    number = await submitted()
    claim = await held(env, number)
    env.clock.advance(HOURS_BACK)
    await claim.renew()
    assert (await recover_stuck_submissions()).found == 0
    assert isinstance(await claim_submission(number, 1), NotClaimed)
    claimed = (await get_submission(number)).claim
    assert claimed is not None
    assert claimed.until == env.kv.now() + CLAIM_MS


async def test_a_failed_attempt_waits_for_its_delay_from_now_on(env):
    """Its history goes on in the future that was; its next attempt must not, or there would be no delay at all, or
    one as long as the jump."""
    number = await submitted()
    claim = await held(env, number)
    env.clock.advance(HOURS_BACK)
    await claim.failed("a bad moment")
    record = await get_submission(number)
    assert record.next_attempt_at == env.kv.now() + FAILED_DELAYS_MS[0]
    assert record.history[-1].at >= record.history[-2].at > env.kv.now()
    assert (await recover_stuck_submissions()).found == 0
    env.clock.advance(FAILED_DELAYS_MS[0])
    assert (await recover_stuck_submissions()).found == 1


async def test_what_is_submitted_again_or_asked_for_during_a_run_is_due_now(env):
    number = await submitted()
    claim = await held(env, number)
    await submit_skill("demo", "changed")
    env.clock.advance(-600_000)
    await claim.move(State.TIER2_SCANNING, "goes on")
    await claim.move(State.NEEDS_REVIEW, "unclear")
    record = await get_submission(number)
    assert (record.run, record.next_attempt_at) == (2, env.kv.now())
    await run_until_quiet(env)
    assert (await get_submission(number)).state is State.PUBLISHED
    env.clock.advance(-600_000)
    await submit_skill("demo", "changed again")
    assert (await get_submission(number)).next_attempt_at == env.kv.now()


# Tasks.


async def does_it(_task) -> TaskEnd:
    return TaskEnd("did it")


DEMO = TaskKind("demo", "for tests", does_it)


async def work(env) -> list[str]:
    done = []
    for batch in await env.broker.receive(10, 0):
        for message in batch.messages:
            _, _, number, run = (message.key or "").split(":")
            done.append(await handle_task(message, TaskMessage("demo", number, int(run)), (DEMO,)))
    return done


async def test_B8_a_task_that_a_dead_worker_held_is_taken_up_at_the_next_recovery(env):
    """A claim lasts 15 s, so an end within the longest delay of a task is no excuse."""
    await ask_for("demo", "one", {})
    await env.broker.receive(1, 0)
    assert isinstance(await claim_task("demo", "one", 1), HeldTask)
    env.clock.advance(HOURS_BACK)
    assert (await recover_tasks()).found == 1
    assert await work(env) == ["done"]


async def test_a_task_that_waited_is_taken_up_at_the_next_recovery(env):
    await ask_for("demo", "one", {}, delay_ms=5_000)
    env.clock.advance(HOURS_BACK)
    assert (await recover_tasks()).found == 1
    assert await work(env) == ["done"]


async def test_a_task_that_was_asked_for_again_is_taken_up_too(env):
    await ask_for("demo", "one", {}, delay_ms=LONGEST_DELAY_MS)
    env.clock.advance(-HOURS_BACK + 3_600_000)
    await ask_for("demo", "one", {})
    env.clock.advance(HOURS_BACK)
    assert (await recover_tasks()).found == 1
    assert await work(env) == ["done"]


async def test_a_long_delay_on_a_clock_that_goes_on_is_kept(env):
    await ask_for("demo", "one", {}, delay_ms=LONGEST_DELAY_MS)
    env.clock.advance(LONGEST_DELAY_MS - 1)
    assert (await recover_tasks()).found == 0
    assert isinstance(await claim_task("demo", "one", 1), NotClaimed)
    env.clock.advance(1)
    assert (await recover_tasks()).found == 1


async def test_recovery_finds_it_behind_any_number_of_tasks_that_are_rightly_delayed(env):
    for number in range(AHEAD_AT_ONCE + 20):
        await ask_for("demo", f"later{number}", {}, delay_ms=60_000 + number)
    env.clock.advance(600_000)
    await ask_for("demo", "one", {})
    while await env.broker.receive(1, 0):
        pass
    assert isinstance(await claim_task("demo", "one", 1), HeldTask)
    env.clock.advance(-595_000)
    after, found, rounds = None, 0, 0
    while rounds == 0 or after is not None:
        recovered = await recover_tasks(ahead_after=after)
        after, found, rounds = recovered.ahead_after, found + recovered.found, rounds + 1
    assert (found, rounds) == (1, 2)


async def test_the_job_goes_on_where_its_last_look_ahead_ended(env):
    for number in range(AHEAD_AT_ONCE + 1):
        await ask_for("demo", f"later{number}", {}, delay_ms=3_600_000)
    job = next(one for one in JOBS if one.name == "recovery")
    state = await job.run({})
    assert state["tasks_ahead_after"] is not None
    assert (await job.run(state))["tasks_ahead_after"] is None


# Everything else that has a time.


async def test_B3_a_pause_lasts_no_longer_than_it_was_to_last_in_all(env):
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    env.clock.advance(30_000 + HOURS_BACK)
    paused = await current_pause()
    assert paused is not None
    assert paused.until == env.kv.now() + 60_000
    env.clock.advance(59_999)
    assert await current_pause() is not None
    env.clock.advance(1)
    assert await current_pause() is None


async def test_B3_a_pause_that_cannot_be_begun_again_holds_until_it_can(env):
    """Whoever cannot write the new end, or is not the first to, still waits; and is not told that nothing pauses."""
    set_by_us = await pause_queue(60_000, reason="upgrade", by="admin:me")
    env.clock.advance(HOURS_BACK)
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        hooked.failing = {"commit"}
        assert await current_pause() == set_by_us

    async def another_is_first(_) -> None:
        hooked.before_commit = None
        with active_env(env):
            assert await current_pause() != set_by_us

    hooked.failing = set()
    hooked.before_commit = another_is_first
    with active_env(env, kv=hooked):
        assert await current_pause() == set_by_us
        begun_again = await current_pause()
    assert begun_again is not None
    assert begun_again.until == env.kv.now() + 60_000
    assert hooked.commits == []


async def test_a_job_runs_again_at_once_and_a_tick_of_a_clock_that_is_a_little_ahead_is_respected(env):
    job = JOBS[0]
    assert await run_job(job)
    env.clock.advance(HOURS_BACK)
    assert await run_job(job)
    env.clock.advance(-2_000)
    assert not await run_job(job)
    assert await take_tick(job.name, every_ms=job.every_ms) is None


async def test_the_outcome_of_a_task_that_ran_after_the_jump_stands(env):
    await ask_for("demo", "one", {})
    env.clock.advance(HOURS_BACK)
    await recover_tasks()
    await work(env)
    task, _ = await read_task("demo", "one")
    assert task is not None
    assert (task.outcome, task.updated_at) == ("did it", env.kv.now())

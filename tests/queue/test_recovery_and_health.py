"""Recovery, schedule and health: what is owed work gets its message, ticks are taken once, and violations show."""

import asyncio

import msgspec
import pytest

from tests.contracts.minimal_kv import MinimalKV
from tests.support.envs import active_env, open_test_env
from tests.support.faults import HookedKV
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.patience import PATIENCE_S
from tests.support.records import in_state, stored, submission
from vskill_core.errors import InvalidInput, StoreUnavailable
from vskill_platform.domain.keys import CONTROL_QUEUE
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.submissions.attempts import CLAIM_MS, UNAVAILABLE_MOST_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Attempts, Claim
from vskill_platform.machine.slots import WorkGate
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.control import LONGEST_PAUSE_MS, current_pause, pause_queue, resume_queue
from vskill_platform.queue.health import EXPIRED_GRACE_MS, MOST_VIOLATIONS, queue_health
from vskill_platform.queue.job_health import job_health
from vskill_platform.queue.jobs import JOBS, Job
from vskill_platform.queue.recovery import recover_stuck_submissions, recover_tasks
from vskill_platform.queue.schedule import run_job, run_schedule
from vskill_platform.store.operation.jobs import LEASE_MS, finish_tick, read_job, renew_tick, take_tick
from vskill_platform.store.operation.workers import give_sign, look_at_workers
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.tasks import ask_for, claim_task
from vskill_platform.worker_context import Pace, get_worker_env, run_with_worker_env

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


async def put(env, record) -> None:
    await env.kv.put(record.key, stored(record))


def held(env, slug: str, until: int, state: State = State.TIER1_SCANNING):
    return submission(
        slug,
        at=env.kv.now(),
        state=state,
        next_attempt_at=None,
        claim=Claim("t", "w", env.kv.now() + until),
    )


# Recovery.


async def test_B5_recovery_sends_for_what_is_due_and_for_nothing_else(env):
    now = env.kv.now()
    owed = [
        submission("waiting", at=now),
        held(env, "expired", 0),
        held(env, "expired-2", -5_000, State.TIER2_SCANNING),
        held(env, "expired-3", -5_000, State.AUTO_APPROVED),
        submission("approved", at=now, state=State.AUTO_APPROVED),
        held(env, "clock-went-back", CLAIM_MS * 100),
        submission("clock-went-back-too", at=now, next_attempt_at=now + UNAVAILABLE_MOST_MS * 3),
    ]
    others = [
        held(env, "working", CLAIM_MS),
        submission("later", at=now, next_attempt_at=now + 10_000),
        in_state(State.PUBLISHED, "done", now),
        in_state(State.NEEDS_REVIEW, "review", now),
    ]
    for record in (*owed, *others):
        at_rest = record.state.ends_run
        await put(env, msgspec.structs.replace(record, next_attempt_at=None) if at_rest else record)
    recovered = await recover_stuck_submissions()
    assert (recovered.found, recovered.sent) == (len(owed), len(owed))
    batches = await env.broker.receive(50, 0)
    assert {message.key for message in batches[0].messages} == {f"{record.id}:1" for record in owed}


async def test_running_recovery_again_and_on_many_machines_is_harmless(env):
    for number in range(20):
        await put(env, submission(f"s{number}", at=env.kv.now()))
    sent = [result.sent for result in await asyncio.gather(*(recover_stuck_submissions() for _ in range(10)))]
    assert sum(sent) == 20
    assert (await env.broker.depth()).ready == 20


async def test_recovery_pages_through_all_that_wait_and_leaves_none_out(env):
    """A fixed window of the oldest would starve the rest (peers' failure k)."""
    for number in range(25):
        await put(env, submission(f"s{number}", at=env.kv.now() - number))
    after, sent, rounds = None, 0, 0
    while rounds < 10:
        recovered = await recover_stuck_submissions(after=after, limit=10)
        sent, after, rounds = sent + recovered.sent, recovered.after, rounds + 1
        if after is None:
            break
    assert (sent, rounds) == (25, 3)


async def test_what_dead_workers_held_is_sent_in_one_run_however_much_it_is(env):
    """A page is read at a time; none of them waits for the next run."""
    for number in range(25):
        await put(env, held(env, f"s{number}", -number))
    recovered = await recover_stuck_submissions(limit=10)
    assert (recovered.found, recovered.sent) == (25, 25)
    assert (await env.broker.depth()).ready == 25


async def test_what_a_dead_worker_had_begun_is_next_and_from_its_third_interruption_on_last(env):
    begun = [
        msgspec.structs.replace(held(env, f"begun-{n}", CLAIM_MS), attempts=Attempts(n + 1, interrupted=n))
        for n in range(4)
    ]
    await env.broker.send_batch([submission_send(record.id, 1) for record in begun])
    await env.broker.receive(10, 0)
    env.clock.advance(1)
    waiting = [submission(f"waiting-{n}", at=env.kv.now()) for n in range(50)]
    await env.broker.send_batch([submission_send(record.id, 1) for record in waiting])
    for record in (*begun, *waiting):
        await put(env, record)
    env.clock.advance(CLAIM_MS)
    assert (await recover_stuck_submissions()).found == 54
    (batch,) = await env.broker.receive(100, 0)
    order = [message.key for message in batch.messages]
    assert order == [f"{record.id}:1" for record in (*begun[:2], *waiting, *begun[2:])]


async def test_a_task_that_a_dead_worker_had_begun_is_next(env):
    await ask_for("demo", "begun", {})
    await claim_task("demo", "begun", 1)
    await env.broker.receive(10, 0)
    env.clock.advance(1)
    await ask_for("demo", "waiting", {})
    env.clock.advance(CLAIM_MS)
    await recover_tasks()
    (batch,) = await env.broker.receive(10, 0)
    assert [message.key for message in batch.messages] == ["task:demo:begun:1", "task:demo:waiting:1"]


async def test_a_record_that_recovery_cannot_read_is_counted(env):
    await env.kv.put("sub:sub_odd", b'{"state": "RECEIVED", "next_attempt_at": 5}')
    assert (await recover_stuck_submissions()).found == 0
    labels = {"operation": "recover_stuck_submissions", "reason": "malformed"}
    assert env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) == 1


async def test_B3_nothing_is_sent_while_paused_and_a_pause_always_ends(env):
    await put(env, submission("waiting", at=env.kv.now()))
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    assert (await recover_stuck_submissions()).paused
    assert (await env.broker.depth()).ready == 0
    env.clock.advance(60_000)
    assert await current_pause() is None
    assert (await recover_stuck_submissions()).sent == 1


@pytest.mark.parametrize("duration", [0, -5, LONGEST_PAUSE_MS + 1])
async def test_B3_a_pause_without_an_end_is_refused(env, duration):
    with pytest.raises(InvalidInput, match="pause"):
        await pause_queue(duration, reason="upgrade", by="admin:me")
    with pytest.raises(InvalidInput, match="reason"):
        await pause_queue(5, reason=" ", by="admin:me")


async def test_resuming_ends_a_pause_now_and_the_audit_says_who_did_what(env):
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    assert await resume_queue(by="admin:eve")
    assert await current_pause() is None
    assert not await resume_queue(by="admin:eve")
    audited = [(one.action, one.by, one.reason) for one in (await list_audit()).items]
    assert audited == [("resume", "admin:eve", "asked for it"), ("pause", "admin:me", "upgrade")]


async def test_resuming_removes_a_record_that_nobody_can_read(env):
    """It pauses nothing, and every worker would count it for ever."""
    await env.kv.put(CONTROL_QUEUE, b'{"until": "soon"}')
    assert not await resume_queue(by="admin:me")
    assert await env.kv.get(CONTROL_QUEUE) is None


async def test_who_resumes_does_not_end_a_pause_that_was_set_meanwhile_unseen(env):
    """The record is removed in the version that was looked at; another one is looked at first."""
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    hooked = HookedKV(env.kv)

    async def pause_again(_):
        hooked.before_commit = None
        with active_env(env):
            await pause_queue(90_000, reason="another upgrade", by="admin:eve")

    hooked.before_commit = pause_again
    with active_env(env, kv=hooked):
        assert await resume_queue(by="admin:me")
    audited = [(one.action, one.by) for one in (await list_audit()).items]
    assert sorted(audited) == [("pause", "admin:eve"), ("pause", "admin:me"), ("resume", "admin:me")]


# The schedule.


async def test_a_tick_is_taken_by_one_of_many(env):
    taken = await asyncio.gather(*(take_tick("demo", every_ms=1_000) for _ in range(8)))
    assert sum(tick is not None for tick in taken) == 1
    env.clock.advance(LEASE_MS - 1)
    assert await take_tick("demo", every_ms=LEASE_MS * 2, now_forced=True) is None
    env.clock.advance(1)
    assert await take_tick("demo", every_ms=LEASE_MS * 2) is not None


async def test_a_job_whose_runner_died_is_taken_over_and_the_late_one_writes_nothing(env):
    late = await take_tick("demo", every_ms=1_000)
    env.clock.advance(LEASE_MS)
    second = await take_tick("demo", every_ms=1_000)
    assert late is not None and second is not None
    assert not await renew_tick(late)
    assert await renew_tick(second)
    await finish_tick(late, duration_ms=5, error="too late", state={})
    assert (await read_job("demo"))[0].last_error is None
    await finish_tick(second, duration_ms=5, error=None, state={"after": "x"})
    record = (await read_job("demo"))[0]
    assert (record.last_success, record.state, record.running) == (env.kv.now(), {"after": "x"}, None)


async def test_a_clock_that_went_back_does_not_stop_a_job(env):
    await take_tick("demo", every_ms=1_000)
    env.clock.advance(-3_600_000)
    assert await take_tick("demo", every_ms=1_000) is not None


async def test_C5_a_job_that_fails_says_so_in_its_record_and_is_stale(env):
    async def broken(_):
        raise ValueError("no such table")

    async def silent(_):
        raise ValueError

    job = Job("broken", "fails", 1_000, 1_000, "", broken)
    assert await run_job(job)
    assert not await run_job(job)
    assert await run_job(job, forced=True)
    assert await run_job(Job("silent", "fails without a word", 1_000, 1_000, "", silent))
    env.clock.advance(10_000)
    broken_health, silent_health = await job_health([job, Job("silent", "", 1_000, 1_000, "", silent)])
    assert (broken_health.last_error, broken_health.stale) == ("no such table", True)
    assert silent_health.last_error == "ValueError()"


async def test_C11_a_slow_job_keeps_no_other_from_running_and_ends_with_its_budget():
    env = memory_env()
    ran = asyncio.Event()

    async def slow(state):
        await asyncio.sleep(60)
        return state

    async def quick(state):
        assert get_worker_env() is env
        ran.set()
        return state

    stop = asyncio.Event()
    jobs = (Job("slow", "", 60_000, 50, "", slow), Job("quick", "", 60_000, 1_000, "", quick))
    running = asyncio.create_task(run_schedule(env, stop, jobs))
    await asyncio.wait_for(ran.wait(), PATIENCE_S)
    for _ in range(int(PATIENCE_S / 0.02)):
        await asyncio.sleep(0.02)
        (slow_job, _) = await run_with_worker_env(env, lambda: read_job("slow"))
        if slow_job.last_error is not None:
            break
    assert slow_job.last_error is not None and "Timeout" in slow_job.last_error
    stop.set()
    await running


async def test_a_job_that_is_stopped_is_free_for_another_at_once():
    env = memory_env()
    started = asyncio.Event()

    async def slow(state):
        started.set()
        await asyncio.sleep(60)
        return state

    stop = asyncio.Event()
    running = asyncio.create_task(run_schedule(env, stop, (Job("slow", "", 60_000, 60_000, "", slow),)))
    await started.wait()
    stop.set()
    await running
    record, _ = await run_with_worker_env(env, lambda: read_job("slow"))
    assert (record.running, record.last_error) == (None, "its schedule stopped")


async def test_a_pause_that_cannot_be_read_pauses_nothing_for_ever(env):
    await env.kv.put("control:queue", b"{broken")
    await put(env, submission("waiting", at=env.kv.now()))
    assert (await recover_stuck_submissions()).sent == 1
    labels = {"operation": "current_pause", "reason": "malformed"}
    assert (env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) or 0) >= 1


class AwayAtFirst(HookedKV):
    """A store that refuses the first three reads."""

    refused = 0

    async def get(self, key):
        if self.refused < 3:
            self.refused += 1
            raise StoreUnavailable("away")
        return await super().get(key)


async def test_a_schedule_goes_on_when_the_store_comes_back():
    env = memory_env(pace=Pace(look_every_s=0.01))
    kv = AwayAtFirst(env.kv)
    env = msgspec.structs.replace(env, kv=kv)
    stop = asyncio.Event()

    async def job(state):
        stop.set()
        return state

    await asyncio.wait_for(run_schedule(env, stop, (Job("demo", "", 10, 1_000, "", job),)), PATIENCE_S)
    assert kv.refused == 3


async def test_every_scheduled_job_runs_and_leaves_its_mark(env):
    for job in JOBS:
        assert await run_job(job)
    health = await job_health()
    assert [job.stale for job in health] == [False] * len(JOBS)
    assert all(job.purpose for job in health)
    env.clock.advance(10_000)
    for job in JOBS[:2]:
        assert await run_job(job)


async def test_how_a_job_ended_is_written_whoever_else_writes(env):
    tick = await take_tick("demo", every_ms=1_000)
    assert tick is not None
    hooked = HookedKV(env.kv)

    async def write_first(operations) -> None:
        hooked.before_commit = None
        entry = await env.kv.get(operations[0].key)
        assert entry is not None
        await env.kv.put(entry.key, entry.value)

    hooked.before_commit = write_first
    with active_env(env, kv=hooked):
        await finish_tick(tick, duration_ms=1, error=None, state={})
    assert len(hooked.commits) == 1
    assert (await read_job("demo"))[0].last_success == env.kv.now()


# Health.


async def test_a_healthy_queue_has_no_violation(env):
    await put(env, submission("waiting", at=env.kv.now() - 4_000))
    await put(env, held(env, "working", CLAIM_MS))
    await put(env, submission("done", state=State.PUBLISHED, next_attempt_at=None, updated_at=77))
    health = await queue_health()
    assert health.healthy and health.violations == ()
    assert (health.oldest_waiting_ms, health.last_ended_at) == (4_000, 77)
    assert health.counts.total == 3


async def sign_of(env, worker: str, **sign) -> None:
    await run_with_worker_env(msgspec.structs.replace(env, worker_id=worker), lambda: give_sign(**sign))


async def test_B7_no_worker_alive_is_a_violation_within_thirty_seconds(env):
    """Also where nothing waits: the next submission would."""
    await sign_of(env, "one")
    await sign_of(env, "two")
    health = await queue_health()
    assert (health.healthy, health.workers.alive) == (True, 2)
    env.clock.advance(20_000)
    await sign_of(env, "one")
    assert (await queue_health()).workers.alive == 2
    env.clock.advance(10_000)
    assert (await queue_health()).workers.alive == 1
    env.clock.advance(20_000)
    health = await queue_health()
    assert (health.healthy, health.workers.alive) == (False, 0)
    (found,) = health.violations
    assert found.key == "workers"
    assert found.problem.startswith("No worker is alive; the last one was there 30 s ago.")
    assert AlertCode.NO_WORKER in {alert.code for alert in health.alerts}
    await sign_of(env, "three")
    assert (await queue_health()).healthy


async def test_a_worker_that_stopped_is_not_alive_and_may_be_followed_in_time(env):
    await sign_of(env, "one")
    await sign_of(env, "one", stopped=True)
    health = await queue_health()
    assert (health.healthy, health.workers.alive) == (True, 0)
    env.clock.advance(26_000)
    assert not (await queue_health()).healthy


async def test_where_no_worker_ever_was_work_that_waits_is_a_violation_within_thirty_seconds(env):
    await put(env, submission("waiting", at=env.kv.now()))
    assert (await queue_health()).healthy
    env.clock.advance(26_000)
    health = await queue_health()
    assert [one.problem for one in health.violations] == [
        "No worker is alive, and work waits. Scheduled jobs do not run either. Start one: vskill-platform worker."
    ]
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    assert (await queue_health()).healthy, "somebody wants it to wait"


async def test_a_sign_from_before_the_clock_was_set_back_says_nothing(env):
    env.clock.advance(3_600_000)
    await sign_of(env, "one")
    env.clock.advance(-3_600_000)
    health = await queue_health()
    assert (health.workers.alive, health.workers.last_sign_at, health.healthy) == (0, None, True)


async def test_a_consumer_says_that_it_is_there_until_it_has_stopped(env):
    """Also while the queue is paused."""
    stop = asyncio.Event()
    await pause_queue(60_000, reason="upgrade", by="admin:me")
    pace = msgspec.structs.replace(env.pace, sign_every_s=0.01)
    consumer = asyncio.create_task(run_consumer(msgspec.structs.replace(env, pace=pace), stop))
    async with asyncio.timeout(PATIENCE_S):
        while not (await look_at_workers()).alive:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        stop.set()
        await consumer
    seen = await look_at_workers()
    assert (seen.alive, seen.last_sign_at, seen.gone) == (0, env.kv.now(), False)


async def test_a_worker_whose_store_is_away_gives_its_sign_when_it_is_back(env):
    stop = asyncio.Event()
    kv = HookedKV(env.kv)
    pace = msgspec.structs.replace(env.pace, sign_every_s=0.01)
    kv.failing.add("commit")
    consumer = asyncio.create_task(run_consumer(msgspec.structs.replace(env, kv=kv, pace=pace), stop))
    await asyncio.sleep(0.05)
    assert (await look_at_workers()).last_sign_at is None
    kv.failing.clear()
    async with asyncio.timeout(PATIENCE_S):
        while not (await look_at_workers()).alive:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        stop.set()
        await consumer


async def test_B7_health_needs_no_worker_and_shows_jobs_that_never_ran(env):
    health = await queue_health()
    assert [job.stale for job in health.jobs] == [True] * len(JOBS)
    assert (health.oldest_waiting_ms, health.last_ended_at) == (None, None)


async def test_every_kind_of_violation_is_listed(env):
    await put(env, submission("limbo", at=env.kv.now(), next_attempt_at=None))
    await put(env, held(env, "abandoned", -EXPIRED_GRACE_MS - 1_000))
    await put(env, submission("resting", state=State.REJECTED, next_attempt_at=5))
    await env.kv.put("sub:sub_broken", b"{")
    await env.kv.put("sub:sub_unknown", b'{"state": "WISHED", "updated_at": 5}')
    await env.kv.put("sub:sub_timed", b'{"updated_at": 5}')
    health = await queue_health()
    problems = sorted(violation.problem for violation in health.violations)
    assert not health.healthy and len(problems) == 6
    assert sum("cannot be read" in problem for problem in problems) == 3
    assert any("neither claim nor next attempt" in problem for problem in problems)
    assert any("nobody took it up" in problem for problem in problems)
    assert any("at rest" in problem for problem in problems)


async def test_A6_a_long_list_of_violations_is_cut_and_says_so(env):
    for number in range(MOST_VIOLATIONS + 5):
        await put(env, submission(f"s{number}", next_attempt_at=None))
    health = await queue_health()
    assert health.truncated and len(health.violations) == MOST_VIOLATIONS


async def test_C7_a_failed_read_is_an_error_and_never_a_healthy_queue():
    env = memory_env(ManualClock())
    kv = HookedKV(env.kv)
    kv.failing = {"count_by"}
    with pytest.raises(StoreUnavailable):
        await run_with_worker_env(msgspec.structs.replace(env, kv=kv), queue_health)


class LosesOne(MinimalKV):
    """Reads key by key, and from the moment when the records were counted one of them cannot be read."""

    async def count_by(self, prefix, field, *, audiences):
        counts = await super().count_by(prefix, field, audiences=audiences)
        self.probe.failing["sub:lost"] = StoreUnavailable("sub:lost cannot be read")
        return counts


async def test_C7_one_record_that_cannot_be_read_is_an_error_and_never_left_out():
    """A store may name the keys that it could not read beside those that it could."""
    clock = ManualClock()
    store = LosesOne(clock)
    await store.put("sub:lost", stored(submission("lost", at=clock.now())))
    with pytest.raises(StoreUnavailable, match="sub:lost cannot be read"):
        await run_with_worker_env(memory_env(clock, kv=store), queue_health)


# The gate.


async def test_whoever_wants_to_be_alone_is_alone_and_is_not_overtaken():
    gate = WorkGate()
    log: list[str] = []

    async def company(name: str) -> None:
        async with gate.company():
            log.append(f"+{name}")
            await asyncio.sleep(0.01)
            log.append(f"-{name}")

    async def alone() -> None:
        async with gate.alone():
            log.append("+alone")
            await asyncio.sleep(0.01)
            log.append("-alone")

    first = [asyncio.create_task(company(name)) for name in "ab"]
    await asyncio.sleep(0)
    single = asyncio.create_task(alone())
    await asyncio.sleep(0)
    late = [asyncio.create_task(company(name)) for name in "cd"]
    await asyncio.gather(*first, single, *late)
    assert log == ["+a", "+b", "-a", "-b", "+alone", "-alone", "+c", "+d", "-c", "-d"]

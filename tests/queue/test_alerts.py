"""Alerts, computed by the web side alone: each holds when its cause does, and is gone with it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import msgspec
import pytest

from tests.support.envs import (
    ENGINES,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.manual_clock import ManualClock
from vskill_core.findings import JudgeStatus, ScanStatus, Verdict
from vskill_platform.domain import keys
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.messages import Send, submission_send, task_send
from vskill_platform.domain.people.namespace import Namespace, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.broker.contract import DeliveryEnd, Settlement
from vskill_platform.notifications.notices import AlertData, NoticeType, alert_notice
from vskill_platform.queue.alerts import (
    MOST_LETTERS,
    PREPARING_MS,
    RECENT_MS,
    SLOW_MS,
    AlertCode,
    DeadLetters,
)
from vskill_platform.queue.control import pause_queue
from vskill_platform.queue.health import QueueHealth, queue_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.operation.workers import give_sign
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000


@pytest.fixture(params=ENGINES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Env]:
    async with open_test_env(request.param, tmp_path, clock=ManualClock(NOW)) as opened:
        yield opened


async def all_jobs_ran(env: Env) -> None:
    for job in JOBS:
        assert await run_job(job, forced=True)


def codes(health: QueueHealth) -> set[AlertCode]:
    return {alert.code for alert in health.alerts}


async def test_a_healthy_queue_has_no_alert(env: Env):
    await submit_skill("fine")
    await run_until_quiet(env)
    await all_jobs_ran(env)
    assert (await queue_health()).alerts == ()


async def test_B7_work_that_waits_while_nothing_ends_is_seen(env: Env):
    """B7: both alerts hold, in health and in metrics; a pause silences them."""
    await all_jobs_ran(env)
    await submit_skill("waiting")
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(env.settings.stuck_threshold_ms + 60_000)
    await give_sign()
    health = await queue_health()
    assert {AlertCode.NO_COMPLETION, AlertCode.OLDEST_WAITING} <= codes(health)
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        text = (await client.get("/metrics")).text
        assert 'vskill_alerts{alert="no_completion"} 1.0' in text
        assert 'vskill_alerts{alert="judge_stale"} 0.0' in text
        assert "vskill_oldest_waiting_seconds 360.0" in text
        shown = (await client.get("/api/v1/queue/health")).json()["alerts"]
        assert {"no_completion", "oldest_waiting"} <= {alert["code"] for alert in shown}
    await pause_queue(60_000, reason="on purpose", by="admin:eve")
    assert not {AlertCode.NO_COMPLETION, AlertCode.OLDEST_WAITING} & codes(await queue_health())


async def test_B7_one_dead_worker_is_one_alarm(env: Env):
    """It was sixteen: the worker, what waits for it, and every job that ran in its process."""
    await all_jobs_ran(env)
    await give_sign()
    await submit_skill("waiting")
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(env.settings.stuck_threshold_ms + 3_600_000)
    (alert,) = (await queue_health()).alerts
    assert alert.code is AlertCode.NO_WORKER
    assert "Scheduled jobs do not run either." in alert.text


async def test_jobs_that_nobody_runs_are_one_alarm(env: Env):
    await all_jobs_ran(env)
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(3_600_000)
    await give_sign()
    assert [alert.code for alert in (await queue_health()).alerts] == [AlertCode.SCHEDULE_STOPPED]


async def test_a_worker_that_cannot_work_is_told_with_what_it_lacks(env: Env):
    await all_jobs_ran(env)
    other = msgspec.structs.replace(env, worker_id="other")
    await give_sign(lacks="No temporary file can be written.")
    await run_with_worker_env(other, give_sign)
    health = await queue_health()
    (alert,) = health.alerts
    assert alert.code is AlertCode.WORKER_LACKS
    assert alert.text.startswith("1 of 2 workers") and alert.text.endswith(
        "No temporary file can be written."
    )
    assert health.healthy, "the other one works"
    await run_with_worker_env(other, lambda: give_sign(lacks="The scanner cannot be started."))
    health = await queue_health()
    assert not health.healthy
    assert [one.key for one in health.violations] == ["workers"]
    await give_sign()
    await run_with_worker_env(other, give_sign)
    assert (await queue_health()).alerts == ()


async def test_work_that_ends_while_some_waits_long_is_only_slow(env: Env):
    await put_record(env, make_submission("old", at=NOW - 400_000))
    await put_record(env, make_submission("done", state=State.PUBLISHED, at=NOW - 1_000))
    found = codes(await queue_health())
    assert AlertCode.OLDEST_WAITING in found
    assert AlertCode.NO_COMPLETION not in found


async def test_C5_a_stale_job_is_an_alert_with_its_name(env: Env):
    await all_jobs_ran(env)
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(3_600_000)
    assert await run_job(next(job for job in JOBS if job.name == "sweep"), forced=True)
    stale = {alert.subject for alert in (await queue_health()).alerts if alert.code is AlertCode.JOB_STALE}
    assert "recovery" in stale


async def test_a_namespace_that_is_prepared_for_long_is_an_alert_without_its_name(env: Env):
    record = Namespace("acme", Visibility.PUBLIC, Visibility.TEAM, preparing_since=NOW)
    await env.kv.put(keys.namespace("acme"), msgspec.json.encode(record))
    await env.kv.put(keys.CONTROL_NAMESPACES, b"{}")
    assert AlertCode.NAMESPACE_PREPARING not in codes(await queue_health())
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(PREPARING_MS + 1)
    (alert,) = [one for one in (await queue_health()).alerts if one.code is AlertCode.NAMESPACE_PREPARING]
    assert "acme" not in alert.text and not alert.subject
    await all_jobs_ran(env)
    assert AlertCode.NAMESPACE_PREPARING not in codes(await queue_health())


async def test_dead_letters_that_are_young_are_an_alert(env: Env):
    await env.broker.send_batch([submission_send("sub_x", 1), submission_send("sub_y", 1)])
    (batch,) = await env.broker.receive(2, 0)
    for message in batch.messages:
        await message.dead_letter("it cannot be")
    health = await queue_health()
    assert AlertCode.DEAD_LETTERS_GROWING in codes(health)
    assert health.dead_letters == DeadLetters(2, 2)
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(RECENT_MS + 1)
    health = await queue_health()
    assert AlertCode.DEAD_LETTERS_GROWING not in codes(health)
    assert health.dead_letters == DeadLetters(2, 0)


async def test_a_letter_that_was_to_tell_of_an_alert_raises_none_and_is_counted(env: Env):
    """Where a receiver or a mail server stays away, alerts would raise each other for ever."""
    data = AlertData("disk_filling", "records", "Only 1 MiB is free.", NOW)
    alert = alert_notice(NoticeType.ALERT_FIRED, NOW, data).id
    told = [("delivery", f"01hook:{alert}"), ("mail", alert), ("mail", f"eve:{alert}"), ("tell", alert)]
    await env.broker.send_batch([task_send(kind, task_id, 1) for kind, task_id in told])
    await give_up_all(env)
    health = await queue_health()
    assert health.dead_letters == DeadLetters(len(told), 0)
    assert AlertCode.DEAD_LETTERS_GROWING not in codes(health)
    await env.broker.send_batch([task_send("delivery", "01hook:01event.submission.decided", 1)])
    await give_up_all(env)
    assert (await queue_health()).dead_letters == DeadLetters(len(told) + 1, 1)


async def give_up_all(env: Env) -> None:
    while batches := await env.broker.receive(10, 0):
        for batch in batches:
            for message in batch.messages:
                await message.dead_letter("it cannot be")


async def bury(env: Env, count: int) -> None:
    await env.broker.send_batch([Send(b"{}") for _ in range(count)])
    (batch,) = await env.broker.receive(count, 0)
    await env.broker.settle(
        [Settlement(one.delivery, DeliveryEnd.DEAD_LETTER, reason="why") for one in batch.messages]
    )


async def test_C2_young_dead_letters_are_counted_behind_any_page_of_old_ones(env: Env):
    """The oldest are listed first, so those that matter are on the last page."""
    await bury(env, 150)
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(RECENT_MS + 1)
    await bury(env, 5)
    assert (await queue_health()).dead_letters == DeadLetters(155, 5)


async def test_of_very_many_dead_letters_all_are_counted_and_not_all_are_looked_at(env: Env):
    """A flood of them must not make a look at the queue's health slow."""
    await bury(env, MOST_LETTERS + 150)
    health = await queue_health()
    assert health.dead_letters == DeadLetters(MOST_LETTERS + 150, MOST_LETTERS)
    assert AlertCode.DEAD_LETTERS_GROWING in codes(health)


def judged(name: str, status: JudgeStatus, at: int, state: State = State.PUBLISHED):
    evidence = Evidence("0" * 64, "rules", ScanStatus.COMPLETE, Verdict.PASS, 100, judge_status=status)
    return msgspec.structs.replace(make_submission(name, state=state, at=at), evidence=evidence)


async def test_B14_a_judge_that_stopped_answering_is_seen_from_the_records(env: Env):
    """B14: whichever process asked it. Runs that need no judge say nothing about it."""
    for number in range(5):
        await put_record(env, judged(f"good-{number}", JudgeStatus.ANSWERED, NOW - 9_000 + number))
    for number in range(50):
        await put_record(env, judged(f"unasked-{number}", JudgeStatus.NONE, NOW - 5_000 + number))
    health = await queue_health()
    assert AlertCode.JUDGE_STALE not in codes(health)
    assert health.judge is not None
    assert health.judge.last_answer_at == NOW - 9_000 + 4
    for number in range(6):
        await put_record(
            env, judged(f"down-{number}", JudgeStatus.DOWN, NOW - 100 + number, State.NEEDS_REVIEW)
        )
    assert AlertCode.JUDGE_STALE in codes(await queue_health())
    for number in range(7):
        await put_record(env, judged(f"back-{number}", JudgeStatus.ANSWERED, NOW - 10 + number))
    assert AlertCode.JUDGE_STALE not in codes(await queue_health())


async def test_cancelled_submissions_do_not_hide_a_judge_that_is_down(env: Env):
    for number in range(10):
        await put_record(
            env, judged(f"down-{number}", JudgeStatus.DOWN, NOW - 9_000 + number, State.NEEDS_REVIEW)
        )
    for number in range(80):
        await put_record(
            env, make_submission(f"gone-{number}", state=State.DEQUEUED, at=NOW - 5_000 + number)
        )
    assert AlertCode.JUDGE_STALE in codes(await queue_health())


async def test_writes_that_take_a_share_of_a_claims_time_are_told_with_their_time(env: Env):
    await all_jobs_ran(env)
    await give_sign(write_ms=SLOW_MS - 1)
    assert AlertCode.SLOW_WRITES not in codes(await queue_health())
    await give_sign(write_ms=1_600)
    (alert,) = (await queue_health()).alerts
    assert alert.code is AlertCode.SLOW_WRITES and "take 1.6 s" in alert.text
    await give_sign(write_ms=20)
    assert AlertCode.SLOW_WRITES not in codes(await queue_health())

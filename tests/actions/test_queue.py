"""The queue: everybody sees whether it is well, admins pause, resume and recover it and run its jobs; each leaves its
audit entry, the same at every entry point."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.entry_points import EntryPoints
from tests.support.envs import make_submission, open_test_env, put_record, submit_skill
from tests.support.manual_clock import ManualClock
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, JobFailed, NotFound, NotPermitted, NotSignedIn
from vskill_platform.actions.operation.jobs import LIST_JOBS, RUN_JOB, RunJob
from vskill_platform.actions.operation.queue import (
    HEALTH,
    PAUSE,
    RECOVER,
    RESUME,
    STATS,
    STATUS,
    STUCK,
    ListStuck,
    PauseQueue,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.domain import keys
from vskill_platform.domain.messages import task_send
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.verdicts.brake import HeldTakeDown
from vskill_platform.ledger.broker.contract import DeliveryEnd, Settlement
from vskill_platform.queue.control import LONGEST_PAUSE_MS, current_pause
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import recover_everything
from vskill_platform.store.operation.jobs import JobRecord
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditFilter, list_audit
from vskill_platform.store.tasks import ask_for
from vskill_platform.store.verdicts.brake import hold_take_down, stop_rescans

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
ADA, ROB, ANN = (
    Principal("ada", Role.ADMIN),
    Principal("rob", Role.REVIEWER),
    Principal("ann", Role.AUTHOR),
)
FOR_ADMINS = (
    (STATUS, NoParameters()),
    (STUCK, ListStuck()),
    (PAUSE, PauseQueue(duration_ms=60_000, reason="upgrade")),
    (RESUME, NoParameters()),
    (RECOVER, NoParameters()),
    (LIST_JOBS, NoParameters()),
    (RUN_JOB, RunJob(job="sweep")),
)


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path, clock=ManualClock(NOW)) as opened:
        yield opened


async def audited() -> list[tuple[str, str, str, str]]:
    """What was done, oldest first."""
    entries = (await list_audit(wanted=AuditFilter(outcome=AuditOutcome.DONE))).items
    return [(one.action, one.target, one.by, one.reason) for one in reversed(entries)]


@pytest.mark.parametrize(("action", "request_"), FOR_ADMINS, ids=lambda one: getattr(one, "name", ""))
async def test_what_admins_do_is_for_admins_with_the_scope(env, action, request_):
    for who, refusal in ((ANYBODY, NotSignedIn), (ANN, NotPermitted), (ROB, NotPermitted)):
        with pytest.raises(refusal):
            await action(env, who, request_)
    reviewing = Principal("ada", Role.ADMIN, frozenset({TokenScope.READ.value, TokenScope.REVIEW.value}))
    with pytest.raises(NotPermitted, match="scope 'admin'"):
        await action(env, reviewing, request_)
    assert await current_pause() is None and await audited() == []
    await action(env, OPERATOR, request_)


async def test_everybody_reads_health_and_speed_and_only_reviewers_who_paused(env):
    await submit_skill("one")
    await PAUSE(env, ADA, PauseQueue(duration_ms=60_000, reason="upgrade"))
    for who, name in ((ANYBODY, "a reviewer"), (ANN, "a reviewer"), (ROB, "admin:ada")):
        health = await HEALTH(env, who, NoParameters())
        assert health.healthy and health.counts.active == 1
        assert health.pause is not None and (health.pause.by, health.pause.reason) == (name, "upgrade")
    stats = await STATS(env, ANYBODY, NoParameters())
    assert (stats.counts.total, stats.ended_last_hour, stats.per_minute) == (1, 0, None)


async def test_health_names_what_breaks_the_invariant_and_counts_it(env):
    await env.kv.put("sub:sub_bad", b"{not json")
    health = await HEALTH(env, ROB, NoParameters())
    assert not health.healthy and [one.key for one in health.violations] == ["sub:sub_bad"]
    shown = await HEALTH(env, ANYBODY, NoParameters())
    assert not shown.healthy and shown.violations == (), (
        "whose it is cannot be told, so it is shown to reviewers"
    )
    assert b"queue_violations 1.0" in env.metrics.render()


async def test_a_pause_has_its_end_its_reason_and_its_audit_entry(env):
    paused = await PAUSE(env, ADA, PauseQueue(duration_ms=60_000, reason=" upgrade "))
    assert paused.pause is not None and paused.pause.reason == "upgrade"
    pause = await current_pause()
    assert pause is not None and (pause.until - pause.at, pause.by) == (60_000, "admin:ada")
    assert (await RECOVER(env, ADA, NoParameters())).paused
    assert (await RESUME(env, ADA, NoParameters())).was_paused
    assert not (await RESUME(env, ADA, NoParameters())).was_paused
    assert (await STATUS(env, ADA, NoParameters())).pause is None
    assert await audited() == [
        ("pause", "queue", "admin:ada", "upgrade"),
        ("resume", "queue", "admin:ada", "asked for it"),
    ]


@pytest.mark.parametrize("duration_ms", [0, -1, LONGEST_PAUSE_MS + 1])
async def test_a_pause_without_a_sensible_end_or_a_reason_is_refused(env, duration_ms):
    with pytest.raises(InvalidInput, match="at most 7 days"):
        await PAUSE(env, ADA, PauseQueue(duration_ms=duration_ms, reason="upgrade"))
    with pytest.raises(InvalidInput) as refused:
        await PAUSE(env, ADA, PauseQueue(duration_ms=60_000, reason=" "))
    assert refused.value.field == "reason"
    assert await current_pause() is None and await audited() == []


async def test_what_is_stuck_is_listed_the_longest_first_with_the_whole_number(env):
    for number, name in enumerate(("first", "second", "third")):
        await put_record(env, make_submission(name, at=NOW + number))
    env.clock.advance(env.settings.stuck_threshold_ms + 10)
    found = await STUCK(env, ADA, ListStuck(limit=2))
    assert [one.skill_name for one in found.submissions] == ["first", "second"]
    assert (found.total, found.threshold_ms) == (3, env.settings.stuck_threshold_ms)
    assert found.submissions[0].stuck_for_ms == env.settings.stuck_threshold_ms + 10


async def lose_all_messages(env, submissions: int) -> None:
    """Submissions and a task whose messages are gone."""
    for number in range(submissions):
        await put_record(env, make_submission(f"s{number}", at=NOW))
    await ask_for("demo", "one", {})
    (batch,) = await env.broker.receive(10, 0)
    gone = [Settlement(one.delivery, DeliveryEnd.ACK) for one in batch.messages]
    assert all(await env.broker.settle(gone))


async def test_recovery_goes_on_to_the_end_and_sends_nothing_twice(env):
    await lose_all_messages(env, 5)
    done = await recover_everything(limit=2)
    assert (done.found, done.sent) == (6, 6)
    again = await RECOVER(env, ADA, NoParameters())
    assert (again.found, again.sent, again.paused) == (6, 0, False)
    assert (await STATUS(env, ADA, NoParameters())).depth.ready == 6
    assert await audited() == [("requeue all", "queue", "admin:ada", "asked for it")]


async def test_a_job_runs_now_and_the_list_says_how_it_went(env):
    before = await LIST_JOBS(env, ADA, NoParameters())
    assert [job.name for job in before.jobs] == [job.name for job in JOBS]
    done = await RUN_JOB(env, ADA, RunJob(job="sweep"))
    assert done.ran and done.job.last_success is not None and done.job.last_error is None
    after = {job.name: job for job in (await LIST_JOBS(env, ADA, NoParameters())).jobs}
    assert after["sweep"] == done.job
    with pytest.raises(NotFound, match="no job 'none'") as missing:
        await RUN_JOB(env, ADA, RunJob(job="none"))
    assert "sweep" in str(missing.value.details["fix"])
    assert await audited() == [("job run", "sweep", "admin:ada", "asked for it")]


async def test_a_job_that_fails_says_so(env):
    broken = JobRecord("alerts", state={"firing": "{"})
    await env.kv.put(keys.job("alerts"), msgspec.json.encode(broken))
    with pytest.raises(JobFailed, match="The job alerts failed: "):
        await RUN_JOB(env, ADA, RunJob(job="alerts"))
    (failed,) = (job for job in (await LIST_JOBS(env, ADA, NoParameters())).jobs if job.name == "alerts")
    assert failed.last_error and failed.last_success is None


async def nothing(_env) -> dict[str, str]:
    return {}


async def test_a_pause_leaves_the_same_records_at_every_entry_point(tmp_path, monkeypatch):
    doors = EntryPoints(tmp_path, monkeypatch, nothing, Role.ADMIN)
    by_form = await doors.by_form("/admin/queue/pause", minutes="10", reason="upgrade")
    assert len(by_form) == 2 and "upgrade" in by_form[0]
    path = "/api/v1/admin/queue/pause"
    assert by_form == await doors.by_json(path, durationMs=600_000, reason="upgrade")
    words = ("queue", "pause", "--for", "10m", "--reason", "upgrade")
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


async def test_a_replayed_letter_leaves_the_same_records_at_every_entry_point(tmp_path, monkeypatch):
    async def prepare(env) -> dict[str, str]:
        await env.broker.send_batch([task_send("demo", "one", 1)])
        (batch,) = await env.broker.receive(1, 0)
        dead = [Settlement(one.delivery, DeliveryEnd.DEAD_LETTER, reason="why") for one in batch.messages]
        assert all(await env.broker.settle(dead))
        return {"letter": str((await env.broker.dead_letters()).items[0].id)}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form("/admin/queue/replay", letter_id="{letter}")
    assert len(by_form) == 2 and any("dead letter replayed" in one for one in by_form)
    assert by_form == await doors.by_json("/api/v1/admin/queue/dead-letters/{letter}/replay")
    words = ("queue", "dead-letters", "replay", "{letter}")
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


@pytest.mark.parametrize(
    ("form", "fields", "path", "words"),
    [
        ("/admin/queue/resume", {}, "/api/v1/admin/queue/resume", ("queue", "resume")),
        ("/admin/queue/requeue-all", {}, "/api/v1/admin/queue/recover", ("queue", "recover")),
        (
            "/admin/jobs/run",
            {"job": "sweep"},
            "/api/v1/admin/queue/jobs/sweep/run",
            ("queue", "jobs", "run", "sweep"),
        ),
    ],
    ids=["resume", "recover", "job"],
)
async def test_the_other_verbs_leave_the_same_audit_entry(tmp_path, monkeypatch, form, fields, path, words):
    async def prepare(env) -> dict[str, str]:
        if words[-1] == "resume":
            wanted = PauseQueue(duration_ms=60_000, reason="upgrade")
            await PAUSE(env, principal_for("admin:eve"), wanted)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form(form, **fields)
    assert any("admin:rob" in one for one in by_form)
    assert by_form == await doors.by_json(path)
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


async def test_rules_that_stopped_are_continued_through_every_entry_point_alike(tmp_path, monkeypatch):
    """By page, JSON and command, here and remotely: the same audit entry, and the page lists what would go."""

    async def prepare(env) -> dict[str, str]:
        held = HeldTakeDown("acme/tools/pdf", "d" * 64, "1.0.0", "failed the static scan", 1, ("X-1",))
        await env.kv.commit([hold_take_down("rules-2", held)])
        await stop_rescans("rules-2", 6, 10)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form(
        "/admin/jobs/continue-rescans", ruleset="rules-2", reason="looked", confirm="yes"
    )
    assert any("rescan continue" in one and "admin:rob" in one for one in by_form)
    path = "/api/v1/admin/queue/rescans/continue"
    assert by_form == await doors.by_json(path, ruleset="rules-2", reason="looked")
    words = ("queue", "rescans", "continue", "--ruleset", "rules-2", "--reason", "looked")
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)

"""Analysers whose verdict the operator requires: what they pass is published, all else goes to a reviewer, and nothing
waits for ever."""

import msgspec
import pytest

from tests.external_scan.conftest import BAD_PYTHON, GOOD_PYTHON, NONE, script
from tests.incidents.steps import UnfinishedScanner, record_of
from tests.support.acting import run_again
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.system_reads import get_submission
from vskill_core.findings import Verdict
from vskill_platform.domain.submissions.states import State
from vskill_platform.queue.health import queue_health
from vskill_platform.store.external_scans import (
    ExternalReport,
    ExternalStatus,
    get_external_scan,
    read_external_task,
    take_remote_report,
)

pytestmark = pytest.mark.anyio

CLEAN = 'print(\'{"results": [], "errors": []}\')'
HIGH = (
    'print(\'{"errors": [], "results": [{"test_id": "B602", "issue_severity": "HIGH", "filename": "x.py",'
    ' "line_number": 3, "issue_text": "shell", "issue_confidence": "HIGH"}]}\')'
)
BANDIT = "needs: {analysers: [bandit]}"
SECRET = "a-secret-of-sixteen-characters"


async def outcome_of(tmp_path, rounds=4, step_ms=60_000, data=GOOD_PYTHON, clock=None, **given):
    """What becomes of one submission while time goes by; one that is there already runs again."""
    clock = clock or ManualClock()
    async with open_test_env("sqlite", tmp_path / "data", clock=clock, **{**NONE, **given}) as env:
        submitted = record_of(await submit_skill("demo", extra=(script("a.py", data),)))
        if not submitted.state.active:
            await run_again(submitted.id, by="admin:eve", reason="look again")
        for _ in range(rounds):
            await run_until_quiet(env)
            clock.advance(step_ms)
        # No worker of its own signs in here; of the records themselves none may break the invariant.
        assert {one.key for one in (await queue_health()).violations} <= {"workers"}
        return await get_submission(submitted.id)


async def test_what_a_required_analyser_passes_is_published(fake, tmp_path):
    record = await outcome_of(tmp_path, bandit_command=fake(CLEAN), policy_text=BANDIT)
    assert record.state is State.PUBLISHED
    assert record.attempts.failed == 0, "waiting for a report is no failed attempt"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (HIGH, "bandit must pass it, and says CONCERNS (1 finding)"),
        ("sys.exit(9)", "bandit must pass it, and has no verdict (error: "),
    ],
    ids=["finding", "broken"],
)
async def test_what_it_does_not_pass_goes_to_a_reviewer(fake, tmp_path, code, why):
    record = await outcome_of(tmp_path, data=BAD_PYTHON, bandit_command=fake(code), policy_text=BANDIT)
    assert record.state is State.NEEDS_REVIEW and why in record.why


async def test_one_that_is_not_installed_sends_everything_to_a_reviewer(tmp_path):
    missing = str(tmp_path / "no-such-program")
    record = await outcome_of(tmp_path, bandit_command=missing, policy_text=BANDIT)
    assert record.state is State.NEEDS_REVIEW
    assert "bandit must pass it, and has no verdict (unavailable: " in record.why


async def test_one_that_was_installed_since_is_asked_again(fake, tmp_path):
    missing, clock = str(tmp_path / "no-such-program"), ManualClock()
    given = {"clock": clock, "policy_text": BANDIT}
    first = await outcome_of(tmp_path, bandit_command=missing, **given)
    assert first.state is State.NEEDS_REVIEW
    again = await outcome_of(tmp_path, bandit_command=fake(CLEAN), **given)
    assert again.state is State.PUBLISHED


async def test_one_that_only_some_workers_have_is_asked_once_in_a_run(fake, tmp_path):
    clock = ManualClock()
    given = {**NONE, "clock": clock, "policy_text": BANDIT, "bandit_command": fake(CLEAN)}
    async with open_test_env("sqlite", tmp_path / "data", **given) as env:
        settings = msgspec.structs.replace(env.settings, bandit_command=str(tmp_path / "no-such-program"))
        submitted = record_of(await submit_skill("demo", extra=(script("a.py", GOOD_PYTHON),)))
        with active_env(env, settings=settings) as without:
            clock.advance(1_000)
            await run_until_quiet(without)
        waiting = await get_submission(submitted.id)
        assert waiting.state.active and waiting.attempts.waiting_for == "bandit"
        clock.advance(60_000)
        await run_until_quiet(env)
        record = await get_submission(submitted.id)
        assert record.state is State.NEEDS_REVIEW
        assert "bandit must pass it, and has no verdict (unavailable: " in record.why
        task = await read_external_task(str(record.digest), "bandit")
        assert task is not None and task.run == 1


async def test_a_remote_one_has_until_its_deadline_and_then_a_reviewer_decides(tmp_path):
    given = {"external_scan_secrets": (f"far={SECRET}",), "policy_text": "needs: {analysers: [far]}"}
    waiting = await outcome_of(tmp_path / "a", rounds=2, **given)
    assert waiting.state.active and waiting.attempts.waiting_for == "far"
    late = await outcome_of(
        tmp_path / "b", rounds=12, step_ms=900_000, external_scan_callback_ms=1_800_000, **given
    )
    assert late.state is State.NEEDS_REVIEW
    assert "far must pass it, and has no verdict (timed out: it did not call back in time)" in late.why


async def test_a_remote_report_in_time_publishes_it(tmp_path):
    clock = ManualClock()
    given = {**NONE, "external_scan_secrets": (f"far={SECRET}",), "policy_text": "needs: {analysers: [far]}"}
    async with open_test_env("sqlite", tmp_path, clock=clock, **given) as env:
        submitted = record_of(await submit_skill("demo"))
        await run_until_quiet(env)
        record = await get_submission(submitted.id)
        assert record.digest is not None and await get_external_scan(record.digest, "far") is None
        now = clock.now()
        report = ExternalReport("far", ExternalStatus.COMPLETE, now, now, verdict=Verdict.PASS, signed_s=1)
        assert await take_remote_report(record.digest, report)
        clock.advance(60_000)
        await run_until_quiet(env)
        assert (await get_submission(submitted.id)).state is State.PUBLISHED


async def test_what_our_own_scan_holds_waits_for_no_analyser(tmp_path):
    """A report could change nothing, so none is asked for."""
    given = {**NONE, "external_scan_secrets": (f"far={SECRET}",), "policy_text": "needs: {analysers: [far]}"}
    async with open_test_env("sqlite", tmp_path, **given) as env:
        with active_env(env, scanner=UnfinishedScanner()) as holding:
            submitted = record_of(await submit_skill("demo"))
            await run_until_quiet(holding)
            record = await get_submission(submitted.id)
            assert record.state is State.NEEDS_REVIEW and record.digest is not None
            assert await read_external_task(record.digest, "far") is None

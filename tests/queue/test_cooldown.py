"""What waits by a rule of the policy: how it begins and ends, who may end it before, and what never hurries it."""

import msgspec
import pytest

from tests.incidents.steps import UnfinishedScanner, pass_time, record_of
from tests.support.acting import VISITOR, approve, cancel, principal_for, reject, run_again
from tests.support.envs import ENGINES, active_env, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.faults import ListedSources
from tests.support.system_reads import get_submission
from vskill_core.content import digest_of_files
from vskill_core.errors import SourceGone, TransitionError
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.actions.principal import Right, resolve
from vskill_platform.actions.review.evidence import gather_evidence
from vskill_platform.actions.review.reports import FILE, REPORT_SUBMISSION, FileReport, ReportSubmission
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, digest_target
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.domain.submissions.cooldown import end_of_wait
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_repository
from vskill_platform.notifications.notices import notices_of
from vskill_platform.queue.health import queue_health, queue_health_for
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import recover_everything, recover_stuck_submissions
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.claims import HeldClaim, NotClaimed, claim_submission
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.review.reports import ReportCategory
from vskill_platform.store.submissions.statistics import position_of, recent_hours
from vskill_platform.store.verdicts.policy import read_policy, set_policy
from vskill_platform.store.verdicts.policy_figures import read_policy_figures
from vskill_platform.store.verdicts.rule_figures import read_rule_figures
from vskill_platform.submission_store import get_run, get_stuck_submissions
from vskill_platform.upkeep.collector import UNTOUCHED_MS, collect
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
DAY = 24 * HOUR
WAIT = 'rules: [{name: new-owner, when: "true", then: {wait: 3d}, say: "nobody knows {owner.name}"}]'
LONGER = 'rules: [{name: slow, when: "true", then: {wait: 5d}}, {name: fast, when: "true", then: {wait: 2h}}]'
HOLD = 'rules: [{name: hold, when: "true", then: review, say: "a reviewer should look"}]'
PLACE = "https://github.com/acme/tools"


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        await be_policy(WAIT)
        yield opened


async def be_policy(text: str) -> str:
    return (await set_policy(text, by="admin:eve", reason="a test")).policy.digest


async def cooling(env: Env, name: str = "demo", body: str = "", **options: object) -> Submission:
    """A submission that waits by the rule."""
    submitted = record_of(await submit_skill(name, body, **options))  # type: ignore[arg-type]
    await run_until_quiet(env)
    record = await get_submission(submitted.id)
    assert record.state is State.COOLDOWN
    return record


async def after(env: Env, ms: int, record: Submission) -> Submission:
    """The record when this long has passed, with recovery and workers at work."""
    pass_time(env, ms)
    await run_until_quiet(env, recover=True)
    return await get_submission(record.id)


async def job(name: str) -> None:
    await run_job(next(one for one in JOBS if one.name == name), forced=True)


def left(env: Env, record: Submission) -> int:
    assert record.next_attempt_at is not None
    return record.next_attempt_at - env.kv.now()


# From its beginning to its end.


async def test_it_waits_from_the_first_sight_of_its_bytes_and_is_published_then(env):
    began = env.kv.now()
    record = await cooling(env)
    (seen,) = record.first_seen
    assert (seen.digest, seen.at) == (record.digest, began)
    assert record.next_attempt_at == end_of_wait(seen, 3 * DAY)
    assert record.claim is None and record.cooled_by == (await read_policy()).policy.digest
    assert "by the rule new-owner: nobody knows upload~tests; otherwise it passed" in record.why
    assert (await after(env, left(env, record) - 1, record)).state is State.COOLDOWN
    ended = await after(env, 1, record)
    assert ended.state is State.PUBLISHED
    states = [event.to.value for event in ended.history]
    assert states == [
        *("RECEIVED", "TIER1_SCANNING", "COOLDOWN"),
        *("TIER1_SCANNING", "AUTO_APPROVED", "PUBLISHED"),
    ]


async def test_at_its_end_the_stored_bytes_are_decided_and_nothing_is_fetched(env):
    """Not even where the worker dies then, and another one takes over."""
    sources = ListedSources(env.blobs)
    sources.places[normalise(PLACE).key] = skill_files("tools", "one")
    with active_env(env, sources=sources) as listed:
        record = record_of(await submit_repository(PLACE))
        await run_until_quiet(listed)
        waiting = await get_submission(record.id)
        assert waiting.state is State.COOLDOWN
        sources.places[normalise(PLACE).key] = SourceGone("the repository is gone")
        fetches = sources.fetches
        pass_time(env, left(env, waiting))
        assert isinstance(await claim_submission(record.id, 1), HeldClaim)
        ended = await after(listed, CLAIM_MS + 1, record)
    assert (ended.state, ended.digest) == (State.PUBLISHED, digest_of_files(skill_files("tools", "one")))
    assert (sources.fetches, ended.attempts.interrupted) == (fetches, 1)


async def test_at_its_end_that_days_rules_count(env):
    record = await cooling(env)
    with active_env(env, scanner=UnfinishedScanner()) as later:
        ended = await after(later, left(env, record), record)
    assert ended.state is State.NEEDS_REVIEW


async def test_a_second_decision_before_its_time_leads_to_the_same_end(env):
    """As when somebody edits the record, or a message comes twice."""
    record = await cooling(env)
    due = msgspec.structs.replace(record, next_attempt_at=env.kv.now())
    await env.kv.put(due.key, msgspec.json.encode(due))
    again = await after(env, HOUR, record)
    assert (again.state, again.next_attempt_at) == (State.COOLDOWN, record.next_attempt_at)
    assert [event.to for event in again.history[-2:]] == [State.TIER1_SCANNING, State.COOLDOWN]


async def test_a_clock_that_is_set_back_moves_nothing_forward(env):
    record = await cooling(env)
    pass_time(env, -2 * DAY)
    assert (await recover_stuck_submissions()).found == 0
    assert isinstance(await claim_submission(record.id, 1), NotClaimed)
    assert (await after(env, 3 * DAY, record)).state is State.COOLDOWN
    assert (await after(env, left(env, record), record)).state is State.PUBLISHED


async def test_a_clock_that_ran_ahead_at_its_first_sight_delays_it_and_a_reviewer_can_decide(env):
    record = await cooling(env)
    pass_time(env, -400 * DAY)
    assert (await recover_stuck_submissions()).found == 0
    assert (await queue_health()).violations == ()
    await approve(record.id, by="admin:eve", reason="looked")
    await run_until_quiet(env, recover=True)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_the_same_bytes_submitted_again_wait_no_longer_than_before(env):
    record = await cooling(env)
    await cancel(record.id, by="user:ann", reason="a pause")
    pass_time(env, DAY)
    again = await cooling(env)
    assert (again.run, again.next_attempt_at) == (2, record.next_attempt_at)


async def test_newer_content_waits_for_the_run_and_has_a_wait_of_its_own(env):
    """Otherwise nothing of an author who pushes every day would ever be published."""
    record = await cooling(env)
    for day in range(1, 3):
        pass_time(env, DAY)
        await submit_skill("demo", f"day {day}")
        await run_until_quiet(env, recover=True)
    waiting = await get_submission(record.id)
    assert (waiting.state, waiting.run, waiting.digest) == (State.COOLDOWN, 1, record.digest)
    following = await after(env, left(env, record), record)
    assert (await get_run(record.id, 1, audiences=EVERYTHING)).state is State.PUBLISHED
    assert (following.state, following.run) == (State.COOLDOWN, 2)
    assert following.digest == digest_of_files(skill_files("demo", "day 2"))
    assert following.first_seen[0].at == env.kv.now() and left(env, following) >= 3 * DAY


async def test_a_run_that_has_waited_counts_its_rules_once(env):
    record = await cooling(env)
    before = await read_rule_figures()
    assert (await read_policy_figures(EVERYTHING))["new-owner"].matched == 1
    assert (await after(env, left(env, record), record)).state is State.PUBLISHED
    assert await read_rule_figures() == before
    assert (await read_policy_figures(EVERYTHING))["new-owner"].matched == 1


async def test_a_rule_that_only_a_later_decision_matches_is_counted_then(env):
    record = await cooling(env)
    await be_policy(f"{WAIT[:-1]}, {HOLD[8:]}")
    await job("policy")
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW
    figures = await read_policy_figures(EVERYTHING)
    assert {name: one.matched for name, one in figures.items()} == {"new-owner": 1, "hold": 1}


# Who ends it before its time.


async def test_a_reviewer_approves_it_and_these_bytes_are_published_at_once(env):
    record = await cooling(env)
    approved = await approve(record.id, by="admin:eve", reason="known to us")
    assert (approved.state, approved.history[-1].source) == (State.AUTO_APPROVED, State.COOLDOWN)
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_a_reviewer_stops_it(env):
    record = await cooling(env)
    stopped = await reject(record.id, by="admin:eve", reason="a fake")
    assert (stopped.state, stopped.next_attempt_at, stopped.why) == (State.REJECTED, None, "a fake")
    assert (await after(env, 4 * DAY, record)).state is State.REJECTED


async def test_anybody_reports_it_and_a_reviewer_reads_why(env):
    record = await cooling(env)
    assert REPORT_SUBMISSION.right is Right.READER
    words = ReportSubmission(
        submission_id=record.id, reason="It is a copy of mine.", category=ReportCategory.MALWARE
    )
    shown = await REPORT_SUBMISSION(env, VISITOR, words)
    reported = await get_submission(record.id)
    assert (reported.state, shown.state, reported.next_attempt_at) == (
        State.NEEDS_REVIEW,
        "NEEDS_REVIEW",
        None,
    )
    assert reported.decision is not None
    assert reported.why == reported.decision.reason == "somebody reported it (malware); a reviewer decides"
    found = await gather_evidence(env, await resolve(principal_for("admin:eve")), reported)
    assert found.reported is not None and found.reported.reason == "It is a copy of mine."
    assert (await after(env, 4 * DAY, record)).state is State.NEEDS_REVIEW
    with pytest.raises(TransitionError, match="waits by a rule"):
        await REPORT_SUBMISSION(env, VISITOR, words)


async def test_a_report_about_the_published_skill_stops_its_update(env):
    """In one commit; the history does not name the reporter, and the reviewer reads the words."""
    await be_policy("")
    await submit_skill("demo")
    await run_until_quiet(env)
    await be_policy(WAIT)
    record, other = await cooling(env, body="an update"), await cooling(env, "other")
    words = FileReport(skill="upload~tests/skills/demo", reason="odd", category=ReportCategory.SPAM)
    reader = principal_for("user:ann")
    assert (await FILE(env, reader, words)).new
    stopped = await get_submission(record.id)
    assert (stopped.state, stopped.next_attempt_at) == (State.NEEDS_REVIEW, None)
    assert (stopped.history[-1].actor, stopped.why) == (
        "system",
        "somebody reported it (spam); a reviewer decides",
    )
    found = await gather_evidence(env, await resolve(principal_for("admin:eve")), stopped)
    assert found.reported is not None
    assert (found.reported.by, found.reported.reason) == ("user:ann", "odd")
    assert (await get_submission(other.id)).history == other.history
    assert not (await FILE(env, reader, words)).new
    assert (await after(env, 4 * DAY, record)).state is State.NEEDS_REVIEW
    assert (await get_submission(other.id)).state is State.PUBLISHED


async def test_a_block_and_a_cancellation_end_it(env):
    blocked, cancelled = await cooling(env), await cooling(env, "other")
    await cancel(cancelled.id, by="user:ann", reason="not wanted")
    await add_block(BlockEntry(digest_target(str(blocked.digest)), Severity.HIGH, "bad", "admin:eve", 1))
    await reapply_blocklist()
    pass_time(env, 4 * DAY)
    await run_until_quiet(env, recover=True)
    assert (await get_submission(blocked.id)).state is State.BLOCKED
    assert (await get_submission(cancelled.id)).state is State.DEQUEUED


@pytest.mark.parametrize(
    ("text", "state"), [(HOLD, State.NEEDS_REVIEW), (LONGER, State.COOLDOWN), ("", State.PUBLISHED)]
)
async def test_a_changed_policy_decides_it_again_at_once(env, text, state):
    record = await cooling(env)
    pass_time(env, DAY)
    digest = await be_policy(text)
    await job("policy")
    await run_until_quiet(env)
    decided = await get_submission(record.id)
    assert decided.state is state
    assert any("the policy has changed" in event.reason for event in decided.history)
    if state is State.COOLDOWN:
        assert decided.cooled_by == digest
        assert decided.next_attempt_at == end_of_wait(record.first_seen[0], 5 * DAY)
        assert "by the rules slow, fast" in decided.why


async def test_a_policy_that_is_set_again_as_it_was_hurries_nothing(env):
    await job("policy")
    record = await cooling(env)
    await be_policy(f"# the same\n{WAIT}")
    await job("policy")
    assert (await get_submission(record.id)).history == record.history


# What never hurries it, and what knows of it.


async def test_recovery_running_again_and_submitting_the_same_never_hurry_it(env):
    record = await cooling(env)
    assert (await recover_everything()).found == 0
    await submit_skill("demo")
    assert (await get_submission(record.id)) == record
    asked = await run_again(record.id, by="admin:eve", reason="sooner")
    assert (asked.state, asked.next_attempt_at) == (State.COOLDOWN, record.next_attempt_at)
    assert asked.rerun_requested is not None
    await env.kv.commit([record.message])
    await run_until_quiet(env, recover=True)
    assert (await get_submission(record.id)).history == record.history


async def test_it_leaves_no_message_on_the_queue_and_recovery_sends_one_when_it_is_due(env):
    record = await cooling(env)
    depth = await env.broker.depth()
    assert (depth.ready, depth.delayed, depth.leased) == (0, 0, 0)
    pass_time(env, left(env, record))
    assert (await recover_stuck_submissions()).sent == 1
    assert (await recover_stuck_submissions()).sent == 0


async def test_health_counts_it_and_finds_nothing_wrong(env):
    first = await cooling(env)
    pass_time(env, HOUR)
    await cooling(env, "other")
    pass_time(env, DAY)
    health = await queue_health()
    assert (health.healthy, health.violations, health.counts.active) == (True, (), 0)
    assert health.oldest_waiting_ms is None
    assert health.cooldown is not None
    assert (health.cooldown.count, health.cooldown.next_at) == (2, first.next_attempt_at)
    assert await get_stuck_submissions() == []
    shown = (await queue_health_for(PUBLIC_ONLY)).cooldown
    assert shown is not None and shown.count == 2


async def test_one_that_is_due_stands_in_the_line_and_counts_as_waiting(env):
    record = await cooling(env)
    assert await position_of(record, audiences=EVERYTHING) is None
    pass_time(env, left(env, record) + 7_000)
    line = await position_of(record, audiences=EVERYTHING)
    assert line is not None and line.place == 1
    assert (await queue_health()).oldest_waiting_ms == 7_000


async def test_the_charts_count_its_first_decision_and_not_its_wait(env):
    record = await cooling(env)
    lately = await recent_hours(audiences=EVERYTHING)
    assert lately.queue is not None and lately.queue.count == 0
    await after(env, left(env, record), record)
    (end,) = (await recent_hours(audiences=EVERYTHING)).ends
    assert end.state is State.PUBLISHED and end.took_ms == 0


async def test_its_author_is_told_that_it_waits_and_how_it_ends(env):
    record = await cooling(env)
    (told,) = notices_of(record)
    assert (told.type.value, told.data.state) == ("submission.decided", State.COOLDOWN)
    ended = await after(env, left(env, record), record)
    types = [one.type.value for one in notices_of(ended)]
    assert types == ["submission.decided", "submission.decided", "skill.published"]


async def test_the_collector_keeps_what_waits(env):
    await be_policy('rules: [{name: slow, when: "true", then: {wait: 30d}}]')
    record = await cooling(env)
    await env.kv.delete(keys.scan(str(record.digest), env.scanner.ruleset))
    pass_time(env, UNTOUCHED_MS + DAY)
    await collect()
    pass_time(env, 2 * DAY)
    await collect()
    assert (await after(env, left(env, record), record)).state is State.PUBLISHED

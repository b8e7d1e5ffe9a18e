"""What submitters do with their submissions: who may, what it leaves in the record, the history and the audit."""

from pathlib import Path

import msgspec
import pytest

from tests.support.acting import approve, reject
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.manual_clock import ManualClock
from tests.support.system_reads import get_run, get_submission
from vskill_core.errors import NotPermitted, NotSignedIn, TransitionError
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.actions.review.appeals import APPEAL, OTHERS_ONLY_MS, AppealSubmission, why_no_appeal
from vskill_platform.actions.review.review import APPROVE, REJECT, DecideSubmission
from vskill_platform.actions.submissions.submissions import CANCEL, RERUN, CancelSubmission, RerunSubmission
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
ANN, BOB = Principal("ann", Role.AUTHOR), Principal("bob", Role.AUTHOR)
EVE, MAX = Principal("eve", Role.REVIEWER), Principal("max", Role.REVIEWER)


@pytest.fixture
async def env(tmp_path: Path):
    async with open_test_env("memory", tmp_path, clock=ManualClock(NOW)) as opened:
        yield opened


async def submitted(name: str = "mine", submitter: str = "ann", body: str = "text") -> Submission:
    done = await submit_skill(name, body, submitter=submitter)
    assert done.submission is not None
    return done.submission


async def cancel(env: Env, who: Principal, record: Submission) -> None:
    await CANCEL(env, who, CancelSubmission(submission_id=record.id, reason="never mind"))


async def rerun(env: Env, who: Principal, record: Submission, reason: str = "new rules") -> bool:
    shown = await RERUN(env, who, RerunSubmission(submission_id=record.id, reason=reason))
    return shown.rerun_requested


async def appeal(env: Env, who: Principal, record: Submission) -> Submission:
    await APPEAL(env, who, AppealSubmission(submission_id=record.id, reason="it is my own server"))
    return await get_submission(record.id)


def decision(record: Submission, reason: str = "looks fine") -> DecideSubmission:
    return DecideSubmission(submission_id=record.id, run=record.run, digest=record.digest, reason=reason)


async def refused(env: Env, state: State = State.TIER1_FAILED, by: str = "worker:w") -> Submission:
    """A published skill's next run, which ended so."""
    record = await submitted()
    await run_until_quiet(env)
    done = await get_submission(record.id)
    last = msgspec.structs.replace(done.history[-1], to=state, actor=by)
    ended = msgspec.structs.replace(
        done, state=state, history=(*done.history[:-1], last), decision=RecordedDecision("refused")
    )
    await put_record(env, ended)
    return ended


# Who may.


@pytest.mark.parametrize("act", [cancel, rerun])
async def test_its_submitter_a_reviewer_and_the_operator_may(env: Env, act):
    for who in (ANN, EVE, OPERATOR):
        await act(env, who, await submitted(f"by-{who.account or 'operator'}"))


@pytest.mark.parametrize("act", [cancel, rerun, appeal])
async def test_a_stranger_and_another_account_may_not(env: Env, act):
    record = await submitted()
    with pytest.raises(NotSignedIn):
        await act(env, ANYBODY, record)
    with pytest.raises(NotPermitted) as refusal:
        await act(env, BOB, record)
    assert "fix" not in refusal.value.details, "nobody can prove control of an upload"
    assert await get_submission(record.id) == record
    (told,) = [one for one in (await list_audit()).items if one.action != "submit"]
    assert (told.by, told.target, told.outcome) == ("user:bob", record.id, AuditOutcome.REFUSED)


async def test_whoever_submits_changed_content_locks_nobody_out(env: Env):
    record = await submitted()
    await run_until_quiet(env)
    await submitted(submitter="bob", body="changed")
    both = await get_submission(record.id)
    assert (both.submitter, both.submitters) == ("bob", ("bob", "ann"))
    await cancel(env, ANN, both)
    await submitted(submitter="ann", body="changed again")
    assert (await get_submission(record.id)).submitters == ("ann", "bob")
    await cancel(env, BOB, both)


async def test_who_may_not_is_told_how_to_get_the_right(env: Env):
    """Of a repository, and only there: nobody can prove control of an upload."""
    record = make_submission("theirs", identity=normalise("https://github.com/acme/tools"), at=NOW)
    await put_record(env, record)
    with pytest.raises(NotPermitted) as refusal:
        await cancel(env, BOB, record)
    assert "claim the repository on your account page" in str(refusal.value.details["fix"])


# Running again.


async def test_the_reason_of_a_rerun_stands_in_the_history(env: Env):
    record = await submitted()
    await rerun(env, EVE, record, "it waits too long")
    waiting = await get_submission(record.id)
    assert (waiting.run, waiting.history[-1].actor) == (1, "admin:eve")
    assert waiting.history[-1].reason == "it waits too long"
    await run_until_quiet(env)
    await rerun(env, ANN, record, "the judge is back")
    first = (await get_submission(record.id)).history[0]
    assert (first.actor, first.reason) == ("user:ann", "the judge is back")
    reasons = [one.reason for one in (await list_audit()).items if one.action != "submit"]
    assert reasons == ["the judge is back", "it waits too long"]


async def test_a_rerun_of_what_a_worker_holds_follows_that_run(env: Env):
    record = await submitted()
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    assert await rerun(env, ANN, record)
    await claim.hand_back("on purpose")
    await run_until_quiet(env, recover=True)
    await run_until_quiet(env, recover=True)
    now = await get_submission(record.id)
    assert (now.run, now.state, now.history[0].reason) == (2, State.PUBLISHED, "new rules")
    assert now.history[0].actor == "user:ann"


async def test_a_rerun_keeps_the_content_that_was_submitted_during_the_run(env: Env):
    """Found by the simulator (seeds 44 and 123): the rerun replaced what the next run was to look at."""
    record = await submitted()
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    await submitted(submitter="bob", body="changed")
    before = (await get_submission(record.id)).rerun_requested
    assert await rerun(env, ANN, record)
    after = (await get_submission(record.id)).rerun_requested
    assert before is not None
    assert after is not None
    assert (after.upload, after.submitter, after.reason) == (before.upload, "bob", "new rules")
    assert after.upload != record.upload


async def test_a_rerun_that_races_an_approval_runs_after_the_publication(env: Env):
    """The approval is written between the look and the commit of the rerun."""
    record = await refused(env, State.NEEDS_REVIEW)
    hooked = HookedKV(env.kv)

    async def approve_first(_operations: object) -> None:
        hooked.before_commit = None
        with active_env(env):
            await approve(record.id, by="admin:max", reason="looks fine")

    hooked.before_commit = approve_first
    with active_env(env, kv=hooked) as raced:
        assert await rerun(raced, EVE, record)
    assert (await get_submission(record.id)).state is State.AUTO_APPROVED
    await run_until_quiet(env, recover=True)
    now = await get_submission(record.id)
    assert (now.run, now.state, now.history[0].reason) == (record.run + 1, State.PUBLISHED, "new rules")
    assert (await get_run(record.id, record.run)).state is State.PUBLISHED


# Appeals.


@pytest.mark.parametrize("state", list(State))
async def test_what_was_refused_can_be_appealed(env: Env, state: State):
    record = make_submission("any", state=state, digest="0" * 64)
    wanted = state in {State.TIER1_FAILED, State.REJECTED, State.BLOCKED}
    assert (why_no_appeal(record) is None) == wanted


async def test_an_appeal_says_why_it_cannot_be_made(env: Env):
    for changed, words in (
        ({"digest": None}, "Nothing was fetched"),
        ({"decision": RecordedDecision("lower", ("lower_version",))}, "Raise the version"),
    ):
        record = msgspec.structs.replace(await refused(env, State.REJECTED), **changed)
        await put_record(env, record)
        with pytest.raises(TransitionError, match=words):
            await appeal(env, ANN, record)


async def test_an_appeal_waits_with_its_reason_and_leaves_one_audit_entry(env: Env):
    record = await refused(env)
    asked = await appeal(env, ANN, record)
    assert (asked.state, asked.run, asked.digest) == (State.NEEDS_REVIEW, record.run + 1, record.digest)
    assert asked.history[-1].reason == "appeal: it is my own server"
    assert asked.appeal is not None
    assert (asked.appeal.against, asked.appeal.decided_by) == (State.TIER1_FAILED, None)
    entry = (await list_audit()).items[0]
    assert (entry.action, entry.by, entry.id) == ("appeal", "user:ann", asked.history[-1].id)
    assert await run_until_quiet(env) == 0, "no worker takes it up"


async def test_another_reviewer_decides_while_there_is_one_and_72_hours_have_not_passed(env: Env):
    record = await refused(env, State.REJECTED, by="admin:eve")
    asked = await appeal(env, ANN, record)
    for name in ("eve", "max"):
        await create_user(name, Role.REVIEWER, by="admin:command line", reason="helps")
    for action in (APPROVE, REJECT):
        with pytest.raises(NotPermitted, match="another reviewer decides"):
            await action(env, EVE, decision(asked))
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(OTHERS_ONLY_MS)
    await REJECT(env, EVE, decision(asked))
    ended = await get_submission(record.id)
    assert ended.state is State.REJECTED
    with pytest.raises(TransitionError, match="has already decided an appeal"):
        await appeal(env, ANN, ended)


async def test_the_only_reviewer_decides_an_appeal_against_themselves(env: Env):
    record = await refused(env, State.REJECTED, by="admin:eve")
    await create_user("eve", Role.REVIEWER, by="admin:command line", reason="helps")
    await APPROVE(env, EVE, decision(await appeal(env, ANN, record)))
    await run_until_quiet(env, recover=True)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_a_lower_version_is_not_approved_and_the_refusal_says_what_to_change(env: Env):
    await submit_skill("versioned", version="2.0.0", submitter="ann")
    await run_until_quiet(env)
    done = (await submit_skill("versioned", "older", version="1.0.0", submitter="ann")).submission
    assert done is not None
    await run_until_quiet(env)
    lower = await get_submission(done.id)
    assert (lower.state, lower.decision and lower.decision.rule_ids) == (State.REJECTED, ("lower_version",))
    # An appeal from before such appeals were refused.
    await put_record(env, msgspec.structs.replace(lower, state=State.NEEDS_REVIEW))
    with pytest.raises(TransitionError, match=r"lower than 2\.0\.0.*ask for a higher version"):
        await APPROVE(env, EVE, decision(lower))


async def test_a_block_stands_until_the_appeal_is_decided_and_is_lifted_before_the_approval(env: Env):
    record = await submitted()
    await run_until_quiet(env)
    target = place_target(record.identity)
    await add_block(BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", NOW, NOW))
    await reapply_blocklist()
    asked = await appeal(env, ANN, record)
    assert asked.appeal is not None
    assert (asked.appeal.against, asked.appeal.decided_by) == (State.BLOCKED, "admin:eve")
    await reapply_blocklist()
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW, "the appeal goes on"
    with pytest.raises(TransitionError, match="Lift the block first"):
        await APPROVE(env, MAX, decision(asked))
    await remove_block(target)
    await APPROVE(env, MAX, decision(asked))
    await run_until_quiet(env, recover=True)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_a_block_that_a_reviewer_confirms_stays_one(env: Env):
    record = await submitted()
    await run_until_quiet(env)
    await add_block(BlockEntry(place_target(record.identity), Severity.HIGH, "bad", "system", NOW, NOW))
    await reapply_blocklist()
    await appeal(env, ANN, record)
    await reject(record.id, by="admin:max", reason="it does steal keys")
    assert (await get_submission(record.id)).state is State.BLOCKED


async def test_an_operator_acts_as_the_command_line(env: Env):
    record = await submitted()
    await cancel(env, OPERATOR, record)
    ended = await get_submission(record.id)
    assert (ended.state, ended.history[-1].actor) == (State.DEQUEUED, "admin:command line")

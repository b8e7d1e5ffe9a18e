"""What reviewers decide about submissions that wait for them, and what they ask the authors to change. A decision names
the run and the bytes that the reviewer looked at: where either has changed since, nothing is decided."""

import msgspec

from vskill_client.wire.submissions import SUBMISSIONS, SubmissionRequest, SubmissionView
from vskill_core.errors import (
    Blocked,
    ContentDamaged,
    InvalidManifest,
    LowerVersion,
    NoSkillFound,
    NotFound,
    NotPermitted,
    SourceGone,
    TransitionError,
)
from vskill_platform.actions.action import Allowance, Digest, Reason, Services, action
from vskill_platform.actions.changes import Decider, is_own, require_decider, require_other_eyes
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.review import review_queue
from vskill_platform.actions.review.appeals import require_other_reviewer
from vskill_platform.actions.review.evidence import read_stored_files
from vskill_platform.actions.submissions import submissions
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Approval, RecordedDecision, Step, Submission
from vskill_platform.ledger.kv.entries import Add, Operation
from vskill_platform.stages.publish import require_publishable
from vskill_platform.store.recall.blocklist import find_hits, targets_for
from vskill_platform.store.verdicts import past_decisions
from vskill_platform.store.verdicts.policy_figures import count_answered
from vskill_platform.store.verdicts.rule_figures import count_decided, rules_that_held
from vskill_platform.submission_store import RecordChange, get_submission


class DecideSubmission(SubmissionRequest, frozen=True, kw_only=True):
    """A decision about a submission that waits for a reviewer."""

    #: the run that was looked at
    run: int
    #: the digest of the bytes that were looked at; null where none were fetched
    digest: Digest | None = None
    #: why; shown in the public history
    reason: Reason


async def approve(services: Services, actor: Principal, request: DecideSubmission) -> SubmissionView:
    if (live := await _live_review(actor, request)) is not None:
        return await _decide_live(services, actor, live, request.reason, stays=True)
    subjects = await _read_subjects(actor, request)

    async def decide(record: Submission, step: Step) -> RecordChange:
        if not record.state.reviewable:
            raise _not_waiting(record, "approved")
        require_same(record, request)
        decider = await require_decider(actor, record, step)
        require_other_eyes(services, actor, record)
        await require_other_reviewer(services, actor, record)
        step, is_team = decider.step, decider.asserted is not None
        if is_team:
            _require_todays_rules(services, record)
        if record.digest is None:
            message = "There is no stored content to publish; start a new run."
            raise TransitionError(message, submission=record.id)
        who = "a maintainer of its namespace" if is_team else "a reviewer"
        certification = None if is_team else Certification.CERTIFIED.value
        approved = submission.move(
            record,
            State.AUTO_APPROVED,
            step,
            approval=Approval(record.digest, step.actor, step.at, is_own(actor, record), team=is_team),
            decision=_decide_by_person(record, f"approved by {who}: {step.reason}", certification),
            audience=decider.audience,
        )
        await _require_publishable(approved)
        return RecordChange(approved, (record.message, *_learnt(record, decider, subjects, approved=True)))

    return await submissions.show_changed(
        services, actor, request.submission_id, "approve", request.reason, decide
    )


def _learnt(
    record: Submission,
    decider: Decider,
    subjects: tuple[past_decisions.RulingSubject, ...],
    *,
    approved: bool,
) -> tuple[Operation, ...]:
    """What is remembered of a reviewer's decision. A maintainer's counts for no other skill, and for no rule."""
    if decider.asserted is not None:
        return (decider.asserted,)
    remembered = past_decisions.ruling_writes(record, decider.step, subjects, approved=approved)
    return (*remembered, *_count_word(record, agreed=not approved))


async def reject(services: Services, actor: Principal, request: DecideSubmission) -> SubmissionView:
    if (live := await _live_review(actor, request)) is not None:
        return await _decide_live(services, actor, live, request.reason, stays=False)
    subjects = await _read_subjects(actor, request)

    async def decide(record: Submission, step: Step) -> RecordChange:
        require_same(record, request)
        decider = await require_decider(actor, record, step)
        await require_other_reviewer(services, actor, record)
        to = State.REJECTED
        if record.appeals_block and await find_hits(targets_for(record)):
            # The block stands, so the run ends as blocked again.
            to = State.BLOCKED
        if decider.asserted is not None:
            step = decider.step
        rejected = submission.move(record, to, step, decision=_decide_by_person(record, step.reason))
        if not record.state.reviewable:
            return RecordChange(rejected)
        return RecordChange(rejected, _learnt(record, decider, subjects, approved=False))

    return await submissions.show_changed(
        services, actor, request.submission_id, "reject", request.reason, decide
    )


def _decide_by_person(record: Submission, reason: str, certification: str | None = None) -> RecordedDecision:
    """A reviewer's decision; it still tells which rules of the policy had matched."""
    before = record.decision or RecordedDecision("")
    return RecordedDecision(reason, (), certification, policy=before.policy, matched=before.matched)


def _count_word(record: Submission, *, agreed: bool) -> tuple[Add, ...]:
    held = count_decided(rules_that_held(record), agreed=agreed)
    return (*held, *count_answered(record, agreed=agreed))


async def _live_review(actor: Principal, request: DecideSubmission) -> review_queue.LiveReview | None:
    """The live version that the decision is about, where the submission itself does not wait. Reviewers of the registry
    decide about those."""
    if not actor.is_reviewer:
        return None
    record = await get_submission(request.submission_id, audiences=audiences_of(actor))
    found = await review_queue.find_live_review(record)
    if found is None or found.version.digest != request.digest:
        return None
    require_same(found.item, request)
    return found


async def _decide_live(
    services: Services, actor: Principal, live: review_queue.LiveReview, reason: str, *, stays: bool
) -> SubmissionView:
    """Keep a live version that newer rules doubt, or take it down."""
    subjects = await _subjects_of(live.item)
    step = Step(services.clock.new_id(), services.kv.now(), actor.actor, reason)

    async def remember() -> tuple[Operation, ...]:
        remembered = past_decisions.ruling_writes(live.item, step, subjects, approved=stays)
        return (*remembered, *_count_word(live.item, agreed=not stays))

    decided = await review_queue.decide_live_review(services, actor, live, reason, stays=stays, more=remember)
    return await submissions.view_of(services, actor, decided)


async def _read_subjects(
    actor: Principal, request: DecideSubmission
) -> tuple[past_decisions.RulingSubject, ...]:
    """What the decision is remembered by. The bytes are those that the request names, or nothing is decided."""
    record = await get_submission(request.submission_id, audiences=audiences_of(actor))
    return await _subjects_of(record)


async def _subjects_of(record: Submission) -> tuple[past_decisions.RulingSubject, ...]:
    report = await submissions.report_of(record)
    files, _ = await read_stored_files(record.digest) if record.digest and report else ((), "")
    return past_decisions.subjects_of(record, submissions.ordered_findings(record, report), files)


def _not_waiting(record: Submission, done: str) -> TransitionError:
    message = (
        f"Only a submission that waits for a reviewer can be {done}. "
        f"The state of this one is: {record.state.label}."
    )
    return TransitionError(message, submission=record.id)


def require_same(record: Submission, request: DecideSubmission) -> None:
    """TransitionError unless this is what the reviewer looked at."""
    if (record.run, record.digest) != (request.run, request.digest):
        message = (
            f"The submission has changed since you opened it: it is now at run {record.run}. Check it again."
        )
        raise TransitionError(message, submission=record.id, run=record.run, digest=record.digest)


def _require_todays_rules(services: Services, record: Submission) -> None:
    """TransitionError where other rules than today's scanned it: a maintainer may decide only what those leave open."""
    if record.evidence is None or record.evidence.ruleset != services.scanner.ruleset:
        message = (
            "The scanner's rules have changed since this was scanned, so it must be scanned again first."
        )
        raise TransitionError(message, submission=record.id, fix="run it again")


async def _require_publishable(approved: Submission) -> None:
    """TransitionError where publishing these bytes would fail, with what to do: nothing is approved in vain."""
    try:
        await require_publishable(approved)
    except Blocked as error:
        advice = "Lift the block first, then approve."
        raise TransitionError(f"{error}. {advice}", submission=approved.id, fix=advice) from error
    except LowerVersion as error:
        advice = "Reject it, and ask for a higher version in the front matter of SKILL.md."
        raise TransitionError(f"{error} {advice}", submission=approved.id, fix=advice) from error
    except (SourceGone, NoSkillFound, InvalidManifest, ContentDamaged):
        # No decision about these bytes brings them back or makes a skill of them: the run ends with that reason, or
        # waits for the repair.
        return


APPROVE = action(
    approve,
    "review.approve",
    f"{review_queue.REVIEW}/{{submission_id}}/approve",
    right=Right.OWN_REVIEWER,
    acts_on=submissions.object_of,
    errors=(NotFound, NotPermitted, TransitionError),
    summary="Approve a submission and publish its stored content",
)
REJECT = action(
    reject,
    "review.reject",
    f"{review_queue.REVIEW}/{{submission_id}}/reject",
    right=Right.OWN_REVIEWER,
    acts_on=submissions.object_of,
    errors=(NotFound, NotPermitted, TransitionError),
    summary="Reject a submission",
)

LOOK_AGAIN = action(
    submissions.rerun,
    "review.again",
    f"{review_queue.REVIEW}/{{submission_id}}/again",
    right=Right.REVIEWER,
    errors=(NotFound, TransitionError, Blocked),
    summary="Start a new run, or make a waiting one due now",
    about="Like `submission rerun`, but needs the scope `review`.",
)


# Requests for a change: a reviewer asks the author instead of deciding, and the submission waits for the author. It
# stays in NEEDS_REVIEW, so that every decision is still possible. The author submits a changed version or answers, the
# reviewer withdraws the request, or a job ends the run when the author's time is over (`store.review.change_requests`).


class WithdrawRequest(SubmissionRequest, frozen=True, kw_only=True):
    """A request for a change that is no longer needed."""

    #: why; shown in the public history
    reason: Reason


class AnswerRequest(SubmissionRequest, frozen=True, kw_only=True):
    """An answer to a reviewer who asked for a change."""

    #: the answer; shown to the reviewer and in the public history
    reason: Reason


async def request_change(services: Services, actor: Principal, request: DecideSubmission) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> RecordChange:
        if record.state is not State.NEEDS_REVIEW:
            raise _not_waiting(record, "returned to its author")
        require_same(record, request)
        await require_other_reviewer(services, actor, record)
        if record.history[-1].source is State.PUBLISHED:
            message = (
                "A published version of it was taken down. Restore that version, or reject the submission."
            )
            raise TransitionError(message, submission=record.id)
        # What a reviewer has asked, maintainers may not pass over.
        decision = record.decision and msgspec.structs.replace(record.decision, own_review=False)
        asked = msgspec.structs.replace(submission.request_change(record, step), decision=decision)
        said = msgspec.structs.replace(step, reason=asked.why)
        digests = () if record.digest is None else (record.digest,)
        return RecordChange(asked, past_decisions.content_rulings(record, said, digests, approved=False))

    return await submissions.show_changed(
        services, actor, request.submission_id, "request change", request.reason, decide
    )


async def withdraw_request(services: Services, actor: Principal, request: WithdrawRequest) -> SubmissionView:
    return await _close(
        services, actor, request, "withdraw request", "a reviewer no longer asks for a change"
    )


async def answer(services: Services, actor: Principal, request: AnswerRequest) -> SubmissionView:
    return await _close(services, actor, request, "answer", "the author answers")


async def _close(
    services: Services, actor: Principal, request: WithdrawRequest | AnswerRequest, verb: str, said: str
) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> RecordChange:
        if record.change_request is None:
            raise TransitionError("No reviewer has asked for a change.", submission=record.id)
        told = msgspec.structs.replace(step, reason=f"{said}: {step.reason}")
        return RecordChange(submission.close_request(record, told))

    return await submissions.show_changed(
        services, actor, request.submission_id, verb, request.reason, decide
    )


REQUEST_CHANGE = action(
    request_change,
    "review.request_change",
    f"{review_queue.REVIEW}/{{submission_id}}/request-change",
    right=Right.REVIEWER,
    errors=(NotFound, NotPermitted, TransitionError),
    summary="Ask the author of a submission for a change",
    about="The reason is the question; the author sees it. The submission waits for the author, who submits a changed "
    "version or answers within 14 days; after that it is rejected. You can still decide meanwhile.",
)
WITHDRAW_REQUEST = action(
    withdraw_request,
    "review.withdraw_request",
    f"{review_queue.REVIEW}/{{submission_id}}/withdraw-request",
    right=Right.REVIEWER,
    errors=(NotFound, TransitionError),
    summary="Withdraw a request for a change",
    about="The submission waits for a reviewer again.",
)
ANSWER = action(
    answer,
    "submission.answer",
    f"{SUBMISSIONS}/{{submission_id}}/answer",
    right=Right.SUBMITTER,
    acts_on=submissions.object_of,
    errors=(NotFound, TransitionError),
    allowance=Allowance.REPORTS,
    summary="Answer a reviewer who asked for a change",
    about="The submission waits for a reviewer again. To send a changed version instead, submit it again.",
)

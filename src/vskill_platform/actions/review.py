"""What reviewers decide about submissions that wait for them. A decision names the run and the bytes that the reviewer
looked at: where either has changed since, nothing is decided."""

import msgspec

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.changes import change_submission
from vskill_platform.actions.checks import ActionRequest, Digest, Reason, SubmissionId
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.submission_views import SubmissionView
from vskill_platform.actions.submissions import view_of
from vskill_platform.domain import submission
from vskill_platform.domain.errors import NotFound, TransitionError
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.skill import Certification
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Approval, RecordedDecision, Step, Submission
from vskill_platform.domain.token import TokenScope
from vskill_platform.submission_store import Change

REVIEW = "/api/v1/review"


class DecideSubmission(ActionRequest, frozen=True, kw_only=True):
    """A decision about a submission that waits for a reviewer."""

    submission_id: SubmissionId
    #: the run that was looked at
    run: int
    #: the digest of the bytes that were looked at; null where none were fetched
    digest: Digest | None = None
    #: why; shown in the public history
    reason: Reason


async def approve(services: Services, actor: Principal, request: DecideSubmission) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> Change:
        if record.state is not State.NEEDS_REVIEW:
            message = f"It is {record.state.meaning.lower()}; only what waits for a reviewer is approved."
            raise TransitionError(message, submission=record.id)
        _require_same(record, request)
        if record.digest is None:
            raise TransitionError("No bytes are stored that could be published.", submission=record.id)
        approved = submission.move(
            record,
            State.AUTO_APPROVED,
            step,
            approval=Approval(record.digest, step.actor, step.at),
            decision=RecordedDecision(
                f"approved by a reviewer: {step.reason}", certification=Certification.CERTIFIED.value
            ),
        )
        return Change(approved, (submission_send(record.id, record.run),))

    changed = await change_submission(
        services, actor, request.submission_id, "approve", request.reason, decide
    )
    return await view_of(services, actor, changed)


async def reject(services: Services, actor: Principal, request: DecideSubmission) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> Change:
        _require_same(record, request)
        return Change(submission.move(record, State.REJECTED, step, decision=RecordedDecision(step.reason)))

    changed = await change_submission(
        services, actor, request.submission_id, "reject", request.reason, decide
    )
    return await view_of(services, actor, changed)


def _require_same(record: Submission, request: DecideSubmission) -> None:
    """TransitionError unless this is what the reviewer looked at."""
    if (record.run, record.digest) != (request.run, request.digest):
        message = f"It has changed since you looked: this is run {record.run} now. Look at it again."
        raise TransitionError(message, submission=record.id, run=record.run, digest=record.digest)


_NO_TOOL = Missing("people decide; an agent that reads skills must not approve them")

APPROVE = Action(
    name="review.approve",
    run=approve,
    request=DecideSubmission,
    answer=SubmissionView,
    path=f"{REVIEW}/{{submission_id}}/approve",
    right=Right.REVIEWER,
    scope=TokenScope.REVIEW,
    errors=(NotFound, TransitionError),
    summary="Publish the stored bytes of a submission",
    tag="review",
    page="/admin/review/{submission_id}/approve",
    command="review approve",
    mcp=_NO_TOOL,
)
REJECT = msgspec.structs.replace(
    APPROVE,
    name="review.reject",
    run=reject,
    path=f"{REVIEW}/{{submission_id}}/reject",
    summary="End a run as rejected",
    page="/admin/review/{submission_id}/reject",
    command="review reject",
)

ACTIONS = (APPROVE, REJECT)

"""Requests for a change: a reviewer asks the author instead of deciding, and the submission waits for the author.

It stays in NEEDS_REVIEW, so that every decision is still possible. The author submits a changed version or answers, the
reviewer withdraws the request, or a job ends the run when the author's time is over (`store.review.change_requests`).
"""

import msgspec

from vskill_client.wire.submissions import SUBMISSIONS, SubmissionRequest, SubmissionView
from vskill_core.errors import NotFound, NotPermitted, TransitionError
from vskill_platform.actions.action import Allowance, Services, action
from vskill_platform.actions.checks import Reason
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.review.appeals import require_other_reviewer
from vskill_platform.actions.review.review import DecideSubmission, require_same, require_waiting
from vskill_platform.actions.review.review_queue import REVIEW
from vskill_platform.actions.rights import Right
from vskill_platform.actions.submissions.submissions import object_of, show_changed
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.submission_store import RecordChange


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
        require_waiting(record, "returned to its author")
        require_same(record, request)
        await require_other_reviewer(services, actor, record)
        if record.history[-1].source is State.PUBLISHED:
            message = (
                "A published version of it was taken down. Restore that version, or reject the submission."
            )
            raise TransitionError(message, submission=record.id)
        return RecordChange(submission.request_change(record, step))

    return await show_changed(
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

    return await show_changed(services, actor, request.submission_id, verb, request.reason, decide)


REQUEST_CHANGE = action(
    request_change,
    "review.request_change",
    f"{REVIEW}/{{submission_id}}/request-change",
    right=Right.REVIEWER,
    errors=(NotFound, NotPermitted, TransitionError),
    summary="Ask the author of a submission for a change",
    about="The reason is the question; the author sees it. The submission waits for the author, who submits a changed "
    "version or answers within 14 days; after that it is rejected. You can still decide meanwhile.",
)
WITHDRAW_REQUEST = action(
    withdraw_request,
    "review.withdraw_request",
    f"{REVIEW}/{{submission_id}}/withdraw-request",
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
    acts_on=object_of,
    errors=(NotFound, TransitionError),
    allowance=Allowance.REPORTS,
    summary="Answer a reviewer who asked for a change",
    about="The submission waits for a reviewer again. To send a changed version instead, submit it again.",
)

ACTIONS = (REQUEST_CHANGE, WITHDRAW_REQUEST, ANSWER)

"""Appeals: a submitter asks a reviewer to look again at a run that was refused.

An appeal begins a run of its own that holds the same bytes and what was found in them, and waits for a reviewer like
everything else that waits. Another reviewer than the one who refused it decides, where there is one.
"""

import msgspec

from vskill_client.wire.base import iso_time
from vskill_client.wire.submissions import SUBMISSIONS, SubmissionRequest, SubmissionView
from vskill_core.errors import LowerVersion, NotFound, NotPermitted, TransitionError
from vskill_platform.actions.action import Allowance, Reason, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.submissions.submissions import object_of, show_changed
from vskill_platform.domain.messages import Send
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Appeal, Step, Submission
from vskill_platform.store.people.accounts import Role, list_users
from vskill_platform.store.recall.blocklist import find_hits, targets_for
from vskill_platform.submission_store import RecordChange, next_run

#: Decisions that can be appealed.
APPEALABLE = frozenset({State.TIER1_FAILED, State.REJECTED, State.BLOCKED})
#: For this long only another reviewer decides, where there is one.
OTHERS_ONLY_MS = 72 * 3_600_000


class AppealSubmission(SubmissionRequest, frozen=True, kw_only=True):
    """A refused submission that a reviewer is to look at."""

    #: why the decision is wrong; shown to the reviewer and in the public history
    reason: Reason


def why_no_appeal(record: Submission) -> str | None:
    """Why this run cannot be appealed, as a sentence with what to do instead; None where it can."""
    if record.state not in APPEALABLE:
        return f"Only a refused submission can be appealed. The state of this one is: {record.state.label}."
    if record.appeal is not None:
        return "A reviewer has already decided an appeal about this content. Change the skill and submit it again."
    if record.state is State.BLOCKED:
        return None
    if record.digest is None:
        return "Nothing was fetched in that run, so there is nothing to review. Submit it again."
    if record.decision is not None and LowerVersion.code in record.decision.rule_ids:
        return (
            "No reviewer can publish a lower version. Raise the version in the front matter of SKILL.md and submit it "
            "again."
        )
    return None


async def appeal(services: Services, actor: Principal, request: AppealSubmission) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> RecordChange:
        refusal = why_no_appeal(record)
        if refusal is not None:
            raise TransitionError(refusal, submission=record.id)
        begin = msgspec.structs.replace(step, event_id=f"{step.event_id}-run", reason="an appeal was made")
        begun = next_run(record, begin, submitter=None, upload=record.upload)
        filed = Appeal(step.actor, step.at, step.reason, record.state, await _decided_by(record))
        # The bytes are the same, so what is known about them still holds.
        same = msgspec.structs.replace(
            begun.record,
            digest=record.digest,
            commit=record.commit,
            declared_name=record.declared_name,
            evidence=record.evidence,
            decision=record.decision,
            appeal=filed,
        )
        asked = msgspec.structs.replace(step, reason=f"appeal: {step.reason}")
        waiting = submission.move(same, State.NEEDS_REVIEW, asked)
        # No worker is to take it up, so nothing is sent.
        kept = tuple(operation for operation in begun.operations if not isinstance(operation, Send))
        return RecordChange(waiting, kept)

    return await show_changed(services, actor, request.submission_id, "appeal", request.reason, decide)


async def _decided_by(record: Submission) -> str | None:
    deciders = [record.history[-1].actor]
    if record.state is State.BLOCKED:
        deciders += [entry.discovered_by for entry in await find_hits(targets_for(record))]
    return next((name for name in deciders if name.startswith("admin:")), None)


async def require_other_reviewer(services: Services, actor: Principal, record: Submission) -> None:
    """Raise NotPermitted for an appeal against the actor's own decision, while somebody else may decide it."""
    filed = record.appeal
    if filed is None or filed.decided_by != actor.actor:
        return
    until = filed.at + OTHERS_ONLY_MS
    if services.kv.now() < until and await _has_other_reviewer(actor):
        message = (
            "You made the decision that is appealed, so another reviewer decides the appeal. "
            f"From {iso_time(until)} on you may decide it too."
        )
        raise NotPermitted(message, submission=record.id)


async def _has_other_reviewer(actor: Principal) -> bool:
    after: str | None = None
    while True:
        page = await list_users(after=after)
        for user in page.items:
            if user.role in {Role.REVIEWER, Role.ADMIN} and not user.disabled and user.name != actor.account:
                return True
        after = page.after
        if after is None:
            return False


APPEAL = action(
    appeal,
    "submission.appeal",
    f"{SUBMISSIONS}/{{submission_id}}/appeal",
    right=Right.SUBMITTER,
    acts_on=object_of,
    errors=(NotFound, TransitionError),
    allowance=Allowance.REPORTS,
    summary="Ask a reviewer to look again at a refused submission",
    about="For submissions that failed the scan or the judge, were rejected by a reviewer, or are blocked. A reviewer "
    "other than the one who decided looks at it if there is one; after 72 hours, the same reviewer may.",
)

"""How an action changes a submission: one compare-and-swap that writes the record, its history and the audit entry
together. A worker that holds the submission meanwhile loses its claim and stops.

Four eyes: a decision about one's own submission is marked wherever it happens, and VSKILL_FOUR_EYES forbids it.

Own review: where a namespace reviews itself, its maintainers decide too; that is marked in the same way.
"""

from collections.abc import Awaitable, Callable

import msgspec

from vskill_core.errors import NotPermitted
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import MAINTAINER, Principal, audiences_of
from vskill_platform.domain.review.own_review import team_audience, why_not_own
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Assert, Put
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.people.namespaces import assert_directory
from vskill_platform.store.verdicts.past_decisions import was_rejected
from vskill_platform.submission_store import RecordChange, get_submission, update_submission

#: What the public history says beside the reason.
OWN_MARK = "(decided by its submitter)"
TEAM_MARK = "(decided within its namespace)"


class Decider(msgspec.Struct, frozen=True):
    """Somebody who may decide about what waits."""

    #: what they do, as the public history shows it
    step: Step
    #: of what they approve
    audience: str
    #: to commit with the decision: nobody's right has changed meanwhile; None for a reviewer
    asserted: Assert | None = None


async def require_decider(actor: Principal, record: Submission, step: Step) -> Decider:
    """A reviewer, who decides about everything, or a maintainer; NotPermitted for whoever may not decide about this."""
    if actor.is_reviewer:
        marked = msgspec.structs.replace(step, reason=mark_own(actor, record, step.reason))
        return Decider(marked, record.audience)
    directory, asserted = await assert_directory()
    refusal = why_not_own(record, directory, actor.name, actor.groups)
    if refusal is None and record.digest is not None and await was_rejected(record.digest):
        refusal = "A reviewer of the registry rejected these bytes, took them down or asked about them."
    if refusal is not None:
        raise NotPermitted(refusal, submission=record.id, fix="ask a reviewer of this registry")
    name, reason = f"{MAINTAINER}:{actor.name}", f"{step.reason} {TEAM_MARK}"
    marked = msgspec.structs.replace(step, actor=name, reason=reason)
    return Decider(marked, team_audience(record, directory), asserted)


def is_own(actor: Principal, record: Submission) -> bool:
    return actor.account is not None and actor.account == record.submitter


def require_other_eyes(services: Services, actor: Principal, record: Submission) -> None:
    """NotPermitted where the actor submitted it, and the registry asks for a second person."""
    if is_own(actor, record) and services.settings.four_eyes == "on":
        raise NotPermitted(
            "You submitted this yourself, and this registry asks for a second person (VSKILL_FOUR_EYES).",
            submission=record.id,
            fix="ask another reviewer",
        )


def mark_own(actor: Principal, record: Submission, reason: str) -> str:
    """The reason as the history shows it."""
    return f"{reason} {OWN_MARK}" if is_own(actor, record) else reason


async def may_decide(actor: Principal, record: Submission) -> bool:
    try:
        await require_decider(actor, record, Step("", 0, "", ""))
    except NotPermitted:
        return False
    return True


#: From the record as it is, and the step that the action adds, to what it becomes; None leaves it as it is.
Decide = Callable[[Submission, Step], Awaitable[RecordChange | None]]


async def change_submission(
    services: Services, actor: Principal, submission_id: str, verb: str, reason: str, decide: Decide
) -> Submission:
    """The record after the change. `decide` is called again after a conflict; the event's id stays the same, so an
    unknown outcome is recognised."""
    event_id = services.clock.new_id()

    async def decide_with_audit(record: Submission) -> RecordChange | None:
        step = Step(event_id, services.kv.now(), actor.actor, reason)
        change = await decide(record, step)
        return change and RecordChange(
            change.record, (*change.operations, *audit_step(actor, verb, record, step))
        )

    written = await update_submission(submission_id, decide_with_audit, event_id=event_id)
    if written is not None:
        return written
    return await get_submission(submission_id, audiences=audiences_of(actor))


def audit_step(actor: Principal, verb: str, record: Submission, step: Step) -> tuple[Put, ...]:
    """The audit entry's writes, under the id of the history's event: the one leads to the other."""
    details = {"run": str(record.run), "state": record.state.value, "place": record.identity.key}
    if record.digest is not None:
        details["digest"] = record.digest
    if is_own(actor, record):
        details["own"] = "yes"
    return record_audit(
        verb, record.id, by=actor.actor, reason=step.reason, details=details, entry_id=step.event_id
    )

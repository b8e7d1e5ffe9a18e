"""Rules that a reviewer finds wrong about one content. A suppression is bound to the rule and the digest, and what it
changes is judged again at once: what waits or failed when a rule is suppressed, what is live when it counts again."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import InvalidInput, NotFound
from vskill_core.findings import FindingKind, StaticReport
from vskill_platform.actions.action import Cursor, Digest, PageSize, Reason, Services, action
from vskill_platform.actions.changes import change_submission, require_other_eyes
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.submissions.attempts import EXHAUSTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.records import decode_readable, iter_entries
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.skills.skills import iter_skills
from vskill_platform.store.submissions.submission_lists import submissions_with_digest
from vskill_platform.store.verdicts.suppressions import (
    Suppression,
    add_suppression,
    list_suppressions,
    page_suppressions,
    remove_suppression,
)
from vskill_platform.submission_store import RecordChange, next_run

SUPPRESSIONS = "/api/v1/suppressions"

RuleId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class SuppressRule(ActionRequest, frozen=True, kw_only=True):
    """A rule, and the content that it is about."""

    #: the content's digest
    digest: Digest
    #: the rule, such as DR-009
    rule: RuleId
    #: why; kept with the suppression and in the audit
    reason: Reason


class ListSuppressions(ActionRequest, frozen=True, kw_only=True):
    """Which suppressions."""

    #: only those of this content
    digest: Digest | None = None
    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 100


class SuppressionEvent(Wire, frozen=True):
    """One change of a suppression."""

    #: `added` or `removed`
    action: str
    by: str
    at: str
    reason: str


class SuppressionView(Wire, frozen=True):
    """A rule that does not count for one content, or did not."""

    digest: str
    rule: str
    #: false: the rule counts again
    active: bool
    #: oldest first
    history: tuple[SuppressionEvent, ...]


class SuppressionChange(Wire, frozen=True):
    """What was changed, and what is judged again because of it."""

    suppression: SuppressionView
    #: submissions that got a new run, by id
    new_runs: tuple[str, ...]
    #: skills whose live content is judged again
    rescans: tuple[str, ...]


class SuppressionList(Wire, frozen=True):
    """A page of suppressions."""

    suppressions: tuple[SuppressionView, ...]
    #: asks for the next page; null on the last
    after: str | None
    #: records that could not be read; the log names them
    skipped: int


async def suppress(services: Services, actor: Principal, request: SuppressRule) -> SuppressionChange:
    found = await submissions_with_digest(request.digest, audiences=audiences_of(actor))
    await _require_rule(request, found)
    for record in found:
        require_other_eyes(services, actor, record)
    done = await add_suppression(request.digest, request.rule, by=actor.actor, reason=request.reason)
    reason = f"rule {request.rule} was suppressed: {request.reason}"
    ids = [record.id for record in found if _is_held_by(record, request)]
    runs = [one for one in ids if await _judge_again(services, actor, one, reason, request)]
    return SuppressionChange(suppression_view(done), tuple(runs), ())


async def unsuppress(actor: Principal, request: SuppressRule) -> SuppressionChange:
    done = await remove_suppression(request.digest, request.rule, by=actor.actor, reason=request.reason)
    asked: list[str] = []
    async for skill in iter_skills():
        for ref in skill.versions:
            if ref.digest == request.digest and ref.status is VersionStatus.LIVE:
                await request_rescan(skill, ref)
                asked.append(skill.canonical)
                break
    return SuppressionChange(suppression_view(done), (), tuple(asked))


async def show_all(request: ListSuppressions) -> SuppressionList:
    if request.digest is not None:
        found = await list_suppressions(request.digest)
        return SuppressionList(tuple(map(suppression_view, found)), None, 0)
    page = await page_suppressions(request.after, request.limit)
    return SuppressionList(tuple(map(suppression_view, page.items)), page.after, page.skipped)


def suppression_view(found: Suppression) -> SuppressionView:
    return SuppressionView.of(found, rule=found.rule_id)


async def _require_rule(request: SuppressRule, found: list[Submission]) -> None:
    """InvalidInput with the rules that there are, unless a scan or a decision about this content names the rule."""
    scans = await _scans_of(request.digest)
    if not (found or scans):
        message = "No scanned content has this digest."
        raise NotFound(message, field="digest", fix="give the digest that the submission shows")
    rules = {one.rule_id for scan in scans for one in scan.findings if one.kind is not FindingKind.CAPABILITY}
    rules |= {rule for record in found if record.decision for rule in record.decision.rule_ids}
    rules.discard(EXHAUSTED)
    if request.rule not in rules:
        raise InvalidInput(
            f"{request.rule} found nothing in this content.",
            field="rule",
            fix=f"use one of {', '.join(sorted(rules))}" if rules else "no rule counts against it",
        )


async def _scans_of(digest: str) -> list[StaticReport]:
    """Stored reports of every ruleset. One that cannot be read names no rule."""
    entries = [entry async for entry in iter_entries(keys.scan.under(digest))]
    return decode_readable(entries, StaticReport, "suppress_rule")


def _is_held_by(record: Submission, request: SuppressRule) -> bool:
    """Whether the rule may be why this submission is not published. What a reviewer took down stays down."""
    if record.digest != request.digest:
        return False
    if record.state is State.NEEDS_REVIEW:
        last = record.history[-1]
        return not (last.source is State.PUBLISHED and last.actor.startswith("admin:"))
    rules = record.decision.rule_ids if record.decision else ()
    return record.state in {State.TIER1_FAILED, State.REJECTED} and request.rule in rules


async def _judge_again(
    services: Services, actor: Principal, submission_id: str, reason: str, request: SuppressRule
) -> bool:
    """Start a new run, unless the submission has moved on; whether it began."""
    begins = False

    async def decide(record: Submission, step: Step) -> RecordChange | None:
        nonlocal begins
        begins = _is_held_by(record, request)
        return next_run(record, step, submitter=None, upload=record.upload) if begins else None

    await change_submission(services, actor, submission_id, "run again", reason, decide)
    return begins


SUPPRESS = action(
    suppress,
    "suppression.add",
    f"{SUPPRESSIONS}/{{digest}}/{{rule}}",
    right=Right.REVIEWER,
    errors=(NotFound,),
    summary="Suppress a rule for one content",
    about="The rule no longer counts for exactly these bytes. Submissions of these bytes that wait for a reviewer, "
    "or failed by this rule, run again at once.",
    command="review suppress",
)
UNSUPPRESS = action(
    unsuppress,
    "suppression.remove",
    f"{SUPPRESSIONS}/{{digest}}/{{rule}}/remove",
    right=Right.REVIEWER,
    errors=(NotFound,),
    summary="Let a rule count again for one content",
    about="Live versions with these bytes are judged again at once.",
    command="review unsuppress",
)
SUPPRESSED = action(
    show_all,
    "suppression.list",
    SUPPRESSIONS,
    right=Right.REVIEWER,
    summary="List suppressed rules, including removed suppressions",
    command="review suppressions",
)

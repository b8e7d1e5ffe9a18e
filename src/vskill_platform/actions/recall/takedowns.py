"""What reviewers do with published versions: take them down, with a block if needed, and restore them."""

from functools import partial

import msgspec

from vskill_client.wire.base import VersionNumber
from vskill_client.wire.skills import SkillRequest, SkillState
from vskill_core.errors import Ambiguous, Blocked, NotFound, NotPermitted, VersionStatusError
from vskill_core.findings import Severity
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.changes import is_own, mark_own, require_other_eyes
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.recall.blocklist import DEFAULT_SEVERITY, BlockReach, ThreatType, reached_target
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.skills.versions import state_of
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef, VersionStatus
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Approval, RecordedDecision, Step, Submission
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.recall.blocklist import audience_of_block, block_writes
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.recall.withdrawals import alter_skill
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.verdicts.past_decisions import content_rulings
from vskill_platform.submission_store import RecordChange, read_submission


class TakeDownSkill(SkillRequest, frozen=True, kw_only=True):
    """What is taken down, and why."""

    #: one version; every version if left out
    version: VersionNumber | None = None
    #: why; everybody sees it
    reason: Reason
    #: what is blocked with it, in the same commit
    block: BlockReach = BlockReach.NOTHING
    #: how dangerous it is
    severity: Severity = DEFAULT_SEVERITY
    #: what kind of danger it is, such as credential-theft
    threat_type: ThreatType = ""


class RestoreSkill(SkillRequest, frozen=True, kw_only=True):
    """What comes back, and why."""

    #: one version; every version that was taken down if left out
    version: VersionNumber | None = None
    #: why; everybody sees it
    reason: Reason


async def take_down(services: Services, actor: Principal, request: TakeDownSkill) -> SkillState:
    """The submission that is PUBLISHED with such a version waits for a reviewer from then on: submitting the same
    content again says so, and not that it is verified."""
    published = await find_skill(actor, request.skill)
    target = await reached_target(request.block, published, request.version)
    said = Step(services.clock.new_id(), services.kv.now(), actor.actor, f"taken down: {request.reason}")

    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        change = skill_changes.StatusChange(
            StatusRole.REVIEWER, actor.actor, now, request.reason, request.threat_type, request.severity
        )
        return skill_changes.take_down(found, change, number=request.version)

    async def more() -> tuple[Operation, ...]:
        remembered = await _word(published.canonical, request.version, said, approved=False)
        if target is None:
            return remembered
        entry = await _entry(target, published, request, actor.actor, services.kv.now())
        return (*remembered, *await block_writes(entry))

    changed = await alter_skill(
        published.canonical,
        alter,
        "take down",
        request.version,
        by=actor.actor,
        reason=request.reason,
        follow=_send_to_review,
        more=more,
    )
    if target is not None:
        await reapply_blocklist(judge_again=request_rescan)
        changed = await get_skill(published.canonical)
    return state_of(changed)


async def _word(canonical: str, number: str | None, step: Step, *, approved: bool) -> tuple[Operation, ...]:
    """A reviewer's word about the bytes of these versions: no maintainer passes it over, wherever they are."""
    skill = await get_skill(canonical)
    found = None if skill.submission is None else await read_submission(skill.submission)
    if found is None:
        return ()
    refs = (ref for ref in skill.versions if number in (None, ref.number))
    digests = {ref.digest for ref in refs if not approved or ref.status is VersionStatus.TAKEN_DOWN}
    return content_rulings(found[0], step, digests, approved=approved)


async def _entry(
    target: BlockTarget, published: PublishedSkill, request: TakeDownSkill, by: str, now: int
) -> BlockEntry:
    return BlockEntry(
        target,
        request.severity,
        request.reason,
        by,
        now,
        now,
        threat_type=request.threat_type,
        skill_name=published.name,
        source_url=published.repo_url,
        audience=await audience_of_block(target, published.audience),
        origin=published.audience,
    )


def _send_to_review(record: Submission, ref: VersionRef | None, step: Step) -> RecordChange | None:
    if record.state is not State.PUBLISHED or ref is None or ref.status is not VersionStatus.TAKEN_DOWN:
        return None
    taken_down = msgspec.structs.replace(step, reason=f"version {ref.number} was taken down: {step.reason}")
    decision = RecordedDecision(taken_down.reason)
    return RecordChange(submission.move(record, State.NEEDS_REVIEW, taken_down, decision=decision))


async def restore(services: Services, actor: Principal, request: RestoreSkill) -> SkillState:
    """It counts as the reviewer's approval of these bytes for the submission that published them."""
    published = await find_skill(actor, request.skill)
    said = Step(services.clock.new_id(), services.kv.now(), actor.actor, f"restored: {request.reason}")
    found = None if published.submission is None else await read_submission(published.submission)
    if found is not None:
        require_other_eyes(services, actor, found[0])

    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        change = skill_changes.StatusChange(StatusRole.REVIEWER, actor.actor, now, request.reason)
        return skill_changes.restore(found, change, number=request.version)

    def approve(record: Submission, ref: VersionRef | None, step: Step) -> RecordChange | None:
        """Only what is live again, and was withdrawn by leaving PUBLISHED. A version that its owner yanked stays
        yanked."""
        withdrawn = record.state is State.NEEDS_REVIEW and record.history[-1].source is State.PUBLISHED
        if not withdrawn or ref is None or ref.status is not VersionStatus.LIVE:
            return None
        reason = mark_own(actor, record, f"version {ref.number} was restored: {step.reason}")
        restored = msgspec.structs.replace(step, reason=reason)
        decision = RecordedDecision(reason, certification=ref.certification.value, score=ref.score)
        approval = Approval(ref.digest, step.actor, step.at, is_own(actor, record))
        moved = submission.move(record, State.AUTO_APPROVED, restored, approval=approval, decision=decision)
        return RecordChange(moved, (record.message,))

    changed = await alter_skill(
        published.canonical,
        alter,
        "restore",
        request.version,
        by=actor.actor,
        reason=request.reason,
        bringing_back=True,
        follow=approve,
        more=partial(_word, published.canonical, request.version, said, approved=True),
    )
    return state_of(changed)


TAKE_DOWN = action(
    take_down,
    "skill.takedown",
    "/api/v1/skills/{skill}/take-down",
    right=Right.REVIEWER,
    errors=(NotFound, Ambiguous, VersionStatusError),
    summary="Take a published skill down, or one version of it",
    about="Nobody can install it any more. Only a reviewer can restore it.",
    tag="review",
)
RESTORE = action(
    restore,
    "skill.restore",
    "/api/v1/skills/{skill}/restore",
    right=Right.REVIEWER,
    errors=(NotFound, NotPermitted, Ambiguous, VersionStatusError, Blocked),
    summary="Restore a skill or version that was taken down",
    about="A blocked version stays down: lift the block first.",
    tag="review",
)

"""What a rescan's decision does: unchanged content was judged again, and the skill's record, the submission and the
blocklist follow in one commit. The submission is touched only where it is PUBLISHED with these very bytes."""

import msgspec

from vskill_core.errors import StoreUnavailable, TransitionError
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import OpenReview, PublishedSkill, StatusRole, VersionRef
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Step, Submission
from vskill_platform.domain.verdicts.decision import BlockScope
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.records import persist
from vskill_platform.store.recall import blocklist
from vskill_platform.store.recall.withdrawals import Follow, plan_commit
from vskill_platform.store.skills.skills import require_skill
from vskill_platform.submission_store import RecordChange
from vskill_platform.worker_context import require_env


async def apply_rescan(
    canonical: str, digest: str, decision: RescanDecision, evidence: Evidence | None = None
) -> PublishedSkill:
    """Same or better: certification in place. Doubtful: it stays live, under review. Worse: the version is taken down,
    whatever the submission does.

    Raises TransitionError where it must be judged again: the blocklist or the skill has moved on since.
    """
    #: The skill's version at a try whose outcome nobody knows.
    unknown: int | None = None

    async def write() -> PublishedSkill:
        nonlocal unknown
        env = require_env("kv")
        asserted = await blocklist.assert_blocklist()
        published, version = await require_skill(canonical)
        if unknown not in (None, version):
            # That try may have been applied, and the skill may have been judged again after it.
            why = "it has changed since, so it is unknown whether this was applied"
            raise _outdated_error(why, published, digest)
        await _require_grounds(published, digest, decision)
        changed = _judged_again(published, digest, decision, evidence)
        step = Step("", env.kv.now(), "system", f"rescan: {decision.reason}")
        planned = await plan_commit(published, version, changed, step, _follow(decision, digest))
        blocks = await blocklist.decided_block_writes(decision, _blocked_by(published, digest))
        if planned.operations or blocks:
            # An entry that is written here changes the blocklist itself; otherwise it must be as it was looked at.
            grounds = blocks or (asserted,)
            try:
                await env.kv.commit([*grounds, *planned.operations])
            except StoreUnavailable:
                unknown = version
                raise
            planned.count_steps()
        return changed

    return await persist(write)


def _follow(decision: RescanDecision, digest: str) -> Follow:
    """What becomes of the submission, if it is PUBLISHED with these very bytes."""

    def follow(record: Submission, _: VersionRef | None, step: Step) -> RecordChange | None:
        if decision.next_state is None or record.state is not State.PUBLISHED or record.digest != digest:
            return None
        step = msgspec.structs.replace(step, event_id=require_env("clock").clock.new_id())
        recorded = RecordedDecision(step.reason, decision.rule_ids, score=decision.score)
        return RecordChange(submission.move(record, decision.next_state, step, decision=recorded))

    return follow


def _blocked_by(published: PublishedSkill, digest: str) -> blocklist.BlockedContent:
    ref = next((ref for ref in published.versions if ref.digest == digest), None)
    return blocklist.BlockedContent(
        identity=published.identity,
        digest=digest,
        by="system",
        audience=published.audience,
        skill_name=published.name,
        source_url=published.repo_url,
        content_hash=ref.content_hash if ref else "",
    )


def _judged_again(
    published: PublishedSkill, digest: str, decision: RescanDecision, evidence: Evidence | None
) -> PublishedSkill:
    now = require_env("kv").kv.now()
    match decision.outcome:
        case RescanOutcome.KEEP if decision.certification is not None:
            return skill_changes.recertify(published, digest, decision.certification, decision.score, now)
        case RescanOutcome.REVIEW:
            review = OpenReview(decision.reason, now, decision.rule_ids, evidence)
            return skill_changes.put_under_review(published, digest, review, now)
        case RescanOutcome.TAKE_DOWN:
            worst = decision.worst
            is_listed = decision.next_state is State.BLOCKED and decision.block is BlockScope.NONE
            change = skill_changes.StatusChange(
                StatusRole.BLOCK if is_listed else StatusRole.SYSTEM,
                "system",
                now,
                f"rescan: {decision.reason}",
                worst.category.value if worst else "",
                worst.severity if worst else None,
            )
            return skill_changes.take_down(published, change, digest=digest)
        case _:
            return published


async def _require_grounds(published: PublishedSkill, digest: str, decision: RescanDecision) -> None:
    """BLOCKED is only what an entry hits: one that this decision writes, or one that is there at this moment. One that
    was lifted since would leave the submission BLOCKED with nothing to lift."""
    if decision.next_state is not State.BLOCKED or decision.block is not BlockScope.NONE:
        return
    ref = next((ref for ref in published.versions if ref.digest == digest), None)
    if ref is None or await blocklist.why_version_blocked(published, ref) is None:
        raise _outdated_error("no blocklist entry matches it, so it is not blocked", published, digest)


def _outdated_error(why: str, published: PublishedSkill, digest: str) -> TransitionError:
    return TransitionError(f"{why}; it must be judged again", skill=published.canonical, digest=digest)

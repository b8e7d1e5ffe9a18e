"""What a rescan's decision does: unchanged content was judged again, and the skill's record, the submission and the
blocklist follow in one commit. The submission is touched only where it is PUBLISHED with these very bytes."""

from vskill_core.errors import StoreUnavailable, TransitionError
from vskill_core.findings import Severity
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, digest_target, place_target
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.skills import skill
from vskill_platform.domain.skills.skill import OpenReview, PublishedSkill, StatusRole
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Step, Submission
from vskill_platform.domain.verdicts.decision import BlockScope, RescanDecision, RescanOutcome
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.records import persist
from vskill_platform.store.recall.blocklist import (
    assert_blocklist,
    audience_of_block,
    block_writes,
    why_version_blocked,
)
from vskill_platform.store.skills.skills import require_skill, skill_writes
from vskill_platform.submission_store import RecordChange, read_submission, stored_form
from vskill_platform.worker_context import require_env


async def apply_rescan(
    canonical: str, digest: str, decision: RescanDecision, evidence: Evidence | None = None
) -> PublishedSkill:
    """Same or better: certification in place. Doubtful: it stays live, under review. Worse: the version is taken down,
    whatever the submission does.

    Raises TransitionError where it must be judged again: the blocklist or the records have moved on since.
    """
    #: The records' versions at a try whose outcome nobody knows.
    unknown: tuple[int, int | None] | None = None

    async def write() -> PublishedSkill:
        nonlocal unknown
        asserted = await assert_blocklist()
        published, version = await require_skill(canonical)
        submitted = await read_submission(published.submission) if published.submission else None
        versions = (version, submitted[1] if submitted else None)
        if unknown not in (None, versions):
            # That try may have been applied, and what stands there now may have been judged after it.
            raise _outdated_error(
                "it has changed since, so it is unknown whether this was applied", published, digest
            )
        await _require_grounds(published, digest, decision)
        changed = _judged_again(published, digest, decision, evidence)
        operations: list[Operation] = []
        if changed != published:
            operations += await skill_writes(published, changed, version)
        operations += _submission_writes(submitted, digest, decision)
        operations += await _block_writes(published, digest, decision)
        if operations:
            # An entry that is written here changes the blocklist itself; any other ground is the one that stands.
            grounds = [] if decision.block is not BlockScope.NONE else [asserted]
            try:
                await require_env("kv").kv.commit([*grounds, *operations])
            except StoreUnavailable:
                unknown = versions
                raise
        return changed

    return await persist(write)


def _judged_again(
    published: PublishedSkill, digest: str, decision: RescanDecision, evidence: Evidence | None
) -> PublishedSkill:
    now = require_env("kv").kv.now()
    match decision.outcome:
        case RescanOutcome.KEEP if decision.certification is not None:
            return skill.recertify(published, digest, decision.certification, decision.score, now)
        case RescanOutcome.REVIEW:
            review = OpenReview(decision.reason, now, decision.rule_ids, evidence)
            return skill.put_under_review(published, digest, review, now)
        case RescanOutcome.TAKE_DOWN:
            worst = decision.worst
            is_listed = decision.next_state is State.BLOCKED and decision.block is BlockScope.NONE
            change = skill.StatusChange(
                StatusRole.BLOCK if is_listed else StatusRole.SYSTEM,
                "system",
                now,
                f"rescan: {decision.reason}",
                worst.category.value if worst else "",
                worst.severity if worst else None,
            )
            return skill.take_down(published, change, digest=digest)
        case _:
            return published


async def _require_grounds(published: PublishedSkill, digest: str, decision: RescanDecision) -> None:
    """BLOCKED is only what an entry hits: one that this decision writes, or one that is there at this moment. One that
    was lifted since would leave the submission BLOCKED with nothing to lift."""
    if decision.next_state is not State.BLOCKED or decision.block is not BlockScope.NONE:
        return
    ref = next((ref for ref in published.versions if ref.digest == digest), None)
    if ref is None or await why_version_blocked(published, ref) is None:
        raise _outdated_error("no blocklist entry matches it, so it is not blocked", published, digest)


def _outdated_error(why: str, published: PublishedSkill, digest: str) -> TransitionError:
    return TransitionError(f"{why}; it must be judged again", skill=published.canonical, digest=digest)


def _submission_writes(
    submitted: tuple[Submission, int] | None, digest: str, decision: RescanDecision
) -> tuple[Operation, ...]:
    if decision.next_state is None or submitted is None:
        return ()
    record, version = submitted
    if record.state is not State.PUBLISHED or record.digest != digest:
        return ()
    env = require_env("kv")
    step = Step(env.clock.new_id(), env.kv.now(), "system", f"rescan: {decision.reason}")
    recorded = RecordedDecision(step.reason, decision.rule_ids, score=decision.score)
    moved = submission.move(record, decision.next_state, step, decision=recorded)
    return stored_form(RecordChange(moved), version, step.event_id)[1]


async def _block_writes(
    published: PublishedSkill, digest: str, decision: RescanDecision
) -> tuple[Operation, ...]:
    targets: dict[BlockScope, BlockTarget] = {
        BlockScope.PLACE: place_target(published.identity),
        BlockScope.DIGEST: digest_target(digest),
    }
    if decision.block not in targets:
        return ()
    now = require_env("kv").kv.now()
    ref = next((ref for ref in published.versions if ref.digest == digest), None)
    entry = BlockEntry(
        target=targets[decision.block],
        severity=Severity.CRITICAL,
        reason=decision.reason,
        discovered_by="system",
        discovered_at=now,
        updated_at=now,
        threat_type=decision.worst.category.value if decision.worst else "",
        evidence=decision.rule_ids,
        skill_name=published.name,
        source_url=published.repo_url,
        content_hash=ref.content_hash if ref else "",
        digest=digest,
        audience=await audience_of_block(targets[decision.block], published.audience),
        origin=published.audience,
    )
    return await block_writes(entry)

"""What a rescan's decision does: unchanged content was judged again, and the skill's record, the submission and the
blocklist follow in one commit. The submission is touched only where it is PUBLISHED with these very bytes."""

from vskill_platform.domain import skill, submission
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, digest_target, place_target
from vskill_platform.domain.decision import Block, RescanDecision, RescanOutcome
from vskill_platform.domain.errors import TransitionError
from vskill_platform.domain.scan import Severity
from vskill_platform.domain.skill import PublishedSkill, Role
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import RecordedDecision, Step
from vskill_platform.kv.entries import Operation
from vskill_platform.store.blocklist import assert_blocklist, block_writes, why_blocked
from vskill_platform.store.skills import require_skill, skill_writes
from vskill_platform.submission_store import Change, persist, read_submission, stored_form
from vskill_platform.worker_context import require_env


async def apply_rescan(canonical: str, digest: str, decision: RescanDecision) -> PublishedSkill:
    """Same or better: certification in place. Worse: the version is taken down, whatever the submission does."""
    event_id = require_env("clock").clock.new_id()

    async def write() -> PublishedSkill:
        asserted = await assert_blocklist()
        published, version = await require_skill(canonical)
        await _require_grounds(published, digest, decision)
        changed = _judged_again(published, digest, decision)
        operations: list[Operation] = []
        if changed != published:
            operations += skill_writes(changed, version)
        operations += await _submission_writes(published, digest, decision, event_id)
        operations += await _block_writes(published, digest, decision)
        if operations:
            # An entry that is written here changes the blocklist itself; any other ground is the one that stands.
            grounds = [] if decision.block is not Block.NONE else [asserted]
            await require_env("kv").kv.commit([*grounds, *operations])
        return changed

    return await persist(write)


def _judged_again(published: PublishedSkill, digest: str, decision: RescanDecision) -> PublishedSkill:
    now = require_env("kv").kv.now()
    match decision.outcome:
        case RescanOutcome.KEEP if decision.certification is not None:
            return skill.recertify(published, digest, decision.certification, decision.score, now)
        case RescanOutcome.TAKE_DOWN:
            change = skill.Change(Role.SYSTEM, "system", now, f"rescan: {decision.reason}")
            return skill.take_down(published, change, digest=digest)
        case _:
            return published


async def _require_grounds(published: PublishedSkill, digest: str, decision: RescanDecision) -> None:
    """BLOCKED is only what an entry hits: one that this decision writes, or one that is there at this moment. One that
    was lifted since would leave the submission BLOCKED with nothing to lift."""
    if decision.next_state is not State.BLOCKED or decision.block is not Block.NONE:
        return
    names = (published.name, *published.aliases)
    if await why_blocked(published.identity, names, digest) is None:
        message = "no entry of the blocklist hits it, so it is not blocked; it must be judged again"
        raise TransitionError(message, skill=published.canonical, digest=digest)


async def _submission_writes(
    published: PublishedSkill, digest: str, decision: RescanDecision, event_id: str
) -> tuple[Operation, ...]:
    if decision.next_state is None or published.submission is None:
        return ()
    found = await read_submission(published.submission)
    if found is None or found[0].state is not State.PUBLISHED or found[0].digest != digest:
        return ()
    record, version = found
    step = Step(event_id, require_env("kv").kv.now(), "system", f"rescan: {decision.reason}")
    recorded = RecordedDecision(step.reason, decision.rule_ids, score=decision.score)
    moved = submission.move(record, decision.next_state, step, decision=recorded)
    return stored_form(Change(moved), version, event_id)[1]


async def _block_writes(
    published: PublishedSkill, digest: str, decision: RescanDecision
) -> tuple[Operation, ...]:
    targets: dict[Block, BlockTarget] = {
        Block.PLACE: place_target(published.identity),
        Block.DIGEST: digest_target(digest),
    }
    if decision.block not in targets:
        return ()
    now = require_env("kv").kv.now()
    entry = BlockEntry(
        target=targets[decision.block],
        severity=Severity.CRITICAL,
        reason=decision.reason,
        discovered_by="system",
        discovered_at=now,
        updated_at=now,
        evidence=decision.rule_ids,
        skill_name=published.name,
        source_url=published.repo_url,
    )
    return await block_writes(entry)

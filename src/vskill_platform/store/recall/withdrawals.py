"""The one commit of a change to a skill's versions: its record, its audit entry, and the submission where it follows.
Nothing here brings back what the blocklist hits: the commit asserts the blocklist that was looked at."""

from collections.abc import Awaitable, Callable

from vskill_core.errors import Blocked
from vskill_platform.domain.blocklist import BlockTarget, hit_reason
from vskill_platform.domain.recall.block_index import version_targets
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.records import persist
from vskill_platform.store.people.audit import record_audit, was_audited
from vskill_platform.store.recall.blocklist import assert_blocklist, find_hits
from vskill_platform.store.skills.skills import require_skill, skill_writes
from vskill_platform.submission_store import (
    RecordChange,
    commit_change,
    read_submission,
    require_reason,
    stored_form,
)
from vskill_platform.worker_context import require_env

ALL = "all versions"

#: From the record as it is to what it becomes, at this time.
AlterSkill = Callable[[PublishedSkill, int], PublishedSkill]
#: What becomes of the skill's submission, and of the version with its content; None leaves it as it is.
Follow = Callable[[Submission, VersionRef | None, Step], RecordChange | None]
#: What else is written in the same commit.
MoreWrites = Callable[[], Awaitable[tuple[Operation, ...]]]


async def alter_skill(
    canonical: str,
    alter: AlterSkill,
    action: str,
    number: str | None,
    *,
    by: str,
    reason: str,
    bringing_back: bool = False,
    always: bool = False,
    follow: Follow | None = None,
    more: MoreWrites | None = None,
) -> PublishedSkill:
    """One commit of the skill, its audit entry, what follows and `more`; nothing where the skill stays as it is, unless
    `always` says that the rest counts by itself."""
    require_reason(reason)
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> PublishedSkill:
        asserted = [await assert_blocklist()] if bringing_back else []
        found, version = await require_skill(canonical)
        if await was_audited(entry_id):
            return found
        changed = alter(found, env.kv.now())
        if changed == found and not always:
            return found
        if bringing_back:
            await _refuse_blocked(found, changed)
        audit = record_audit(
            action, canonical, by=by, reason=reason, details={"version": number or ALL}, entry_id=entry_id
        )
        operations: list[Operation] = [*asserted, audit]
        operations += await skill_writes(found, changed, version) if changed != found else ()
        operations += await more() if more is not None else ()
        step = Step(entry_id, env.kv.now(), by, reason)
        following = None if follow is None else await _following(changed, follow, step)
        if following is None:
            await env.kv.commit(operations)
        else:
            before, after, writes = following
            await commit_change([*operations, *writes], before, after)
        return changed

    return await persist(write)


async def _following(
    changed: PublishedSkill, follow: Follow, step: Step
) -> tuple[Submission, Submission, tuple[Operation, ...]] | None:
    """The skill's submission as it was, as it becomes, and what writes that."""
    known = None if changed.submission is None else await read_submission(changed.submission)
    if known is None:
        return None
    record, version = known
    ref = next((one for one in reversed(changed.versions) if one.digest == record.digest), None)
    change = follow(record, ref, step)
    if change is None:
        return None
    stored, writes = stored_form(change, version, step.event_id)
    return record, stored, writes


async def _refuse_blocked(before: PublishedSkill, after: PublishedSkill) -> None:
    """Raise Blocked if the blocklist matches: a blocked version cannot come back."""
    known = {ref.number: ref for ref in before.versions}
    targets: set[BlockTarget] = set()
    for ref in after.versions:
        if ref != known[ref.number]:
            targets.update(version_targets(after, ref))
    reason = hit_reason(await find_hits(sorted(targets)))
    if reason is not None:
        raise Blocked(f"{after.canonical} stays withdrawn: {reason}", skill=after.canonical)

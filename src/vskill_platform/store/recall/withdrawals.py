"""The one commit that changes a published skill's versions: its record, and its submission where that follows. People
use `alter_skill`, which adds an audit entry and cannot bring back a version that the blocklist hits: the commit asserts
the blocklist's version. Rescans and the blocklist's pass plan the same commit, for their own reasons.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from vskill_core.errors import Blocked
from vskill_platform.domain.blocklist import BlockTarget, hit_reason
from vskill_platform.domain.recall.block_index import version_targets
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.recall.blocklist import assert_blocklist, find_hits
from vskill_platform.store.skills.skills import require_skill, skill_writes
from vskill_platform.submission_store import RecordChange, count_steps, read_submission, stored_form
from vskill_platform.worker_context import require_env

ALL = "all versions"

#: From the current record, at this time, to the next one.
AlterSkill = Callable[[PublishedSkill, int], PublishedSkill]
#: The change of the skill's submission, given the version with its content; None leaves it as it is.
Follow = Callable[[Submission, VersionRef | None, Step], RecordChange | None]
#: What else is written in the same commit.
MoreWrites = Callable[[], Awaitable[tuple[Operation, ...]]]


class SkillCommit(msgspec.Struct, frozen=True):
    """What one commit makes of a skill."""

    skill: PublishedSkill
    operations: tuple[Operation, ...] = ()
    #: Its submission before and after; empty if it does not change.
    submission: tuple[Submission, ...] = ()

    def count_steps(self) -> None:
        """Count the steps, once the commit is written."""
        if self.submission:
            count_steps(*self.submission)


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
    """One commit of the skill, its audit entry, what follows and `more`. If the skill does not change, nothing is
    written unless `always` is set."""
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> tuple[SkillCommit, Sequence[Operation]]:
        asserted = [await assert_blocklist()] if bringing_back else []
        skill, version = await require_skill(canonical)
        altered = alter(skill, env.kv.now())
        if altered == skill and not always:
            return SkillCommit(skill), ()
        if bringing_back:
            await _refuse_blocked(skill, altered)
        step = Step(entry_id, env.kv.now(), by, reason)
        planned = await plan_commit(skill, version, altered, step, follow)
        return planned, [*asserted, *planned.operations, *(await more() if more is not None else ())]

    note = AuditNote(action, canonical, by, reason, {"version": number or ALL})
    written = await commit_audited(note, write, entry_id=entry_id)
    written.count_steps()
    return written.skill


async def plan_commit(
    before: PublishedSkill, version: int, after: PublishedSkill, step: Step, follow: Follow | None = None
) -> SkillCommit:
    """The operations that write the skill's next record, if it changed, and its submission's."""
    writes = await skill_writes(before, after, version) if after != before else ()
    known = None if follow is None or after.submission is None else await read_submission(after.submission)
    if follow is None or known is None:
        return SkillCommit(after, writes)
    record, record_version = known
    ref = next((ref for ref in reversed(after.versions) if ref.digest == record.digest), None)
    change = follow(record, ref, step)
    if change is None:
        return SkillCommit(after, writes)
    stored, following = stored_form(change, record_version, step.event_id)
    return SkillCommit(after, (*writes, *following), (record, stored))


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

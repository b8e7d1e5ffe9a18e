"""The one commit of a change to a published skill's versions: its record, and the submission where it follows. People
change them by `alter_skill`, with an audit entry, and bring back nothing that the blocklist hits: the commit asserts
the blocklist that was looked at. Rescans and the pass of the blocklist plan the same commit, on grounds of their own.
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

#: From the record as it is to what it becomes, at this time.
AlterSkill = Callable[[PublishedSkill, int], PublishedSkill]
#: What becomes of the skill's submission, and of the version with its content; None leaves it as it is.
Follow = Callable[[Submission, VersionRef | None, Step], RecordChange | None]
#: What else is written in the same commit.
MoreWrites = Callable[[], Awaitable[tuple[Operation, ...]]]


class SkillCommit(msgspec.Struct, frozen=True):
    """What one commit makes of a skill."""

    skill: PublishedSkill
    operations: tuple[Operation, ...] = ()
    #: Its submission as it was and as it becomes; empty where that does not follow.
    submission: tuple[Submission, ...] = ()

    def count_steps(self) -> None:
        """Once it is written."""
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
    """One commit of the skill, its audit entry, what follows and `more`; nothing where the skill stays as it is, unless
    `always` says that the rest counts by itself."""
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
    """What writes the skill's next record, if it is another one, and what its submission becomes."""
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

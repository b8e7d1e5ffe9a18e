"""Withdrawing versions and bringing them back: what a reviewer takes down and restores, and the one write for all who
change the status of versions (owners: `actions.versions`).

Each is one commit of the skill's record, its audit entry, and the submission where it follows: what a reviewer takes
down waits for a person, and what a reviewer restores is approved. Nothing here brings back what the blocklist hits: the
commit asserts the blocklist that was looked at.
"""

from collections.abc import Callable

import msgspec

from vskill_platform.domain import skill, submission
from vskill_platform.domain.blocklist import BlockTarget, hit_reason
from vskill_platform.domain.errors import Blocked
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.skill import PublishedSkill, Role, VersionRef, VersionStatus
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Approval, RecordedDecision, Step, Submission
from vskill_platform.kv.entries import Operation
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.blocklist import all_targets, assert_blocklist, find_hits
from vskill_platform.store.skills import require_skill, skill_writes
from vskill_platform.submission_store import (
    Change,
    commit_change,
    persist,
    read_submission,
    require_reason,
    stored_form,
)
from vskill_platform.worker_context import require_env

ALL = "all versions"

#: From the record as it is to what it becomes, at this time.
AlterSkill = Callable[[PublishedSkill, int], PublishedSkill]
#: What becomes of the submission whose version this is; None leaves it as it is.
Follow = Callable[[Submission, VersionRef, Step], Change | None]


# What a reviewer does.


async def take_down(canonical: str, number: str | None = None, *, by: str, reason: str) -> PublishedSkill:
    """A reviewer takes a version down, or all of them; only a reviewer brings them back.

    The submission that is PUBLISHED with such a version waits for a person from then on, so whoever submits the same
    content again hears that, and not that it is verified.
    """

    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill.take_down(found, skill.Change(Role.REVIEWER, by, now, reason), number=number)

    return await alter_skill(canonical, alter, "take down", number, by=by, reason=reason, follow=_to_review)


def _to_review(record: Submission, ref: VersionRef, step: Step) -> Change | None:
    if record.state is not State.PUBLISHED or ref.status is not VersionStatus.TAKEN_DOWN:
        return None
    taken_down = msgspec.structs.replace(step, reason=f"version {ref.number} was taken down: {step.reason}")
    decision = RecordedDecision(taken_down.reason)
    return Change(submission.move(record, State.NEEDS_REVIEW, taken_down, decision=decision))


async def restore(canonical: str, number: str | None = None, *, by: str, reason: str) -> PublishedSkill:
    """A reviewer brings back what was taken down. Raises Blocked for what the blocklist hits.

    For the submission that had published it this is the reviewer's yes to these bytes.
    """

    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill.restore(found, skill.Change(Role.REVIEWER, by, now, reason), number=number)

    return await alter_skill(
        canonical, alter, "restore", number, by=by, reason=reason, bringing_back=True, follow=_approved
    )


def _approved(record: Submission, ref: VersionRef, step: Step) -> Change | None:
    """Only what is live again, and was withdrawn by leaving PUBLISHED. What its owner had yanked stays so."""
    withdrawn = record.state is State.NEEDS_REVIEW and record.history[-1].source is State.PUBLISHED
    if not withdrawn or ref.status is not VersionStatus.LIVE:
        return None
    restored = msgspec.structs.replace(step, reason=f"version {ref.number} was restored: {step.reason}")
    decision = RecordedDecision(restored.reason, certification=ref.certification.value, score=ref.score)
    approval = Approval(ref.digest, step.actor, step.at)
    moved = submission.move(record, State.AUTO_APPROVED, restored, approval=approval, decision=decision)
    return Change(moved, (submission_send(record.id, record.run),))


async def alter_skill(
    canonical: str,
    alter: AlterSkill,
    action: str,
    number: str | None,
    *,
    by: str,
    reason: str,
    bringing_back: bool = False,
    follow: Follow | None = None,
) -> PublishedSkill:
    """One commit of the skill, its audit entry and what follows; nothing where nothing changes."""
    require_reason(reason)
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> PublishedSkill:
        asserted = [await assert_blocklist()] if bringing_back else []
        found, version = await require_skill(canonical)
        if await was_audited(entry_id):
            return found
        changed = alter(found, env.kv.now())
        if changed == found:
            return found
        if bringing_back:
            await _refuse_blocked(found, changed)
        audit = record_audit(
            action, canonical, by=by, reason=reason, details={"version": number or ALL}, entry_id=entry_id
        )
        operations = [*asserted, *skill_writes(changed, version), audit]
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
    """The submission whose content is a version of the skill, as it was, as it becomes, and what writes that."""
    known = None if changed.submission is None else await read_submission(changed.submission)
    if known is None:
        return None
    record, version = known
    ref = next((one for one in reversed(changed.versions) if one.digest == record.digest), None)
    change = None if ref is None else follow(record, ref, step)
    if change is None:
        return None
    stored, writes = stored_form(change, version, step.event_id)
    return record, stored, writes


async def _refuse_blocked(before: PublishedSkill, after: PublishedSkill) -> None:
    """What is blocked stays blocked, whoever asks."""
    known = {ref.number: ref for ref in before.versions}
    back = [ref.digest for ref in after.versions if ref != known[ref.number]]
    targets: set[BlockTarget] = set()
    for digest in back:
        targets.update(all_targets(after.identity, (after.name,), digest))
    reason = hit_reason(await find_hits(sorted(targets)))
    if reason is not None:
        raise Blocked(f"{after.canonical} stays withdrawn: {reason}", skill=after.canonical)

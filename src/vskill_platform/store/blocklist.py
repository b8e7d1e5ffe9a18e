"""The blocklist: entries, the version that every change of them raises, and the pass that applies them.

An entry is effective once written: whoever publishes asserts `control:blocklist` in its own commit, so what is
blocked while it is being published does not go live. Applying entries to what is queued or live already is a
pass that is repeated whenever the version has risen, so a crash in the middle of one costs only time.
"""

from collections.abc import AsyncIterator, Iterable

import msgspec

from vskill_platform.domain import keys, skill, submission
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, hit_reason, merge, targets_of
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.naming import slug_of
from vskill_platform.domain.skill import PublishedSkill, Role
from vskill_platform.domain.states import State, may_move
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.env import Env
from vskill_platform.kv.collections import SUBMISSIONS
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Add, Delete, Operation, Put
from vskill_platform.store.records import Skips, decode
from vskill_platform.store.skills import iter_skills, update_skill
from vskill_platform.submission_store import Change, next_run, persist, update_submission
from vskill_platform.worker_context import require_env


async def blocklist_version() -> int:
    """The version to assert: read it first, then the entries, then commit."""
    entry = await require_env("kv").kv.get(keys.CONTROL_BLOCKLIST)
    return ABSENT if entry is None else entry.version


async def find_hits(targets: Iterable[BlockTarget]) -> tuple[BlockEntry, ...]:
    """The entries for these targets. A read that fails raises: unknown is not "not blocked"."""
    settled = await require_env("kv").kv.get_many(keys.block(target) for target in targets)
    for error in settled.failed.values():
        raise error
    return tuple(decode(entry, BlockEntry) for entry in settled.found.values())


async def why_blocked(identity: Identity, names: Iterable[str], digest: str | None) -> str | None:
    """Why this skill may not be published, or None."""
    return hit_reason(await find_hits(targets_of(identity, (*names, slug_of(identity)), digest)))


async def block_writes(entry: BlockEntry) -> tuple[Operation, ...]:
    """The operations that write an entry, joined with what is known already, and raise the version."""
    found = await require_env("kv").kv.get(keys.block(entry.target))
    merged = entry if found is None else merge(decode(found, BlockEntry), entry)
    version = ABSENT if found is None else found.version
    return (
        Put(keys.block(entry.target), msgspec.json.encode(merged), version),
        Add(keys.CONTROL_BLOCKLIST),
    )


async def add_block(entry: BlockEntry) -> None:
    """Write an entry; it is effective now. `reapply_blocklist` ends what runs and takes down what is live."""

    async def write() -> None:
        await require_env("kv").kv.commit(await block_writes(entry))

    await persist(write)


async def remove_block(target: BlockTarget) -> bool:
    """Lift an entry; whether there was one. The next pass starts a new run of what no other entry hits."""
    kv = require_env("kv").kv

    async def write() -> bool:
        found = await kv.get(keys.block(target))
        if found is None:
            return False
        await kv.commit([Delete(keys.block(target), found.version), Add(keys.CONTROL_BLOCKLIST)])
        return True

    return await persist(write)


# Applying entries to what is queued or live already.


def targets_for(record: Submission) -> tuple[BlockTarget, ...]:
    """Every target that would hit this submission."""
    return targets_of(record.identity, (record.skill_name, slug_of(record.identity)), record.digest)


async def reapply_blocklist(applied: int | None = None) -> int:
    """End runs and take versions down until the store agrees with the blocklist; the version it agrees with.

    `applied` is what the last pass returned: while the blocklist stands there, there is nothing to do.
    """
    env = require_env("kv")
    version = await blocklist_version()
    if version == applied:
        return version
    skips = Skips("reapply_blocklist")
    entries = await _all_entries(env)
    async for record in _submissions(env, skips):
        hit = any(target in entries for target in targets_for(record))
        if hit and may_move(record.state, State.BLOCKED):
            await _end_run(env, record)
        elif not hit and record.state is State.BLOCKED:
            await _restart(env, record)
    async for published in iter_skills():
        await _take_down(env, published, entries)
    skips.report(env)
    return version


async def _all_entries(env: Env) -> dict[BlockTarget, BlockEntry]:
    """Whole or not at all: an entry that cannot be read must not look like one that was lifted."""
    found: dict[BlockTarget, BlockEntry] = {}
    async for page in iterate_pages(env.kv, keys.BLOCK):
        for error in page.failed.values():
            raise error
        for stored in page.items:
            entry = decode(stored, BlockEntry)
            found[entry.target] = entry
    return found


async def _submissions(env: Env, skips: Skips) -> AsyncIterator[Submission]:
    async for page in iterate_pages(env.kv, SUBMISSIONS.prefix):
        skips.failed(page.failed)
        for entry in page.items:
            record = skips.decode(entry, Submission)
            if record is not None:
                yield record


async def _end_run(env: Env, record: Submission) -> None:
    """Whatever it is doing, it is BLOCKED now, by the entries that hit it at this moment."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> Change | None:
        reason = hit_reason(await find_hits(targets_for(current)))
        if reason is None or not may_move(current.state, State.BLOCKED):
            return None
        step = Step(event_id, env.kv.now(), "system", reason)
        blocked = submission.move(
            submission.cancel_rerun(current),
            State.BLOCKED,
            step,
            decision=submission.RecordedDecision(reason),
        )
        return Change(blocked)

    await update_submission(record.id, decide, event_id=event_id)


async def _restart(env: Env, record: Submission) -> None:
    """Every BLOCKED submission has an entry that hits it; where none is left, it was unblocked."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> Change | None:
        if current.state is not State.BLOCKED or await find_hits(targets_for(current)):
            return None
        step = Step(event_id, env.kv.now(), "system", "no entry of the blocklist hits it any more")
        return next_run(current, step, submitter=current.submitter, upload=current.upload)

    await update_submission(record.id, decide, event_id=event_id)


async def _take_down(env: Env, published: PublishedSkill, entries: dict[BlockTarget, BlockEntry]) -> None:
    """Every version that an entry hits: all of them by place, repository or name, some by digest."""
    names = (published.name, published.slug, *published.aliases)
    whole = [entries[target] for target in targets_of(published.identity, names) if target in entries]
    digests = {ref.digest for ref in published.versions}
    hit = {
        digest: [*whole, *(entries[t] for t in targets_of(published.identity, (), digest) if t in entries)]
        for digest in digests
    }
    reasons = {digest: hit_reason(found) for digest, found in hit.items() if found}
    if not reasons:
        return

    def change(current: PublishedSkill) -> PublishedSkill:
        for digest, reason in reasons.items():
            step = skill.Change(Role.SYSTEM, "system", env.kv.now(), reason or "blocked")
            current = skill.take_down(current, step, digest=digest)
        return current

    await update_skill(published.canonical, change)

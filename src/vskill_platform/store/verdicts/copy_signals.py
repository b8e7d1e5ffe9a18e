"""Copies of published skills by other owners: the sketches name candidates, and the stored files tell how much of one
is in what was submitted, and what was added.

Only skills of the audiences that the caller names are compared: of those that everybody may read for what a record
keeps, of those that a reviewer may read for that reviewer. What is quoted are lines of the submission itself.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.copies import (
    CopyComparison,
    compare_contents,
    describe_copy,
    shared_enough,
)
from vskill_platform.ledger.kv.collections import SKETCHES
from vskill_platform.ledger.kv.entries import Overlap
from vskill_platform.records import Skips, read_entries
from vskill_platform.store.people.owners import owners_of
from vskill_platform.store.skills.sketches import Sketch
from vskill_platform.store.skills.skills import SkillPlace, read_skills, read_versions
from vskill_platform.store.stored_content import INLINE_BYTES, read_content
from vskill_platform.worker_context import require_env

#: Of skills of other owners that share something, how many sketches are read, and how many contents are compared.
MOST_CANDIDATES, MOST_COMPARED = 10, 3


class _Twin(msgspec.Struct, frozen=True):
    """A published skill, the files that its sketch was made of, and how they are contained in the new ones."""

    skill: PublishedSkill
    files: tuple[SkillFile, ...]
    comparison: CopyComparison


async def copy_signals(
    record: Submission,
    place: SkillPlace,
    files: tuple[SkillFile, ...],
    hashes: tuple[int, ...],
    audiences: Audiences,
) -> list[Signal]:
    """The signal of the skill that most of the submitted text is taken from, if there is one. A plain copy of a live
    skill is only shown."""
    if not hashes:
        return []
    candidates = await _find_candidates(place.canonical, hashes, audiences)
    for twin in await _compare(candidates, files, audiences):
        found, skill = twin.comparison, twin.skill
        if await _is_same_owner(record.identity, record.submitter, skill):
            continue
        if place.skill is not None and await _is_accepted(twin, place.skill):
            continue
        withdrawn = skill.current_version is None
        reason = describe_copy(found, withdrawn=withdrawn)
        details = tuple(map(str, found.added))
        if (more := found.total_added - len(found.added)) > 0:
            details += (f"{more} more",)
        holds = withdrawn or found.total_added > 0
        return [Signal(SignalKind.COPY, reason, details, (skill.canonical,), holds)]
    return []


async def _find_candidates(
    canonical: str, hashes: tuple[int, ...], audiences: Audiences
) -> dict[str, Sketch]:
    """Sketches of other owners' skills that share enough, by canonical name, the most alike first."""
    env = require_env("kv")
    owner, _, _ = canonical.partition("/")
    others = await env.kv.overlap(
        SKETCHES.prefix,
        hashes,
        audiences=audiences,
        least=len(hashes) // 4,
        limit=MOST_CANDIDATES,
        without=owner,
    )
    if not others:
        return {}
    stored = await read_entries(one.key for one in others)
    skips = Skips("copy_signals")
    sketches: dict[str, Sketch] = {}
    for one in others:
        entry = stored.get(one.key)
        sketch = None if entry is None else skips.decode(entry, Sketch)
        if sketch is not None and _is_alike(one, sketch, len(hashes)):
            sketches[keys.parse(one.key).parts[0]] = sketch
    skips.report(env)
    return dict(list(sketches.items())[:MOST_COMPARED])


def _is_alike(one: Overlap, sketch: Sketch, size: int) -> bool:
    return shared_enough(one.shared, size, len(sketch.hashes))


async def _compare(
    candidates: dict[str, Sketch], files: tuple[SkillFile, ...], audiences: Audiences
) -> list[_Twin]:
    """Those whose text is contained, the best first. One whose files are gone or damaged cannot be compared."""
    if not candidates:
        return []
    skills = await read_skills(candidates, audiences=audiences)
    twins: list[_Twin] = []
    for name, skill in skills.items():
        published = await _read_files(candidates[name].digest)
        comparison = await _compare_files(published, files) if published else None
        if comparison is not None and comparison.is_copy:
            twins.append(_Twin(skill, published, comparison))
    return sorted(twins, key=lambda one: (-one.comparison.contained, one.skill.canonical))


async def _read_files(digest: str) -> tuple[SkillFile, ...]:
    try:
        return await read_content(digest)
    except ContentDamaged:
        return ()


async def _compare_files(
    published: tuple[SkillFile, ...], new: tuple[SkillFile, ...]
) -> CopyComparison | None:
    if size_of(published) + size_of(new) <= INLINE_BYTES:
        return compare_contents(published, new)
    return await asyncio.to_thread(compare_contents, published, new)


def size_of(files: Iterable[SkillFile]) -> int:
    return sum(len(file.data) for file in files)


async def _is_same_owner(identity: Identity, submitter: str | None, skill: PublishedSkill) -> bool:
    """Whether somebody proved control of both places, or submits one and controls the other."""
    theirs = {owner.account for owner in await owners_of(skill.identity)}
    if not theirs:
        return False
    ours = {owner.account for owner in await owners_of(identity)}
    return bool(theirs & (ours | {submitter}))


async def _is_accepted(twin: _Twin, own: PublishedSkill) -> bool:
    """Whether a live version that a reviewer approved is this copy with something added."""
    for digest in await _approved_digests(own):
        before = await _read_files(digest)
        earlier = await _compare_files(twin.files, before) if before else None
        if earlier is not None and earlier.is_copy and earlier.total_added > 0:
            return True
    return False


async def _approved_digests(own: PublishedSkill) -> list[str]:
    """Contents of the newest live versions that a reviewer approved or kept. The version's own record tells it, since a
    rescan may change the certification in the skill's."""
    versions = await read_versions(own)
    certified = {number for number, one in versions.items() if one.certification is Certification.CERTIFIED}
    live = (ref for ref in reversed(own.versions) if ref.status is VersionStatus.LIVE)
    return [ref.digest for ref in live if ref.kept_by or ref.number in certified][:MOST_COMPARED]

"""What the registry remembers of a published skill to compare others with: the sketch of its text, and the hosts that
it names. Written in the commit that publishes; a withdrawn skill keeps it."""

import contextlib
from collections.abc import Sequence

import msgspec

from vskill_core.capability import SkillCapability
from vskill_core.content import SkillFile
from vskill_core.errors import Conflict
from vskill_platform.domain import keys
from vskill_platform.domain.skills.listing import join_lacks
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.skill_changes import with_lacks
from vskill_platform.ledger.kv.entries import Add, Assert, Operation, Put
from vskill_platform.records import read_record
from vskill_platform.store.skills.skills import require_skill, update_skill
from vskill_platform.worker_context import require_env
from vskill_scan.memory.install_hosts import hosts_named
from vskill_scan.memory.sketch import sketch_of
from vskill_scan.results.lacks import lacks_of


class ContentMarks(msgspec.Struct, frozen=True):
    """What a content has in common with others, computed once."""

    hashes: tuple[int, ...]
    hosts: tuple[str, ...]
    #: as in `VersionRef.without`
    without: str | None = None


class Sketch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The marks of a skill's newest version. The form of the records at `sketch:{canonical}`."""

    audience: str
    digest: str
    hashes: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()


def marks_of(files: Sequence[SkillFile], card: Sequence[SkillCapability] | None) -> ContentMarks:
    """The card is None where there is none."""
    return ContentMarks(sketch_of(files), hosts_named(card or ()), join_lacks(lacks_of(files, card)))


async def sketch_writes(skill: PublishedSkill, digest: str, marks: ContentMarks) -> tuple[Operation, ...]:
    """The operations that remember a version of a skill. A host counts once per skill and audience."""
    known, version = await read_record(keys.sketch(skill.canonical), Sketch)
    counted = known.hosts if known is not None and known.audience == skill.audience else ()
    # Hosts stay counted, so that one that comes and goes between versions counts once.
    hosts = tuple(dict.fromkeys((*counted, *marks.hosts)))
    sketch = Sketch(skill.audience, digest, marks.hashes, hosts)
    if sketch == known:
        return ()
    added = tuple(Add(keys.host(skill.audience, host)) for host in hosts if host not in counted)
    return (Put(keys.sketch(skill.canonical), msgspec.json.encode(sketch), version), *added)


async def sketch_readers_writes(skill: PublishedSkill) -> tuple[Operation, ...]:
    """The operations that give a skill's sketch the skill's audience."""
    known, _ = await read_record(keys.sketch(skill.canonical), Sketch)
    if known is None:
        return ()
    return await sketch_writes(skill, known.digest, ContentMarks(known.hashes, known.hosts))


async def remember_marks(canonical: str, digest: str, marks: ContentMarks) -> None:
    """For a skill that was published when its marks were made in another way."""
    # Somebody else is writing this skill again and again: the next rescan looks again.
    with contextlib.suppress(Conflict):
        await update_skill(canonical, lambda skill: with_lacks(skill, digest, marks.without))
    skill, version = await require_skill(canonical)
    if skill.current_digest != digest:
        return
    # A newer version was published, or its readers changed: the next rescan tries again.
    with contextlib.suppress(Conflict):
        if writes := await sketch_writes(skill, digest, marks):
            await require_env("kv").kv.commit([Assert(keys.skill(canonical), version), *writes])

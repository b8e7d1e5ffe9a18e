"""Published skills: found by name, published, withdrawn and brought back. Every change is a compare-and-swap of
the one skill record; what becomes of it is decided by the pure functions of `domain.skills.skill`."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from vskill_core.capability import SkillCapability
from vskill_core.content import SkillFile
from vskill_core.errors import Ambiguous, Conflict, NotFound
from vskill_core.identity import Identity, parse_place
from vskill_core.naming import slug_of
from vskill_platform.domain import keys
from vskill_platform.domain.canonical_names import canonical_name, clash_slug
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.listing import join_lacks
from vskill_platform.domain.skills.names import holder_for
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion, newest_under_review
from vskill_platform.domain.skills.skill_changes import with_lacks
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Delete, Entry, Operation, Put
from vskill_platform.records import (
    Skips,
    decode,
    entries_of,
    iter_entries,
    iter_readable_records,
    iter_selected,
    persist,
    read_entries,
    read_record,
    readable,
)
from vskill_platform.store.revocations import revocation_writes
from vskill_platform.store.skills.names import read_name
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


#: Of the skills of one flat name, how many are looked at.
MOST_SAME = 50


async def read_skill(canonical: str) -> tuple[PublishedSkill | None, int]:
    """The record and its version; a skill that is not there has the version ABSENT."""
    return await read_record(keys.skill(canonical), PublishedSkill)


async def require_skill(canonical: str) -> tuple[PublishedSkill, int]:
    skill, version = await read_skill(canonical)
    if skill is None:
        raise NotFound(f"There is no skill {canonical}.", skill=canonical)
    return skill, version


async def get_skill(canonical: str) -> PublishedSkill:
    return (await require_skill(canonical))[0]


async def find_by_name(name: str, repo_url: str | None = None, *, audiences: Audiences) -> PublishedSkill:
    """Resolve a canonical name, `owner/slug` or a short name: the one way to do so. With `repo_url`, only skills of
    that repository match. What others publish never changes the meaning of a name to a reader; if nobody holds it and
    several skills match, an error lists them. Skills of other audiences do not exist here."""
    place = parse_place(repo_url) if repo_url else None
    if name.count("/") == 2:
        skill, _ = await find_by_full_name(name, audiences=audiences)
        return _only(name, [skill] if place is None or skill.identity.repo_key == place.repo_key else [])
    owner, _, flat = name.rpartition("/")
    flat = flat.lower()
    if not flat:
        raise NotFound(f"There is no skill {name[:200]}.", skill=name[:200])
    if place is not None:
        known = await _of_flat(flat, audiences, owner.lower())
        found = [one for one in known if one.identity.repo_key == place.repo_key]
        # If several are in one repository, the holder wins.
        if len(found) <= 1:
            return _only(name, found)
    held = await read_name(flat)
    holder = holder_for(held, audiences)
    is_meant = holder is not None and holder.canonical.startswith(f"{owner.lower()}/" if owner else "")
    # The same reads whether a hidden skill holds the name or nobody does, so that timing reveals nothing.
    kept = await require_env("kv").kv.get(keys.skill(holder.canonical if holder and is_meant else "-"))
    entry = readable(kept, audiences)
    if entry is not None:
        return decode(entry, PublishedSkill)
    found = await _of_flat(flat, audiences, owner.lower())
    # No other skill replaces a holder that this reader may not read, or one that lost the name.
    return _only(name, [] if is_meant or (held.released and not owner) else found)


def _only(name: str, found: list[PublishedSkill]) -> PublishedSkill:
    if len(found) > 1:
        names = ", ".join(one.canonical for one in found[:10])
        raise Ambiguous(f"{name} may be {names}; give the full name.", name=name)
    if not found:
        raise NotFound(f"There is no skill {name[:200]}.", skill=name[:200])
    return found[0]


async def find_by_full_name(name: str, *, audiences: Audiences) -> tuple[PublishedSkill, int]:
    """The record and its version. Names on hosts that ignore case are looked up in lower case."""
    kv = require_env("kv").kv
    for written in dict.fromkeys((name, name.lower())):
        entry = readable(await kv.get(keys.skill(written)), audiences)
        if entry is not None:
            return decode(entry, PublishedSkill), entry.version
    raise NotFound(f"There is no skill {name[:200]}.", skill=name[:200])


async def list_flat(flat: str, *, audiences: Audiences) -> tuple[str, ...]:
    """The canonical names of the skills that a flat name may mean, in order. Always one read, so that timing reveals
    nothing."""
    page = await require_env("kv").kv.scan(keys.alias_key.under(flat.lower()))
    return tuple(keys.parse(entry.key).parts[1] for entry in entries_of(page) if readable(entry, audiences))


async def _of_flat(flat: str, audiences: Audiences, owner: str = "") -> list[PublishedSkill]:
    """Every skill that has this slug or declares this name, up to a limit; with `owner`, only that owner's."""
    known = await list_flat(flat, audiences=audiences)
    names = [one for one in known if not owner or one.startswith(f"{owner}/")][:MOST_SAME]
    if not names:
        return []
    stored = await read_entries(map(keys.skill, names))
    entries = (readable(entry, audiences) for _, entry in sorted(stored.items()))
    return [decode(entry, PublishedSkill) for entry in entries if entry is not None]


async def read_skills(names: Iterable[str], *, audiences: Audiences) -> dict[str, PublishedSkill]:
    """Several at once by canonical name; what is not there is left out, what cannot be read is counted and logged."""
    env = require_env("kv")
    wanted = {keys.skill(name): name for name in names}
    settled = await env.kv.get_many(wanted)
    skips = Skips("read_skills")
    skips.failed(settled.failed)
    found = {
        wanted[key]: skips.decode(entry, PublishedSkill)
        for key, entry in settled.found.items()
        if readable(entry, audiences)
    }
    skips.report(env)
    return {name: skill for name, skill in found.items() if skill is not None}


async def list_by_prefix(
    prefix: str, after: str | None, limit: int, *, audiences: Audiences
) -> tuple[tuple[PublishedSkill, ...], str | None]:
    """A page of the skills whose canonical names begin so, withdrawn ones too, and the cursor to go on from."""
    env = require_env("kv")
    page = await env.kv.select(SKILLS.prefix, audiences=audiences, under=prefix, after=after, limit=limit)
    skips = Skips("list_by_prefix")
    skips.failed(page.failed)
    items = skips.decode_all(page.items, PublishedSkill)
    skips.report(env)
    return tuple(items), page.after


async def iter_readable(under: str = "", *, audiences: Audiences) -> AsyncIterator[PublishedSkill]:
    """Every skill of these audiences whose canonical name begins so, withdrawn ones too. Raises what a read fails with:
    a skill that cannot be read must not look like one that is gone."""
    skips = Skips("iter_readable")
    async for entry in iter_selected(SKILLS.prefix, audiences=audiences, under=under):
        for skill in skips.decode_all([entry], PublishedSkill):
            yield skill
    skips.report(require_env("log"))


async def get_version(canonical: str, number: str) -> SkillVersion:
    entry = await require_env("kv").kv.get(keys.version(canonical, number))
    if entry is None:
        raise NotFound(f"{canonical} has no version {number}.", skill=canonical, version=number)
    return decode(entry, SkillVersion)


async def read_current_versions(numbers: Mapping[str, str]) -> dict[str, SkillVersion]:
    """The immutable records of one version each of several skills, by canonical name, in one read; what cannot be read
    is left out, counted and logged."""
    wanted = {keys.version(canonical, number): canonical for canonical, number in numbers.items()}
    return await _read_versions_at(wanted, "current_versions")


async def read_versions(skill: PublishedSkill) -> dict[str, SkillVersion]:
    """The immutable records by number; what cannot be read is left out, counted and logged."""
    wanted = {keys.version(skill.canonical, ref.number): ref.number for ref in skill.versions}
    return await _read_versions_at(wanted, "skill_versions")


async def _read_versions_at(wanted: Mapping[str, str], operation: str) -> dict[str, SkillVersion]:
    """The versions at these keys, by the name that each key has here."""
    env = require_env("kv")
    settled = await env.kv.get_many(wanted)
    skips = Skips(operation)
    skips.missing(settled.missing)
    skips.failed(settled.failed)
    decoded = {wanted[key]: skips.decode(entry, SkillVersion) for key, entry in settled.found.items()}
    skips.report(env)
    return {name: version for name, version in decoded.items() if version is not None}


async def iter_skills() -> AsyncIterator[PublishedSkill]:
    """Every skill record, withdrawn ones too, one page at a time."""
    async for skill in iter_readable_records(SKILLS, PublishedSkill, "iter_skills"):
        yield skill


async def list_under_review(*, audiences: Audiences) -> list[PublishedSkill]:
    """Every skill with a live version that waits for a reviewer. The keys are found by prefix, and one whose review is
    over meanwhile is left out and removed."""
    markers = {
        keys.skill(keys.parse(marker.key).parts[0]): marker
        async for marker in iter_entries(keys.review.prefix)
    }
    stored = await read_entries(markers)
    under_review: list[PublishedSkill] = []
    for key, marker in markers.items():
        entry = stored.get(key)
        skill = None if entry is None else decode(entry, PublishedSkill)
        if skill is None or newest_under_review(skill) is None:
            await _forget_review(marker, key, entry)
        elif readable(entry, audiences):
            under_review.append(skill)
    return under_review


async def _forget_review(marker: Entry, skill_key: str, seen: Entry | None) -> None:
    """Remove a stale marker, asserting the skill as it was read: if it was put under review meanwhile, it keeps it."""
    unchanged = Assert(skill_key, ABSENT if seen is None else seen.version)
    with contextlib.suppress(Conflict):
        await require_env("kv").kv.commit([unchanged, Delete(marker.key)])


class SkillPlace(NamedTuple):
    """Where a place publishes, and the skill that is there, if any, with its version."""

    slug: str
    canonical: str
    skill: PublishedSkill | None
    version: int


async def place_of(identity: Identity) -> SkillPlace:
    """If another place of the repository has taken the name, this one gets another slug (A4c)."""
    slug = slug_of(identity)
    canonical = canonical_name(identity, slug)
    skill, version = await read_skill(canonical)
    if skill is not None and skill.identity.key != identity.key:
        slug = clash_slug(slug, identity)
        canonical = canonical_name(identity, slug)
        skill, version = await read_skill(canonical)
    return SkillPlace(slug, canonical, skill, version)


async def skill_writes(
    before: PublishedSkill | None, skill: PublishedSkill, version: int, added: SkillVersion | None = None
) -> tuple[Operation, ...]:
    """The operations that store a skill with its aliases, a new version, and the revocation record if this commit
    withdraws or restores a version."""
    operations: list[Operation] = [Put(keys.skill(skill.canonical), msgspec.json.encode(skill), version)]
    if newest_under_review(skill) is not None:
        operations.append(Put(keys.review(skill.canonical), b"{}"))
    if added is not None:
        key = keys.version(added.canonical, added.number)
        operations.append(Put(key, msgspec.json.encode(added), ABSENT))
        operations += alias_writes(skill)
    if before is not None:
        operations += await revocation_writes(before, skill)
    return tuple(operations)


def alias_writes(skill: PublishedSkill) -> list[Put]:
    """Writes of a skill's flat names, each with the skill's audience, so that other readers do not find it."""
    value = msgspec.json.encode({"audience": skill.audience})
    return [Put(keys.alias_key(alias, skill.canonical), value) for alias in skill.aliases]


async def update_skill(canonical: str, change: Callable[[PublishedSkill], PublishedSkill]) -> PublishedSkill:
    """Change a skill's record by compare-and-swap; nothing is written where nothing changes."""

    async def write() -> PublishedSkill:
        skill, version = await require_skill(canonical)
        changed = change(skill)
        if changed != skill:
            await require_env("kv").kv.commit(await skill_writes(skill, changed, version))
        return changed

    return await persist(write)

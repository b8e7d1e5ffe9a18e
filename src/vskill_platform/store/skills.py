"""Published skills: found by name, published, withdrawn and brought back. Every change is a compare-and-swap of
the one skill record; what becomes of it is decided by the pure functions of `domain.skill`."""

from collections.abc import AsyncIterator, Callable

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import Ambiguous, NotFound
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.naming import canonical_name, clash_slug, slug_of
from vskill_platform.domain.skill import PublishedSkill, SkillVersion
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.worker_context import require_env


async def read_skill(canonical: str) -> tuple[PublishedSkill | None, int]:
    """The record and its version; a skill that is not there has the version ABSENT."""
    entry = await require_env("kv").kv.get(keys.skill(canonical))
    return (None, ABSENT) if entry is None else (decode(entry, PublishedSkill), entry.version)


async def require_skill(canonical: str) -> tuple[PublishedSkill, int]:
    """The record and its version, or NotFound."""
    skill, version = await read_skill(canonical)
    if skill is None:
        raise NotFound(f"there is no skill {canonical}", skill=canonical)
    return skill, version


async def get_skill(canonical: str) -> PublishedSkill:
    """The record, or NotFound."""
    return (await require_skill(canonical))[0]


async def resolve(name: str) -> PublishedSkill:
    """By canonical or flat name. Several skills of a flat name are an error that lists them, never a guess."""
    if name.count("/") == 2:
        return await get_skill(name)
    page = await require_env("kv").kv.list(keys.aliases_of(name), limit=11)
    candidates = [keys.parse(key).parts[1] for key in page.items]
    if len(candidates) > 1:
        raise Ambiguous(f"{name} may be {', '.join(candidates)}; give the full name", name=name)
    return await get_skill(candidates[0] if candidates else name)


async def get_version(canonical: str, number: str) -> SkillVersion:
    """The immutable record of one version, or NotFound."""
    entry = await require_env("kv").kv.get(keys.version(canonical, number))
    if entry is None:
        raise NotFound(f"{canonical} has no version {number}", skill=canonical, version=number)
    return decode(entry, SkillVersion)


async def iter_skills() -> AsyncIterator[PublishedSkill]:
    """Every skill record, withdrawn ones too, one page at a time."""
    env = require_env("kv")
    skips = Skips("iter_skills")
    async for page in iterate_pages(env.kv, SKILLS.prefix, exclude=SKILLS.exclude):
        skips.failed(page.failed)
        for entry in page.items:
            skill = skips.decode(entry, PublishedSkill)
            if skill is not None:
                yield skill
    skips.report(env)


async def place_of(identity: Identity) -> tuple[str, str, PublishedSkill | None, int]:
    """Where this place publishes: slug, canonical name, and the skill that is there, if any, with its version.

    A name that another place of the repository has taken gives this one a slug of its own (A4c).
    """
    slug = slug_of(identity)
    canonical = canonical_name(identity, slug)
    skill, version = await read_skill(canonical)
    if skill is not None and skill.identity.key != identity.key:
        slug = clash_slug(slug, identity)
        canonical = canonical_name(identity, slug)
        skill, version = await read_skill(canonical)
    return slug, canonical, skill, version


def skill_writes(
    skill: PublishedSkill, version: int, added: SkillVersion | None = None
) -> tuple[Operation, ...]:
    """The operations that store a skill with its aliases, and a new version beside it."""
    operations: list[Operation] = [Put(keys.skill(skill.canonical), msgspec.json.encode(skill), version)]
    if added is not None:
        key = keys.version(added.canonical, added.number)
        operations.append(Put(key, msgspec.json.encode(added), ABSENT))
        operations += [Put(keys.alias_key(alias, skill.canonical), b"{}") for alias in skill.aliases]
    return tuple(operations)


async def update_skill(canonical: str, change: Callable[[PublishedSkill], PublishedSkill]) -> PublishedSkill:
    """Change a skill's record by compare-and-swap; nothing is written where nothing changes."""

    async def write() -> PublishedSkill:
        skill, version = await require_skill(canonical)
        changed = change(skill)
        if changed != skill:
            await require_env("kv").kv.commit(skill_writes(changed, version))
        return changed

    return await persist(write)

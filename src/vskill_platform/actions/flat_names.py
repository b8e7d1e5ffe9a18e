"""One flat name for a skill, for clients that know no other kind.

Our names have three parts; some clients have one flat name space. A skill goes by its slug while no other skill was
ever published under that slug, and by a longer name that nobody else can have otherwise. The records of flat names
are never removed, so a slug that was shared once is never given to one of its holders alone: nobody inherits the
name of a skill that was withdrawn. Skills that the reader may not read share nothing with those that they may: the
longer name would tell that there is another one.
"""

import hashlib
from collections.abc import Iterable
from typing import TypeVar

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.catalogue import SkillPage
from vskill_platform.domain.naming import NAME_LENGTH, hyphenate, is_plain_name
from vskill_platform.domain.skill import PublishedSkill, PublishedSkillSummary
from vskill_platform.gate import some_at_a_time
from vskill_platform.records import readable
from vskill_platform.store.skills import list_flat, read_skills

S = TypeVar("S", bound=PublishedSkill | PublishedSkillSummary)

#: Characters of the hash that tells skills of one slug apart.
_HASH = 8
#: Slugs that are looked up at the same time.
_AT_ONCE = 16


async def name_skills(
    services: Services, reader: Principal, skills: Iterable[S], *, in_repo: bool = False
) -> dict[str, S]:
    """Skills by the flat names that they have in a list for this reader, in their order: the one way to name a skill
    in a marketplace, an index, a plugin's repository or a short address. A skill can be missing for a moment, until it
    has a name. `in_repo` is for lists of one skill or of one repository, where a slug means one skill."""
    skills = tuple(skills)
    unnamed = [skill for skill in skills if not skill.listed_as]
    shared = frozenset() if in_repo else await _shared_slugs(services, reader, unnamed)
    named: dict[str, S] = {}
    for skill in skills:
        name = skill.listed_as.get("public")
        if name is None:
            name = kebab_name(skill.canonical, is_shared=slug_in(skill.canonical) in shared)
        named.setdefault(name, skill)
    return named


async def name_skill(
    services: Services, reader: Principal, skill: PublishedSkill, *, in_repo: bool = False
) -> str:
    """The flat name of one skill; see `name_skills`."""
    return next(iter(await name_skills(services, reader, [skill], in_repo=in_repo)))


async def _shared_slugs(services: Services, reader: Principal, skills: Iterable[S]) -> frozenset[str]:
    """Of these skills' slugs, those under which more than one skill was ever published that the reader may read."""
    slugs = list(dict.fromkeys(slug_in(skill.canonical) for skill in skills))
    alone = await some_at_a_time(lambda slug: _is_alone(services, reader, slug), slugs, _AT_ONCE)
    return frozenset(slug for slug, its_own in zip(slugs, alone, strict=True) if not its_own)


async def _is_alone(services: Services, reader: Principal, slug: str) -> bool:
    """Whether no two skills that the reader may read were ever published under this slug."""
    holders = await list_holders(services, reader, slug)
    return sum(slug_in(name) == slug for name in holders) <= 1


async def list_holders(_services: Services, reader: Principal, flat: str) -> tuple[str, ...]:
    """The canonical names of the skills that a flat name may mean to the reader."""
    return await list_flat(flat, audiences=audiences_of(reader))


async def list_beginning_with(
    services: Services, reader: Principal, beginning: str, after: str | None, limit: int
) -> SkillPage:
    """A page of the skills whose flat names begin so, in the order of those names. It ends with one that the reader may
    read, and so does its cursor."""
    audiences = audiences_of(reader)
    names_begin = keys.aliases_of(beginning.lower()).removesuffix(":")
    aliases: list[str] = []
    at = after
    while len(aliases) <= limit:
        page = await services.kv.scan(names_begin, after=at)
        for error in page.failed.values():
            raise error
        aliases += [entry.key for entry in page.items if readable(entry, audiences)]
        at = page.after
        if at is None:
            break
    shown = aliases[:limit]
    names = dict.fromkeys(keys.parse(key).parts[1] for key in shown)
    found = await read_skills(names, audiences=audiences)
    return SkillPage(
        tuple(found[name] for name in sorted(found)), shown[-1] if len(aliases) > limit else None
    )


def slug_in(canonical: str) -> str:
    return canonical.rpartition("/")[2]


def kebab_name(canonical: str, *, is_shared: bool) -> str:
    """The slug where it is plain and its own, otherwise with a hash of the canonical name: 1 to 64 of `a-z0-9-`."""
    slug = slug_in(canonical)
    if not is_shared and is_plain_name(slug):
        return slug
    plain = hyphenate(slug)[: NAME_LENGTH - _HASH - 1].strip("-")
    mark = hashlib.sha256(canonical.encode()).hexdigest()[:_HASH]
    return f"{plain}-{mark}" if plain else f"skill-{mark}"

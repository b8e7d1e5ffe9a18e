"""One flat name for a skill, for clients that know no other kind.

Our names have three parts; some clients have one flat name space. A skill goes by its slug while no other skill was
ever published under that slug, and by a longer name that nobody else can have otherwise. The records of flat names
are never removed, so a slug that was shared once is never given to one of its holders alone: nobody inherits the
name of a skill that was withdrawn.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.audience import PUBLIC, may_read
from vskill_platform.domain.catalogue import SkillPage
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.gate import some_at_a_time
from vskill_platform.store.skills import read_skills

#: What the discovery schema allows.
MOST_NAME = 64
#: Characters of the hash that tells skills of one slug apart.
_HASH = 8
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
#: Beyond this many holders nobody needs the exact number.
_MOST_HOLDERS = 50
#: Slugs that are looked up at the same time.
_AT_ONCE = 16


async def shared_slugs(services: Services, skills: Iterable[PublishedSkill]) -> frozenset[str]:
    """Of these skills' slugs, those under which more than one skill was ever published."""
    slugs = list(dict.fromkeys(skill.slug for skill in skills))
    alone = await some_at_a_time(lambda slug: _is_alone(services, slug), slugs, _AT_ONCE)
    return frozenset(slug for slug, its_own in zip(slugs, alone, strict=True) if not its_own)


async def all_shared_slugs(services: Services) -> frozenset[str]:
    """The same for every slug of the registry, by one walk over the flat names instead of a look at each."""
    holders: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    after: str | None = None
    while True:
        page = await services.kv.list(keys.ALIAS, after=after)
        for flat, canonical in (keys.parse(key).parts for key in page.items):
            pairs[flat] += 1
            slug = slug_in(canonical)
            if slug.lower() == flat:
                holders[slug] += 1
        after = page.after
        if after is None:
            break
    return frozenset(
        slug for slug, count in holders.items() if count > 1 or pairs[slug.lower()] > _MOST_HOLDERS
    )


async def _is_alone(services: Services, slug: str) -> bool:
    """Whether no two skills were ever published under this slug."""
    page = await services.kv.list(keys.aliases_of(slug.lower()), limit=_MOST_HOLDERS)
    holders = [name for name in (keys.parse(key).parts[1] for key in page.items) if slug_in(name) == slug]
    return len(holders) <= 1 and page.after is None


async def list_holders(services: Services, reader: Principal, flat: str, limit: int) -> tuple[str, ...]:
    """The canonical names of the skills that a flat name may mean."""
    if not may_read(PUBLIC, audiences_of(reader)):
        return ()
    page = await services.kv.list(keys.aliases_of(flat.lower()), limit=limit)
    return tuple(keys.parse(key).parts[1] for key in page.items)


async def list_beginning_with(
    services: Services, reader: Principal, beginning: str, after: str | None, limit: int
) -> SkillPage:
    """A page of the skills whose flat names begin so, in the order of those names."""
    if not may_read(PUBLIC, audiences_of(reader)):
        return SkillPage(())
    names_begin = keys.aliases_of(beginning.lower()).removesuffix(":")
    page = await services.kv.list(names_begin, after=after, limit=limit)
    names = dict.fromkeys(keys.parse(key).parts[1] for key in page.items)
    found = await read_skills(names)
    return SkillPage(tuple(found[name] for name in sorted(found)), page.after)


def slug_in(canonical: str) -> str:
    return canonical.rpartition("/")[2]


def kebab_name(canonical: str, *, is_shared: bool) -> str:
    """The slug where it is plain and its own, otherwise with a hash of the canonical name: 1 to 64 of `a-z0-9-`."""
    slug = slug_in(canonical)
    if not is_shared and is_kebab(slug):
        return slug
    text = "".join(char if char in _PLAIN else "-" for char in slug.lower())
    plain = "-".join(part for part in text.split("-") if part)[: MOST_NAME - _HASH - 1].strip("-")
    mark = hashlib.sha256(canonical.encode()).hexdigest()[:_HASH]
    return f"{plain}-{mark}" if plain else f"skill-{mark}"


def is_kebab(name: str) -> bool:
    """Single hyphens inside, nothing but lower-case letters, digits and those."""
    if not 1 <= len(name) <= MOST_NAME or not _PLAIN.issuperset(name):
        return False
    return not (name.startswith("-") or name.endswith("-") or "--" in name)

"""Short names in lists: the one function that names skills in marketplaces, indexes, plugin repositories and addresses.

Our full names have three parts; some clients have one flat name space. The name that a skill has there stands in its
record, by the readers who know it so (`domain.skills.names`). It never changes by what others publish, and it tells a
reader nothing of skills that the reader may not read.
"""

from collections.abc import Iterable
from typing import TypeVar

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.skills.catalogue import SkillPage
from vskill_platform.domain.skills.names import hashed_name, holder_for, listed_name, reads_several
from vskill_platform.domain.skills.skill import PublishedSkill, PublishedSkillSummary
from vskill_platform.records import entries_of, readable
from vskill_platform.store.skills.names import read_name, read_names
from vskill_platform.store.skills.skills import list_flat, read_skills

S = TypeVar("S", bound=PublishedSkill | PublishedSkillSummary)


async def name_skills(
    reader: Principal,
    skills: Iterable[S],
    *,
    in_repo: bool = False,
) -> dict[str, S]:
    """Skills by the short names that they have in a list for this reader, in their order: the one way to name a skill
    in a marketplace, an index, a plugin's repository or a short address. A skill is missing until it has a name, and
    where its name means another one to a reader of several namespaces.

    In a list of one skill or of one repository (`in_repo`) every skill is shown under its name.
    """
    audiences = audiences_of(reader)
    found = [
        (name, skill) for skill in skills if (name := listed_name(skill.listed_as, audiences)) is not None
    ]
    if reads_several(audiences) and not in_repo:
        held = (await read_names(name for name, _ in found)).held
        meant = {name: holder_for(one, audiences) for name, one in held.items()}
        found = [
            one for one in found if (holder := meant.get(one[0])) and holder.canonical == one[1].canonical
        ]
    named: dict[str, S] = {}
    for name, skill in found:
        named.setdefault(name, skill)
    return named


async def name_skill(reader: Principal, skill: PublishedSkill, *, in_repo: bool = False) -> str:
    """The short name of one skill; see `name_skills`. Without one yet it goes by the name that nobody else can have."""
    named = await name_skills(reader, [skill], in_repo=in_repo)
    return next(iter(named), hashed_name(skill.canonical))


async def leads_to(reader: Principal, flat: str, skill: PublishedSkill) -> bool:
    """Whether a name means this skill to the reader."""
    holder = holder_for(await read_name(flat), audiences_of(reader))
    return holder is not None and holder.canonical == skill.canonical


async def list_holders(reader: Principal, flat: str) -> tuple[str, ...]:
    """The canonical names of the skills that a flat name may mean to the reader."""
    return await list_flat(flat, audiences=audiences_of(reader))


async def list_beginning_with(
    services: Services, reader: Principal, beginning: str, after: str | None, limit: int
) -> SkillPage:
    """A page of the skills whose flat names begin so, in the order of those names. It ends with one that the reader may
    read, and so does its cursor."""
    audiences = audiences_of(reader)
    names_begin = keys.alias_key.under(beginning.lower()).removesuffix(":")
    aliases: list[str] = []
    at = after
    while len(aliases) <= limit:
        page = await services.kv.scan(names_begin, after=at)
        aliases += [entry.key for entry in entries_of(page) if readable(entry, audiences)]
        at = page.after
        if at is None:
            break
    shown = aliases[:limit]
    names = dict.fromkeys(keys.parse(key).parts[1] for key in shown)
    found = await read_skills(names, audiences=audiences)
    return SkillPage(
        tuple(found[name] for name in sorted(found)), shown[-1] if len(aliases) > limit else None
    )

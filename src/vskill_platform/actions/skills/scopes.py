"""What can be installed from a scope: the whole registry, an owner, a repository, one skill, or a collection. Documents
that clients read at such an address are made of it, and are complete; what is blocked or withdrawn is in none."""

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from vskill_core.errors import Ambiguous, InvalidInput, NotFound
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.skills.catalogue import iterate_catalogue
from vskill_platform.actions.skills.skill_names import current_blocklist, find_skill, name_skill, name_skills
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import PublishedSkill, PublishedSkillSummary
from vskill_platform.store.skills.skills import list_by_prefix, read_skills

#: Skills that are named together.
AT_ONCE = 500
MOST_DESCRIPTION = 1024

ListedSkill = PublishedSkill | PublishedSkillSummary


async def iterate_scope(
    reader: Principal, prefix: str, blocklist: Blocklist
) -> AsyncIterator[dict[str, ListedSkill]]:
    """Everything that can be installed from a scope, some at a time, by the name that each has there. The prefix is the
    beginning of canonical names, with a `/` after each part; empty is everything. NotFound where no skill was ever
    published: a scope of which everything was blocked or withdrawn is empty, and whoever installed from it must see
    that."""
    names: set[str] = set()
    # Hosts that compare without case have lower-case names here.
    for written in dict.fromkeys((prefix, prefix.lower())):
        async for skills in _installable_in(reader, written, blocklist):
            named = await name_skills(reader, skills, in_repo=prefix.count("/") >= 2)
            new = {name: skill for name, skill in named.items() if name not in names}
            names |= new.keys()
            yield new
        if names or await has_skills(reader, written):
            return
    raise NotFound(f"There is no skill in {prefix.strip('/')[:200]}.", scope=prefix[:200])


async def _installable_in(
    reader: Principal, prefix: str, blocklist: Blocklist
) -> AsyncIterator[list[ListedSkill]]:
    if prefix.count("/") == 3:
        with suppress(NotFound):
            skill = await find_skill(reader, prefix.strip("/"))
            if skill.current_version is not None and not blocklist.hits_skill(skill):
                yield [skill]
        return
    batch: list[ListedSkill] = []
    async for summary in iterate_catalogue(reader, prefix):
        if summary.current_version is not None and not blocklist.hits_summary(summary):
            batch.append(summary)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch


async def has_skills(reader: Principal, prefix: str) -> bool:
    """Whether there is one, installable or not; the whole registry is a scope from its first day."""
    if not prefix:
        return True
    if prefix.count("/") == 3:
        with suppress(NotFound):
            return await find_skill(reader, prefix.strip("/")) is not None
        return False
    return bool((await list_by_prefix(prefix, None, 1, audiences=audiences_of(reader)))[0])


async def find_in_scope(services: Services, reader: Principal, prefix: str, name: str) -> PublishedSkill:
    in_repo = prefix.count("/") >= 2
    within = {2: f"{prefix}{name}", 3: prefix.strip("/")}.get(prefix.count("/"), name)
    with suppress(NotFound, Ambiguous, InvalidInput):
        found = await find_skill(reader, within)
        is_inside = f"{found.canonical}/".startswith(prefix.lower())
        if is_inside and name == await name_skill(reader, found, in_repo=in_repo):
            return found
    # A name that no short address leads to.
    async for named in iterate_scope(reader, prefix, await current_blocklist(services)):
        if name in named:
            return await find_skill(reader, named[name].canonical)
    raise NotFound(f"There is no skill {name[:100]!r} here.", skill=name[:100])


async def read_installable(
    reader: Principal, names: Iterable[str], blocklist: Blocklist
) -> tuple[PublishedSkill, ...]:
    """Skills by canonical name, in this order, without what cannot be installed now."""
    names = tuple(names)
    found = await read_skills(names, audiences=audiences_of(reader))
    skills = (found[name] for name in names if name in found)
    return tuple(one for one in skills if one.current_version and not blocklist.hits_skill(one))


def describe_skill(skill: ListedSkill) -> str:
    """Never empty, never longer than the schema of discovery allows."""
    return (skill.description.strip() or skill.name or skill.slug)[:MOST_DESCRIPTION]

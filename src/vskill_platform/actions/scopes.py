"""What can be installed from a scope: the whole registry, an owner, a repository, one skill, or a collection. Documents
that clients read at such an address are made of it; what is blocked or withdrawn is in none."""

from collections.abc import Iterable

import msgspec

from vskill_platform.actions.action import Services
from vskill_platform.actions.blocked_skills import current_blocklist
from vskill_platform.actions.catalogue import list_catalogue
from vskill_platform.actions.flat_names import name_skills
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skill_names import find_skill
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain.block_index import Blocklist
from vskill_platform.domain.catalogue import Sort
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.store.skills import list_by_prefix, read_skills

#: Skills in one document of a scope.
MOST_LISTED = 200
#: Records read at a time.
PAGE = 100


class InstallableSkills(msgspec.Struct, frozen=True):
    """The skills of a scope that can be installed, by the name that each has in it."""

    skills: dict[str, PublishedSkill]
    truncated: bool = False


async def list_scope(services: Services, reader: Principal, prefix: str) -> InstallableSkills:
    """By the beginning of canonical names, with a `/` after each part; empty is everything. NotFound where nothing can
    be installed there, so that no client takes it for an empty scope."""
    blocklist = await current_blocklist(services)
    skills, truncated = await _installable_in(services, reader, prefix, blocklist)
    if not skills and prefix != prefix.lower():
        # Hosts that compare without case have lower-case names here.
        skills, truncated = await _installable_in(services, reader, prefix.lower(), blocklist)
    if not skills:
        where = prefix.strip("/")[:200] or "this registry"
        raise NotFound(f"Nothing can be installed from {where}.", scope=prefix[:200])
    named = await name_skills(services, reader, skills, in_repo=prefix.count("/") >= 2)
    return InstallableSkills(named, truncated)


async def _installable_in(
    services: Services, reader: Principal, prefix: str, blocklist: Blocklist
) -> tuple[list[PublishedSkill], bool]:
    found: list[PublishedSkill] = []
    after: str | None = None
    while True:
        items, after = await _read_page(services, reader, prefix, after)
        found += [one for one in items if one.current_digest and not blocklist.hits_skill(one)]
        if len(found) > MOST_LISTED or (len(found) == MOST_LISTED and after is not None):
            return found[:MOST_LISTED], True
        if after is None:
            return found, False


async def _read_page(
    services: Services, reader: Principal, prefix: str, after: str | None
) -> tuple[tuple[PublishedSkill, ...], str | None]:
    """Everything by installs, a part of the names by name."""
    if not prefix:
        page = await list_catalogue(services, reader, sort=Sort.INSTALLS, after=after, limit=PAGE)
        return page.items, page.after
    if prefix.count("/") == 3:
        try:
            return (await find_skill(services, reader, prefix.strip("/")),), None
        except NotFound:
            return (), None
    return await list_by_prefix(prefix, after, PAGE, audiences=audiences_of(reader))


async def read_installable(
    services: Services, reader: Principal, names: Iterable[str]
) -> tuple[PublishedSkill, ...]:
    """Skills by canonical name, in this order, without what cannot be installed now."""
    names = tuple(names)
    blocklist = await current_blocklist(services)
    found = await read_skills(names, audiences=audiences_of(reader))
    skills = (found[name] for name in names if name in found)
    return tuple(one for one in skills if one.current_version and not blocklist.hits_skill(one))

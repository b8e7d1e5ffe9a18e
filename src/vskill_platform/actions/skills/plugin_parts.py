"""The parts of a plugin, and the skills that were published from inside one, for its page, the addresses of its parts
and the pages of those skills. A part has no record; it is read out of the content."""

import asyncio
from collections.abc import Sequence

from vskill_core.content import SkillFile
from vskill_core.errors import NotFound
from vskill_core.kind import Kind
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.store.skills.skills import list_by_prefix
from vskill_scan.plugins.completed import skills_in
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.plugins.plugin import Part, Plugin

#: Skills of the repository that are looked at, and how many of them a page names.
MOST_LOOKED_AT, MOST_BESIDE = 200, 20
#: Skills of one plugin in a list of skills.
MOST_LISTED = 50


async def read_parts(skill: PublishedSkill, files: Sequence[SkillFile]) -> Plugin | None:
    """What a plugin holds; None for a skill."""
    return await asyncio.to_thread(read_plugin, files) if skill.kind is Kind.PLUGIN else None


async def list_skill_parts(skill: PublishedSkill, files: Sequence[SkillFile]) -> dict[str, Part]:
    """The skills in a plugin by name, as many as a list shows; nothing of a skill."""
    plugin = await read_parts(skill, files)
    parts = skills_in(plugin)[:MOST_LISTED] if plugin is not None else ()
    return {one.path.rpartition("/")[2]: one for one in parts}


def find_part(skill: PublishedSkill, plugin: Plugin | None, name: str) -> Part:
    """The skill of that name in a plugin, or NotFound."""
    parts = skills_in(plugin) if plugin is not None else ()
    found = next((one for one in parts if one.path.rpartition("/")[2] == name), None)
    if found is None:
        raise NotFound(
            f"{skill.canonical} has no part {name[:100]!r}.", skill=skill.canonical, part=name[:100]
        )
    return found


async def list_beside(reader: Principal, skill: PublishedSkill) -> tuple[PublishedSkill, ...]:
    """Of a plugin, the skills that were published from inside it; of such a skill, the plugins that it is in."""
    is_plugin, path = skill.kind is Kind.PLUGIN, skill.identity.path
    if skill.identity.is_upload or not (is_plugin or path):
        return ()
    repository = f"{skill.canonical.rpartition('/')[0]}/"
    found, _ = await list_by_prefix(repository, None, MOST_LOOKED_AT, audiences=audiences_of(reader))
    beside = [
        one
        for one in found
        if one.canonical != skill.canonical
        and one.listing is not None
        and (one.kind is Kind.PLUGIN) is not is_plugin
        and (_is_in(one, skill) if is_plugin else _is_in(skill, one))
    ]
    return tuple(beside[:MOST_BESIDE])


def _is_in(inner: PublishedSkill, outer: PublishedSkill) -> bool:
    above = outer.identity.path
    return not above or inner.identity.path.startswith(f"{above}/")

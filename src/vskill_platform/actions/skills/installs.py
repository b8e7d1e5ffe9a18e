"""How often a skill was installed, by skill and day. Nothing about who installed it is kept."""

from collections.abc import Sequence

from vskill_core.errors import Ambiguous, InvalidInput, NotFound, RecordMalformed
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.skill_changes import with_installs
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.store.skills import installs

#: Names that are looked up at the same time.
AT_ONCE = 16


async def count_install_of(reader: Principal, name: str, repo_url: str | None = None) -> PublishedSkill:
    """Count one more install of the skill that a client names; an address of no repository has no skills."""
    try:
        skill = await find_skill(reader, name, repo_url)
    except InvalidInput as error:
        raise NotFound(f"There is no skill {name[:200]} there: {error.message}", skill=name[:200]) from error
    await count_download(skill)
    return skill


async def count_installs_of(
    reader: Principal, wanted: Sequence[tuple[str, str | None]]
) -> tuple[str | None, ...]:
    """Count one more install of each skill that a client names, by name and repository. The canonical name of each, or
    None where there is no such skill: one unknown name loses none of the others."""

    async def look(one: tuple[str, str | None]) -> str | None:
        try:
            return (await find_skill(reader, *one)).canonical
        except (NotFound, Ambiguous, InvalidInput):
            return None

    found = tuple(await some_at_a_time(look, wanted, AT_ONCE))
    await installs.count_installs(name for name in found if name is not None)
    return found


async def with_current_installs(services: Services, skill: PublishedSkill) -> PublishedSkill:
    """The skill with its installs counted now. Its record, which lists are made of, follows within a minute."""
    try:
        return with_installs(skill, await installs.count_installs_until_now(skill.canonical))
    except RecordMalformed as error:
        services.log.warning("installs not counted", skill=skill.canonical, error=error.message)
        return skill


async def count_download(skill: PublishedSkill) -> None:
    """Count one more install of a skill whose files are handed out."""
    await installs.count_installs([skill.canonical])

"""How often a skill was installed, by skill and day. Nothing about who installed it is kept."""

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skill_names import find_skill
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.store import installs


async def count_install_of(
    services: Services, reader: Principal, name: str, repo_url: str | None = None
) -> PublishedSkill:
    """Count one more install of the skill that a client names."""
    skill = await find_skill(services, reader, name, repo_url)
    await count_download(services, skill)
    return skill


async def count_download(_services: Services, skill: PublishedSkill) -> None:
    """Count one more install of a skill whose files are handed out."""
    await installs.count_installs([skill.canonical])

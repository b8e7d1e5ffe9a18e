"""Installing: the commands of each client, and the count of installs. Nothing is kept about who downloads: a download
raises the day's counter of its skill, unless its address asks for too many."""

from starlette.requests import Request

from vskill_core.errors import RateLimited
from vskill_platform.actions.action import Allowance
from vskill_platform.actions.principal import needs_token
from vskill_platform.actions.skills.installs import count_download
from vskill_platform.actions.skills.skill_names import name_skill
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.clients.commands import Way, install_commands
from vskill_platform.web.door.limits import take
from vskill_platform.web.exchange import principal_of, public_address, services_of


async def count_install(request: Request, skill: PublishedSkill) -> None:
    """One more install, where the client has not asked for too many in this hour; the download goes on either way."""
    if request.method != "GET":
        return
    try:
        await take(request, Allowance.INSTALLS)
    except RateLimited:
        return
    finally:
        request.scope.pop("rate_limit", None)
    await count_download(skill)


async def ways_to_install(request: Request, skill: PublishedSkill) -> tuple[Way, ...]:
    reader = principal_of(request)
    return install_commands(
        public_address(request),
        skill.canonical,
        await name_skill(reader, skill, in_repo=True),
        listed=await name_skill(reader, skill),
        with_token=needs_token(services_of(request), skill.audience),
    )

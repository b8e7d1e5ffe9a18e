"""The install box of a skill's page: the commands of each client, where there is something to install."""

from starlette.requests import Request

from vskill_platform.actions.skills.flat_names import name_skill
from vskill_platform.actions.verdicts.dossier import Dossier
from vskill_platform.web.addresses import public_address
from vskill_platform.web.clients.commands import Way, install_commands
from vskill_platform.web.principal import principal_of


def base_address(request: Request) -> str:
    """Where people reach this registry, without a last slash."""
    return public_address(request)


async def ways_to_install(request: Request, dossier: Dossier, *, with_token: bool) -> tuple[Way, ...]:
    """The command of each client; nothing for what cannot be installed."""
    if not dossier.installable:
        return ()
    skill, reader = dossier.skill, principal_of(request)
    return install_commands(
        base_address(request),
        skill.canonical,
        await name_skill(reader, skill, in_repo=True),
        listed=await name_skill(reader, skill),
        with_token=with_token,
    )

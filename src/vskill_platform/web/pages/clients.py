"""`/docs/clients`: how to point each client at this registry, with its own address in every command."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.principal import common_reader
from vskill_platform.actions.skills.catalogue import list_unblocked
from vskill_platform.actions.skills.collections import read_collections
from vskill_platform.actions.skills.skill_names import name_skill
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.web.clients import mcp
from vskill_platform.web.clients.commands import flat_name, marketplace_name
from vskill_platform.web.clients.own_client import CLIENT, client_command
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

#: Looked at for an example.
SEVERAL = 10


async def clients(request: Request) -> Response:
    """The example is a skill that everybody can install whom the registry lets in, where there is one."""
    base = public_address(request)
    services, reader = services_of(request), principal_of(request)
    everybody = await common_reader(reader, PUBLIC)
    found = await list_unblocked(services, everybody, sort=Sort.INSTALLS, limit=SEVERAL)
    example = next(iter(found.items), None)
    return render(
        request,
        "docs_clients.html",
        base=base,
        client=client_command(base),
        wheel=f"{base}/client/{CLIENT.wheel}",
        example=example,
        flat=flat_name(example.canonical) if example else "owner--repo--skill",
        canonical=example.canonical if example else "owner/repo/skill",
        name=await name_skill(everybody, example) if example else "skill",
        marketplace=marketplace_name(services.settings.registry_name),
        collections=(await read_collections(services, reader)).items,
        has_mcp=bool(mcp.ENDPOINTS),
    )


ENDPOINTS = (page("/docs/clients", clients, shows=("collection.list",)),)

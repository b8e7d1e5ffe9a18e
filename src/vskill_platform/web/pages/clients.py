"""`/docs/clients`: how to point each client at this registry, with its own address in every command."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.store.catalogue import Sort, list_skills
from vskill_platform.store.collections import list_collections
from vskill_platform.web.addresses import public_address
from vskill_platform.web.clients import mcp
from vskill_platform.web.clients.commands import flat_name
from vskill_platform.web.kept import kept_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

#: Looked at for an example.
SEVERAL = 10


async def clients(request: Request) -> Response:
    """The example is a skill that can be installed here, where there is one."""
    base = public_address(request)
    blocklist = await kept_of(request).blocklist()
    found = await list_skills(sort=Sort.INSTALLS, limit=SEVERAL)
    example = next((one for one in found.items if not blocklist.hits_skill(one)), None)
    return render(
        request,
        "docs_clients.html",
        base=base,
        example=example,
        flat=flat_name(example.canonical) if example else "owner--repo--skill",
        canonical=example.canonical if example else "owner/repo/skill",
        collections=(await list_collections()).items,
        has_mcp=bool(mcp.ENDPOINTS),
    )


ENDPOINTS = (page("/docs/clients", clients),)

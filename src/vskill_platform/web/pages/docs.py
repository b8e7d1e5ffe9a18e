"""The documentation, rendered by the same renderer as foreign text, with headings that can be linked to; and how to
point each client at this registry, with its own address in every command."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import NoParameters
from vskill_core.errors import NotFound
from vskill_platform.actions.principal import common_reader
from vskill_platform.actions.skills.catalogue import list_unblocked
from vskill_platform.actions.skills.collections import read_collections
from vskill_platform.actions.skills.skill_names import name_skill
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.web.clients import mcp
from vskill_platform.web.clients.commands import flat_name, marketplace_name
from vskill_platform.web.clients.own_client import CLIENT, client_command
from vskill_platform.web.documents import DOCUMENTS, sections
from vskill_platform.web.drawing.markdown import Style, render_aside
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

RULES_PAGE = "docs/reference/rules.md"
_KNOWN = frozenset(DOCUMENTS)
#: Skills that are looked at for an example.
SEVERAL = 10


async def index(request: Request) -> Response:
    return render(request, "docs.html", sections=sections())


async def document(request: Request) -> Response:
    """One document, by its path from the project's root; `docs/` and `.md` may be left out."""
    path = request.path_params["path"]
    found = DOCUMENTS.get(path)
    if found is None:
        inside = f"docs/{path}"
        spellings = (f"{path}.md", inside, f"{inside}.md", f"{path}/README.md", f"{inside}/README.md")
        short = next((one for one in spellings if one in DOCUMENTS), None)
        if short is None:
            raise NotFound(f"There is no document {path[:120]!r}; /docs lists all.", path=path[:120])
        return RedirectResponse(DOCUMENTS[short].address, 302)
    style = Style(base="/docs/", folder=found.folder, anchors=True, known=_KNOWN)
    shown = await render_aside(found.text, style)
    reader, figures = principal_of(request), None
    if path == RULES_PAGE and RULE_FIGURES.allows(reader):
        figures = await RULE_FIGURES(services_of(request), reader, NoParameters())
    return render(request, "docs_page.html", document=found, body=shown, sections=sections(), found=figures)


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


ENDPOINTS = (
    page("/docs/clients", clients, shows=("collection.list",)),
    page("/docs", index),
    page("/docs/{path:path}", document),
)

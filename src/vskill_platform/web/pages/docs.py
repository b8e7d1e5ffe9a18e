"""The documentation, rendered by the same renderer as foreign text, with headings that can be linked to."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import NoParameters
from vskill_core.errors import NotFound
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.web.documents import DOCUMENTS, sections
from vskill_platform.web.drawing.markdown import Style, render_aside
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

RULES_PAGE = "docs/reference/rules.md"
_KNOWN = frozenset(DOCUMENTS)


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


ENDPOINTS = (page("/docs", index), page("/docs/{path:path}", document))

"""The palette (Ctrl-K): skills, pages and, for those who may, areas of the admin pages, found while one types.

A script asks for the results alone; the same address without a script is a page with a form. It finds what the reader
may read and is offered, and nothing else.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_platform.actions.skills.catalogue import search_catalogue
from vskill_platform.actions.skills.skill_names import leave_out_blocked
from vskill_platform.web.documents import find_documents
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.admin_areas import SitePlace, areas_for
from vskill_platform.web.pages.skills.skills import SkillsQuery, offer_filters
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

MOST_SKILLS = 6
MOST_PAGES = 6


class PaletteQuery(Asked, frozen=True):
    """What is looked for."""

    q: Annotated[str, msgspec.Meta(max_length=200)] = ""


PAGES = (
    SitePlace("/", "Home", "search, popular and new skills"),
    SitePlace("/skills", "All skills", "list, filter, sort"),
    SitePlace("/compare", "Compare two skills", "side by side, differences"),
    SitePlace("/submit", "Submit a skill", "repository, upload, archive"),
    SitePlace("/queue", "Queue", "submissions, health, waiting"),
    SitePlace("/revocations", "Recalls", "blocked, withdrawn, revoked"),
    SitePlace("/docs/clients", "Connect a client", "install, Claude Code, Codex, npx, curl"),
    SitePlace("/docs", "Documentation", "how to, reference"),
    SitePlace("/docs/api", "API reference", "endpoints, JSON"),
)
FOR_ACCOUNTS = (
    SitePlace("/account", "Your account", "tokens, repositories, password, sign out"),
    SitePlace("/namespaces", "Your namespaces", "members, visibility, quotas"),
)
FOR_GUESTS = (SitePlace("/signin", "Sign in", "account, log in"),)


async def palette(request: Request) -> Response:
    asked = query_of(request, PaletteQuery)
    services, reader = services_of(request), principal_of(request)
    hits = (await search_catalogue(reader, asked.q, limit=MOST_SKILLS)).items if asked.q.strip() else ()
    is_partial = request.headers.get("hx-request-type") == "partial"
    answer = render(
        request,
        "palette_results.html" if is_partial else "palette.html",
        q=asked.q,
        skills=await leave_out_blocked(services, [one for one in hits if one.listing]),
        groups=find_entries(request, asked.q),
        offered=offer_filters(SkillsQuery(q=asked.q)),
    )
    answer.headers["vary"] = "HX-Request-Type"
    return answer


def find_entries(request: Request, text: str) -> dict[str, list[SitePlace]]:
    """Pages, areas and documents that have every word, by group."""
    words, reader = text.casefold().split(), principal_of(request)
    areas = areas_for(request.app.endpoints, reader)
    own = FOR_GUESTS if reader.account is None else FOR_ACCOUNTS
    groups = {
        "Pages": (*PAGES, *own),
        "Admin": tuple(area for group in areas.values() for area in group),
    }
    found = {
        group: [
            one for one in entries if all(word in f"{one.name} {one.purpose}".casefold() for word in words)
        ]
        for group, entries in groups.items()
    }
    if words:
        found["Documents"] = [SitePlace(one.address, one.title, "") for one in find_documents(words)]
    return {group: entries[:MOST_PAGES] if words else entries for group, entries in found.items() if entries}


ENDPOINTS = (page("/palette", palette, query=PaletteQuery),)

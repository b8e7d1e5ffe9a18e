"""The palette (Ctrl-K): skills, pages and, for those who may, areas of the admin pages, found while one types.

A script asks for the results alone; the same address without a script is a page with a form. It finds what the reader
may read and is offered, and nothing else.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.blocked_skills import leave_out_blocked
from vskill_platform.actions.skills.catalogue import search_catalogue
from vskill_platform.actions.wire import Asked
from vskill_platform.web.documents import find_documents
from vskill_platform.web.pages.admin_areas import areas_for
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

MOST_SKILLS = 6
MOST_PAGES = 6


class PaletteQuery(Asked, frozen=True):
    """What is looked for."""

    q: Annotated[str, msgspec.Meta(max_length=200)] = ""


class PaletteEntry(msgspec.Struct, frozen=True):
    """Something to go to."""

    address: str
    name: str
    #: What it is, which is searched too.
    about: str


PAGES = (
    PaletteEntry("/", "Home", "search, popular and new skills"),
    PaletteEntry("/skills", "All skills", "list, filter, sort"),
    PaletteEntry("/submit", "Submit a skill", "repository, upload, archive"),
    PaletteEntry("/queue", "Queue", "submissions, health, waiting"),
    PaletteEntry("/revocations", "Recalls", "blocked, withdrawn, revoked"),
    PaletteEntry("/docs/clients", "Connect a client", "install, Claude Code, Codex, npx, curl"),
    PaletteEntry("/docs", "Documentation", "how to, reference"),
    PaletteEntry("/docs/api", "API reference", "endpoints, JSON"),
)
FOR_ACCOUNTS = (
    PaletteEntry("/account", "Your account", "tokens, repositories, password, sign out"),
    PaletteEntry("/namespaces", "Your namespaces", "members, visibility, quotas"),
)
FOR_GUESTS = (PaletteEntry("/signin", "Sign in", "account, log in"),)


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
        groups=find_entries(reader, asked.q),
    )
    answer.headers["vary"] = "HX-Request-Type"
    return answer


def find_entries(reader: Principal, text: str) -> dict[str, list[PaletteEntry]]:
    """Pages, areas and documents that have every word, by group."""
    words = text.casefold().split()
    areas = [one for found in areas_for(reader).values() for one in found]
    own = FOR_GUESTS if reader.account is None else FOR_ACCOUNTS
    groups = {
        "Pages": (*PAGES, *own),
        "Admin": tuple(PaletteEntry(one.address, one.name, one.purpose) for one in areas),
    }
    found = {
        group: [one for one in entries if all(word in f"{one.name} {one.about}".casefold() for word in words)]
        for group, entries in groups.items()
    }
    if words:
        found["Documents"] = [PaletteEntry(one.address, one.title, "") for one in find_documents(words)]
    return {group: entries[:MOST_PAGES] if words else entries for group, entries in found.items() if entries}


ENDPOINTS = (page("/palette", palette, query=PaletteQuery),)

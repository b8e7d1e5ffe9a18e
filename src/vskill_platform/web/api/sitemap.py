"""What search engines and browsers ask for by themselves: `/robots.txt`, `/sitemap.xml` with every published skill,
`/opensearch.xml` by which a browser searches here, and `/favicon.ico`; and what people who found a weakness ask for,
`/.well-known/security.txt`.

Beyond 50,000 addresses, the most that one sitemap may hold, `/sitemap.xml` is an index of pages. Blocked and withdrawn
skills are in none.
"""

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, iso_time
from vskill_core.errors import NotFound
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.catalogue import iterate_catalogue
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import PublishedSkillSummary
from vskill_platform.web.assets import FILES
from vskill_platform.web.exchange import answer_with_tag, public_address, services_of
from vskill_platform.web.kept import answer_document
from vskill_platform.web.routing import get, query_of

XML_TYPE = "application/xml; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
OPENSEARCH_TYPE = "application/opensearchdescription+xml"
#: Addresses in one sitemap, by the protocol.
MOST_ADDRESSES = 50_000
#: Pages that are for everybody and about no skill.
PAGES = ("/", "/skills", "/queue", "/docs")
#: Where a crawler finds nothing to show: forms, accounts, and what programs ask for.
CLOSED = ("/account", "/admin", "/api/", "/clawhub/", "/hand-ins/", "/mcp", "/signin", "/submit")
SECURITY = "/.well-known/security.txt"
#: For how long what it says may be believed.
SECURITY_DAYS = 180
DAY_MS = 24 * 3_600_000
#: A record that says that it changed then or later is wrong about it.
_YEAR_10000 = 253_402_300_800_000
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class SitemapQuery(Asked, frozen=True):
    """Which page of a sitemap that has several."""

    #: 1 is the first
    page: Annotated[int, msgspec.Meta(ge=1, le=50_000)] | None = None


async def robots_view(request: Request) -> Response:
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in CLOSED)]
    text = "\n".join([*lines, "", f"Sitemap: {public_address(request)}/sitemap.xml", ""])
    return answer_with_tag(request, text.encode(), TEXT_TYPE)


async def security_view(request: Request) -> Response:
    """Whom to tell of a weakness (RFC 9116). It expires half a year after it was read, so it is never out of date."""
    services = services_of(request)
    contact = services.settings.security_contact
    if not contact:
        message = "This registry names nobody to report a weakness to; its operator can set VSKILL_SECURITY_CONTACT."
        raise NotFound(message)
    today = services.clock.now() // DAY_MS * DAY_MS
    base = services.settings.public_url.rstrip("/")
    lines = [
        f"Contact: {contact}",
        f"Expires: {iso_time(today + SECURITY_DAYS * DAY_MS)}",
        *([f"Canonical: {base}{SECURITY}"] if base else []),
        "Preferred-Languages: en",
    ]
    return answer_with_tag(request, "\n".join([*lines, ""]).encode(), TEXT_TYPE)


async def opensearch_view(request: Request) -> Response:
    base = escape(public_address(request))
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
        "<ShortName>vskill</ShortName><Description>Search verified agent skills</Description>\n"
        f'<Url type="text/html" template="{base}/skills?q={{searchTerms}}"/>\n'
        "<InputEncoding>UTF-8</InputEncoding>\n</OpenSearchDescription>\n"
    )
    return answer_with_tag(request, text.encode(), OPENSEARCH_TYPE)


async def favicon_view(request: Request) -> Response:
    """The icon for whoever does not read the page that names it; every browser of today takes SVG here too."""
    icon = FILES["icon.svg"]
    return answer_with_tag(request, icon.data, icon.media)


async def sitemap_view(request: Request) -> Response:
    page = query_of(request, SitemapQuery).page

    async def make(base: str, reader: Principal, blocklist: Blocklist) -> bytes:
        skills = iterate_catalogue(reader)
        return await make_sitemap(base, blocklist, skills, page)

    return await answer_document(request, XML_TYPE, make)


async def make_sitemap(
    base: str,
    blocklist: Blocklist,
    skills: AsyncIterator[PublishedSkillSummary],
    page: int | None,
    most: int = MOST_ADDRESSES,
) -> bytes:
    """One page, or without a number all of it: the one page that there is, or an index of several."""
    entries: list[str] = []
    #: The latest change of each page.
    latest: list[int] = []
    count = 0
    async for path, changed_at in _addresses(blocklist, skills):
        number = count // most + 1
        count += 1
        if page is not None and number > page:
            break
        if number > len(latest):
            latest.append(0)
        latest[-1] = max(latest[-1], changed_at)
        if number == (page or 1):
            entries.append(_element("url", base + path, changed_at))
    if not entries:
        raise NotFound(f"The sitemap has no page {page}.", page=page)
    if page is not None or len(latest) == 1:
        return _document("urlset", entries)
    places = enumerate(latest, start=1)
    return _document(
        "sitemapindex",
        [_element("sitemap", f"{base}/sitemap.xml?page={number}", at) for number, at in places],
    )


async def _addresses(
    blocklist: Blocklist, skills: AsyncIterator[PublishedSkillSummary]
) -> AsyncIterator[tuple[str, int]]:
    """Every public page and when it changed last; 0 where that is not known."""
    for path in PAGES:
        yield path, 0
    async for skill in skills:
        if not blocklist.hits_summary(skill):
            yield f"/skills/{quote(skill.slug)}", skill.updated_at


def _element(name: str, address: str, changed_at: int) -> str:
    known = 0 < changed_at < _YEAR_10000
    changed = f"<lastmod>{iso_time(changed_at)}</lastmod>" if known else ""
    return f"<{name}><loc>{escape(address)}</loc>{changed}</{name}>\n"


def _document(name: str, elements: list[str]) -> bytes:
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<{name} xmlns="{_NAMESPACE}">\n'
    return f"{head}{''.join(elements)}</{name}>\n".encode()


ENDPOINTS = (
    get("/robots.txt", robots_view, media=TEXT_TYPE, tag="skills", summary="Tell crawlers what to leave out"),
    get(
        SECURITY,
        security_view,
        media=TEXT_TYPE,
        problems=(404,),
        tag="skills",
        summary="Whom to tell of a weakness of this registry (RFC 9116)",
    ),
    get(
        "/favicon.ico",
        favicon_view,
        media="image/svg+xml",
        stays_open=True,
        tag="skills",
        summary="The registry's icon",
    ),
    get(
        "/opensearch.xml",
        opensearch_view,
        media=OPENSEARCH_TYPE,
        tag="skills",
        summary="Tell browsers how to search here",
    ),
    get(
        "/sitemap.xml",
        sitemap_view,
        query=SitemapQuery,
        media=XML_TYPE,
        problems=(404,),
        tag="skills",
        summary="List every published skill for search engines",
        about="Beyond 50,000 addresses it is an index, and `page` asks for one of its pages.",
    ),
)

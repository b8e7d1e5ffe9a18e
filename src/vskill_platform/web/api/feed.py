"""The Atom feed of new skills."""

from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import iso_time
from vskill_core.plain_text import plain_text
from vskill_platform.actions.principal import document_reader
from vskill_platform.actions.skills.catalogue import list_unblocked
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.exchange import answer_with_tag, principal_of, public_address, services_of
from vskill_platform.web.routing import get

ATOM_TYPE = "application/atom+xml; charset=utf-8"
MOST = 50


async def feed_view(request: Request) -> Response:
    services = services_of(request)
    reader = await document_reader(principal_of(request))
    base, name = public_address(request), services.settings.registry_name
    skills = (await list_unblocked(services, reader, sort=Sort.NEWEST, limit=MOST)).items
    latest = iso_time(max((skill.created_at for skill in skills), default=0))
    entries = "".join(_entry(skill, base) for skill in skills)
    body = atom_feed(base, name, "new skills", ("/feed.xml", "/skills"), latest, entries)
    return answer_with_tag(request, body, ATOM_TYPE)


def atom_feed(base: str, name: str, about: str, places: tuple[str, str], updated: str, entries: str) -> bytes:
    """A feed of this registry; `places` are its own address and that of its page. What is not ours is escaped, and
    characters that XML cannot hold are left out."""
    own, page = places
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>{xml_text(name)}: {about}</title><id>{xml_text(base)}{own}</id>"
        f"<updated>{updated}</updated><author><name>{xml_text(name)}</name></author>"
        f'<link rel="self" href={quoteattr(base + own)}/><link href={quoteattr(base + page)}/>'
        f"{entries}</feed>\n"
    ).encode()


def _entry(skill: PublishedSkill, base: str) -> str:
    address = f"{base}/skills/{skill.canonical}"
    return (
        f"<entry><title>{xml_text(skill.name)}</title><id>{xml_text(address)}</id><link href={quoteattr(address)}/>"
        f"<published>{iso_time(skill.created_at)}</published><updated>{iso_time(skill.updated_at)}</updated>"
        f"<author><name>{xml_text(skill.owner)}</name></author><summary>{xml_text(plain_text(skill.description))}</summary></entry>"
    )


def xml_text(foreign: str) -> str:
    """As XML can hold it."""
    return escape("".join(char for char in foreign if char.isprintable() or char in "\n\t"))


ENDPOINTS = (
    get("/feed.xml", feed_view, media=ATOM_TYPE, tag="skills", summary="Follow new skills as an Atom feed"),
)

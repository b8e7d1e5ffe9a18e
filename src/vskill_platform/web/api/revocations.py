"""The signed revocation list and the Atom feed of withdrawn and restored versions."""

from xml.sax.saxutils import quoteattr

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, iso_time
from vskill_client.wire.skills import ReadRevocationList
from vskill_core.dsse import ENVELOPE_TYPE
from vskill_platform.actions.recall import revocations
from vskill_platform.web.api.feed import ATOM_TYPE, atom_feed, xml_text
from vskill_platform.web.exchange import answer_with_tag, principal_of, public_address, services_of
from vskill_platform.web.routing import get, part_of, query_of

#: What each kind of event is called in the feed.
TITLES = {"skill.withdrawn": "withdrawn", "skill.restored": "restored", "skill.yanked": "yanked"}


RevocationListQuery = part_of(ReadRevocationList, ReadRevocationList.__struct_fields__, Asked)


class RevocationFeedQuery(Asked, frozen=True):
    """Where to begin."""

    #: the last serial that was seen
    after: revocations.Serial = 0


async def list_view(request: Request) -> Response:
    asked = ReadRevocationList(**msgspec.structs.asdict(query_of(request, RevocationListQuery)))
    body = await revocations.READ_LIST(services_of(request), principal_of(request), asked)
    return answer_with_tag(request, body, ENVELOPE_TYPE)


async def feed_view(request: Request) -> Response:
    asked = query_of(request, RevocationFeedQuery)
    events = await revocations.recent_events(principal_of(request), asked.after)
    base, name = public_address(request), services_of(request).settings.registry_name
    latest, entries = events[0].at if events else iso_time(0), "".join(_entry(one, base) for one in events)
    places = ("/revocations.xml", "/revocations")
    body = atom_feed(base, name, "withdrawn and restored versions", places, latest, entries)
    return answer_with_tag(request, body, ATOM_TYPE)


def _entry(event: revocations.RevocationEventView, base: str) -> str:
    versions = ", ".join(one.version for one in event.versions)
    title = f"{event.skill} {versions}: {TITLES[event.type]}"
    said = "\n".join(map(_sentence, event.versions))
    return (
        f"<entry><title>{xml_text(title)}</title>"
        f"<id>{xml_text(base)}/revocations#{xml_text(event.skill)}.{event.serial}.{event.type}</id>"
        f"<link href={quoteattr(f'{base}/skills/{event.skill}/versions')}/><updated>{event.at}</updated>"
        f"<summary>{xml_text(said)}</summary></entry>"
    )


def _sentence(one: revocations.RevocationStepView) -> str:
    status = "live again" if one.status is None else one.status.replace("-", " ")
    return f"{one.version} is {status}: {one.reason} (digest {one.digest})"


ENDPOINTS = (
    get(
        revocations.READ_LIST.path,
        list_view,
        action=revocations.READ_LIST,
        query=RevocationListQuery,
        media=ENVELOPE_TYPE,
        problems=(404,),
        tag=revocations.READ_LIST.tag,
        summary=revocations.READ_LIST.summary,
    ),
    get(
        "/revocations.xml",
        feed_view,
        action=revocations.FOLLOW,
        query=RevocationFeedQuery,
        media=ATOM_TYPE,
        tag=revocations.FOLLOW.tag,
        summary="Follow withdrawn and restored versions as an Atom feed",
    ),
)

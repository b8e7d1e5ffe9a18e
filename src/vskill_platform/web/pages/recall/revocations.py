"""The page of recalls: which versions were withdrawn and why, what to install instead, and what is blocked without
ever having been published. Searched by name, address, digest or reason."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import PLAIN, Asked
from vskill_platform.actions.recall.blocklist_reads import READ_BLOCKLIST, BlockView, ReadBlocklist
from vskill_platform.actions.recall.revocations import FOLLOW, revoked_for
from vskill_platform.domain.skills.skill import RevokedVersion
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

PATH = "/revocations"
#: Rows of each table; a search finds the rest.
MOST_SHOWN = 100


class RevocationsQuery(Asked, frozen=True):
    """What is looked for."""

    q: Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)] = ""


async def revocations(request: Request) -> Response:
    asked = query_of(request, RevocationsQuery)
    services, reader = services_of(request), principal_of(request)
    revoked = await revoked_for(reader)
    latest = sorted(revoked.versions, key=lambda one: one.since, reverse=True)
    words = asked.q.casefold().split()
    found = [version for version in latest if all(word in _text_of(version) for word in words)]
    blocked = await find_unpublished(request, asked.q)
    return render(
        request,
        "revocations.html",
        asked=asked,
        revoked=found[:MOST_SHOWN],
        blocked=blocked[:MOST_SHOWN],
        more=len(found) > MOST_SHOWN or len(blocked) > MOST_SHOWN,
        serial=revoked.serial,
        is_signed=services.signing is not None,
    )


def _text_of(one: RevokedVersion) -> str:
    return f"{one.skill} {one.version} {one.digest} {one.content_hash} {one.status} {one.reason}".casefold()


async def find_unpublished(request: Request, words: str) -> list[BlockView]:
    """Blocks of what was never published here, the latest first."""
    asked = ReadBlocklist(q=words)
    found = await READ_BLOCKLIST(services_of(request), principal_of(request), asked)
    return [one for one in reversed(found.entries) if not one.published]


ENDPOINTS = (
    page(
        PATH,
        revocations,
        action=FOLLOW,
        shows=("revocation.list", "blocklist.read", "blocklist.check"),
        query=RevocationsQuery,
    ),
)

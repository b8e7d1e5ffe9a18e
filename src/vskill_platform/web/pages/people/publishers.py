"""The page of a repository's publishers: the CI workflows that may submit it."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.identity import MAX_URL
from vskill_platform.actions.people import publishers
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import form, private_page
from vskill_platform.web.routing import page, query_of

PAGE = "/publishers"


class PublishersQuery(Asked, frozen=True):
    """Which repository; without one the page asks for it."""

    repo_url: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = ""


async def show(request: Request) -> Response:
    services, asked = services_of(request), query_of(request, PublishersQuery).repo_url.strip()
    found = None
    if asked:
        found = await publishers.LIST_PUBLISHERS(
            services, principal_of(request), publishers.ListPublishers(repo_url=asked)
        )
    return private_page(
        request,
        "publishers.html",
        found=found,
        choices=[(one, one) for one in found.issuers] if found else [],
        audience=services.settings.public_url,
    )


ENDPOINTS = (
    page(PAGE, show, action=publishers.LIST_PUBLISHERS, query=PublishersQuery),
    form(f"{PAGE}/add", publishers.ADD_PUBLISHER, "The publisher is added.", at=PAGE),
    form(f"{PAGE}/remove", publishers.REMOVE_PUBLISHER, "The publisher is removed.", at=PAGE),
)

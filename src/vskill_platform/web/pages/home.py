"""The first page: what this is, a search, what is new, and whether the promise holds at this moment."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.catalogue import list_front_page
from vskill_platform.actions.queue import HealthAnswer
from vskill_platform.domain.errors import PlatformError
from vskill_platform.web.pages.queue import recent_health
from vskill_platform.web.pages.skills import recent_facets
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

#: Of each list, as many as fill two rows on a desk.
SHOWN = 6


async def home(request: Request) -> Response:
    popular, newest = await list_front_page(services_of(request), principal_of(request), SHOWN)
    counts = await recent_facets(request)
    return render(
        request,
        "home.html",
        popular=[one for one in popular.items if one.listing and one.listing.installs],
        newest=newest.items,
        facets=counts,
        categories=sorted(counts.category.items(), key=lambda pair: (-pair[1], pair[0])),
        health=await _health(request),
    )


async def _health(request: Request) -> HealthAnswer | None:
    """None if the store cannot be read: the page says so instead of failing."""
    try:
        return await recent_health(request)
    except PlatformError as error:
        services_of(request).log.warning("health not shown", error=error.message, code=error.code)
        return None


ENDPOINTS = (page("/", home),)

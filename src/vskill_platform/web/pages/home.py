"""The first page: what this is, a search, what is new, and whether the promise holds at this moment."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.domain.errors import PlatformError
from vskill_platform.queue.health import QueueHealth, queue_health
from vskill_platform.store.catalogue import Sort
from vskill_platform.web.pages.skills import listed, recent_facets
from vskill_platform.web.recent import Recent
from vskill_platform.web.render import render
from vskill_platform.web.routing import page
from vskill_platform.worker_context import require_env

#: Of each list, as many as fill two rows on a desk.
SHOWN = 6
#: How old the line about the queue may be.
HEALTH_AGE_S = 2.0


async def home(request: Request) -> Response:
    popular = await listed(request, sort=Sort.INSTALLS, limit=SHOWN)
    newest = await listed(request, sort=Sort.NEWEST, limit=SHOWN)
    counts = await recent_facets(request)
    recent: Recent = request.app.state.recent
    return render(
        request,
        "home.html",
        popular=[one for one in popular.items if one.listing and one.listing.installs],
        newest=newest.items,
        facets=counts,
        categories=sorted(counts.category.items(), key=lambda pair: (-pair[1], pair[0])),
        health=await recent.get("home health", HEALTH_AGE_S, _health),
    )


async def _health() -> QueueHealth | None:
    """None where it cannot be told just now: the page says so instead of failing as a whole."""
    try:
        return await queue_health()
    except PlatformError as error:
        require_env("log").log.warning("health not shown", error=error.message, code=error.code)
        return None


ENDPOINTS = (page("/", home),)

"""Every route of the web side, in one table, and the application around it.

A view is an async function from a request to a response. It finds the environment through the worker context,
which `RequestContext` sets around the whole call; errors are rendered in `problems`.
"""

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp

from vskill_platform.actions.table import ACTIONS
from vskill_platform.web import operations
from vskill_platform.web.action_routes import endpoints_of
from vskill_platform.web.api import (
    account,
    external_scans,
    feed,
    installs,
    keys,
    meta,
    pushes,
    revocations,
    sitemap,
    skills,
)
from vskill_platform.web.application import Application
from vskill_platform.web.clients import (
    clawhub,
    clawhub_publish,
    git_marketplace,
    mcp,
    own_client,
    scim,
    wellknown,
)
from vskill_platform.web.context import RequestContext
from vskill_platform.web.pages import table as pages
from vskill_platform.web.routing import Endpoint
from vskill_platform.web.streams import live
from vskill_platform.web.streams.follower import Hub
from vskill_platform.worker_context import Env

#: By area. A fixed segment of a path wins over a parameter, whatever the order here.
ENDPOINTS: tuple[Endpoint, ...] = (
    *operations.ENDPOINTS,
    *endpoints_of(ACTIONS),
    *live.ENDPOINTS,
    *keys.ENDPOINTS,
    *skills.ENDPOINTS,
    *installs.ENDPOINTS,
    *account.ENDPOINTS,
    *feed.ENDPOINTS,
    *revocations.ENDPOINTS,
    *sitemap.ENDPOINTS,
    *meta.ENDPOINTS,
    *external_scans.ENDPOINTS,
    *pushes.ENDPOINTS,
    *wellknown.ENDPOINTS,
    *clawhub.ENDPOINTS,
    *clawhub_publish.ENDPOINTS,
    *git_marketplace.ENDPOINTS,
    *mcp.ENDPOINTS,
    *own_client.ENDPOINTS,
    *scim.ENDPOINTS,
    *pages.ENDPOINTS,
)


def create_app(
    env: Env,
    endpoints: Sequence[Endpoint] = ENDPOINTS,
    hub: Hub | None = None,
    stop: asyncio.Event | None = None,
    *,
    works: bool = False,
    processes: int = 1,
) -> ASGIApp:
    """The application over one environment. Close the hub before stopping it, so that no stream blocks that. It reports
    not ready once `stop` is set, and if its process `works` the queue, while no worker can."""
    return RequestContext(Application(env, endpoints, hub, stop, works=works, processes=processes), env)

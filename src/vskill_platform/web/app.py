"""Every route of the web side, in one table, and the application around it.

A view is an async function from a request to a response. It finds the environment through the worker context,
which `RequestContext` sets around the whole call; errors are rendered in `problems`.
"""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from vskill_platform.domain.errors import PlatformError
from vskill_platform.env import Env
from vskill_platform.web import api, external_scans, keys, operations
from vskill_platform.web.context import RequestContext
from vskill_platform.web.problems import http_problem, platform_problem
from vskill_platform.web.routing import get, post

ROUTES: tuple[BaseRoute, ...] = (
    get("/", operations.where_to_look),
    get("/healthz", operations.healthz),
    get("/readyz", operations.readyz),
    get("/metrics", operations.metrics),
    get("/.well-known/vskill-keys.json", keys.key_set),
    get("/.well-known/vskill-keys.pem", keys.key_texts),
    get("/api/v1/queue/health", api.queue_health),
    get("/api/v1/submissions/stats", api.submission_stats),
    get("/api/v1/submissions/{submission_id}", api.submission),
    get("/api/v1/skills/{owner}/{repo}/{slug}/versions/{number}/attestation", keys.attestation),
    get("/api/v1/external-scans/{digest}", external_scans.reports),
    get("/api/v1/external-scans/{digest}/{provider}", external_scans.report),
    post("/api/v1/external-scans/{digest}/{provider}", external_scans.receive),
)


def create_app(env: Env, routes: Sequence[BaseRoute] = ROUTES) -> Starlette:
    """The application over one environment."""
    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequestContext, env=env)],
        exception_handlers={PlatformError: platform_problem, HTTPException: http_problem},
    )
    # An address has one spelling; a redirect would also lose what a POST carries.
    app.router.redirect_slashes = False
    return app

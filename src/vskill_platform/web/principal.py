"""Who makes a request, and what a view may use to answer it. `web.auth` finds out who it is; what a principal may do is
decided by `actions.rights`."""

from starlette.requests import Request

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import ANYBODY, Principal
from vskill_platform.actions.visibility import Viewer, viewer_for


def principal_of(request: Request) -> Principal:
    """Who makes this request."""
    found: Principal = request.scope.get("principal", ANYBODY)
    return found


def viewer_of(request: Request) -> Viewer:
    return viewer_for(principal_of(request))


def services_of(request: Request) -> Services:
    """What the request's view may use."""
    found: Services = request.scope["services"]
    return found

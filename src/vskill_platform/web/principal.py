"""The principal of a request, and which routes let it pass. `web.auth` finds out who it is; views read it with
`principal_of`. What a principal may do is decided by `actions.rights`."""

import enum

from starlette.requests import Request

from vskill_platform.actions.principal import ANYBODY, Principal
from vskill_platform.actions.visibility import Viewer, viewer_for


class Guard(enum.StrEnum):
    """Who may use a route that belongs to no action, the widest first."""

    PUBLIC = "public"
    #: Any account, by session or token.
    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    def lets_pass(self, principal: Principal) -> bool:
        if self is Guard.PUBLIC:
            return True
        if principal.account is None:
            return False
        needed = {Guard.REVIEWER: principal.is_reviewer, Guard.ADMIN: principal.is_admin}
        return needed.get(self, True)


def principal_of(request: Request) -> Principal:
    """Who makes this request."""
    found: Principal = request.scope.get("principal", ANYBODY)
    return found


def viewer_of(request: Request) -> Viewer:
    return viewer_for(principal_of(request))

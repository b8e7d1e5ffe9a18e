"""Who asks: nobody in particular, an account that signed in, or the holder of a token; and what each may do.

`web.auth` finds out who it is; `web.routing` compares it with the guard of the route; views read it with
`principal_of`.
"""

import enum

import msgspec
from starlette.requests import Request

from vskill_platform.domain.errors import NotPermitted
from vskill_platform.domain.token import ActingToken
from vskill_platform.web.browser import Browser, browser_of


class Guard(enum.StrEnum):
    """Who may use a route, the widest first."""

    PUBLIC = "public"
    #: Any account, by session or token.
    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {guard: rank for rank, guard in enumerate(Guard)}


class Principal(msgspec.Struct, frozen=True):
    """The one who makes a request."""

    #: The account's name; None is anybody.
    account: str | None = None
    #: The highest guard that lets it pass.
    role: Guard = Guard.PUBLIC
    #: What a token is limited to, with what its scopes include; None is no limit (a session).
    scopes: frozenset[str] | None = None
    #: The token that was shown; None is a session, or nobody.
    token: ActingToken | None = None
    #: What ties forms to this browser; None for programs.
    browser: Browser | None = None

    @property
    def csrf(self) -> str:
        """What forms must carry so that another site cannot send them; asking for it gives the browser its cookie."""
        return "" if self.browser is None else self.browser.csrf

    @property
    def actor(self) -> str:
        """How history and audit log name it."""
        if self.account is None:
            return "user:anonymous"
        return f"{'user' if self.role is Guard.AUTHOR else 'admin'}:{self.account}"

    @property
    def name(self) -> str:
        """The account's name, where the route's guard has made sure that there is one."""
        if self.account is None:
            raise TypeError("the route lets anybody in, so there may be no account")
        return self.account

    def may(self, guard: Guard) -> bool:
        return self.role.rank >= guard.rank

    def require_scope(self, scope: str) -> None:
        """NotPermitted where a token lacks the scope; a session and an anonymous request have none to lack."""
        if self.scopes is not None and scope not in self.scopes:
            raise NotPermitted(
                f"This token lacks the scope {scope!r}.",
                needs=scope,
                fix=f"send a token with the scope {scope}",
            )


ANYBODY = Principal()


def principal_of(request: Request) -> Principal:
    """Who makes this request, as the route's guard found out."""
    found: Principal = request.scope.get("principal", ANYBODY)
    if found.account is None and found.browser is None:
        # Made only where a view asks, so that a request which is nobody's costs nothing.
        found = request.scope["principal"] = Principal(browser=browser_of(request))
    return found

"""API tokens: their record, what their scopes allow, and how an audit entry names one. `store.tokens` keeps them;
routes and MCP tools declare the scope that they need, and `web.principal` compares."""

from collections.abc import Iterable

import msgspec

#: `read`: see what is the account's own. `submit`: submit, cancel, run again, report, appeal, sign out everywhere.
#: `own`: manage the account's tokens and password. `review`: what reviewers do. `admin`: whatever the role may do.
SCOPES = ("read", "submit", "own", "review", "admin")
#: Scopes that come with another one. `admin` tokens are older than `own` and `review`, and keep what they could do.
INCLUDED = {"admin": ("own", "review")}


#: What the tokens of an account may hold, by its role.
SCOPES_OF = {"author": SCOPES[:3], "reviewer": SCOPES[:4], "admin": SCOPES}


class ActingToken(msgspec.Struct, frozen=True):
    """The token that a request was made with; never its secret."""

    id: str
    #: What its maker calls it.
    name: str


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `token:{hash}`."""

    #: Public: how people refer to it.
    id: str
    account: str
    #: What its maker calls it.
    name: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int
    #: To the hour.
    last_used_at: int | None = None

    def is_good(self, now: int) -> bool:
        return now < self.expires_at

    @property
    def acting(self) -> ActingToken:
        return ActingToken(self.id, self.name)

    def scopes_as(self, role: str) -> frozenset[str]:
        """What it may be used for while its account has this role."""
        return with_included(self.scopes) & frozenset(SCOPES_OF[role])


def with_included(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes of a token, and those that come with them."""
    given = frozenset(scopes)
    return given.union(*(INCLUDED.get(scope, ()) for scope in given))

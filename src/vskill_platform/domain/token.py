"""What API tokens may do, and how an audit entry names one. The records are in `store.tokens`; routes and MCP tools
declare the scope that they need, and `web.principal` compares."""

from collections.abc import Iterable

import msgspec

#: `read`: see what is the account's own. `submit`: submit, cancel, run again, report, appeal, sign out everywhere.
#: `own`: manage the account's tokens and password. `review`: what reviewers do. `admin`: whatever the role may do.
SCOPES = ("read", "submit", "own", "review", "admin")
#: Scopes that come with another one. `admin` tokens are older than `own` and `review`, and keep what they could do.
INCLUDED = {"admin": ("own", "review")}


class ActingToken(msgspec.Struct, frozen=True):
    """The token that a request was made with; never its secret."""

    id: str
    #: What its maker calls it.
    name: str


def with_included(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes of a token, and those that come with them."""
    given = frozenset(scopes)
    return given.union(*(INCLUDED.get(scope, ()) for scope in given))

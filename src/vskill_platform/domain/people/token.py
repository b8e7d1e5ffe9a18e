"""API tokens: their record, what their scopes allow, and how an audit entry names one. `store.people.tokens` keeps
them; routes and MCP tools declare the scope that they need, and `actions.principal` compares."""

import enum
from collections.abc import Iterable

import msgspec

from vskill_core.identity import Identity
from vskill_core.publisher import Publisher


class TokenScope(enum.StrEnum):
    """What a token may be used for. A session and the operator have no such limit."""

    #: Read what its account may read.
    READ = "read"
    #: Submit, cancel, run again, report, appeal, sign out everywhere.
    SUBMIT = "submit"
    #: Manage the account's tokens and password, and the repositories and skills that it controls.
    OWN = "own"
    #: Decide about submissions, reports and blocks, where the account is a reviewer.
    REVIEW = "review"
    #: Everything that the account may do.
    ADMIN = "admin"


SCOPES = tuple(scope.value for scope in TokenScope)
#: Scopes that come with another one: every token may read, and an `admin` token has them all.
INCLUDED = {
    **dict.fromkeys(SCOPES, (TokenScope.READ.value,)),
    TokenScope.ADMIN.value: SCOPES,
}


#: What the tokens of an account may hold, by its role.
SCOPES_OF = {"author": SCOPES[:3], "reviewer": SCOPES[:4], "admin": SCOPES}
#: What a token of one namespace may hold: reviewing and administering are about the whole registry.
SCOPES_OF_BOUND = SCOPES[:3]


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
    #: The one namespace whose private skills it may read, and where it may change something; None is no such limit.
    namespace: str | None = None

    def is_good(self, now: int) -> bool:
        return now < self.expires_at

    @property
    def acting(self) -> ActingToken:
        return ActingToken(self.id, self.name)

    def scopes_as(self, role: str) -> frozenset[str]:
        """What it may be used for while its account has this role."""
        return with_included(self.scopes) & frozenset(SCOPES_OF[role])


class CiJob(msgspec.Struct, frozen=True):
    """A job of a forge's CI that proved which one it is: the record at `ci_token:{hash}`, gone minutes later. Its token
    submits the skills of that repository at that commit, and reads what becomes of them."""

    #: Public, as that of a token.
    id: str
    publisher: Publisher
    #: Without a folder.
    repository: Identity
    expires_at: int

    def is_of(self, place: Identity | None) -> bool:
        return place is not None and place.repo_key == self.repository.repo_key

    @property
    def acting(self) -> ActingToken:
        return ActingToken(self.id, self.publisher.run or self.publisher.repository)


def with_included(scopes: Iterable[str]) -> frozenset[str]:
    given = frozenset(scopes)
    return given.union(*(INCLUDED.get(scope, ()) for scope in given))

"""Who acts: nobody in particular, an account that signed in, the holder of a token, or the operator of the server's
machine. Entry points find out who it is; `rights` decides what they may do."""

import msgspec

from vskill_core.errors import NotPermitted
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.people.token import ActingToken, TokenScope
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.readers import OPERATOR as OPERATOR_NAME


class Principal(msgspec.Struct, frozen=True):
    """The one who acts."""

    #: The account's name; None is nobody who signed in, or the operator.
    account: str | None = None
    #: The account's role, no higher than the scopes of its token allow; None is nobody.
    role: Role | None = None
    #: What its token is limited to, with what its scopes include; None is no limit.
    scopes: frozenset[str] | None = None
    #: The token that was shown; None where there was none.
    token: ActingToken | None = None
    #: Whoever can run commands on the server's machine. They hold the store itself, so they may do everything.
    operator: bool = False
    #: Where a request of nobody in particular comes from; tells such requests apart, and is empty elsewhere.
    address: str = ""
    #: The one namespace that its token is bound to; None is no limit.
    namespace: str | None = None
    #: What it may read, found out once per request or call; None until then, and then nothing can be read.
    audiences: Audiences | None = None

    @property
    def actor(self) -> str:
        """How history and audit name it."""
        if self.operator and self.account is None:
            return OPERATOR_NAME
        if self.account is None:
            return "user:anonymous"
        return f"{'admin' if self.is_reviewer else 'user'}:{self.account}"

    @property
    def name(self) -> str:
        """The account's name, where a right has made sure that there is one."""
        if self.account is None:
            raise TypeError("this action lets anybody in, so there may be no account")
        return self.account

    @property
    def is_reviewer(self) -> bool:
        return self.operator or self.role in {Role.REVIEWER, Role.ADMIN}

    @property
    def is_admin(self) -> bool:
        return self.operator or self.role is Role.ADMIN

    def require_scope(self, scope: TokenScope) -> None:
        """NotPermitted where its token lacks the scope; without a token there is none to lack."""
        if self.scopes is not None and scope.value not in self.scopes:
            raise NotPermitted(
                f"This token lacks the scope {scope.value!r}.",
                needs=scope.value,
                fix="use one that has it, from your account page",
            )


ANYBODY = Principal()
OPERATOR = Principal(operator=True)


def token_role(scopes: frozenset[str]) -> Role:
    """What a token may do: its scopes are those that its account's role allows now."""
    if TokenScope.ADMIN.value in scopes:
        return Role.ADMIN
    return Role.REVIEWER if TokenScope.REVIEW.value in scopes else Role.AUTHOR

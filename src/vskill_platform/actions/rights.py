"""What a principal may do: the one place that decides it, for every action and every entry point.

A right is checked in two steps. `admit` asks what needs no look at the store: is somebody signed in, in which role,
with which scope. `require_right` asks about the object: who submitted it, and who controls its repository.
"""

import enum

import msgspec

from vskill_core.errors import NotPermitted, NotSignedIn
from vskill_core.identity import Identity
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.people.namespace import NamespaceRole, namespace_of
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people.owners import role_at, role_in


class Right(enum.StrEnum):
    """What an action requires of its caller."""

    ANYONE = "anyone"
    #: Whoever may read the object. What one may not read is not found, so nobody else gets as far as the question.
    READER = "reader"
    SIGNED_IN = "signed in"
    #: Whoever submitted it, maintains its repository, or reviews.
    SUBMITTER = "submitter"
    #: An account with any role in the namespace, directly or by a team; reviewers and admins.
    MEMBER = "member"
    #: An account with this role or a higher one in the namespace; one that proved a repository maintains that one.
    MAINTAINER = "maintainer"
    #: An account that owns the namespace, or an admin.
    OWNER = "owner"
    REVIEWER = "reviewer role"
    ADMIN = "admin role"

    @property
    def meaning(self) -> str:
        """Who has it, in words."""
        return _MEANINGS[self]


_MEANINGS = {
    Right.ANYONE: "everybody",
    Right.READER: "whoever may read it",
    Right.SIGNED_IN: "every account",
    Right.SUBMITTER: "its submitter, a maintainer of its repository, reviewers",
    Right.MEMBER: "a member of the namespace, reviewers and admins",
    Right.MAINTAINER: "a maintainer of its repository or namespace",
    Right.OWNER: "an owner of the namespace, admins",
    Right.REVIEWER: "reviewers and admins",
    Right.ADMIN: "admins",
}
#: Rights that a role gives, with the scope that a token needs, also to read.
_SCOPES_OF_ROLES = {Right.REVIEWER: TokenScope.REVIEW, Right.ADMIN: TokenScope.ADMIN}
#: Rights that anonymous requests have.
OPEN_RIGHTS = frozenset({Right.ANYONE, Right.READER})

#: How an account comes to control a repository.
_ROLES = {
    Right.SUBMITTER: NamespaceRole.MAINTAINER,
    Right.MEMBER: NamespaceRole.READER,
    Right.MAINTAINER: NamespaceRole.MAINTAINER,
    Right.OWNER: NamespaceRole.OWNER,
}

CLAIM_FIX = "claim the repository on your account page, or with 'vskill-platform owner claim'"


class ActionObject(msgspec.Struct, frozen=True):
    """What a right about an object is evaluated on."""

    #: None: the namespace itself.
    identity: Identity | None = None
    #: Accounts that submitted it.
    submitters: tuple[str, ...] = ()
    #: Where there is no identity.
    namespace: str = ""

    @property
    def within(self) -> str:
        """The namespace that it belongs to."""
        return self.namespace if self.identity is None else namespace_of(self.identity)


def scope_for(right: Right, method: str) -> TokenScope:
    """What a token needs for an action of this right, unless its declaration says otherwise."""
    if right in _SCOPES_OF_ROLES:
        return _SCOPES_OF_ROLES[right]
    if method == "GET" or right is Right.READER:
        return TokenScope.READ
    return TokenScope.SUBMIT if right in {Right.ANYONE, Right.SUBMITTER} else TokenScope.OWN


def admit(principal: Principal, right: Right, scope: TokenScope) -> None:
    """Raise NotSignedIn or NotPermitted for what needs no look at an object."""
    principal.require_scope(scope)
    if right in OPEN_RIGHTS or principal.operator:
        return
    if principal.account is None:
        raise NotSignedIn
    if right in (Right.REVIEWER, Right.ADMIN) and principal.namespace is not None:
        message = f"This token is bound to the namespace {principal.namespace}."
        raise NotPermitted(message, needs=right.value, fix="send a token that is not bound to a namespace")
    if right is Right.REVIEWER and not principal.is_reviewer:
        raise NotPermitted("Only reviewers may do this.", needs="reviewer")
    if right is Right.ADMIN and not principal.is_admin:
        raise NotPermitted("Only admins may do this.", needs="admin")


def is_unlimited(principal: Principal) -> bool:
    """Whether rate limits do not apply to the principal."""
    return principal.is_admin


async def may(principal: Principal, right: Right, acted_on: ActionObject) -> bool:
    """Whether the principal has a right on an object."""
    if right is Right.READER or principal.operator:
        return True
    if principal.account is None or principal.namespace not in (None, acted_on.within):
        return False
    if right is Right.SUBMITTER and (principal.is_reviewer or principal.account in acted_on.submitters):
        return True
    if right is Right.OWNER and principal.is_admin:
        return True
    if right is Right.MEMBER and principal.is_reviewer:
        return True
    role = await _role(principal.account, acted_on)
    return role is not None and role.rank >= _ROLES[right].rank


async def _role(account: str, acted_on: ActionObject) -> NamespaceRole | None:
    if acted_on.identity is None:
        return await role_in(account, acted_on.namespace)
    return await role_at(account, acted_on.identity)


async def require_right(principal: Principal, right: Right, acted_on: ActionObject) -> None:
    """Raise NotPermitted with what would give the right."""
    if not await may(principal, right, acted_on):
        raise _refusal(principal, right, acted_on)


def _refusal(principal: Principal, right: Right, acted_on: ActionObject) -> NotPermitted:
    account, identity, name = principal.account, acted_on.identity, acted_on.within
    if principal.namespace not in (None, name):
        message = f"This token is bound to the namespace {principal.namespace}, and this is in {name}."
        return NotPermitted(message, account=account, fix="send a token that is not bound to a namespace")
    if right is Right.OWNER or identity is None:
        message = f"Only {_MEANINGS[right].replace('the namespace', name)} may do this."
        return NotPermitted(message, account=account, fix=f"ask an owner of {name}")
    submitter = right is Right.SUBMITTER
    if identity.is_upload:
        others = "its submitter, a reviewer or " if submitter else ""
        message = f"Only {others}a maintainer of {name} may do this: the skill is in that namespace."
        return NotPermitted(message, account=account)
    if submitter:
        message = "Only its submitter, a maintainer of its repository or a reviewer may do this."
    else:
        message = f"Only a maintainer of {identity.url} may do this; submitting it gives no such right."
    return NotPermitted(message, account=account, fix=CLAIM_FIX)

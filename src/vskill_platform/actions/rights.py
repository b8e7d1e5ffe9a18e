"""What a principal may do: the one place that decides it, for every action and every entry point.

A right is checked in two steps. `admit` asks what needs no look at the store: is somebody signed in, in which role,
with which scope. `require_right` asks about the object: who submitted it, and who controls its repository.
"""

import enum

import msgspec

from vskill_platform.actions.principal import Principal
from vskill_platform.domain.errors import NotPermitted, NotSignedIn
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.owners import controls_place


class Right(enum.StrEnum):
    """What an action requires of its caller."""

    ANYONE = "anyone"
    #: Whoever may read the object; today everybody.
    READER = "reader"
    SIGNED_IN = "signed in"
    #: Whoever submitted it, controls its repository, or reviews.
    SUBMITTER = "submitter"
    #: An account that controls the repository, or whose namespace it is.
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
    Right.SUBMITTER: "its submitter, an owner of its repository, reviewers",
    Right.OWNER: "an owner of its repository, or the account of its namespace",
    Right.REVIEWER: "reviewers and admins",
    Right.ADMIN: "admins",
}
#: Rights that anonymous requests have.
OPEN_RIGHTS = frozenset({Right.ANYONE, Right.READER})

#: How an account comes to control a repository.
CLAIM_FIX = "claim the repository on your account page, or with 'vskill-platform owner claim'"


class ActionObject(msgspec.Struct, frozen=True):
    """What a right about an object is evaluated on."""

    identity: Identity
    #: Accounts that submitted it.
    submitters: tuple[str, ...] = ()


def admit(principal: Principal, right: Right, scope: TokenScope) -> None:
    """Raise NotSignedIn or NotPermitted for what needs no look at an object."""
    principal.require_scope(scope)
    if right in OPEN_RIGHTS or principal.operator:
        return
    if principal.account is None:
        raise NotSignedIn
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
    if principal.account is None:
        return False
    if right is Right.SUBMITTER and (principal.is_reviewer or principal.account in acted_on.submitters):
        return True
    return await controls_place(principal.account, acted_on.identity)


async def require_right(principal: Principal, right: Right, acted_on: ActionObject) -> None:
    """Raise NotPermitted with what would give the right."""
    if await may(principal, right, acted_on):
        return
    owner = acted_on.identity.owner
    if right is Right.SUBMITTER and acted_on.identity.is_upload:
        message = f"Only its submitter, the account {owner} or a reviewer may do this."
        raise NotPermitted(message, account=principal.account)
    if right is Right.SUBMITTER:
        message = "Only its submitter, an owner of its repository or a reviewer may do this."
    elif acted_on.identity.is_upload:
        message = f"Only the account {owner} may do this: the skill is in its namespace."
        raise NotPermitted(message, account=principal.account)
    else:
        message = f"Only an owner of {acted_on.identity.url} may do this; submitting it gives no such right."
    raise NotPermitted(message, account=principal.account, fix=CLAIM_FIX)

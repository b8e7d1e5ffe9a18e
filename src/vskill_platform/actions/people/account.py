"""What an account does for itself: see who it is, change its password, sign out everywhere, and unlink an identity that
it signs in with, which admins may too.

An identity that was unlinked signs in nowhere until somebody who is signed in links it again. Nobody unlinks the last
way into the own account, nor what a company's directory says about it: that would keep the directory from locking it.
"""

from typing import Annotated, ClassVar

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_client.wire.skills import AccountView
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, RateLimited
from vskill_platform.actions.action import AccountName, Reason, Services, action, action_for
from vskill_platform.actions.people.accounts import (
    ACCOUNTS,
    IdentityView,
    ManagedAccount,
    account_view,
    end_access,
    end_all,
    set_password,
    view_identities,
)
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.namespace import Access
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people import accounts
from vskill_platform.store.people.attempts import count_attempt
from vskill_platform.store.people.directories import forget_sent
from vskill_platform.store.people.identities import find_account, name_identity, put_identity
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.store.people.passwords import fits
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.store.people.sign_in_rule import has_way_in, provider_of

IDENTITIES = "/api/v1/account/identities"
IdentityName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ChangeOwnPassword(ActionRequest, frozen=True, kw_only=True):
    """The present password, and the next one."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"old", "password"})

    #: the present password
    old: str
    #: the new one: 12 to 200 characters
    password: str


class SignedOut(Wire, frozen=True):
    """Every session has ended and every token is revoked."""

    signed_out: bool


class OwnIdentities(Wire, frozen=True):
    """How somebody signs in."""

    #: with a password, too
    has_password: bool
    identities: tuple[IdentityView, ...]


class UnlinkOwnIdentity(ActionRequest, frozen=True, kw_only=True):
    """One of the identities of the account that asks."""

    #: its `id` in the list
    identity: IdentityName


class UnlinkIdentityOf(ActionRequest, frozen=True, kw_only=True):
    """An identity of an account, and why it ends."""

    name: AccountName
    #: its `id` in the list of accounts
    identity: IdentityName
    #: why; kept in the audit
    reason: Reason


async def who_am_i(actor: Principal, _request: NoParameters) -> AccountView:
    if actor.account is None:
        return AccountView("", "operator", None)
    scopes = None if actor.scopes is None else tuple(sorted(actor.scopes))
    return AccountView(actor.account, actor.role.value if actor.role else "", scopes)


async def read_own_account(reader: Principal) -> ManagedAccount:
    return account_view(await accounts.get_user(own_name(reader)))


async def change_password(services: Services, actor: Principal, request: ChangeOwnPassword) -> SignedOut:
    """End every session and token, because one of them may be the reason for the change. Failed attempts are counted
    per account, whatever their address: the attacker already holds a session or a token."""
    user = await accounts.get_user(own_name(actor))
    await count_attempt(user.name, f"the account {user.name}")
    if user.password is None:
        message = f"{user.name} signs in without a password."
        raise InvalidInput(message, field="old", fix="ask an admin for a password")
    if not await fits(user.password, request.old):
        await note_refusal(
            "account.password", "the present password is wrong", target=user.name, by=actor.actor
        )
        raise InvalidInput("The present password is wrong.", field="old", fix="type it again")
    await set_password(services, user.name, request.password, by=actor.actor, reason="changed by its owner")
    services.log.info("password changed", account=user.name)
    return SignedOut(signed_out=True)


async def sign_out_everywhere(services: Services, actor: Principal, _request: NoParameters) -> SignedOut:
    await end_all(services, own_name(actor), by=actor.actor, reason="asked for it")
    return SignedOut(signed_out=True)


def own_name(actor: Principal) -> str:
    """The name of the account that acts; InvalidInput for the operator, who has no account."""
    if actor.account is None:
        raise InvalidInput("The operator has no account.", field="account", fix="add --as ACCOUNT")
    return actor.account


async def list_own(actor: Principal, _request: NoParameters) -> OwnIdentities:
    return _own(await accounts.get_user(own_name(actor)))


async def unlink_own(services: Services, actor: Principal, request: UnlinkOwnIdentity) -> OwnIdentities:
    if actor.namespace is not None:
        message = f"This token is bound to the namespace {actor.namespace}."
        raise NotPermitted(message, fix="send a token that is not bound to a namespace")
    return _own(await _unlink(services, actor, own_name(actor), request.identity, "asked for it"))


async def unlink_of(services: Services, actor: Principal, request: UnlinkIdentityOf) -> ManagedAccount:
    return account_view(await _unlink(services, actor, request.name, request.identity, request.reason))


def _own(user: accounts.User) -> OwnIdentities:
    return OwnIdentities(user.password is not None, view_identities(user))


async def _unlink(services: Services, actor: Principal, name: str, wanted: str, reason: str) -> accounts.User:
    """The account without the identity: what it said of groups goes with it, and so do the sessions of that provider,
    all sessions and tokens if nobody can sign in any more."""
    link = _find(await accounts.get_user(name), wanted)
    details = {"login": link.login, "id": link.id, "issuer": link.issuer}

    async def decide(user: accounts.User) -> accounts.UserChange:
        link = _find(user, wanted)
        access, now = (await read_access())[0], services.kv.now()
        left = _without(services, user, link, now)
        if user.name == actor.account:
            _require_own(services, access, left, link)
        if not has_way_in(services.settings, access, left):
            left = end_access(left, now)
        _, version = await find_account(link)
        return accounts.UserChange(left, (put_identity(link, "", version), *forget_sent(name, link)))

    return await accounts.change_user(
        name, decide, action="identity unlinked", by=actor.actor, reason=reason, details=details
    )


def _find(user: accounts.User, wanted: str) -> accounts.LinkedIdentity:
    for one in user.linked:
        if name_identity(one) == wanted:
            return one
    raise NotFound(f"{user.name} has no identity {wanted!r}.", identity=wanted)


def _without(
    services: Services, user: accounts.User, link: accounts.LinkedIdentity, now: int
) -> accounts.User:
    """The account's record without the identity. A provider that is not set up any more has no name to end sessions
    by, so all of them end."""
    _, others = accounts.split_identities(user, link.issuer, link.id)
    left = msgspec.structs.replace(user, identities=others, github=None if link.is_github else user.github)
    provider = provider_of(services.settings, link)
    if provider is None:
        return msgspec.structs.replace(left, signed_out_at=now)
    return msgspec.structs.replace(left, unlinked={**user.unlinked, provider: now})


def _require_own(
    services: Services, access: Access, left: accounts.User, link: accounts.LinkedIdentity
) -> None:
    # A directory whose token was made anew keeps those too whom it has not spoken of since.
    said = link.directory if link.issuer in access.directories else None
    if said is not None and not said.deleted:
        message = f"Your organisation's directory keeps {link.login}; only an admin unlinks it."
        raise NotPermitted(message, identity=name_identity(link), fix="ask an admin of the registry")
    if not has_way_in(services.settings, access, left):
        message = f"{link.login} is the last way to sign in as {left.name}."
        fix = "link another identity first, or ask an admin for a password"
        raise NotPermitted(message, identity=name_identity(link), fix=fix)


WHO_AM_I = action_for(
    who_am_i,
    skills_calls.WHO_AM_I,
    right=Right.SIGNED_IN,
    summary="Show your account and what it may do",
    tag="account",
    command="whoami",
)
CHANGE_PASSWORD = action(
    change_password,
    "account.password",
    "/api/v1/account/password",
    right=Right.SIGNED_IN,
    errors=(RateLimited,),
    summary="Change your password",
    about="Every session ends and every token is revoked, the one that asks too.",
    tag="account",
)
SIGN_OUT_EVERYWHERE = action(
    sign_out_everywhere,
    "account.sign-out-all",
    "/api/v1/auth/sign-out-all",
    method="DELETE",
    right=Right.SIGNED_IN,
    scope=TokenScope.SUBMIT,
    summary="End every session, revoke every token",
    tag="account",
    command="account sign-out",
)
LIST_OWN_IDENTITIES = action(
    list_own,
    "identity.list",
    IDENTITIES,
    right=Right.SIGNED_IN,
    summary="List what you sign in with",
    tag="account",
    command="account identities",
)
UNLINK_OWN_IDENTITY = action(
    unlink_own,
    "identity.unlink",
    f"{IDENTITIES}/{{identity}}",
    method="DELETE",
    right=Right.SIGNED_IN,
    errors=(NotFound, NotPermitted),
    summary="Unlink an identity from your account",
    about="Its provider's sessions end. It signs in nowhere until somebody who is signed in links it again.",
    tag="account",
    command="account unlink",
)
UNLINK_IDENTITY_OF = action(
    unlink_of,
    "identity.unlink-of",
    f"{ACCOUNTS}/{{name}}/identities/{{identity}}/unlink",
    right=Right.ADMIN,
    errors=(NotFound, NotPermitted),
    summary="Unlink an identity from an account",
    about="Its provider's sessions end; with the last way to sign in, all sessions and tokens do.",
    tag="accounts",
    command="admin unlink",
)

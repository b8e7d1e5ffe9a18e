"""Accounts: admins and the operator create them, change roles, disable them and reset passwords.

Disabling an account, a new password and signing out everywhere end its sessions and tokens for good. A change of role
ends the tokens that exceed it. The last admin can be neither disabled nor demoted, and admins cannot lock themselves
out.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import NotFound, NotPermitted
from vskill_platform.actions.action import AccountName, PageSize, Reason, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import SCOPES_OF, Token
from vskill_platform.ledger.kv.entries import Assert
from vskill_platform.records import Skips, read_entries
from vskill_platform.store.people import accounts
from vskill_platform.store.people.identities import name_identity
from vskill_platform.store.people.passwords import check_password, hash_password, new_password

ACCOUNTS = "/api/v1/admin/accounts"
#: From an account's record to what it becomes.
DecideUser = Callable[[accounts.User], Awaitable[accounts.UserChange]]


class IdentityView(Wire, frozen=True):
    """Somebody at GitHub or an issuer of OpenID Connect who signs in as an account."""

    #: what `unlink` names it by
    id: str
    #: the issuer's address, or GitHub's host
    issuer: str
    #: the name that they had there at their last sign-in
    login: str
    #: when that was, or when the issuer's directory made the account
    verified_at: str
    #: since when it signs in as this account; null: since before the registry kept that
    linked_at: str | None


class ManagedAccount(Wire, frozen=True):
    """An account, as admins see it."""

    name: str
    role: accounts.Role
    #: it cannot sign in
    disabled: bool
    #: it can sign in with a password
    has_password: bool
    #: of the GitHub account that signs in as this one
    github_login: str | None
    #: all that sign in as this one
    identities: tuple[IdentityView, ...]
    #: how many tokens it has
    tokens: int
    created_at: str
    updated_at: str


class AccountPage(Wire, frozen=True):
    """Accounts by name."""

    items: tuple[ManagedAccount, ...]
    #: asks for the next page; null on the last
    after: str | None
    #: records that could not be read; the log names them
    skipped: int


class AccountPassword(Wire, frozen=True):
    """The account, and the only answer that ever holds the password that was generated for it."""

    account: ManagedAccount
    #: null where the request brought one
    password: str | None

    def __repr__(self) -> str:
        return f"AccountPassword({self.account!r})"


class ListAccounts(ActionRequest, frozen=True, kw_only=True):
    """Which page of all accounts."""

    #: the `after` of the page before
    after: AccountName | None = None
    #: how many to show on a page
    limit: PageSize = 100


class CreateAccount(ActionRequest, frozen=True, kw_only=True):
    """A new account."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"password"})

    #: 1 to 50 of a-z, 0-9 and single hyphens
    name: AccountName
    #: what it may do
    role: accounts.Role
    #: why; kept in the audit
    reason: Reason
    #: 12 to 200 characters; one is generated where it is left out
    password: str | None = None


class ChangeAccount(ActionRequest, frozen=True, kw_only=True):
    """An account, and why it is changed."""

    name: AccountName
    #: why; kept in the audit
    reason: Reason


class ChangeAccountRole(ChangeAccount, frozen=True, kw_only=True):
    """An account's new role."""

    #: what it may do
    role: accounts.Role


class ResetPassword(ChangeAccount, frozen=True, kw_only=True):
    """A new password for an account."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"password"})

    #: 12 to 200 characters; one is generated where it is left out
    password: str | None = None


async def list_accounts(request: ListAccounts) -> AccountPage:
    found = await accounts.list_users(after=request.after, limit=request.limit)
    return AccountPage(tuple(map(account_view, found.items)), found.after, found.skipped)


async def create(actor: Principal, request: CreateAccount) -> AccountPassword:
    generated = new_password() if request.password is None else None
    user = await accounts.create_user(
        request.name.lower(),
        request.role,
        by=actor.actor,
        reason=request.reason,
        password=generated or request.password,
    )
    return AccountPassword(account_view(user), generated)


async def change_role(services: Services, actor: Principal, request: ChangeAccountRole) -> ManagedAccount:
    """The new role counts from the next request of the account."""

    async def decide(user: accounts.User) -> accounts.UserChange:
        changed = msgspec.structs.replace(user, role=request.role)
        return await keeping_an_admin(user, await _without_tokens_beyond(services, user, changed))

    return await _change(actor, request, "account role", decide, {"role": request.role.value})


async def disable(services: Services, actor: Principal, request: ChangeAccount) -> ManagedAccount:
    if request.name == actor.account:
        raise NotPermitted("You cannot lock out your own account; ask another admin.", account=request.name)

    async def decide(user: accounts.User) -> accounts.UserChange:
        ended = by_an_admin(end_access(user, services.kv.now()))
        return await keeping_an_admin(user, msgspec.structs.replace(ended, disabled=True))

    return await _change(actor, request, "account disabled", decide)


async def enable(_services: Services, actor: Principal, request: ChangeAccount) -> ManagedAccount:
    async def decide(user: accounts.User) -> accounts.UserChange:
        return accounts.UserChange(msgspec.structs.replace(by_an_admin(user), disabled=False))

    return await _change(actor, request, "account enabled", decide)


async def reset_password(services: Services, actor: Principal, request: ResetPassword) -> AccountPassword:
    generated = new_password() if request.password is None else None
    password = generated or request.password or ""
    changed = await set_password(services, request.name, password, by=actor.actor, reason=request.reason)
    return AccountPassword(account_view(changed), generated)


async def sign_out_account(services: Services, actor: Principal, request: ChangeAccount) -> ManagedAccount:
    return account_view(await end_all(services, request.name, by=actor.actor, reason=request.reason))


# Changes that an account also makes to itself.


async def set_password(
    services: Services, name: str, password: str, *, by: str, reason: str
) -> accounts.User:
    encoded = await hash_password(check_password(password, name))

    async def decide(user: accounts.User) -> accounts.UserChange:
        return accounts.UserChange(
            msgspec.structs.replace(end_access(user, services.kv.now()), password=encoded)
        )

    return await accounts.change_user(name, decide, action="account password", by=by, reason=reason)


async def end_all(services: Services, name: str, *, by: str, reason: str) -> accounts.User:
    async def decide(user: accounts.User) -> accounts.UserChange:
        return accounts.UserChange(end_access(user, services.kv.now()))

    return await accounts.change_user(name, decide, action="signed out everywhere", by=by, reason=reason)


def end_access(user: accounts.User, now: int) -> accounts.User:
    return msgspec.structs.replace(user, signed_out_at=now, tokens=())


def by_an_admin(user: accounts.User) -> accounts.User:
    """The account's record where an admin decides whether it is disabled: no directory undoes that."""
    links = (
        link
        if link.directory is None
        else msgspec.structs.replace(link, directory=msgspec.structs.replace(link.directory, locked=False))
        for link in user.identities
    )
    return msgspec.structs.replace(user, identities=tuple(links))


async def _change(
    actor: Principal,
    request: ChangeAccount,
    verb: str,
    decide: DecideUser,
    details: Mapping[str, str] | None = None,
) -> ManagedAccount:
    changed = await accounts.change_user(
        request.name, decide, action=verb, by=actor.actor, reason=request.reason, details=details
    )
    return account_view(changed)


async def _without_tokens_beyond(
    services: Services, before: accounts.User, after: accounts.User
) -> accounts.User:
    """Remove the tokens with a scope that either role may not hold: they end with a demotion, and gain nothing by a
    promotion. A token that cannot be read is removed too, so that it blocks neither change."""
    allowed = set(SCOPES_OF[before.role]) & set(SCOPES_OF[after.role])
    entries = await read_entries(keys.token(token_hash) for token_hash in before.tokens)
    skips = Skips("change_role")
    found = {key: skips.decode(entry, Token) for key, entry in entries.items()}
    skips.report(services)
    kept = {key for key, token in found.items() if token is not None and allowed.issuperset(token.scopes)}
    left = tuple(token_hash for token_hash in after.tokens if keys.token(token_hash) in kept)
    return msgspec.structs.replace(after, tokens=left)


async def keeping_an_admin(before: accounts.User, after: accounts.User) -> accounts.UserChange:
    """The change, if another admin can still sign in; NotPermitted otherwise. The commit asserts the other admin, so
    two admins who disable each other do not both succeed."""
    was, stays = (user.role is accounts.Role.ADMIN and not user.disabled for user in (before, after))
    if stays or not was:
        return accounts.UserChange(after)
    for other, version in await accounts.find_admins():
        if other.name != before.name and not other.disabled:
            return accounts.UserChange(after, (Assert(keys.user(other.name), version),))
    message = f"{before.name} is the only admin; create another admin first."
    raise NotPermitted(message, account=before.name)


def account_view(user: accounts.User) -> ManagedAccount:
    return ManagedAccount.of(
        user,
        has_password=user.password is not None,
        github_login=user.github.login if user.github else None,
        identities=view_identities(user),
        tokens=len(user.tokens),
    )


def view_identities(user: accounts.User) -> tuple[IdentityView, ...]:
    return tuple(IdentityView.of(one, id=name_identity(one)) for one in user.linked)


LIST_ACCOUNTS = action(
    list_accounts,
    "account.list",
    ACCOUNTS,
    right=Right.ADMIN,
    summary="List accounts by name",
    command="admin list",
)
CREATE_ACCOUNT = action(
    create,
    "account.create",
    ACCOUNTS,
    right=Right.ADMIN,
    status=201,
    summary="Create an account",
    about="A generated password is in the answer, and nowhere else ever.",
    command="admin create",
)
CHANGE_ROLE = action(
    change_role,
    "account.role",
    f"{ACCOUNTS}/{{name}}/role",
    right=Right.ADMIN,
    errors=(NotFound, NotPermitted),
    summary="Give an account another role",
    about="Tokens whose scopes go beyond the old or the new role are revoked. The only admin stays admin.",
    command="admin role",
)
DISABLE_ACCOUNT = action(
    disable,
    "account.disable",
    f"{ACCOUNTS}/{{name}}/disable",
    right=Right.ADMIN,
    errors=(NotFound, NotPermitted),
    summary="Lock an account out",
    about="Its sessions and tokens end for good. You cannot lock out yourself or the only admin.",
    command="admin disable",
)
ENABLE_ACCOUNT = action(
    enable,
    "account.enable",
    f"{ACCOUNTS}/{{name}}/enable",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Let an account sign in again",
    about="It needs new tokens.",
    command="admin enable",
)
RESET_PASSWORD = action(
    reset_password,
    "account.reset-password",
    f"{ACCOUNTS}/{{name}}/password",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Give an account a new password",
    about="Its sessions end and its tokens are revoked. A generated password is in the answer, and nowhere else ever.",
    command="admin password",
)
SIGN_OUT_ACCOUNT = action(
    sign_out_account,
    "account.sign-out",
    f"{ACCOUNTS}/{{name}}/sign-out",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="End the sessions of an account and revoke its tokens",
    command="admin sign-out",
)

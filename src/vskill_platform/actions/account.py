"""One's own account: who am I, a new password, signing out everywhere."""

from typing import ClassVar

from vskill_platform.actions.accounts import ManagedAccount, account_view, end_all, set_password
from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.client.wire.account import AccountView, OwnAccount
from vskill_platform.client.wire.base import ActionRequest, Wire
from vskill_platform.domain.errors import InvalidInput, RateLimited
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.accounts import get_user
from vskill_platform.store.attempts import count_attempt
from vskill_platform.store.passwords import fits


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


async def who_am_i(_services: Services, actor: Principal, _request: OwnAccount) -> AccountView:
    if actor.account is None:
        return AccountView("", "operator", None)
    scopes = None if actor.scopes is None else tuple(sorted(actor.scopes))
    return AccountView(actor.account, actor.role.value if actor.role else "", scopes)


async def read_own_account(_services: Services, reader: Principal) -> ManagedAccount:
    """What the account's own page says about it."""
    return account_view(await get_user(own_name(reader)))


async def change_password(services: Services, actor: Principal, request: ChangeOwnPassword) -> SignedOut:
    """Every session and every token ends, because one of them may be why the password is changed. Guesses are counted
    by account, wherever they come from: whoever guesses holds a session or a token already."""
    user = await get_user(own_name(actor))
    await count_attempt(user.name, f"the account {user.name}")
    if user.password is None:
        message = f"{user.name} signs in without a password."
        raise InvalidInput(message, field="old", fix="ask an admin for a password")
    if not await fits(user.password, request.old):
        raise InvalidInput("The present password is wrong.", field="old", fix="type it again")
    await set_password(services, user.name, request.password, by=actor.actor, reason="changed by its owner")
    services.log.info("password changed", account=user.name)
    return SignedOut(signed_out=True)


async def sign_out_everywhere(services: Services, actor: Principal, _request: OwnAccount) -> SignedOut:
    await end_all(services, own_name(actor), by=actor.actor, reason="asked for it")
    return SignedOut(signed_out=True)


def own_name(actor: Principal) -> str:
    """The account that acts; InvalidInput for the operator, who has none."""
    if actor.account is None:
        raise InvalidInput("The operator has no account.", field="account", fix="add --as ACCOUNT")
    return actor.account


_NO_TOOL = Missing("an agent must not change the account that it acts for")

WHO_AM_I = Action(
    name="account.show",
    run=who_am_i,
    request=OwnAccount,
    answer=AccountView,
    method="GET",
    path="/api/v1/account",
    right=Right.SIGNED_IN,
    scope=TokenScope.READ,
    summary="Show your account and what it may do",
    tag="account",
    page="/account",
    command="whoami",
    mcp=Missing("an agent acts with the account of its token, and needs no name for it"),
)
CHANGE_PASSWORD = Action(
    name="account.password",
    run=change_password,
    request=ChangeOwnPassword,
    answer=SignedOut,
    path="/api/v1/account/password",
    right=Right.SIGNED_IN,
    scope=TokenScope.OWN,
    errors=(RateLimited,),
    summary="Change your password",
    about="Every session ends and every token is revoked, the one that asks too.",
    tag="account",
    page="/account/password",
    command="account password",
    mcp=_NO_TOOL,
)
SIGN_OUT_EVERYWHERE = Action(
    name="account.sign-out-all",
    run=sign_out_everywhere,
    request=OwnAccount,
    answer=SignedOut,
    method="DELETE",
    path="/api/v1/auth/sign-out-all",
    right=Right.SIGNED_IN,
    # Not `own`: the `vskill` client signs out with the token that it got, which may read and submit.
    scope=TokenScope.SUBMIT,
    summary="End every session, revoke every token",
    tag="account",
    page="/account/sign-out-all",
    command="account sign-out",
    mcp=_NO_TOOL,
)

ACTIONS = (WHO_AM_I, CHANGE_PASSWORD, SIGN_OUT_EVERYWHERE)

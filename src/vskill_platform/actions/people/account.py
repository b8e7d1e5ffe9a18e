"""What an account does for itself: see who it is, change its password, sign out everywhere."""

from typing import ClassVar

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_client.wire.skills import AccountView
from vskill_core.errors import InvalidInput, RateLimited
from vskill_platform.actions.action import Services, action, action_for
from vskill_platform.actions.people.accounts import ManagedAccount, account_view, end_all, set_password
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people.accounts import get_user
from vskill_platform.store.people.attempts import count_attempt
from vskill_platform.store.people.passwords import fits
from vskill_platform.store.people.refusals import note_refusal


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


async def who_am_i(actor: Principal, _request: NoParameters) -> AccountView:
    if actor.account is None:
        return AccountView("", "operator", None)
    scopes = None if actor.scopes is None else tuple(sorted(actor.scopes))
    return AccountView(actor.account, actor.role.value if actor.role else "", scopes)


async def read_own_account(reader: Principal) -> ManagedAccount:
    """The facts about the account that its own page shows."""
    return account_view(await get_user(own_name(reader)))


async def change_password(services: Services, actor: Principal, request: ChangeOwnPassword) -> SignedOut:
    """End every session and token, because one of them may be the reason for the change. Failed attempts are counted
    per account, whatever their address: the attacker already holds a session or a token."""
    user = await get_user(own_name(actor))
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

"""The account that asks."""

from vskill_client.wire.base import ActionRequest, Wire, call_for


class OwnAccount(ActionRequest, frozen=True, kw_only=True):
    """The account that asks."""


class AccountView(Wire, frozen=True):
    """Who is asking."""

    account: str
    role: str
    #: of the token that was shown; null for a session
    scopes: tuple[str, ...] | None


WHO_AM_I = call_for("account.show", "/api/v1/account", OwnAccount, AccountView)

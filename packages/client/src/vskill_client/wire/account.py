"""The account that asks."""

from vskill_client.wire.base import ActionRequest, RegistryCall, Wire


class OwnAccount(ActionRequest, frozen=True, kw_only=True):
    """The account that asks."""


class AccountView(Wire, frozen=True):
    """Who is asking."""

    account: str
    role: str
    #: of the token that was shown; null for a session
    scopes: tuple[str, ...] | None


WHO_AM_I: RegistryCall[OwnAccount, AccountView] = RegistryCall(
    name="account.show", method="GET", path="/api/v1/account", request=OwnAccount, answer=AccountView
)

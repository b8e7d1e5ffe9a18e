"""One's own account."""

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.checks import ActionRequest
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.wire import Wire
from vskill_platform.domain.token import TokenScope


class OwnAccount(ActionRequest, frozen=True, kw_only=True):
    """The account that asks."""


class AccountView(Wire, frozen=True):
    """Who is asking."""

    account: str
    role: str
    #: of the token that was shown; null for a session
    scopes: tuple[str, ...] | None


async def who_am_i(_services: Services, actor: Principal, _request: OwnAccount) -> AccountView:
    if actor.account is None:
        return AccountView("", "operator", None)
    scopes = None if actor.scopes is None else tuple(sorted(actor.scopes))
    return AccountView(actor.account, actor.role.value if actor.role else "", scopes)


WHO_AM_I = Action(
    name="account.show",
    run=who_am_i,
    request=OwnAccount,
    answer=AccountView,
    method="GET",
    path="/api/v1/account",
    right=Right.SIGNED_IN,
    scope=TokenScope.READ,
    summary="Who am I, and what may I do",
    tag="account",
    page="/account",
    command="whoami",
    mcp=Missing("an agent acts with the account of its token, and needs no name for it"),
)

ACTIONS = (WHO_AM_I,)

"""How commands call the registry of this machine: its actions, in this process."""

from typing import Any

from vskill_client.wire.base import Ans, RegistryCall, Req
from vskill_core.errors import NotFound
from vskill_platform.actions.action import Action, Services
from vskill_platform.actions.principal import OPERATOR, Principal
from vskill_platform.actions.table import ACTIONS
from vskill_platform.store.people.accounts import read_user
from vskill_platform.store.people.owners import groups_of
from vskill_platform.worker_context import require_env

_BY_NAME: dict[str, Action[Any, Any]] = {action.name: action for action in ACTIONS}


class LocalCaller:
    """Acts on this machine's store, as its operator or as an account."""

    def __init__(self, services: Services, principal: Principal) -> None:
        self._services = services
        self._principal = principal
        self.registry = ""
        self.pages = services.settings.public_url.rstrip("/")

    async def call(self, call: RegistryCall[Req, Ans], request: Req) -> Ans:
        answer: Ans = await _BY_NAME[call.name](self._services, self._principal, request)
        return answer


async def open_caller(account: str | None) -> LocalCaller:
    """A caller for the operator of this machine, or for an account in its name."""
    if account is None:
        return LocalCaller(require_env(), OPERATOR)
    user, _ = await read_user(account)
    if user is None:
        raise NotFound(f"There is no account {account[:80]!r}.", account=account[:80])
    principal = Principal(user.name, user.role, groups=await groups_of(user.name))
    return LocalCaller(require_env(), principal)

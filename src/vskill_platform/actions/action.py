"""What an action is: one thing that a person or a program may do, declared once.

An entry point (page, JSON route, command, MCP tool) turns what it got into the action's request struct, calls the
action, and renders the answer. Everything else happens here or in the action's own function: the check of rights and
of the request, the writes, and the audit entry in the same commit. `table` lists all actions.
"""

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic

import msgspec

from vskill_platform.actions.checks import check_request
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import ActionObject, Right, admit, require_right
from vskill_platform.actions.visibility import resolve
from vskill_platform.client.wire.base import Ans, RegistryCall, Req
from vskill_platform.domain.errors import NotPermitted, NotSignedIn, PlatformError
from vskill_platform.domain.token import TokenScope
from vskill_platform.env import Env
from vskill_platform.worker_context import run_with_worker_env

#: What an action may use: the resources of the process that runs it.
Services = Env


class Allowance(enum.StrEnum):
    """Kinds of requests that are counted, so that nobody takes more than their share."""

    SUBMISSIONS = "submissions"
    DISCOVERIES = "discoveries"
    INSTALLS = "installs"
    UPDATES = "check-updates"
    REPORTS = "reports"


class Keep(enum.StrEnum):
    """For how long the answer of a JSON route may be given again."""

    NEVER = "never"
    #: It carries a tag: a client that has it already is told so.
    BY_TAG = "by tag"
    #: It carries a tag, and the process keeps it until anything in the store changes.
    UNTIL_CHANGE = "until a change"


class Missing(msgspec.Struct, frozen=True):
    """Why an action has no entry point of a kind."""

    reason: str


class Action(RegistryCall[Req, Ans], Generic[Req, Ans], frozen=True, kw_only=True):
    """One action: a call, and what the registry does about it. Call it with services, a principal and a request."""

    run: Callable[[Services, Principal, Req], Awaitable[Ans]]
    #: Whether `web` declares this route itself, because it answers as other clients know it.
    route_by_hand: bool = False
    right: Right
    #: What a token needs.
    scope: TokenScope
    #: Loads what the right is about, where it is about an object.
    acts_on: Callable[[Services, Principal, Req], Awaitable[ActionObject]] | None = None
    #: Errors beyond those that follow from the declaration.
    errors: tuple[type[PlatformError], ...] = ()
    allowance: Allowance | None = None
    #: The media type of the answer.
    media: str = "application/json"
    #: What a body of bytes may hold at most.
    most_body: int = 0
    #: Only for reads whose answer depends on nothing but the request and what the reader may read.
    keep: Keep = Keep.NEVER
    status: int = 200
    #: Where the status depends on the answer.
    status_of: Callable[[Ans], int] | None = None
    #: Other successful answers, by status.
    others: Mapping[int, Any] = {}
    #: One sentence for the reference: a verb in the imperative and its object.
    summary: str
    about: str = ""
    tag: str
    #: The address of the page or form that offers it.
    page: str | Missing
    #: The words of the command.
    command: str | Missing
    #: The name of the tool.
    mcp: str | Missing

    def admit(self, principal: Principal) -> None:
        """Raise NotSignedIn or NotPermitted where no look at an object is needed to know."""
        admit(principal, self.right, self.scope)

    def allows(self, principal: Principal) -> bool:
        """Whether a page offers it to this principal, as far as no look at an object is needed to know."""
        try:
            self.admit(principal)
        except (NotSignedIn, NotPermitted):
            return False
        return True

    async def __call__(self, services: Services, actor: Principal, request: Req) -> Ans:
        """Check the rights and the request, then act."""
        self.admit(actor)
        checked = check_request(request)

        async def act() -> Ans:
            who = actor if actor.audiences is not None else await resolve(actor)
            if self.acts_on is not None:
                await require_right(who, self.right, await self.acts_on(services, who, checked))
            return await self.run(services, who, checked)

        # Stores find the environment through the worker context, and the audit names the token that is in it.
        return await run_with_worker_env(msgspec.structs.replace(services, acting_token=actor.token), act)

    @property
    def command_words(self) -> tuple[str, ...]:
        return () if isinstance(self.command, Missing) else tuple(self.command.split())

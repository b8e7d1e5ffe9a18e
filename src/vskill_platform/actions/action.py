"""What an action is: one thing that a person or a program may do, declared once.

An entry point (page, JSON route, command, MCP tool) turns what it got into the action's request struct, calls the
action, and renders the answer. Everything else happens here or in the action's own function: the check of rights and
of the request, the writes, and the audit entry in the same commit. `table` lists all actions.

A declaration says what cannot be derived: request and answer are those of the function's annotations, the scope of a
token follows from the right, the command has the words of the name, and a page or form names the action that it offers
(`web.routing`).
"""

import enum
from collections.abc import Awaitable, Callable, Mapping
from itertools import compress
from typing import Any, Generic, get_type_hints

import msgspec

from vskill_client.wire.base import ActionRequest, Ans, RegistryCall, Req
from vskill_core.errors import NotPermitted, NotSignedIn, PlatformError
from vskill_platform.actions.checks import check_request
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import ActionObject, Right, admit, require_right, scope_for
from vskill_platform.actions.visibility import resolve
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.env import Env
from vskill_platform.worker_context import run_with_worker_env

#: What an action may use: the resources of the process that runs it.
Services = Env
#: A function of an action: it is called with what it takes.
Run = (
    Callable[[Services, Principal, Req], Awaitable[Ans]]
    | Callable[[Services, Req], Awaitable[Ans]]
    | Callable[[Principal, Req], Awaitable[Ans]]
    | Callable[[Req], Awaitable[Ans]]
)

#: By subject, the part of the API's document, where that is not the subject's plural.
_TAGS = {
    "access": "namespaces",
    "audit": "operations",
    "block": "blocklist",
    "blocklist": "blocklist",
    "content": "operations",
    "dead-letter": "queue",
    "hand-in": "submissions",
    "job": "queue",
    "keys": "keys",
    "name": "skills",
    "notification": "account",
    "queue": "queue",
    "repository": "repositories",
    "rescan": "queue",
    "review": "review",
    "rule": "review",
    "scan": "external scans",
    "suppression": "review",
    "system": "operations",
    "team": "namespaces",
    "token": "account",
    "watch": "account",
}


class NoParameters(ActionRequest, frozen=True, kw_only=True):
    """The request of actions that need no parameters."""


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
    #: The words of the command; empty where there is none.
    command: str
    #: The name of the MCP tool, where there is one.
    mcp: str = ""

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


def action(
    run: Run[Req, Ans],
    name: str,
    path: str,
    *,
    right: Right,
    method: str = "POST",
    acts_on: Run[Req, ActionObject] | None = None,
    **declared: Any,
) -> Action[Req, Ans]:
    """Declare an action: request and answer are the annotations of `run`, and what else is left out follows from the
    right and the name."""
    kinds = get_type_hints(run, include_extras=True)
    answer = kinds.pop("return")
    subject = name.partition(".")[0]
    derived = {
        "scope": scope_for(right, method),
        "tag": _TAGS.get(subject, f"{subject}s"),
        "command": name.replace(".", " ").replace("_", "-"),
    }
    return Action(
        name=name,
        path=path,
        method=method,
        right=right,
        run=_call_with_what_it_takes(run),
        request=list(kinds.values())[-1],
        answer=None if answer is type(None) else answer,
        acts_on=None if acts_on is None else _call_with_what_it_takes(acts_on),
        **(derived | declared),
    )


def action_for(run: Run[Req, Ans], call: RegistryCall[Req, Ans], **declared: Any) -> Action[Req, Ans]:
    """Declare the action that answers a call of the client: its name and its way over HTTP are the call's."""
    wire: dict[str, Any] = {
        "method": call.method,
        "body_field": call.body_field,
        "body_media": call.body_media,
    }
    return action(run, call.name, call.path, **wire, **declared)


def _call_with_what_it_takes(run: Run[Req, Ans]) -> Callable[[Services, Principal, Req], Awaitable[Ans]]:
    """Leave out the services and the principal where the function does not take them."""
    kinds = get_type_hints(run).values()
    takes = (Services in kinds, Principal in kinds, True)
    function: Callable[..., Awaitable[Ans]] = run
    return lambda *given: function(*compress(given, takes))

"""What an action is: one thing that a person or a program may do, declared once.

An entry point (page, JSON route, command, MCP tool) turns what it got into the action's request struct, calls the
action, and renders the answer. Everything else happens here or in the action's own function: the check of rights and
of the request, the writes, and the audit entry in the same commit. `table` lists all actions.

A declaration says what cannot be derived: request and answer are those of the function's annotations, the scope of a
token follows from the right, the command has the words of the name, and a page or form names the action that it offers
(`web.routing`).
"""

import enum
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import compress
from typing import Annotated, Any, Generic, get_type_hints

import msgspec
from msgspec import inspect

from vskill_client.wire.base import ActionRequest, Ans, RegistryCall, Req
from vskill_core.capability import Lack
from vskill_core.errors import InvalidInput, NotPermitted, NotSignedIn, PlatformError
from vskill_core.identity import has_control_characters
from vskill_platform.actions.principal import (
    ActionObject,
    Principal,
    Right,
    about_own_repository,
    admit,
    require_right,
    resolve,
    scope_for,
)
from vskill_platform.actions.wire import wire_names
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.worker_context import Env, run_with_worker_env

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
    "bundle": "skills",
    "blocklist": "blocklist",
    "credential": "namespaces",
    "content": "operations",
    "dead-letter": "queue",
    "hand-in": "submissions",
    "job": "queue",
    "judge": "operations",
    "keys": "keys",
    "name": "skills",
    "notification": "account",
    "memory": "review",
    "policy": "review",
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


class Allowance(enum.StrEnum):
    """Kinds of requests that are counted, so that nobody takes more than their share."""

    SUBMISSIONS = "submissions"
    DISCOVERIES = "discoveries"
    INSTALLS = "installs"
    UPDATES = "check-updates"
    REPORTS = "reports"
    LOGINS = "logins"


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
    #: Whether a CI job may do it, about its own repository. What else it asks for is refused.
    for_ci: bool = False

    def admit(self, principal: Principal) -> None:
        """Raise NotSignedIn or NotPermitted where no look at an object is needed to know."""
        if self.for_ci and principal.ci is not None:
            return
        admit(principal, self.right, self.scope)

    def allows(self, principal: Principal) -> bool:
        """Whether a page offers it to this principal, as far as no look at an object is needed to know."""
        try:
            self.admit(principal)
        except (NotSignedIn, NotPermitted):
            return False
        return True

    async def __call__(self, services: Services, actor: Principal, request: Req) -> Ans:
        """Check the rights and the request, then act. A refusal is audited."""

        async def act() -> Ans:
            try:
                who = about_own_repository(actor if actor.audiences is not None else await resolve(actor))
                self.admit(who)
                checked = check_request(request)
                if self.acts_on is not None:
                    await require_right(who, self.right, await self.acts_on(services, who, checked))
                return await self.run(services, who, checked)
            except (NotSignedIn, NotPermitted) as error:
                await refuse(actor, self.name, error, (getattr(request, one) for one in self.path_fields))
                raise

        # Stores find the environment through the worker context, and the audit names who is in it.
        env = msgspec.structs.replace(services, acting_token=actor.token, acting_session=actor.session)
        return await run_with_worker_env(env, act)


async def refuse(actor: Principal, wanted: str, error: PlatformError, objects: Iterable[object] = ()) -> None:
    await note_refusal(
        wanted,
        error.message,
        target=" ".join(map(str, objects)),
        by=actor.actor,
        token=actor.token,
        session=actor.session,
    )


def action(
    run: Run[Req, Ans],
    name: str,
    path: str,
    *,
    right: Right,
    method: str = "",
    acts_on: Run[Req, ActionObject] | None = None,
    **declared: Any,
) -> Action[Req, Ans]:
    """Declare an action: request and answer are the annotations of `run`, and what else is left out follows from the
    right and the name: what lists or shows is read."""
    kinds = get_type_hints(run, include_extras=True)
    answer = kinds.pop("return")
    subject, verb = name.split(".", 1)
    method = method or ("GET" if verb.startswith(("list", "show")) else "POST")
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


class Actions(msgspec.Struct, frozen=True):
    """What actions on records of one kind share. Each is at its verb behind the path of a record, unless it says
    otherwise."""

    subject: str
    #: of one record, such as `/api/v1/webhooks/{name}`
    path: str
    shared: Mapping[str, Any]

    def __call__(self, run: Run[Req, Ans], verb: str, summary: str, **declared: Any) -> Action[Req, Ans]:
        derived = {"name": f"{self.subject}.{verb}", "path": f"{self.path}/{verb}", "summary": summary}
        return action(run, **{**derived, **self.shared, **declared})


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


# Checks that every request goes through, whichever entry point it came from: types and limits as its struct declares
# them, and text without control characters.

MOST_REASON = 2_000
#: Why somebody acts: never empty, shown in the history and kept in the audit.
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_REASON)]
AccountName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
NamespaceName = Annotated[
    str, msgspec.Meta(max_length=200, pattern=r"^[^/:\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+$")
]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
#: Fields with a pattern, in words for messages.
FORMS = {
    "digest": "64 hexadecimal digits",
    "namespace": "the first part of a skill's name, such as acme",
    "url": "an address such as https://host/path",
    "without": f"some of {', '.join(Lack)}, separated by commas",
}
#: How msgspec's complaints begin, and what is said instead; `last` is the complaint's last word.
COMPLAINTS = (
    ("Object missing required field ", "{field} is missing.", "give {field}"),
    ("Object contains unknown field ", "There is no field {last}.", "leave it out"),
    ("Expected `str` of length >= 1 ", "A {words} is needed.", "give a {words}"),
    ("Expected `str` of length <= ", "{field} is too long.", "use at most {last} characters"),
    ("Expected `array` of length >= 1 ", "At least one of {field} is needed.", "give at least one"),
    ("Expected `array` of length <= ", "{field} has too many entries.", "give at most {last}"),
    ("Expected `int`, got", "{field} is not a number.", "write a whole number"),
    ("Expected `int` <= ", "{field} is out of range.", "give at most {last}"),
    ("Expected `int` >= ", "{field} is out of range.", "give at least {last}"),
)
#: Where a page of a list begins: what the page before answered.
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


def check_request(request: Req) -> Req:
    """The request with its texts stripped; InvalidInput names the field and the fix."""
    kind = type(request)
    plain = msgspec.to_builtins(_strip_texts(request), builtin_types=(bytes,))
    try:
        checked = msgspec.convert(plain, type=kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), kind) from None
    for field, text in (*_texts(checked), *_listed_texts(checked)):
        if has_control_characters(text.replace("\n", " ").replace("\t", " ")):
            raise InvalidInput(f"{field} has control characters.", field=field, fix="remove them")
    return checked


def _strip_texts(request: Req) -> Req:
    texts = {field: text.replace("\r\n", "\n").strip() for field, text in _texts(request)}
    return msgspec.structs.replace(request, **texts) if texts else request


def _texts(request: msgspec.Struct) -> Iterator[tuple[str, str]]:
    secrets = request.SECRETS if isinstance(request, ActionRequest) else frozenset()
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if type(value) is str and field not in secrets:
            yield field, value


def _listed_texts(request: msgspec.Struct) -> Iterator[tuple[str, str]]:
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if isinstance(value, tuple):
            yield from ((field, one) for one in value if type(one) is str)


def invalid_request(message: str, kind: type[msgspec.Struct]) -> InvalidInput:
    """Msgspec's complaint about a request as an error that names the field, in Python's spelling, and the fix."""
    ours = {shown: name for name, shown in wire_names(kind).items()}
    what, place = split_complaint(message)
    first = place.partition(".")[0].partition("[")[0]
    field = place.replace(first, ours.get(first, first), 1) if place else "request"
    return explain_complaint(what, field, values_at(kind, place))


def split_complaint(message: str) -> tuple[str, str]:
    """What msgspec complains about, and the path of the field; empty for the whole value."""
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".")
    if what.startswith("Object missing required field "):
        place = ".".join(filter(None, (place, what.rpartition(" ")[2].strip("`"))))
    return what, place


def values_at(kind: Any, place: str) -> tuple[str, ...]:
    """The values that the field at this path may have, if there are only a few."""
    return _values(inspect.type_info(kind), [part.partition("[")[0] for part in place.split(".") if part])


def _values(info: inspect.Type, path: list[str]) -> tuple[str, ...]:
    if isinstance(info, inspect.UnionType):
        return next(filter(None, (_values(one, path) for one in info.types)), ())
    if isinstance(info, inspect.VarTupleType | inspect.ListType | inspect.SetType | inspect.FrozenSetType):
        return _values(info.item_type, path)
    if isinstance(info, inspect.StructType) and path:
        fields = {field.encode_name: field.type for field in info.fields}
        return _values(fields[path[0]], path[1:]) if path[0] in fields else ()
    if isinstance(info, inspect.EnumType):
        return tuple(str(one.value) for one in info.cls)
    return tuple(map(str, info.values)) if isinstance(info, inspect.LiteralType) else ()


def explain_complaint(what: str, field: str, values: tuple[str, ...]) -> InvalidInput:
    """Msgspec's complaint about a field as a sentence, with the fix."""
    last = what.rpartition(" ")[2].strip("`'")
    if what.startswith("Invalid enum value "):
        fix = f"use one of {', '.join(values)}" if values else "choose a known value"
        return InvalidInput(f"{field} cannot be {last!r}.", field=field, fix=fix)
    if what.startswith("Expected `str` matching regex") and field in FORMS:
        return InvalidInput(f"{field} is not valid.", field=field, fix=f"give {FORMS[field]}")
    for beginning, sentence, fix in COMPLAINTS:
        if f"{what} ".startswith(beginning):
            words = field.replace("_", " ")
            advice = "say in a few words why" if fix == "give a {words}" and field == "reason" else fix
            filled = {"field": field, "words": words, "last": last}
            return InvalidInput(sentence.format(**filled), field=field, fix=advice.format(**filled))
    return InvalidInput(f"{field}: {what}.", field=field, fix=what)

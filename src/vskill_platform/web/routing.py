"""How a route is declared: its path, its view, who may use it, and every parameter that it understands.

An `Endpoint` is one declaration for the application's routes, the OpenAPI document and the tests. Unknown query
parameters are refused, so that a misspelt filter never looks like an empty answer (E4). Only pages ignore them: links
get foreign parameters (`utm_source`). Admin pages do not, where a misspelt filter would select too much.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import re2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from vskill_client.wire.base import Asked
from vskill_core.errors import (
    CrossSite,
    InvalidInput,
    LimitExceeded,
    NotPermitted,
    NotSignedIn,
    StoreUnavailable,
)
from vskill_core.foreign_json import read_json
from vskill_core.identity import has_control_characters
from vskill_platform.actions.action import (
    FORMS,
    Action,
    Allowance,
    explain_complaint,
    refuse,
    split_complaint,
    values_at,
)
from vskill_platform.actions.principal import Principal, require_entry, resolve
from vskill_platform.actions.telling.notifications import count_for_header
from vskill_platform.actions.wire import DECLARED_AS
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.web import auth
from vskill_platform.web.door.limits import client_of, take
from vskill_platform.web.exchange import services_of
from vskill_platform.web.problems import wants_page
from vskill_platform.worker_context import run_with_worker_env

#: Patterns of documented path parameters, by name; the others are any name.
PATH_PATTERNS = {"digest": "^[0-9a-f]{64}$", "letter_id": "^(0|[1-9][0-9]{0,17})$"}

View = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")

#: Default limit of a request's body.
MOST_BODY = 1_000_000
#: No route of ours takes half as many.
MOST_PARAMETERS = 50


class NoQuery(Asked, frozen=True):
    """This address takes no parameters."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one address."""

    method: str
    path: str
    view: View
    #: What it does: the action's right and scope decide who may use the route. None: everybody may.
    action: Action[Any, Any] | None = None
    #: Names of other actions that it offers, or whose answers it shows; the reference says so.
    shows: tuple[str, ...] = ()
    #: Why a method that could change something belongs to no action.
    no_scope: str = ""
    #: The query parameters, as a struct that forbids unknown fields; read with `query_of`.
    query: type[msgspec.Struct] = NoQuery
    #: The JSON body; read with `body_of`.
    body: Any = None
    #: A body of another kind: its media type, for the document.
    body_media: str = ""
    #: What a successful answer holds; None is no JSON.
    answer: Any = None
    status: int = 200
    #: One sentence for the reference.
    summary: str = ""
    #: More about it, where a sentence does not do.
    about: str = ""
    tag: str = ""
    media: str = "application/json"
    #: Other successful answers: their status and what they hold.
    others: Mapping[int, Any] = {}
    #: Refusals beyond those that follow from the declaration.
    problems: tuple[int, ...] = ()
    #: Rate-limit bucket; None means unlimited.
    allowance: Allowance | None = None
    #: What the body may hold at most, in bytes.
    most_body: int = MOST_BODY
    #: A page's form: what it sends must carry the page's secret.
    is_form: bool = False
    #: Sign-in endpoint: an expired bearer token is ignored instead of answered with 401.
    signs_in: bool = False
    #: Open to anonymous requests even in an internal registry; it reads nothing that anybody published.
    stays_open: bool = False
    #: It works without the store, which decides who may read, from what the process knows itself.
    needs_no_store: bool = False
    #: It streams for as long as the client listens.
    is_stream: bool = False
    #: It changes nothing, whatever its method, so an invalid token does not matter.
    reads_only: bool = False
    #: Git asks: it sends a token only where a 401 asks for one, and shows an error only as plain text.
    for_git: bool = False
    #: Anonymous requests for what they cannot read get a 401, whether it exists or not.
    challenges: bool = False
    #: Part of the API, and so of its document; pages are not.
    documented: bool = True

    @property
    def ignores_unknown(self) -> bool:
        is_page = self.media == "text/html" and not self.path.startswith("/admin")
        return self.method == "GET" and (is_page or self.path.startswith("/scim/"))

    @property
    def shows_header(self) -> bool:
        """Whether it answers with a whole page, whose header shows the number of unread notifications. Routes that work
        without the store, or without authentication, show none."""
        is_page = self.method == "GET" and self.media == "text/html"
        return is_page and not (self.needs_no_store or self.stays_open)

    @property
    def token_scope(self) -> str | None:
        return None if self.action is None else self.action.scope.value

    @property
    def changes_state(self) -> bool:
        return self.method != "GET" and not self.reads_only

    def __post_init__(self) -> None:
        if self.method != "GET" and (self.action is None) is not bool(self.no_scope):
            raise TypeError(
                f"{self.method} {self.path} declares its action, or in no_scope why a token needs no scope for it"
            )


def get(path: str, view: View, **declared: Any) -> Endpoint:
    """A route for reading (GET and HEAD)."""
    return Endpoint(method="GET", path=path, view=view, **declared)


def post(path: str, view: View, **declared: Any) -> Endpoint:
    return Endpoint(method="POST", path=path, view=view, **declared)


def page(path: str, view: View, **declared: Any) -> Endpoint:
    return get(path, view, media="text/html", documented=False, **declared)


def form(path: str, view: View, **declared: Any) -> Endpoint:
    return post(path, view, media="text/html", documented=False, is_form=True, **declared)


def part_of(
    kind: type[msgspec.Struct], names: Iterable[str], base: type[msgspec.Struct]
) -> type[msgspec.Struct]:
    """A struct of some fields of a request, with their types, defaults and descriptions: what a query or a body
    holds."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        if field.name not in names:
            continue
        if field.default is not msgspec.NODEFAULT:
            fields.append((field.name, field.type, field.default))
        elif field.default_factory is not msgspec.NODEFAULT:
            fields.append((field.name, field.type, msgspec.field(default_factory=field.default_factory)))
        else:
            fields.append((field.name, field.type))
    namespace = {"__doc__": kind.__doc__, DECLARED_AS: kind}
    return msgspec.defstruct(
        kind.__name__, fields, bases=(base,), namespace=namespace, frozen=True, kw_only=True
    )


async def answer(endpoint: Endpoint, request: Request) -> Response:
    """Authenticate, authorise, validate, rate-limit, then call the view."""
    scope = request.scope
    principal = await auth.authenticate(request, with_token=not endpoint.signs_in)
    if principal.account is None:
        principal = msgspec.structs.replace(principal, address=client_of(request))
    if not endpoint.stays_open:
        principal = await _resolve(endpoint, principal)
    scope["principal"] = principal
    if auth.has_bad_token(request) and endpoint.changes_state:
        raise NotSignedIn(auth.BAD_TOKEN)
    try:
        _let_in(endpoint, principal)
        if endpoint.method != "GET":
            await auth.check_csrf(request, is_form=endpoint.is_form)
    except (NotSignedIn, NotPermitted, CrossSite) as error:
        is_unknown = isinstance(error, NotSignedIn)
        if is_unknown and auth.has_bad_token(request):
            raise NotSignedIn(auth.BAD_TOKEN) from None
        if is_unknown and endpoint.method == "GET" and endpoint.media == "text/html":
            return auth.to_sign_in(request)
        wanted = endpoint.path if endpoint.action is None else endpoint.action.name
        await refuse(principal, wanted, error, request.path_params.values())
        raise
    scope["query"] = parse_query(
        request,
        endpoint.query,
        skip_empty=not endpoint.documented,
        ignore_unknown=endpoint.ignores_unknown,
    )
    if endpoint.documented:
        check_path(scope["path_params"])
    if endpoint.allowance is not None:
        await take(request, endpoint.allowance)
    return auth.set_form_cookie(request, await _view(endpoint, request, principal))


async def answer_unknown(request: Request, error: HTTPException) -> Response:
    """Raise the error for an unknown path or method. If only accounts may read, anonymous requests get the same answer
    as at every other path."""
    principal = request.scope["principal"] = await resolve(await auth.authenticate(request))
    try:
        require_entry(principal)
    except NotSignedIn:
        if request.method == "GET" and wants_page(request) and not auth.has_bad_token(request):
            return auth.to_sign_in(request)
        raise
    raise error


async def _resolve(endpoint: Endpoint, principal: Principal) -> Principal:
    try:
        return await resolve(principal)
    except StoreUnavailable:
        if not endpoint.needs_no_store:
            raise
        return msgspec.structs.replace(principal, audiences=PUBLIC_ONLY)


def _let_in(endpoint: Endpoint, principal: Principal) -> None:
    if not endpoint.stays_open:
        is_page = endpoint.media == "text/html"
        require_entry(principal, lets_jobs_in=endpoint.action is not None and not is_page)
    if endpoint.action is not None:
        endpoint.action.admit(principal)


async def _view(endpoint: Endpoint, request: Request, principal: Principal) -> Response:
    """Call the view. The page's header may show unread notifications; audit entries name the token that was used."""
    if endpoint.shows_header and request.headers.get("hx-request-type") != "partial":
        request.scope["unread"] = await count_for_header(principal)
    if principal.token is None and not principal.session:
        return await endpoint.view(request)
    env = msgspec.structs.replace(
        services_of(request), acting_token=principal.token, acting_session=principal.session
    )
    request.scope["services"] = env
    return await run_with_worker_env(env, lambda: endpoint.view(request))


# What a request brings.


def check_path(parts: Mapping[str, str]) -> None:
    """Check the parts of the path before anything is looked up; InvalidInput names the part."""
    for name, value in parts.items():
        if has_control_characters(value):
            raise InvalidInput(f"{name} has control characters.", field=name, fix="remove them")
        if name in PATH_PATTERNS and not re2.fullmatch(PATH_PATTERNS[name], value):
            fix = f"give {FORMS.get(name, 'a whole number')}"
            raise InvalidInput(f"{value[:80]!r} is not a valid {name}.", field=name, fix=fix)


def query_of(request: Request, kind: type[T]) -> T:
    found: T = request.scope["query"]
    if type(found) is not kind:
        raise TypeError(f"the route declares {type(found).__name__}, its view asks for {kind.__name__}")
    return found


async def body_of(request: Request, kind: type[T], limit: int = MOST_BODY) -> T:
    return decode_body(await read_body(request, limit), kind)


def decode_body(data: bytes, kind: type[T]) -> T:
    try:
        return read_json(data, kind)
    except msgspec.ValidationError as error:
        raise invalid(str(error), kind, "body") from None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error}", field="body", fix="send a JSON object") from None


async def read_body(request: Request, limit: int = MOST_BODY) -> bytes:
    """The whole body, whether its length was declared or it comes in chunks, up to a limit."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def limit_body(receive: Receive, headers: list[tuple[bytes, bytes]], limit: int) -> Receive:
    """Wrap `receive` so that reading more than `limit` bytes of the body raises LimitExceeded."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise _too_large(limit)
    size = 0

    async def counting() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return counting


def _too_large(limit: int) -> LimitExceeded:
    return LimitExceeded(
        f"The body is larger than {limit:,} bytes.", field="body", fix="send a smaller body", allowed=limit
    )


def parse_query(
    request: Request, kind: type[T], *, skip_empty: bool = False, ignore_unknown: bool = False
) -> T:
    """The parameters as the struct; repeated and unknown names are refused. `skip_empty` drops fields that a form left
    empty; `ignore_unknown` drops unknown ones."""
    sent: bytes = request.scope["query_string"]
    if not sent:
        return _convert({}, kind)
    if sent.count(b"&") >= MOST_PARAMETERS:
        raise InvalidInput(
            f"The address has more than {MOST_PARAMETERS} query parameters.", field="query", fix="give fewer"
        )
    known = getattr(kind, "__struct_encode_fields__", ())
    pairs = [pair for pair in request.query_params.multi_items() if not ignore_unknown or pair[0] in known]
    double = repeated_name(name for name, _ in pairs)
    if double is not None:
        message = f"The query parameter {double[:80]!r} is given more than once."
        raise InvalidInput(message, field=double[:80], fix="give it once")
    given = dict(pairs)
    for name in given:
        if name not in known:
            fix = f"use only {', '.join(known)}" if known else "leave it out: this address takes none"
            raise InvalidInput(
                f"There is no query parameter {name[:80]!r} here; {fix}.", field=name[:80], fix=fix
            )
    if skip_empty:
        given = {name: value for name, value in given.items() if value.strip()}
    return _convert(given, kind)


def repeated_name(names: Iterable[str]) -> str | None:
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _convert(given: dict[str, str], kind: type[T]) -> T:
    if any(value.lower() == "null" for value in given.values()):
        _refuse_null(given, kind)
    try:
        return msgspec.convert(given, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(str(error), kind, "query") from None


def _refuse_null(given: dict[str, str], kind: type[T]) -> None:
    """Refuse the word `null`: the conversion would take it for no value, and a filter would match everything. For a
    text field it is a value."""
    for name, value in given.items():
        if value.lower() == "null" and not _takes_text({name: value}, kind):
            raise InvalidInput(f"{name}: {value!r} is not valid.", field=name, fix="leave it out")


def _takes_text(given: dict[str, str], kind: type[T]) -> bool:
    try:
        found = msgspec.convert(given, type=kind, strict=False)
    except msgspec.ValidationError:
        # Another parameter is missing; the conversion of the whole reports errors of this one.
        return True
    fields = getattr(kind, "__struct_fields__", ())
    return any(getattr(found, field) in given.values() for field in fields)


def invalid(message: str, kind: Any, root: str) -> InvalidInput:
    """Msgspec's complaint as an error that names the field as it was sent; `root` names the whole value."""
    what, place = split_complaint(message)
    return explain_complaint(what, place or root, values_at(kind, place))

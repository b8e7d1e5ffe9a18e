"""Pages and forms that are declared by the actions behind them. A page names the actions whose answers it shows; a form
names the action that it asks for and what is said when that is done. Errors are shown on the page that the form is on,
and dangerous actions need a confirmation."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import inspect
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, iso_time
from vskill_core.errors import CrossSite, InvalidInput, NotSignedIn, PlatformError
from vskill_platform.actions.action import Action, check_request, invalid_request
from vskill_platform.actions.people.teams import split_names
from vskill_platform.web import routing
from vskill_platform.web.api.names import asked_name
from vskill_platform.web.auth import clear_flash, flash_of, form_of, safe_next, see_other, text_of, values_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.admin_areas import areas_for
from vskill_platform.web.render import render
from vskill_platform.web.routing import Endpoint, View, page, part_of, query_of

Req = TypeVar("Req", bound=msgspec.Struct)
Ans = TypeVar("Ans")

_SERVER_ERROR = 500


def answer_page(
    path: str,
    template: str,
    takes: tuple[str, ...] = (),
    *,
    query: type[msgspec.Struct] | None = None,
    action: Action[Any, Any] | None = None,
    **shown: Any,
) -> Endpoint:
    """An admin page that shows the answers of actions, each by its name in the template: `shown` is an action, one with
    the request that it is asked with, or else what the page always shows. The first action is the one that the page is
    for, unless `action` is. The page takes the fields of its request that stand in its path, and the parameters that
    `takes` names, or those of `query`; the template finds these parameters in `asked`."""
    answers = {name: one if isinstance(one, tuple) else (one, None) for name, one in shown.items()}
    asked_of = {name: pair for name, pair in answers.items() if isinstance(pair[0], Action)}
    (first_name, (first, _)), *others = asked_of.items()
    parameters = query or part_of(first.request, takes, Asked)
    always = {name: one for name, one in shown.items() if name not in asked_of}
    in_path = tuple(name for name in first.request.__struct_fields__ if f"{{{name}}}" in path)

    async def show(request: Request) -> Response:
        services, reader, asked = services_of(request), principal_of(request), query_of(request, parameters)
        given = {name: getattr(asked, name) for name in takes}
        given |= {name: request.path_params[name] for name in in_path}
        found = {first_name: await first(services, reader, first.request(**given))}
        for name, (other, wanted) in others:
            found[name] = await other(services, reader, wanted or other.request())
        now = iso_time(services.kv.now())
        return admin_page(request, template, asked=asked, now=now, **always, **found)

    names = tuple(other.name for _, (other, _) in others)
    return page(path, show, action=action or first, query=parameters, shows=names)


def form(
    path: str,
    action: Action[Req, Ans],
    done: str | Callable[[Ans, Req], str] = "",
    *,
    at: str,
    to: str = "",
    shown_by: Endpoint | None = None,
    confirm: bool = False,
    tells: tuple[type[PlatformError], ...] = (),
    view: View | None = None,
    **declared: Any,
) -> Endpoint:
    """What a form on the page `at` is sent to. Its fields make the action's request, and `done` is shown on the page
    `to`, or else the one that the form names in `back`, or else `at`; their parts in braces are those of `path`. With
    `shown_by`, that page answers instead and shows what was made, once. `tells` are errors of other systems that are
    shown as a refusal is. A `view` answers in its own way instead."""

    async def act(request: Request) -> Response:
        if confirm:
            await require_confirmed(request)
        asked = check_request(await form_request(request, action))
        answer = await action(services_of(request), principal_of(request), asked)
        if shown_by is not None:
            request.scope.update(query=shown_by.query(), made=answer)
            return await shown_by.view(request)
        where = _fill(to, request) if to else await back_of(request, _fill(at, request))
        return see_other(request, where, done if isinstance(done, str) else done(answer, asked))

    async def show_refusal(request: Request) -> Response:
        try:
            return await (view or act)(request)
        except PlatformError as error:
            is_told = error.status < _SERVER_ERROR or isinstance(error, tells)
            is_person = principal_of(request).token is None
            if not is_told or isinstance(error, CrossSite | NotSignedIn) or not is_person:
                raise
            return see_other(request, await back_of(request, _fill(at, request)), error.in_words, "bad")

    return routing.form(path, show_refusal, action=action, allowance=action.allowance, **declared)


def _fill(address: str, request: Request) -> str:
    return address.format_map({name: quote(part, safe="") for name, part in request.path_params.items()})


async def act_by_form(request: Request, action: Action[Req, Ans], **given: object) -> Ans:
    """Call an action with what a form sent. `given` is what the form does not say itself."""
    return await action(
        services_of(request), principal_of(request), await form_request(request, action, **given)
    )


async def form_request(request: Request, action: Action[Req, Any], **given: object) -> Req:
    """The action's request, made of the address and the form's fields. An empty field is one that was left out; one of
    many values may be sent more than once, and with spaces, commas or lines between them. A file is its bytes."""
    kind = action.request
    sent = {**await form_of(request), **request.path_params}
    if "slug" in request.path_params:
        sent["skill"] = asked_name(request)
    values: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        text = sent.get(field.name)
        if isinstance(inspect.type_info(field.type), inspect.VarTupleType):
            values[field.encode_name] = split_names(*await values_of(request, field.name))
        elif isinstance(text, str) and (text.strip() or field.required):
            values[field.encode_name] = text
        elif isinstance(text, UploadFile):
            values[field.encode_name] = await text.read()
            # It may be a file on disk.
            await text.close()
    wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    values |= {wire[name]: value for name, value in given.items()}
    try:
        return msgspec.convert(values, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), kind) from None


async def back_of(request: Request, default: str) -> str:
    """The page that the form came from, if it is a page of this site."""
    try:
        return safe_next(await text_of(request, "back"), default)
    except InvalidInput:
        return default


async def require_confirmed(request: Request) -> None:
    if await text_of(request, "confirm") != "yes":
        raise InvalidInput("Nothing was changed", field="confirm", fix="tick the box to confirm")


def admin_page(request: Request, template: str, **context: object) -> Response:
    areas = areas_for(request.app.endpoints, principal_of(request))
    return private_page(request, f"admin/{template}", areas=areas, **context)


def private_page(request: Request, template: str, **context: object) -> Response:
    """A page of somebody's own: `no-store`, with the flash message on top, and with what a form has just made."""
    made = request.scope.get("made")
    shown = page_with_flash(request, template, 200 if made is None else 201, made=made, **context)
    shown.headers["cache-control"] = "no-store"
    return shown


def page_with_flash(request: Request, template: str, status: int = 200, /, **context: object) -> Response:
    """A page with the message of the form that led to it."""
    return clear_flash(request, render(request, template, status, flash=flash_of(request), **context))

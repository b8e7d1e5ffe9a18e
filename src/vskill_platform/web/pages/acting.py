"""Shared parts of the views behind forms: errors are shown on the page that the form came from, dangerous actions
need a confirmation, and every decision needs a reason."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.action import Action
from vskill_platform.actions.checks import invalid_request
from vskill_platform.domain.errors import CrossSite, InvalidInput, NotSignedIn, PlatformError
from vskill_platform.web.auth import form_of, safe_next, text_of
from vskill_platform.web.flash import clear_flash, flash_of, see_other
from vskill_platform.web.pages.admin_areas import areas_for
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import View

Req = TypeVar("Req", bound=msgspec.Struct)
Ans = TypeVar("Ans")

_SERVER_ERROR = 500


def acting(back: str) -> Callable[[View], View]:
    """Decorate a form's view: an error becomes a message on the previous page, which the form or `back` names."""

    def decorate(view: Callable[[Request], Awaitable[Response]]) -> View:
        async def wrapped(request: Request) -> Response:
            try:
                return await view(request)
            except PlatformError as error:
                is_person = principal_of(request).token is None
                if (
                    error.status >= _SERVER_ERROR
                    or isinstance(error, CrossSite | NotSignedIn)
                    or not is_person
                ):
                    raise
                return see_other(request, await back_of(request, back), error.in_words, "bad")

        return wrapped

    return decorate


async def act_by_form(request: Request, action: Action[Req, Ans], **given: object) -> Ans:
    """Call an action with what a form sent. `given` is what the form does not say itself."""
    return await action(
        services_of(request), principal_of(request), await form_request(request, action, **given)
    )


async def form_request(request: Request, action: Action[Req, Any], **given: object) -> Req:
    """The action's request, made of the address and the form's fields. An empty field is one that was left out."""
    kind = action.request
    wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    sent = await form_of(request)
    values: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        text = request.path_params.get(field.name, sent.get(field.name))
        if isinstance(text, str) and (text.strip() or field.required):
            values[wire[field.name]] = text
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
    """Require the confirmation checkbox."""
    if await text_of(request, "confirm") != "yes":
        raise InvalidInput("Nothing was changed", field="confirm", fix="tick the box to confirm")


async def number_of(request: Request, name: str) -> int:
    """A whole number in a form."""
    text = await text_of(request, name, 20)
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{name} is not a number", field=name, fix="write a whole number")
    return int(text)


def admin_page(request: Request, template: str, status: int = 200, **context: object) -> Response:
    """Render an admin page: `no-store`, with the flash message on top."""
    areas = areas_for(principal_of(request))
    shown = render(request, f"admin/{template}", status, flash=flash_of(request), areas=areas, **context)
    shown.headers["cache-control"] = "no-store"
    return clear_flash(request, shown)

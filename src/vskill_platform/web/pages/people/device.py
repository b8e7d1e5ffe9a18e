"""Signing a machine in that has no browser (RFC 8628): what it asks, in the form in which `clawhub login` asks it, and
the page on which a person types its code and decides.

The code is typed, never part of a link: whoever is sent one cannot be led to press a button.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.login import GRANT, AskForCode, AskForToken, CodeAnswer, DeviceToken
from vskill_core.errors import InvalidInput, LoginPending, NotFound, NotPermitted, RateLimited
from vskill_core.identity import has_control_characters
from vskill_platform.actions.action import Allowance
from vskill_platform.actions.people import tokens
from vskill_platform.actions.people.account import read_own_account
from vskill_platform.domain.people.token import SCOPES_OF, TokenScope
from vskill_platform.store.people import device_codes
from vskill_platform.store.people.accounts import find_enabled
from vskill_platform.store.people.attempts import count_attempt, forget_attempts
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.web.auth import text_of, values_of
from vskill_platform.web.door.limits import client_of
from vskill_platform.web.exchange import JSON_TYPE, principal_of, public_address, services_of
from vskill_platform.web.pages.acting import page_with_flash
from vskill_platform.web.routing import body_of, form, page, post

PAGE = "/device"


# The machine.


async def begin(request: Request) -> Response:
    body = await body_of(request, AskForCode)
    if has_control_characters(body.label):
        raise InvalidInput("The label has control characters.", field="label", fix="remove them")
    code, secret = await device_codes.make_code(body.label.strip() or "a command line", client_of(request))
    shown = f"{code[: device_codes.LENGTH // 2]}-{code[device_codes.LENGTH // 2 :]}"
    where = f"{public_address(request)}{PAGE}"
    return _answer(CodeAnswer(secret, shown, where, device_codes.LIFE_MS // 1000, device_codes.INTERVAL_S))


async def finish(request: Request) -> Response:
    services, body = services_of(request), await body_of(request, AskForToken)
    if body.grant_type != GRANT:
        raise _refusal(
            "unsupported_grant_type", "The grant type is not known.", "grant_type", f"send {GRANT}"
        )
    try:
        answered = await device_codes.take_code(body.device_code)
    except NotFound as error:
        await note_refusal("sign-in", "device code: there is none, or it has expired")
        raise _refusal("expired_token", error.message) from None
    if answered is None:
        pending = LoginPending()
        raise LoginPending(error=pending.code, error_description=pending.message)
    account = await find_enabled(answered.account)
    if not answered.scopes or account is None or account.signed_out_at >= answered.answered_at:
        await note_refusal("sign-in", "device code: refused, or ended since", account=answered.account)
        raise _refusal("access_denied", "The sign-in was refused.")
    made = await tokens.issue_token(
        services,
        account.name,
        answered.label,
        map(TokenScope, answered.scopes),
        by=f"user:{account.name}",
        expires_at=services.kv.now() + tokens.DEFAULT_DAYS * tokens.DAY_MS,
    )
    return _answer(DeviceToken(made.token, "bearer", " ".join(made.details.scopes)))


def _refusal(
    error: str, message: str, field: str = "device_code", fix: str = "start again on the machine"
) -> InvalidInput:
    """With the RFC's word for it, which clients compare."""
    return InvalidInput(message, field=field, fix=fix, error=error, error_description=message)


def _answer(value: object) -> Response:
    """With the names of the RFC, which are not in camelCase."""
    return Response(msgspec.json.encode(value), 200, {"cache-control": "no-store"}, JSON_TYPE)


# The person.


async def show(request: Request) -> Response:
    return _page(request)


async def look(request: Request) -> Response:
    typed = await text_of(request, "code", 40)
    try:
        return await _ask(request, typed, await _find(request, typed))
    except (NotFound, RateLimited) as error:
        return _page(request, error.status, typed=typed, problem=error.in_words)


async def decide(request: Request) -> Response:
    actor, typed = principal_of(request), await text_of(request, "code", 40)
    if actor.token is not None:
        raise NotPermitted("A token cannot let a machine in.", fix="sign in on the page")
    is_let_in = await text_of(request, "decision") == "allow"
    chosen = await values_of(request, "scopes") if is_let_in else []
    offered = SCOPES_OF[(await read_own_account(actor)).role]
    scopes = tuple(scope for scope in offered if scope in chosen)
    try:
        found = await _find(request, typed)
        if is_let_in and not scopes:
            return await _ask(request, typed, found, "Choose what it may do.")
        answered = await device_codes.answer_code(typed, actor.name, scopes)
    except (NotFound, RateLimited) as error:
        return _page(request, error.status, typed=typed, problem=error.in_words)
    return _page(request, answered=answered)


async def _find(request: Request, typed: str) -> device_codes.DeviceCode:
    """Attempts are counted, so that nobody finds the codes of others by trying."""
    counted = (f"device:{principal_of(request).name}", client_of(request))
    await count_attempt(*counted)
    try:
        found = await device_codes.read_code(typed)
    except NotFound:
        actor = principal_of(request)
        await note_refusal("sign-in", "no such device code", by=actor.actor, session=actor.session)
        raise
    await forget_attempts(*counted)
    return found


async def _ask(request: Request, typed: str, found: device_codes.DeviceCode, problem: str = "") -> Response:
    user = await read_own_account(principal_of(request))
    return _page(
        request,
        400 if problem else 200,
        code=device_codes.plain(typed),
        found=found,
        scopes=SCOPES_OF[user.role],
        days=tokens.DEFAULT_DAYS,
        problem=problem,
    )


def _page(request: Request, status: int = 200, **context: object) -> Response:
    unless: dict[str, object] = {"answered": None, "found": None, "typed": "", "problem": ""}
    shown = page_with_flash(request, "device.html", status, **(unless | context))
    shown.headers["cache-control"] = "no-store"
    return shown


_MACHINE = {"signs_in": True, "stays_open": True, "tag": "account", "problems": (400, 429)}

ENDPOINTS = (
    post(
        "/api/cli/device/code",
        begin,
        no_scope="it only makes a code, which somebody who is signed in must type",
        body=AskForCode,
        answer=CodeAnswer,
        allowance=Allowance.LOGINS,
        summary="Begin to sign a machine in (RFC 8628)",
        about="A person types the code at the address of the answer, and decides what the token may do.",
        **_MACHINE,
    ),
    post(
        "/api/cli/device/token",
        finish,
        no_scope="the machine's secret and somebody's word let in",
        body=AskForToken,
        answer=DeviceToken,
        summary="Ask for the token of a machine that was let in",
        about="Until somebody has decided it is a 400 whose `error` is `authorization_pending`.",
        **_MACHINE,
    ),
    page(PAGE, show, action=tokens.CREATE_OWN_TOKEN),
    form(PAGE, look, action=tokens.CREATE_OWN_TOKEN),
    form(f"{PAGE}/decide", decide, action=tokens.CREATE_OWN_TOKEN),
)

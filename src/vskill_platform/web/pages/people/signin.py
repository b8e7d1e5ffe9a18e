"""Signing in and out: by password, with the providers that are set up, and by the one-time link of the first start."""

import base64
import hmac
from contextlib import suppress
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import Asked
from vskill_core.errors import InvalidInput, NotSignedIn, PlatformError, RateLimited, SourceUnavailable
from vskill_core.foreign_json import read_json
from vskill_platform.actions.principal import ANYBODY
from vskill_platform.domain.verdicts.policy import Preset
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.settings import Settings
from vskill_platform.sign_in.contract import Journey, Provider, new_journey
from vskill_platform.sign_in.providers import find_provider, list_providers
from vskill_platform.store.people.accounts import User, get_user
from vskill_platform.store.people.credentials import LONGEST_MS, close_session, open_session, sign_in
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.store.people.setup import check_setup, make_first_admin
from vskill_platform.store.people.sign_in_rule import github_rule, read_mode
from vskill_platform.store.verdicts.policy import plan_policy, read_policy
from vskill_platform.web.auth import FLASH_COOKIE, fits_mac, form_of, mac_of, safe_next, see_other, text_of
from vskill_platform.web.browser import SESSION_COOKIE, cookie_of, drop_cookie, set_cookie
from vskill_platform.web.door.limits import client_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of

OAUTH_COOKIE = "vskill_oauth"
#: How long somebody may take at a provider.
OAUTH_S = 600
_CHOSEN = "chosen with the first admin"

Text = Annotated[str, msgspec.Meta(max_length=2_000)]


class SignInQuery(Asked, frozen=True):
    """Where to go afterwards."""

    next: Text = ""


class SetupQuery(Asked, frozen=True):
    """The one-time token."""

    token: Text = ""


class CallbackQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider sends the browser back with; others than these are ignored."""

    code: Text = ""
    state: Text = ""
    error: Text = ""
    error_description: Text = ""
    error_uri: Text = ""
    iss: Text = ""


async def show_sign_in(request: Request) -> Response:
    wanted = safe_next(query_of(request, SignInQuery).next)
    if principal_of(request).account is not None:
        return RedirectResponse(wanted, 303)
    return await _sign_in_page(request, wanted)


async def do_sign_in(request: Request) -> Response:
    wanted = safe_next(await text_of(request, "next"))
    password = (await form_of(request)).get("password", "")
    name = await text_of(request, "name", 200)
    try:
        user = await sign_in(name, password if isinstance(password, str) else "", client_of(request))
    except (NotSignedIn, RateLimited) as error:
        return await _sign_in_page(request, wanted, error, name)
    return await signed_in(request, user, "password", wanted)


async def signed_in(request: Request, user: User, how: str, wanted: str) -> Response:
    """A fresh session under a fresh token: what the browser brought before is worth nothing any more."""
    before = cookie_of(request, SESSION_COOKIE)
    if before:
        await close_session(before)
    response = see_other(request, wanted)
    set_cookie(request, response, SESSION_COOKIE, await open_session(user, how), LONGEST_MS // 1000)
    return response


async def sign_in_again(request: Request, name: str, wanted: str) -> Response:
    """A new session for an account that has just given its password, and ended its sessions."""
    return await signed_in(request, await get_user(name), "password", wanted)


async def sign_out(request: Request) -> Response:
    """End the session here; who signed in at a provider is shown the way to end that session, too."""
    cookie = cookie_of(request, SESSION_COOKIE)
    how = await close_session(cookie) if cookie else ""
    response = await _sign_out_there(request, how) or see_other(request, "/")
    for name in (SESSION_COOKIE, FLASH_COOKIE):
        drop_cookie(request, response, name)
    return response


async def _sign_out_there(request: Request, how: str) -> Response | None:
    for provider in list_providers(services_of(request).settings):
        if provider.name == how:
            with suppress(SourceUnavailable, InvalidInput):
                if to := await provider.sign_out_url():
                    request.scope["principal"] = ANYBODY
                    return render(request, "signin-away.html", to=to, provider=provider.title, out=True)
    return None


async def _sign_in_page(
    request: Request, wanted: str, error: PlatformError | None = None, name: str = ""
) -> Response:
    settings = services_of(request).settings
    is_closed = (
        bool(settings.github_client_id) and not github_rule(settings, await read_mode()).lets_everybody_in
    )
    shown = render(
        request,
        "signin.html",
        200 if error is None else error.status,
        next=wanted,
        name=name,
        problem="" if error is None else error.public_message,
        providers=list_providers(settings),
        is_closed=is_closed,
        asks_for_memberships=bool(settings.github_allowed_organisations),
    )
    if isinstance(error, RateLimited):
        shown.headers["retry-after"] = str(error.details.get("retry_after_s", 60))
    return shown


# The first admin.


async def show_setup(request: Request) -> Response:
    token = query_of(request, SetupQuery).token
    await check_setup(token)
    return await _setup_page(request, token)


async def do_setup(request: Request) -> Response:
    token, name = await text_of(request, "token"), await text_of(request, "name", 200)
    sent = await form_of(request)
    first, second = sent.get("password", ""), sent.get("again", "")
    configured = services_of(request).settings.policy
    chosen = await text_of(request, "policy") or configured

    async def choose() -> tuple[Operation, ...]:
        _, put = await plan_policy(f"extends: {chosen}\n", by=f"admin:{name}", reason=_CHOSEN)
        return (put,)

    try:
        _check_choice(chosen, configured)
        plan = None if chosen == configured else choose
        user = await make_first_admin(token, name, same(first, second), plan)
    except InvalidInput as error:
        return await _setup_page(request, token, error, name, chosen)
    has_judge = bool(services_of(request).settings.judge_url)
    return await signed_in(request, user, "setup", "/admin" if has_judge else "/admin/judges")


def _check_choice(chosen: str, configured: str) -> None:
    """The policy of the settings may be a file; any other choice is a preset."""
    if chosen not in (configured, *Preset):
        fix = f"choose one of {', '.join(Preset)}"
        raise InvalidInput("There is no such preset of the policy.", field="policy", fix=fix)


async def _setup_page(
    request: Request, token: str, error: InvalidInput | None = None, name: str = "", chosen: str = ""
) -> Response:
    settings = services_of(request).settings
    is_asked = settings.policy in list(Preset) and (await read_policy()).stored is None
    return render(
        request,
        "signin-setup.html",
        200 if error is None else error.status,
        token=token,
        name=name,
        presets=list(Preset) if is_asked else [],
        chosen=chosen or settings.policy,
        field="" if error is None else error.field,
        problem="" if error is None else error.public_message,
        github_rule=github_rule(settings, await read_mode()).in_words if settings.github_client_id else "",
        default_name=settings.registry_name if settings.registry_name == Settings().registry_name else "",
    )


def same(first: object, second: object) -> str:
    """A password that was typed twice."""
    if not isinstance(first, str) or first != second:
        raise InvalidInput("The two passwords differ.", field="password", fix="type it twice alike")
    return first


# Providers.


async def start_at_provider(request: Request) -> Response:
    """Off to a provider, with secrets that only this browser knows. A page leads there: a form's answer must not, since
    browsers hold the policy about where forms may go against every redirect on the way, which is not ours to know."""
    settings = services_of(request).settings
    provider = find_provider(settings, request.path_params["provider"])
    wanted = safe_next(await text_of(request, "next"))
    journey = new_journey(provider.name, wanted, principal_of(request).account)
    try:
        to = await provider.authorize_url(journey)
    except (SourceUnavailable, InvalidInput) as error:
        return await _sign_in_page(request, wanted, _for_people(request, provider, error))
    response = render(request, "signin-away.html", to=to, provider=provider.title, out=False)
    kept = base64.urlsafe_b64encode(msgspec.json.encode(journey)).decode()
    signed = f"{kept}.{mac_of(request, OAUTH_COOKIE, kept)}"
    set_cookie(request, response, OAUTH_COOKIE, signed, OAUTH_S)
    return response


async def end_at_provider(request: Request) -> Response:
    """Back from a provider: the state must be the one that this browser left for it with."""
    provider = find_provider(services_of(request).settings, request.path_params["provider"])
    given = query_of(request, CallbackQuery)
    if principal_of(request).account is not None and not cookie_of(request, OAUTH_COOKIE):
        # It has ended well before, and the person has pressed Back, or loads the page again.
        return RedirectResponse("/account", 303)
    journey = _journey(request, provider.name, given.state)
    if journey is None:
        error = NotSignedIn("That sign-in did not begin here; start again.")
        await note_refusal("sign-in", f"{provider.title}: {error.message}")
        return await _sign_in_page(request, "/account", error)
    try:
        if given.error or not given.code:
            raise NotSignedIn(f"{provider.title} did not let you in; try again.")
        user = await provider.sign_in(given.code, journey)
    except PlatformError as error:
        await note_refusal("sign-in", f"{provider.title}: {error.message}", account=journey.account or "")
        return await _sign_in_page(request, journey.next, _for_people(request, provider, error))
    response = await signed_in(request, user, provider.name, journey.next)
    drop_cookie(request, response, OAUTH_COOKIE)
    return response


def _for_people(request: Request, provider: Provider, error: PlatformError) -> PlatformError:
    """What somebody who signs in is told; why a connection failed is for the operator, who finds it in the log."""
    told = {"code": error.code, "problem": error.message[:200], "address": client_of(request)}
    services_of(request).log.warning("sign-in refused", provider=provider.name, **told)
    if isinstance(error, SourceUnavailable):
        return SourceUnavailable(f"{provider.title} cannot be reached at the moment; try again in a while.")
    return error


def _journey(request: Request, provider: str, state: str) -> Journey | None:
    """What the browser kept of this journey; where it names an account, the session of now must have signed it."""
    body, _, mac = (cookie_of(request, OAUTH_COOKIE) or "").partition(".")
    try:
        journey = read_json(base64.urlsafe_b64decode(body), Journey)
    except ValueError:
        return None
    is_signed = journey.account is None or fits_mac(request, OAUTH_COOKIE, body, mac)
    is_ours = journey.provider == provider and journey.account in (None, principal_of(request).account)
    if not (is_signed and is_ours and hmac.compare_digest(journey.state.encode(), state.encode())):
        return None
    return msgspec.structs.replace(journey, next=safe_next(journey.next))


ENDPOINTS = (
    page("/signin", show_sign_in, query=SignInQuery, stays_open=True),
    form("/signin", do_sign_in, no_scope="the password lets in", stays_open=True),
    form("/signout", sign_out, no_scope="ends the session of the cookie", stays_open=True),
    page("/setup", show_setup, query=SetupQuery, stays_open=True),
    form("/setup", do_setup, no_scope="the one-time link lets in", stays_open=True),
    form("/signin/{provider}", start_at_provider, no_scope="only leads to the provider", stays_open=True),
    page("/signin/{provider}/callback", end_at_provider, query=CallbackQuery, stays_open=True),
)

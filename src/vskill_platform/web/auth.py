"""Who a request comes from: by its session cookie, or by its token, sent as `Bearer` or as the password of `Basic`; and
whether a form was sent by a page of ours. `web.routing` asks here before any view runs.

A request with neither costs nothing. An invalid token does not break public reads: such a request is anonymous, its
answer carries a `Warning`, and everything that an anonymous request may not do is a 401.
"""

import base64
import binascii
import hashlib
import hmac
from urllib.parse import quote, urlsplit

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_core.errors import CrossSite, InvalidInput
from vskill_core.foreign_json import read_json
from vskill_core.identity import has_control_characters
from vskill_platform.actions.principal import ANYBODY, Principal, token_role
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people.credentials import PREFIX, find_session, find_token
from vskill_platform.store.people.publishers import find_job
from vskill_platform.web.browser import (
    MOST_COOKIE,
    SESSION_COOKIE,
    VISITOR_COOKIE,
    Browser,
    browser_of,
    cookie_of,
    drop_cookie,
    set_cookie,
)
from vskill_platform.web.exchange import principal_of, services_of

#: The platform's own forms have far fewer.
MOST_FIELDS = 1_000
MOST_FILES = 10
#: The CSRF token as our own pages' scripts send it, instead of a form field.
CSRF_HEADER = "x-csrf-token"

#: A sentence about tokens.
BAD_TOKEN = "The token is not valid, has expired, was revoked, or its owner must sign in again."  # noqa: S105
#: A token has some 50 characters.
_MOST_AUTHORIZATION = 1_000
_OWN_SITE = frozenset({"same-origin", "none"})
#: A boundary has some 70.
MOST_CONTENT_TYPE = 500
#: Characters of an address that signing in leads back to.
MOST_NEXT = 2_000
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


async def authenticate(request: Request, *, with_token: bool = True) -> Principal:
    has_cookie = False
    for name, value in request.scope["headers"]:
        if with_token and name == b"authorization":
            secret = _secret_in(value)
            if secret is not None:
                return await _by_token(request, secret)
        if name == b"cookie":
            has_cookie = True
    return await _by_session(request) if has_cookie else ANYBODY


def has_bad_token(request: Request) -> bool:
    """Whether an invalid token was sent, so that the request is anonymous."""
    return "bad_token" in request.scope


def _secret_in(authorization: bytes) -> str | None:
    """The token of an `Authorization` header; None if the header is not for us but, say, for a proxy: another scheme,
    or a password that is not one of our tokens."""
    scheme, _, rest = authorization.decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic" or len(rest) > _MOST_AUTHORIZATION:
        return None
    try:
        pair = base64.b64decode(rest.strip(), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return None
    password = pair.partition(":")[2].strip()
    return password if password.startswith(PREFIX) else None


async def _by_token(request: Request, secret: str) -> Principal:
    job = await find_job(secret)
    if job is not None:
        return Principal(ci=job, token=job.acting)
    found = await find_token(secret)
    if found is None:
        request.scope["bad_token"] = True
        return ANYBODY
    token, standing = found
    scopes = token.scopes_as(standing.role)
    if standing.only_reads:
        scopes &= {TokenScope.READ.value}
    return Principal(
        standing.name,
        token_role(scopes),
        scopes,
        token.acting,
        namespace=token.namespace,
        groups=standing.groups,
        only_reads=standing.only_reads,
    )


async def _by_session(request: Request) -> Principal:
    cookie = cookie_of(request, SESSION_COOKIE)
    if not cookie or len(cookie) > MOST_COOKIE:
        return ANYBODY
    found = await find_session(cookie)
    if found is None:
        return ANYBODY
    session, standing = found
    request.scope["browser"] = Browser(cookie, None)
    return Principal(standing.name, standing.role, session=session.how, groups=standing.groups)


# Forms.


async def check_csrf(request: Request, *, is_form: bool = True) -> None:
    """Raise CrossSite unless a page of this site sent the request (CSRF).

    A browser never sends a token by itself, and an API call without a session has no rights to abuse.
    """
    principal = principal_of(request)
    if principal.token is not None or not (is_form or principal.account is not None):
        return
    _check_origin(request)
    browser = browser_of(request)
    if browser.session is None and browser.visitor is None:
        raise CrossSite
    given = request.headers.get(CSRF_HEADER) or ((await form_of(request)).get("csrf") if is_form else "")
    if not isinstance(given, str) or not browser.knows(given[:MOST_COOKIE]):
        raise CrossSite


def _check_origin(request: Request) -> None:
    """Browsers say where a request comes from. Without these headers, only the CSRF token decides."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site not in _OWN_SITE:
            raise CrossSite
        return
    origin, host = request.headers.get("origin", "null"), request.headers.get("host", "")
    public = urlsplit(services_of(request).settings.public_url)
    own = {"null", f"http://{host}", f"https://{host}"}
    if origin not in own and (not public.netloc or origin != f"{public.scheme}://{public.netloc}"):
        raise CrossSite


async def form_of(request: Request) -> dict[str, str | UploadFile]:
    """The fields of a form, with the last value of each; `values_of` gives all."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind not in _FORM_TYPES or len(given) > MOST_CONTENT_TYPE:
        raise InvalidInput(
            "This address accepts only form data.", field="content-type", fix=f"send {_FORM_TYPES[0]}"
        )
    return dict(await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS))


async def text_of(request: Request, name: str, most: int = 2_000) -> str:
    """A field of a form as text, without spaces around it; InvalidInput where it is too long or a file."""
    value = (await form_of(request)).get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise InvalidInput(f"{name} is too long.", field=name, fix=f"use at most {most} characters")
    if has_control_characters(value.replace("\n", " ").replace("\r", " ").replace("\t", " ")):
        raise InvalidInput(f"{name} has control characters.", field=name, fix="remove them")
    return value.replace("\r\n", "\n").strip()


async def values_of(request: Request, name: str) -> tuple[str, ...]:
    """Every value of a field that may come more than once."""
    await form_of(request)
    values = (await request.form()).getlist(name)
    return tuple(value for value in values if isinstance(value, str))


# Around the view.


def to_sign_in(request: Request) -> Response:
    query = request.url.query
    wanted = request.url.path + (f"?{query}" if query else "")
    way = f"/signin?next={quote(wanted, safe='/')}" if len(wanted) <= MOST_NEXT else "/signin"
    return RedirectResponse(way, 303, {"cache-control": "no-store"})


def set_form_cookie(request: Request, response: Response) -> Response:
    """Set the visitor's cookie that a shown form is bound to."""
    browser: Browser | None = request.scope.get("browser")
    if browser is not None and browser.new and browser.visitor is not None:
        set_cookie(request, response, VISITOR_COOKIE, browser.visitor)
    return response


def safe_next(wanted: str | None, default: str = "/account") -> str:
    """The wanted path if it is on this site: the sign-in page must not be an open redirect."""
    if (
        not wanted
        or len(wanted) > MOST_NEXT
        or not wanted.startswith("/")
        or wanted.startswith(("//", "/\\"))
    ):
        return default
    if has_control_characters(wanted) or "\\" in wanted:
        return default
    parts = urlsplit(wanted)
    if parts.scheme or parts.netloc or parts.path.startswith(("/signin", "/signout", "/setup")):
        return default
    return wanted


# Flash messages: a form answers with a redirect, and the next page shows the result once. The text is in a cookie that
# is signed with the session's secret, so nobody can forge it.


FLASH_COOKIE = "vskill_flash"
MOST_TEXT = 500
#: A message that is not shown within this time is dropped.
FLASH_S = 60


class Flash(msgspec.Struct, frozen=True):
    """One message."""

    text: str
    #: `good` or `bad`
    kind: str = "good"


def see_other(request: Request, where: str, text: str = "", kind: str = "good") -> Response:
    """Redirect after a form, with a message for the next page of this site."""
    response = RedirectResponse(where, 303, {"cache-control": "no-store"})
    if text:
        body = (
            base64.urlsafe_b64encode(msgspec.json.encode(Flash(text[:MOST_TEXT], kind))).decode().rstrip("=")
        )
        set_cookie(request, response, FLASH_COOKIE, f"{body}.{mac_of(request, 'flash', body)}", FLASH_S)
    return response


def flash_of(request: Request) -> Flash | None:
    """The message for this page; None without a valid signature."""
    body, _, mac = (cookie_of(request, FLASH_COOKIE) or "").partition(".")
    if not body or not fits_mac(request, "flash", body, mac):
        return None
    try:
        padded = body + "=" * (-len(body) % 4)
        return read_json(base64.urlsafe_b64decode(padded), Flash)
    except ValueError:
        return None


def clear_flash(request: Request, response: Response) -> Response:
    """Drop the message after the page that shows it."""
    if cookie_of(request, FLASH_COOKIE) is not None:
        drop_cookie(request, response, FLASH_COOKIE)
    return response


def mac_of(request: Request, kind: str, body: str) -> str:
    """Signs a cookie of this kind with the secret of the browser's session."""
    secret = browser_of(request).secret
    return hmac.new(secret, f"{kind} {body}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def fits_mac(request: Request, kind: str, body: str, mac: str) -> bool:
    """Whether this session signed the cookie: others, such as a host beside ours, can set one, too."""
    return hmac.compare_digest(mac.encode("utf-8", "replace"), mac_of(request, kind, body).encode())

"""Flash messages: a form answers with a redirect, and the next page shows the result once. The text is in a cookie
that is signed with the session's secret, so nobody can forge it."""

import base64
import hashlib
import hmac

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_platform.web.browser import browser_of, cookie_of, drop_cookie, set_cookie

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
        set_cookie(request, response, FLASH_COOKIE, f"{body}.{_mac(request, body)}", FLASH_S)
    return response


def flash_of(request: Request) -> Flash | None:
    """The message for this page; None without a valid signature."""
    body, _, mac = (cookie_of(request, FLASH_COOKIE) or "").partition(".")
    if not body or not hmac.compare_digest(mac.encode("utf-8", "replace"), _mac(request, body).encode()):
        return None
    try:
        padded = body + "=" * (-len(body) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Flash)
    except (ValueError, msgspec.DecodeError):
        return None


def clear_flash(request: Request, response: Response) -> Response:
    """Drop the message after the page that shows it."""
    if cookie_of(request, FLASH_COOKIE) is not None:
        drop_cookie(request, response, FLASH_COOKIE)
    return response


def _mac(request: Request, body: str) -> str:
    secret = browser_of(request).secret
    return hmac.new(secret, b"flash " + body.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

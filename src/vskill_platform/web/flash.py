"""What was done, told once on the next page: every form answers with a redirect, and the page after it says how it
went. The text travels in a cookie that is signed under the session's own secret, so nobody else can put words there."""

import base64
import hashlib
import hmac

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_platform.web.browser import browser_of, drop_cookie, set_cookie

FLASH_COOKIE = "vskill_flash"
MOST_TEXT = 500
#: Told within a minute, or not at all.
FLASH_S = 60


class Flash(msgspec.Struct, frozen=True):
    """One message."""

    text: str
    #: `good` or `bad`
    kind: str = "good"


def see_other(request: Request, where: str, text: str = "", kind: str = "good") -> Response:
    """After a form: go there (an address of ours), and say this."""
    response = RedirectResponse(where, 303, {"cache-control": "no-store"})
    if text:
        body = (
            base64.urlsafe_b64encode(msgspec.json.encode(Flash(text[:MOST_TEXT], kind))).decode().rstrip("=")
        )
        set_cookie(request, response, FLASH_COOKIE, f"{body}.{_mac(request, body)}", FLASH_S)
    return response


def flash_of(request: Request) -> Flash | None:
    """The message for this page, if there is one that is ours."""
    body, _, mac = request.cookies.get(FLASH_COOKIE, "").partition(".")
    if not body or not hmac.compare_digest(mac.encode("utf-8", "replace"), _mac(request, body).encode()):
        return None
    try:
        padded = body + "=" * (-len(body) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Flash)
    except (ValueError, msgspec.DecodeError):
        return None


def told(request: Request, response: Response) -> Response:
    """The page was shown: it is not told again."""
    if FLASH_COOKIE in request.cookies:
        drop_cookie(request, response, FLASH_COOKIE)
    return response


def _mac(request: Request, body: str) -> str:
    secret = browser_of(request).csrf
    return hmac.new(secret.encode(), b"flash " + body.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

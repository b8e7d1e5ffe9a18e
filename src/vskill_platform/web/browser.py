"""A browser, by its cookies: the session, or a visitor without one, and the CSRF secret of its forms.

The secret is an HMAC keyed with the cookie's value, so it is bound to the cookie and need not be stored. A visitor gets
a cookie only when a page shows a form. Each answer masks the secret differently, so that the length of a compressed
answer reveals nothing about it (BREACH).
"""

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.web.exchange import services_of

SESSION_COOKIE = "vskill_session"
VISITOR_COOKIE = "vskill_visitor"
#: The platform never sets longer values.
MOST_COOKIE = 200
#: Hex digits of the mask in front of a form's secret, and of the secret.
_MASK_DIGITS = 64


class Browser:
    """What a request's cookies say; `new` if a visitor's cookie must still be set."""

    def __init__(self, session: str | None, visitor: str | None) -> None:
        self.session = session
        self.visitor = visitor
        self.new = False

    @property
    def csrf(self) -> str:
        """The CSRF token of this browser's forms: a random mask, and the masked secret."""
        mask = secrets.token_bytes(_MASK_DIGITS // 2)
        return (mask + _xor(mask, self.secret)).hex()

    @property
    def secret(self) -> bytes:
        """The secret of this browser's forms; a visitor without a cookie gets one."""
        if self.session is None and self.visitor is None:
            self.visitor, self.new = secrets.token_urlsafe(24), True
        kind = b"session" if self.session else b"visitor"
        bound_to = self.session or self.visitor or ""
        return hmac.new(bound_to.encode(), b"vskill forms of a " + kind, hashlib.sha256).digest()

    def knows(self, csrf: str) -> bool:
        """Whether this is a CSRF token of this browser; false if it sent no cookie."""
        try:
            mask, masked = bytes.fromhex(csrf[:_MASK_DIGITS]), bytes.fromhex(csrf[_MASK_DIGITS:])
        except ValueError:
            return False
        is_whole = len(mask) == len(masked) == _MASK_DIGITS // 2
        has_cookie = self.session is not None or self.visitor is not None
        return is_whole and has_cookie and hmac.compare_digest(_xor(mask, masked), self.secret)


def _xor(mask: bytes, text: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(mask, text, strict=True))


def cookie_of(request: Request, name: str) -> str | None:
    """The cookie's value; the last of several. `request.cookies` unquotes every cookie, which takes quadratic time up
    to Python 3.11.9 and 3.12.5; ours have quotes only around the whole value."""
    last = None
    for header in request.headers.getlist("cookie"):
        for pair in header.split(";"):
            found, separator, value = pair.partition("=")
            if separator and found.strip() == name:
                last = value.strip().strip('"')
    return last


def browser_of(request: Request) -> Browser:
    """The browser that makes this request; the same object for each call."""
    found: Browser | None = request.scope.get("browser")
    if found is None:
        visitor = cookie_of(request, VISITOR_COOKIE) or None
        usable = visitor is not None and len(visitor) <= MOST_COOKIE
        found = request.scope["browser"] = Browser(None, visitor if usable else None)
    return found


def set_cookie(
    request: Request, response: Response, name: str, value: str, max_age: int | None = None
) -> None:
    """HttpOnly, SameSite=Lax, Secure under TLS."""
    response.set_cookie(
        name, value, max_age=max_age, httponly=True, samesite="lax", secure=is_secure(request)
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    response.delete_cookie(name, httponly=True, samesite="lax", secure=is_secure(request))


def is_secure(request: Request) -> bool:
    public_url = services_of(request).settings.public_url
    return (public_url or str(request.url)).startswith("https://")

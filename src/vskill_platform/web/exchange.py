"""What a view is given of a request, and what it answers with.

`web.auth` finds out who makes the request; `actions.principal` decides what they may do. An answer is JSON that must
not be cached, public bytes that may be cached with their ETag, or a file that browsers never run.
"""

import hashlib
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Wire, camel
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import ANYBODY, Principal, Viewer, reads_as_public, viewer_for
from vskill_platform.actions.wire import encode

#: Request attribute: the answer holds an address from the client's `Host` header.
NAMED_BY_CLIENT = "address_named_by_client"

_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-[]")


# The request.


def principal_of(request: Request) -> Principal:
    found: Principal = request.scope.get("principal", ANYBODY)
    return found


def viewer_of(request: Request) -> Viewer:
    return viewer_for(principal_of(request))


def services_of(request: Request) -> Services:
    found: Services = request.scope["services"]
    return found


def public_address(request: Request) -> str:
    """The registry's public URL without a trailing slash: the operator's setting, or else the request's `Host`. An
    invalid `Host` is not repeated, and an answer with the client's `Host` is not cached for others (`cache_for`)."""
    settings = services_of(request).settings
    if settings.public_url:
        return settings.public_url.rstrip("/")
    request.scope[NAMED_BY_CLIENT] = True
    host = request.headers.get("host", "")
    if not host or not _HOST.issuperset(host):
        host = f"{settings.host}:{settings.port}"
    return f"{request.scope.get('scheme', 'http')}://{host}"


# The answer.

JSON_TYPE = "application/json"
#: Public answers may be cached, and are revalidated by their ETag.
REVALIDATE = "public, max-age=0, must-revalidate"
#: Other answers may only be cached by the reader's own browser.
PRIVATE = "private, no-cache"


def cache_for(request: Request) -> str:
    """Who may cache an answer: it is public if anonymous requests get the same. With an address from the client's
    `Host`, a shared cache would give one client's answer to another."""
    if NAMED_BY_CLIENT in request.scope:
        return PRIVATE
    reader = principal_of(request)
    is_public = reader.audiences is None or reads_as_public(services_of(request), reader)
    return REVALIDATE if is_public else PRIVATE


def json_response(value: object, status: int = 200) -> Response:
    """A private or short-lived answer: `no-store`."""
    body = encode(value) if isinstance(value, Wire) else msgspec.json.encode(camel(value))
    return Response(body, status, {"cache-control": "no-store"}, JSON_TYPE)


def answer_with_tag(request: Request, body: bytes, media_type: str = JSON_TYPE) -> Response:
    """An answer with its ETag; 304 without a body if the client has it already."""
    return with_tag(request, body, tag_of(body), media_type)


def tag_of(body: bytes) -> str:
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def with_tag(request: Request, body: bytes, tag: str, media_type: str) -> Response:
    """The same for bytes whose tag is known already."""
    cache = cache_for(request)
    known = request.headers.get("if-none-match")
    if known is not None and tag in known:
        return Response(None, 304, {"cache-control": cache, "etag": tag})
    return Response(body, 200, {"cache-control": cache, "etag": tag}, media_type)


def foreign_file(request: Request, data: bytes, tag: str, media_type: str, name: str) -> Response:
    """A foreign file: downloaded under its name, and sandboxed should a browser show it after all."""
    response = with_tag(request, data, tag, media_type)
    response.headers["content-security-policy"] = "sandbox"
    return attachment(response, name)


def attachment(response: Response, name: str) -> Response:
    """Make the browser save it under this name: it must not show foreign content."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in name)
    response.headers["content-disposition"] = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    )
    return response

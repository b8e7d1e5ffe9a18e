"""What a view is given of a request, and what it answers with.

`web.auth` finds out who makes the request; what they may do is decided by `actions.principal`. An answer is JSON that
is true now, public bytes that may be kept with their tag, or a file that browsers never run.
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

#: Where a request notes that its answer holds an address that the client itself named.
NAMED_BY_CLIENT = "address_named_by_client"

_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-[]")


# The request.


def principal_of(request: Request) -> Principal:
    """Who makes this request."""
    found: Principal = request.scope.get("principal", ANYBODY)
    return found


def viewer_of(request: Request) -> Viewer:
    return viewer_for(principal_of(request))


def services_of(request: Request) -> Services:
    """What the request's view may use."""
    found: Services = request.scope["services"]
    return found


def public_address(request: Request) -> str:
    """Where people reach this registry: the address that the operator set, or else the one that the request came to,
    without a slash at its end. A `Host` that could not be one is not repeated, and an answer with one that the
    client named is kept by nobody else (`cache_for`)."""
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
#: What is public may be kept, and is asked about again by its tag.
REVALIDATE = "public, max-age=0, must-revalidate"
#: What not everybody may read is kept by the reader alone.
PRIVATE = "private, no-cache"


def cache_for(request: Request) -> str:
    """Who may keep an answer: it is public where those who did not sign in are given the same. With an address that the
    client named (its `Host`), a shared cache would give one client's answer to another."""
    if NAMED_BY_CLIENT in request.scope:
        return PRIVATE
    reader = principal_of(request)
    is_public = reader.audiences is None or reads_as_public(services_of(request), reader)
    return REVALIDATE if is_public else PRIVATE


def json_response(value: object, status: int = 200) -> Response:
    """A private or momentary answer: `no-store`."""
    body = encode(value) if isinstance(value, Wire) else msgspec.json.encode(camel(value))
    return Response(body, status, {"cache-control": "no-store"}, JSON_TYPE)


def answer_with_tag(request: Request, body: bytes, media_type: str = JSON_TYPE) -> Response:
    """An answer with its tag; a client that has it already is told so with 304 and no body."""
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
    """A file that a stranger wrote: saved under its name, and without any rights should a browser show it after all."""
    response = with_tag(request, data, tag, media_type)
    response.headers["content-security-policy"] = "sandbox"
    return attachment(response, name)


def attachment(response: Response, name: str) -> Response:
    """To be saved under this name; foreign content is never shown by the browser itself."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in name)
    response.headers["content-disposition"] = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    )
    return response

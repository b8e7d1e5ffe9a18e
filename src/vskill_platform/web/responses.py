"""Answers: JSON that is true now, public bytes that may be kept with their tag, and files that browsers never run."""

import hashlib
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Wire, camel
from vskill_platform.actions.visibility import reads_as_public
from vskill_platform.actions.wire import encode
from vskill_platform.web.addresses import NAMED_BY_CLIENT
from vskill_platform.web.principal import principal_of, services_of

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

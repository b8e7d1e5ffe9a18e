"""Errors as clients see them: RFC 9457 problem documents, rendered in this one place.

Beside the standard members each carries `code` (stable, for programs), `error` (the text of `detail` again,
where the existing clients look for it) and `requestId` (what to search the log for).
"""

import math
from http import HTTPStatus
from typing import cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.domain.errors import PlatformError, StoreUnavailable

PROBLEM_TYPE = "application/problem+json"
#: When nothing says how long, ask again after this.
RETRY_AFTER_S = 5


async def platform_problem(request: Request, error: Exception) -> Response:
    """An error that the platform raised on purpose. Its facts are shown where the request is at fault."""
    known = cast("PlatformError", error)
    facts = known.details if known.status < HTTPStatus.INTERNAL_SERVER_ERROR else {}
    return _problem(request, known.status, known.code, known.message, facts, _retry_after(known))


async def http_problem(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown address, or a method that it does not take."""
    refused = cast("HTTPException", error)
    status = HTTPStatus(refused.status_code)
    texts = {
        HTTPStatus.NOT_FOUND: f"There is nothing at {request.url.path[:200]}; GET / lists what there is.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not allowed here.",
    }
    code = status.phrase.lower().replace(" ", "_")
    return _problem(request, status, code, texts.get(status, refused.detail), {}, dict(refused.headers or {}))


def unforeseen_problem(request: Request, error: Exception) -> Response:
    """A mistake of ours: its text stays in the log, the client gets the id to ask about."""
    internal = PlatformError(cause=type(error).__name__)
    return _problem(request, internal.status, internal.code, internal.message, {}, {})


def _problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    facts: dict[str, object],
    headers: dict[str, str],
) -> Response:
    body = {
        **facts,
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "error": detail,
        "code": code,
        "requestId": request.scope.get("request_id"),
    }
    headers = {"cache-control": "no-store", **headers}
    return Response(msgspec.json.encode(body, enc_hook=str), status, headers, PROBLEM_TYPE)


def _retry_after(error: PlatformError) -> dict[str, str]:
    if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return {}
    wait_ms = error.retry_after_ms if isinstance(error, StoreUnavailable) else None
    return {"retry-after": str(RETRY_AFTER_S if wait_ms is None else max(1, math.ceil(wait_ms / 1000)))}

"""Errors as they are seen from outside, rendered in this one place: RFC 9457 problem documents for programs, a line of
text for clients that print what they get, a page for people.

Beside the standard members a document carries `code` (stable, for programs), `error` (the text of `detail` again,
where the existing clients look for it) and `requestId` (what to search the log for).
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import (
    Ambiguous,
    NotFound,
    NotSignedIn,
    PlatformError,
    RateLimited,
)
from vskill_platform.actions.wire import as_written, wire_names
from vskill_platform.web.auth import BAD_TOKEN
from vskill_platform.web.exchange import principal_of
from vskill_platform.web.render import render
from vskill_platform.worker_context import get_worker_env

PROBLEM_TYPE = "application/problem+json"
#: Header with the error's code, for errors whose body has no place for it.
CODE_HEADER = "x-error-code"
TEXT_TYPE = "text/plain; charset=utf-8"
#: How a token may be sent: as the password of any user, or by itself.
BASIC_OR_BEARER = 'Basic realm="skills", Bearer'
#: The same for what does not exist and what one may not read, so that a mistyped name is understood.
NOT_FOUND_OR_CLOSED = "Not found, or sign-in needed."
#: Characters of a sentence about an error.
MOST_TEXT = 1_000
#: Default of `Retry-After`.
RETRY_AFTER_S = 5
#: Under these paths the client is a program, whatever it says that it accepts.
PROGRAMS = (
    "/api/",
    "/.well-known/",
    "/clawhub/",
    "/mcp",
    "/scim/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/feed.xml",
    "/sitemap.xml",
    "/robots.txt",
    "/marketplace.json",
)


#: Under this path an error has the form that SCIM gives it.
SCIM_PATH, SCIM_TYPE = "/scim/", "application/scim+json"
#: Under these paths an error is a line of text, because the client prints the body as it is.
PRINTED = ("/clawhub/",)


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """What went wrong, as RFC 9457 says it; further members name the field, the fix and the like."""

    #: always `about:blank`: `code` says which problem it is
    type: str
    title: str
    status: int
    detail: str
    #: the text of `detail` again, where existing clients look for it
    error: str
    #: stable, for programs
    code: str
    #: what an operator searches the log for
    request_id: str | None
    field: str | msgspec.UnsetType = msgspec.UNSET
    fix: str | msgspec.UnsetType = msgspec.UNSET


def problem_of(request: Request, error: Exception) -> Response:
    """The answer for an error, whatever it is."""
    if isinstance(error, PlatformError):
        return platform_problem(request, error)
    if isinstance(error, HTTPException):
        return http_problem(request, error)
    # The error's text goes to the log; the client gets only the request id.
    return platform_problem(request, PlatformError())


def platform_problem(request: Request, error: PlatformError) -> Response:
    """An error that the platform raised on purpose. Its facts are shown where the request is at fault."""
    error = _for_reader(request, error)
    facts = error.details if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else {}
    message, names = error.public_message, _names(request)
    field = str(facts.get("field", ""))
    if field in names:
        message = as_written(message, names)
        facts = {**facts, "field": names[field]}
        if "fix" in facts:
            facts["fix"] = as_written(str(facts["fix"]), names)
    return _problem(request, error.status, error.code, message, facts, _headers_of(request, error))


def _for_reader(request: Request, error: PlatformError) -> PlatformError:
    """If a token may help, "not found" becomes a 401, whether the thing exists or not: after an invalid token, and for
    anonymous clients that send a token only when challenged."""
    if not isinstance(error, NotFound):
        return error
    if "bad_token" in request.scope:
        return NotSignedIn(BAD_TOKEN)
    if _challenges(request) and principal_of(request).account is None:
        return NotSignedIn(NOT_FOUND_OR_CLOSED, fix="check the name, or send a token that may read it")
    return error


def _challenges(request: Request) -> bool:
    endpoint = request.scope.get("endpoint")
    return endpoint is not None and (endpoint.for_git or endpoint.challenges)


def _names(request: Request) -> dict[str, str]:
    """The wire names of the route's fields, by their names in code. Empty before the query is read: errors of the query
    repeat the names that were sent."""
    if "query" not in request.scope:
        return {}
    endpoint = request.scope["endpoint"]
    return {**wire_names(endpoint.query), **wire_names(endpoint.body)}


def http_problem(request: Request, error: HTTPException) -> Response:
    """What the router itself refuses: an unknown address, or a method that it does not take."""
    status = HTTPStatus(error.status_code)
    path = request.scope["path"]
    missing = "This registry does not offer" if path.startswith(PRINTED) else "There is nothing at"
    texts = {
        HTTPStatus.NOT_FOUND: f"{missing} {path[:200]}.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not allowed here.",
    }
    code = status.phrase.lower().replace(" ", "_")
    return _problem(request, status, code, texts.get(status, error.detail), {}, dict(error.headers or {}))


def _problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    facts: Mapping[str, object],
    headers: dict[str, str],
) -> Response:
    title = HTTPStatus(status).phrase
    detail = cut_text(detail)
    facts = {name: cut_text(value) if isinstance(value, str) else value for name, value in facts.items()}
    headers = {"cache-control": "no-store", **headers}
    endpoint = request.scope.get("endpoint")
    is_git = endpoint is not None and endpoint.for_git
    if is_git or request.scope["path"].startswith(PRINTED):
        fix = str(facts.get("fix", ""))
        text = f"{detail.rstrip('.')}: {fix}." if fix else detail
        return Response(f"{text}\n", status, {**headers, CODE_HEADER: code}, TEXT_TYPE)
    if request.scope["path"].startswith(SCIM_PATH):
        return _scim_error(status, detail, facts, {**headers, CODE_HEADER: code})
    if wants_page(request):
        shown = _page(request, status, title, detail, str(facts.get("fix", "")))
        if shown is not None:
            shown.headers.update(headers)
            return shown
    body = {
        **facts,
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        # A protocol of others may have words of its own.
        "error": facts.get("error", detail),
        "code": code,
        "requestId": request.scope.get("request_id"),
    }
    return Response(msgspec.json.encode(body, enc_hook=str), status, headers, PROBLEM_TYPE)


def _scim_error(status: int, detail: str, facts: Mapping[str, object], headers: dict[str, str]) -> Response:
    """RFC 7644, 3.12. What is unique there and taken is a conflict."""
    kind = facts.get("scim_type", "invalidValue" if status == HTTPStatus.BAD_REQUEST else None)
    status = HTTPStatus.CONFLICT if kind == "uniqueness" else status
    fix = f" {fix[0].upper()}{fix[1:]}." if (fix := str(facts.get("fix", ""))) else ""
    schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"]
    body = {"schemas": schemas, "status": str(int(status)), "detail": f"{detail}{fix}"}
    return Response(
        msgspec.json.encode(body | ({"scimType": kind} if kind else {})), status, headers, SCIM_TYPE
    )


def cut_text(text: str) -> str:
    """Truncate: an error names what was sent, but does not send it back."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def wants_page(request: Request) -> bool:
    """Whether a person's browser asks, for one of our pages."""
    path = request.scope["path"]
    return not path.startswith(PROGRAMS) and "text/html" in request.headers.get("accept", "")


def _page(request: Request, status: int, title: str, detail: str, fix: str) -> Response | None:
    """The error page; None if rendering it fails: the problem document always works."""
    request_id = request.scope.get("request_id")
    try:
        return render(
            request,
            "error.html",
            status,
            status=status,
            title=title,
            detail=detail,
            fix=fix,
            request_id=request_id,
        )
    except Exception:  # whatever broke the page must not hide what broke the request
        env = get_worker_env()
        if env is not None:
            env.log.exception("error page failed")
        return None


def _headers_of(request: Request, error: PlatformError) -> dict[str, str]:
    if isinstance(error, NotSignedIn):
        # Basic makes a browser ask for a password, so only clients that need it get the challenge.
        # An empty set: only accounts may read this registry, and this request has none.
        needs_basic = _challenges(request) or principal_of(request).audiences == frozenset()
        return {"www-authenticate": BASIC_OR_BEARER if needs_basic else "Bearer"}
    if isinstance(error, Ambiguous):
        return {"x-legacy-ambiguous": "true"}
    if isinstance(error, RateLimited):
        return {"retry-after": str(error.details.get("retry_after_s", RETRY_AFTER_S))}
    return {"retry-after": str(RETRY_AFTER_S)} if error.status == HTTPStatus.SERVICE_UNAVAILABLE else {}

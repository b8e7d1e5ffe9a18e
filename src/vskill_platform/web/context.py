"""What a request runs in, from its first byte to the last byte of its answer.

It sets the worker environment around the whole call, so that streams keep it (AC-US3-05), binds the request's
id to its log lines, counts and times it, and gives every answer the headers that tell browsers what our pages
never do.
"""

import itertools
import secrets
from http import HTTPStatus

import msgspec
from prometheus_client import Counter, Histogram
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, reset_contextvars

from vskill_platform.settings import Settings
from vskill_platform.web.door.limits import client_address, networks_of, share_of
from vskill_platform.worker_context import Env, RequestOrigin, run_with_worker_env

REQUEST_ID_HEADER = b"x-request-id"
MAX_REQUEST_ID = 64
HSTS = "max-age=31536000; includeSubDomains"
#: Every answer may depend on who asks, even an answer to an anonymous request.
VARY = (b"vary", b"Authorization, Cookie")
#: The warning on an answer to a request whose token is invalid, and which therefore counts as anonymous.
BAD_TOKEN_WARNING = (
    b"warning",
    b'199 - "The token is not valid, has expired, was revoked, or its owner must sign in again; answered as anonymous"',
)

_ID_CHARACTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def security_headers(settings: Settings) -> tuple[tuple[bytes, bytes], ...]:
    """Headers of every answer: only our own scripts, styles, frames and requests are allowed."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "strict-origin-when-cross-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "cross-origin-opener-policy": "same-origin",
        "x-frame-options": "DENY",
    }
    if settings.public_url.startswith("https://"):
        headers["strict-transport-security"] = HSTS
    return tuple((name.encode(), value.encode("latin-1")) for name, value in headers.items())


class RequestContext:
    """Pure ASGI middleware: no extra task between the server and the view."""

    def __init__(self, app: ASGIApp, env: Env) -> None:
        self.application = app
        self._env = env
        self._headers = list(security_headers(env.settings))
        self._proxies = networks_of(env.settings)
        #: By route and status: each series of the metrics is looked up once.
        self._series: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        #: Request ids differ between processes by this prefix. All have the same length: answers about hidden and
        #: about absent things must have equally many bytes.
        beginning = secrets.token_hex(5)
        self._ids = (f"{beginning}-{number:08x}" for number in itertools.count(1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = self._request_id(scope)
        scope["request_id"] = request_id
        address = share_of(client_address(Request(scope), self._proxies))
        env = msgspec.structs.replace(self._env, origin=RequestOrigin(request_id, address))
        scope["services"] = env
        bound = bind_contextvars(request_id=request_id, method=scope["method"], path=scope["path"])
        try:
            sending = self._watch(scope, send)
            with self._env.tracing.span(
                "request", request_id=request_id, method=scope["method"], path=scope["path"]
            ):
                await run_with_worker_env(env, lambda: self.application(scope, receive, sending))
        finally:
            reset_contextvars(**bound)

    def _watch(self, scope: Scope, send: Send) -> Send:
        """Wrap `send`: add the headers, and count the answer when it begins."""
        began = self._env.clock.monotonic()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["answered"] = message["status"]
                headers = [*message.get("headers", ()), *self._headers]
                headers.append((REQUEST_ID_HEADER, scope["request_id"].encode()))
                for name, value in scope.get("rate_limit", {}).items():
                    headers.append((name.encode(), value.encode()))
                endpoint = scope.get("endpoint")
                if endpoint is None or not endpoint.stays_open:
                    headers.append(VARY)
                if "bad_token" in scope and message["status"] != HTTPStatus.UNAUTHORIZED:
                    headers.append(BAD_TOKEN_WARNING)
                message["headers"] = headers
                self._count(scope, message["status"], self._env.clock.monotonic() - began)
            await send(message)

        return watched

    def _count(self, scope: Scope, status: int, duration_s: float) -> None:
        # The route's template, not the path: foreign text must not create new series.
        endpoint = scope.get("endpoint")
        route = "unmatched" if endpoint is None else endpoint.path
        if (route, status) not in self._series:
            metrics = self._env.metrics
            found = metrics.http_requests.labels(route, status), metrics.http_request_duration.labels(route)
            self._series[route, status] = found
        requests, durations = self._series[route, status]
        requests.inc()
        durations.observe(duration_s)
        if self._env.settings.log_level == "debug":
            self._env.log.debug("request answered", status=status, duration_ms=round(duration_s * 1000, 1))

    def _request_id(self, scope: Scope) -> str:
        """The client's own id where it is harmless in a log line, otherwise a fresh one."""
        for name, value in scope["headers"]:
            if name == REQUEST_ID_HEADER:
                if 0 < len(value) <= MAX_REQUEST_ID and _ID_CHARACTERS.issuperset(value):
                    return str(value.decode("ascii"))
                break
        return next(self._ids)

"""The one middleware: what a request runs in, from its first byte to the last byte of its answer.

It sets the worker environment around the whole call, so that streams keep it (AC-US3-05), binds the request's
id to its log lines, counts and times it, and turns an error that nobody foresaw into a problem document.
"""

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vskill_platform.env import Env
from vskill_platform.web.problems import unforeseen_problem
from vskill_platform.worker_context import run_with_worker_env

REQUEST_ID_HEADER = "x-request-id"
MAX_REQUEST_ID = 64

_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


class RequestContext:
    """Pure ASGI: no task of its own stands between the server and the view."""

    def __init__(self, app: ASGIApp, env: Env) -> None:
        self._app = app
        self._env = env

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope, self._env)
        scope["request_id"] = request_id
        with structlog.contextvars.bound_contextvars(
            request_id=request_id, method=scope["method"], path=scope["path"]
        ):
            await run_with_worker_env(self._env, lambda: self._answer(scope, receive, send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = _Watch(self._env, scope, send)
        try:
            await self._app(scope, receive, watch.send)
        except Exception as error:
            if watch.status is not None:
                # The answer has begun: only a broken connection tells the client that it is not whole.
                self._env.log.exception("response broke off")
                raise
            self._env.log.exception("request failed")
            response = unforeseen_problem(Request(scope), error)
            await response(scope, receive, watch.send)


class _Watch:
    """Sees the answer pass: adds the request's id, and counts it when it begins."""

    def __init__(self, env: Env, scope: Scope, send: Send) -> None:
        self._env = env
        self._scope = scope
        self._send = send
        self._began = env.clock.monotonic()
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = self._scope["request_id"]
            self._count()
        await self._send(message)

    def _count(self) -> None:
        # The route's template, never the path: foreign text must not make new series.
        route = getattr(self._scope.get("route"), "path", "unmatched")
        duration_s = self._env.clock.monotonic() - self._began
        self._env.metrics.http_requests.labels(route, self.status).inc()
        self._env.metrics.http_request_duration.labels(route).observe(duration_s)
        self._env.log.debug("request answered", status=self.status, duration_ms=round(duration_s * 1000, 1))


def _request_id(scope: Scope, env: Env) -> str:
    """The client's own id where it is harmless in a log line, otherwise a fresh one."""
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    if 0 < len(given) <= MAX_REQUEST_ID and _ID_CHARACTERS.issuperset(given):
        return given
    return env.clock.new_id()

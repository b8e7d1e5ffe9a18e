"""The application: finds a request's endpoint, lets it answer, and turns every error into an answer.

It is the inner one of the two layers that a request goes through; `context` wraps it.
"""

import asyncio
from collections.abc import Iterable

from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from vskill_core.errors import PlatformError
from vskill_platform.machine.shortages import shortage_of
from vskill_platform.web.door.compression import Compression
from vskill_platform.web.door.limits import Limiter
from vskill_platform.web.exchange import services_of
from vskill_platform.web.kept import KeptThings
from vskill_platform.web.paths import PathTree, drop_extra_slashes, segments_of
from vskill_platform.web.problems import problem_of
from vskill_platform.web.readiness import ReadinessProbe
from vskill_platform.web.routing import Endpoint, answer, answer_unknown, limit_body
from vskill_platform.web.streams.follower import Hub
from vskill_platform.worker_context import Env, require_env

_READING = frozenset({"GET", "HEAD"})


class Application:
    """An ASGI application over a table of endpoints. `state` holds what lives as long as the process."""

    def __init__(
        self,
        env: Env,
        endpoints: Iterable[Endpoint],
        hub: Hub | None,
        stop: asyncio.Event | None,
        *,
        works: bool,
        processes: int,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self.state = State()
        self.state.limiter = Limiter(env.settings, processes)
        self.state.live = hub or Hub(env)
        self.state.readiness = ReadinessProbe(works=works)
        #: Set when the process is asked to stop.
        self.state.stop = stop or asyncio.Event()
        #: Cached answers; an attribute, because every request needs it.
        self.kept = KeptThings(env.clock)
        self._compression = Compression()
        self._tree = PathTree(self.endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. The server sends nothing else: it has neither lifespan events nor websockets."""
        scope["app"] = self
        drop_extra_slashes(scope)
        request = Request(scope, receive, send)
        try:
            response = await self._respond(request)
            await self._compression.apply(request, response)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - every error becomes an answer
            response = _answer_failure(request, error)
        try:
            await response(scope, receive, send)
        except Exception as error:
            if "answered" not in scope:
                await _answer_failure(request, error)(scope, receive, send)
                return
            # The answer has begun, so only a broken connection tells the client that it is incomplete.
            require_env("log").log.exception("response broke off")
            raise

    async def _respond(self, request: Request) -> Response:
        scope = request.scope
        try:
            endpoint = self._find(scope)
        except HTTPException as error:
            return await answer_unknown(request, error)
        if scope["method"] not in _READING:
            request = Request(scope, limit_body(request.receive, scope["headers"], endpoint.most_body))
        return await answer(endpoint, request)

    def _find(self, scope: Scope) -> Endpoint:
        found = self._tree.find(segments_of(scope))
        if found is None:
            raise HTTPException(404)
        methods, values = found
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in methods:
            allowed = sorted({*methods, *({"HEAD"} if "GET" in methods else ())})
            raise HTTPException(405, headers={"allow": ", ".join(allowed)})
        endpoint, names = methods[method]
        scope["endpoint"] = endpoint
        scope["path_params"] = dict(zip(names, values, strict=True))
        return endpoint


def _answer_failure(request: Request, error: Exception) -> Response:
    error = shortage_of(error) or error
    if not isinstance(error, PlatformError | HTTPException):
        services_of(request).log.error("request failed", exc_info=error)
    elif isinstance(error, PlatformError) and error.public_message != error.message:
        services_of(request).log.warning("request failed", code=error.code, error=error.message)
    return problem_of(request, error)

"""One client's connection: uvicorn's protocol, with time limits and a queue for request slots.

A request begins when all of it is there, or when its body is so large that the view must read it in chunks. Until then
it costs only a connection, so slow clients take no slot. A refused client gets the reason before the connection closes.
"""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from vskill_platform.web.door import refusals
from vskill_platform.web.door.front_door import MOST_LINGERING, FrontDoor, RequestSlots, Turn, Visitor
from vskill_platform.web.door.limits import share_of

#: Bytes of a request's URL, of its headers, and their number; the parser itself has no limits.
MOST_TARGET, MOST_HEADERS, MOST_HEADER_LINES = 49_152, 65_536, 100
#: Characters of a `Host` (RFC 3986), without the comma: a proxy joins two headers with it.
_HOST = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+;=:[]")
#: A slower body is refused.
BODY_BYTES_PER_S = 16_384
#: How long a client may take to read this much of its answer.
READ_WITHIN_S, READ_BYTES = 30.0, 32_768
#: A refused client has this long to read the reason, and may send this much, which is discarded. Closing while a client
#: still sends would lose the answer.
LINGER_S, LINGER_BYTES = 2.0, 16 * 1024 * 1024
#: Health probes are answered without waiting, however busy the process is.
NEVER_WAIT = frozenset({"/healthz", "/readyz"})
_NEVER = float("inf")


class ClientConnection(HttpToolsProtocol, Visitor):
    """A connection from its first byte to its last."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        door: FrontDoor,
        peer: str,
        refusal: refusals.Refusal | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.address = share_of(peer)
        self._peer = peer
        self._door = door
        self._refusal = refusal
        #: When the client must have sent the rest of its request.
        self._deadline = self.loop.time() + door.limits.header_s
        #: Bytes since the last head or body ended: those of an incomplete head.
        self._head = 0
        #: Bytes of the complete headers.
        self._header_bytes = 0
        #: The reason for which the parser stops.
        self._fault = refusals.BAD_REQUEST
        #: A request whose body is incomplete, and which has not begun.
        self._held: tuple[RequestResponseCycle, ASGI3Application] | None = None
        self._body_bytes = 0
        #: Bytes of the answer that were unsent when the client last read enough of it, and when that was.
        self._unread: tuple[int, float] | None = None
        #: Its input is discarded; the client may still read the reason.
        self._lingers = False
        self._ignored = 0
        if refusal is None:
            door.enter(self)
            door.rest(self)

    # The connection.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if self._refusal is not None:
            self._send_away(self._refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._held = None
        self.leave_door()
        if self._lingers:
            self._lingers = False
            self._door.lingering -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            self._ignored += len(data)
            if self._ignored > LINGER_BYTES:
                self.transport.abort()
            return
        self._head += len(data)
        super().data_received(data)
        # Bytes after the headers are a body or the next request: only an incomplete head counts.
        if self._head > MOST_HEADERS and not self._lingers and not self.transport.is_closing():
            self._send_away(refusals.LARGE_HEADERS)

    def send_400_response(self, msg: str) -> None:
        self._send_away(self._fault)

    def leave_door(self) -> None:
        self._door.leave(self)

    def shutdown(self) -> None:
        if self._lingers:
            self.transport.abort()
        else:
            super().shutdown()

    # The request.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        if self.cycle is not None:
            self._deadline = self.loop.time() + self._door.limits.header_s

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MOST_TARGET:
            self._stop_parsing(refusals.LONG_ADDRESS)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MOST_HEADERS or len(self.headers) > MOST_HEADER_LINES:
            self._stop_parsing(refusals.LARGE_HEADERS)

    def on_headers_complete(self) -> None:
        hosts = [value.strip(b" \t") for name, value in self.headers if name == b"host"]
        is_missing = not hosts and self.parser.get_http_version() != "1.0"
        if len(hosts) > 1 or is_missing or not all(map(_HOST.issuperset, hosts)):
            self._stop_parsing(refusals.BAD_HOST)
        self._head = 0
        self._body_bytes = 0
        super().on_headers_complete()

    def _stop_parsing(self, reason: refusals.Refusal) -> None:
        """Make the parser fail, so that it calls `send_400_response`."""
        self._fault = reason
        raise ValueError(reason.code)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head = 0
        self._body_bytes += len(body)
        if self._held is not None and len(self.cycle.body) > HIGH_WATER_LIMIT:
            self._begin(self._door.uploads)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = 0
        if self._held is not None and self._held[0] is self.cycle:
            self._begin(self._door.requests)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Hold the request until its body is there; a large one, or one with `Expect: 100-continue`, begins at once."""
        self._held = (cycle, app)
        if not cycle.more_body:
            self._begin(self._door.requests)
            return
        self._deadline = self.loop.time() + self._door.limits.body_s
        if cycle.waiting_for_100_continue or _declared_length(cycle.scope) > HIGH_WATER_LIMIT:
            self._begin(self._door.uploads)

    def _begin(self, slots: RequestSlots) -> None:
        if self._held is None:
            return
        (cycle, app), self._held = self._held, None
        self._door.work(self)
        if slots is self._door.requests:
            self._deadline = _NEVER
        else:
            self.flow.pause_reading()
        turn = Turn(
            self._door.address_of(self._peer, _forwarded_for(cycle.scope)),
            start=lambda turn: self._run(cycle, _leaving(app, self, cycle, lambda: slots.leave(turn))),
            refuse=lambda reason: self._refuse(cycle, reason),
            is_gone=lambda: cycle.disconnected,
        )
        if cycle.scope["path"] in NEVER_WAIT:
            self._run(cycle, app)
        else:
            slots.enter(turn)

    def _refuse(self, cycle: RequestResponseCycle, reason: refusals.Refusal) -> None:
        if not cycle.disconnected:
            self._door.count_refusal(reason)
            self._run(cycle, _leaving(_refusing(reason, cycle.scope), self, cycle, lambda: None))

    def _run(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        # Without a context of its own, a request whose body is over 64 KB can run in the context of the request
        # before it (AC-US3-04).
        context = contextvars.Context() if self.config.reset_contextvars else None
        task = self.loop.create_task(cycle.run_asgi(app), context=context)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """The next request may come; replaces uvicorn's own keep-alive timer."""
        self.server_state.total_requests += 1
        if self._lingers or self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._deadline = self.loop.time() + self._door.limits.idle_s
        self._door.rest(self)
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    # Time.

    def check_time(self, now: float) -> None:
        """End the connection if its client takes too long."""
        self._check_reading(now)
        if now < self._deadline or self.transport is None or self.transport.is_closing():
            return
        waits_for_body = self.cycle is not None and not self.cycle.response_complete
        if not waits_for_body:
            self.give_up(refusals.SLOW_HEADERS)
            return
        if not self.cycle.more_body:
            self._deadline = _NEVER
        elif self.flow.read_paused:
            # We have paused reading, so the client cannot send.
            self._deadline = now + self._door.limits.body_s
        elif now >= self._deadline + self._body_bytes / BODY_BYTES_PER_S:
            self.give_up(refusals.SLOW_BODY)

    def _check_reading(self, now: float) -> None:
        size = self.transport.get_write_buffer_size() if self.transport is not None else 0
        if not size:
            self._unread = None
        elif self._unread is None or size <= self._unread[0] - READ_BYTES:
            self._unread = (size, now)
        elif now - self._unread[1] > READ_WITHIN_S:
            self._door.count_refusal(refusals.SLOW_READER)
            self.transport.abort()

    def give_up(self, reason: refusals.Refusal) -> None:
        """End a connection whose request is incomplete. Between two requests there is nothing to answer."""
        if self.transport is None:
            self._refusal = reason
            self.leave_door()
        elif self._head or self.cycle is None or not self.cycle.response_complete:
            self._send_away(reason)
        else:
            self.leave_door()
            self._hang_up()

    # The end.

    def _send_away(self, reason: refusals.Refusal) -> None:
        """Answer in place of the view, and close once the client has read it."""
        self._door.count_refusal(reason)
        self._held = None
        if self.pipeline:
            # Answers to earlier pipelined requests are still due, so this one cannot be sent.
            self.transport.abort()
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        self.transport.write(reason.answer)
        self.linger()

    def linger(self) -> None:
        """Send no more and discard input, until the client closes or its time is over."""
        self.leave_door()
        if self._lingers or self.transport.is_closing():
            return
        if self._door.lingering >= MOST_LINGERING:
            self._hang_up()
            return
        self._lingers = True
        self._door.lingering += 1
        self.flow.resume_reading()
        self.transport.write_eof()
        self.loop.call_later(LINGER_S, self.transport.abort)

    def _hang_up(self) -> None:
        """Close, without waiting for a client that does not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()


class _LingeringEnd:
    """Replaces the transport of an answer that is sent before the request has been read: closing it lingers."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        self._connection.linger()


def _leaving(
    app: ASGI3Application,
    connection: ClientConnection,
    cycle: RequestResponseCycle,
    leave: Callable[[], None],
) -> ASGI3Application:
    """The application, which frees its slot as soon as its answer begins: a stream may last for hours, and a client may
    read slowly. An answer to an incomplete request ends the connection."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def watched(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                leave()
                if cycle.more_body:
                    cycle.keep_alive = False
                    cycle.transport = _LingeringEnd(connection)  # type: ignore[assignment]  # all that it uses
            await send(message)

        try:
            await app(scope, receive, watched)
        finally:
            leave()

    return answer


def _refusing(reason: refusals.Refusal, asked: HTTPScope) -> ASGI3Application:
    """An application that answers with the reason, on a connection that may go on."""
    accepts = next((value for name, value in asked["headers"] if name == b"accept"), b"")
    is_page = b"text/html" in accepts
    body = reason.page if is_page else reason.body
    kind = b"text/html; charset=utf-8" if is_page else b"application/problem+json"
    headers = [*reason.headers, (b"content-type", kind), (b"content-length", str(len(body)).encode())]

    async def refuse(_scope: Scope, _receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await send({"type": "http.response.start", "status": reason.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return refuse


def _declared_length(scope: HTTPScope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _forwarded_for(scope: HTTPScope) -> str:
    return ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for")

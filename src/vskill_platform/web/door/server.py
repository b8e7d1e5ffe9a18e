"""Serving the application: the one place that builds uvicorn's configuration, with our own protocol and entrance.

The socket is bound first, so that a port in use is an error before anything is announced. The server runs as
a task of the caller's event loop, ends when `stop` is set, and leaves signals to the command line.
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterator
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from vskill_core.errors import InvalidSettings
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.web.door import front_door
from vskill_platform.web.door.connection import ClientConnection
from vskill_platform.web.door.refusals import Refusal

BACKLOG = 2048


def bind(settings: Settings) -> socket.socket:
    """A listening socket; InvalidSettings if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(settings, error) from error


def address_of(listener: socket.socket) -> str:
    """Where a client on this machine reaches it."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - only shown, nothing binds to it
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # Without it a request whose body is over 64 KB can run in the context of the request before it
        # (AC-US3-04).
        reset_contextvars=True,
        lifespan="off",
        ws="none",
        # The process configures logging, not uvicorn, and counts requests itself.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # The client's address comes from the connection; our own code handles trusted proxies.
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, settings.shutdown_grace_ms // 1000),
    )


async def serve(
    app: ASGIApp,
    settings: Settings,
    listener: socket.socket,
    stop: asyncio.Event,
    at_stop: Callable[[], None] | None = None,
    *,
    metrics: Metrics,
    limits: front_door.DoorLimits | None = None,
    leave: asyncio.Event | None = None,
) -> None:
    """Answer until `stop` is set and the drain is over, then let running requests finish within the grace. `at_stop`
    ends those that would never finish by themselves: event streams. `leave` ends a process where others share its
    listener."""
    limits = limits or front_door.door_limits(settings, front_door.raise_descriptor_limit())
    server = _Server(server_config(app, settings), front_door.FrontDoor(settings, limits, metrics))
    serving = asyncio.create_task(server.serve([listener]))
    stopping = asyncio.create_task(stop.wait())
    leaving = asyncio.create_task((leave or asyncio.Event()).wait())
    try:
        await asyncio.wait({serving, stopping, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if at_stop is not None:
            # Without `at_stop` this is the metrics port, which needs no drain.
            if leaving.done():
                at_stop()
                await _leave(server, stopping, limits.idle_s + settings.shutdown_grace_ms / 1000)
            else:
                if not serving.done():
                    await _drain(server, settings.drain_ms / 1000)
                at_stop()
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        leaving.cancel()
        listener.close()


async def _leave(server: "_Server", stopping: asyncio.Task[Literal[True]], seconds: float) -> None:
    """Accept no more, and let every connection end by itself: after its next answer, or when it has been idle for as
    long as any may. So no client sends a request to a connection that we just close."""
    server.stop_accepting()
    _close_after_answers(server)
    emptied = asyncio.create_task(server.door.empty.wait())
    await asyncio.wait({emptied, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    emptied.cancel()


async def _drain(server: uvicorn.Server, seconds: float) -> None:
    """Load balancers learn from `/readyz` to send requests elsewhere; until then each is answered, and each answer
    closes its connection, so that none is in use when the process ends."""
    if seconds <= 0:
        return
    _close_after_answers(server)
    await asyncio.sleep(seconds)


def _close_after_answers(server: uvicorn.Server) -> None:
    """Each answer from now on closes its connection."""
    closing = (b"connection", b"close")
    server.config.encoded_headers.append(closing)
    server.server_state.default_headers = [*server.server_state.default_headers, closing]


class _Server(uvicorn.Server):
    """Uvicorn's server behind our front door, and without signal handlers: the command line handles signals for every
    role."""

    def __init__(self, config: uvicorn.Config, door: front_door.FrontDoor) -> None:
        super().__init__(config)
        self.door = door
        self._entrances: list[front_door.Entrance] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        door = self.door

        def make(peer: str, refusal: Refusal | None) -> ClientConnection:
            return ClientConnection(self.config, self.server_state, self.lifespan.state, door, peer, refusal)

        self._entrances = [front_door.Entrance(listener, door, make) for listener in sockets or ()]
        self.servers = [*self._entrances]  # type: ignore[list-item]  # closes alike
        self.started = True

    def stop_accepting(self) -> None:
        for entrance in self._entrances:
            entrance.stop_accepting()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _cannot_listen(settings: Settings, error: Exception) -> InvalidSettings:
    place = f"port {settings.port} on {settings.host}"
    code = error.errno if isinstance(error, OSError) else None
    reasons = {
        errno.EADDRINUSE: f"{place} is in use by another process",
        errno.EACCES: f"{place} needs a privilege that this process lacks",
    }
    reason = reasons.get(code or 0, f"{place} cannot be listened on: {error}")
    fix = "stop the other process, or choose another place with --port or VSKILL_PORT, --host or VSKILL_HOST"
    return InvalidSettings(
        f"{reason[0].upper()}{reason[1:]}; {fix}.", settings=["VSKILL_HOST", "VSKILL_PORT"]
    )

"""A child process's own side of `role_process`: it has the settings of its environment, which is the server's, says
what it has counted when asked and at its end, and stops when told or when the server is gone.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from vskill_core.errors import InvalidSettings, PlatformError
from vskill_platform import __version__
from vskill_platform.cli.operation.role_process import ASK, LEAVE, MOST_LINE_BYTES, OTHERS, STOP
from vskill_platform.cli.process import ending_all, run_async
from vskill_platform.observing.logs import configure_logging
from vskill_platform.observing.metrics import Count, Metrics
from vskill_platform.settings import Settings, process_settings

#: How long a scrape waits for what the other processes counted, before it goes on with what was said before. The server
#: waits half as long for each of them.
OTHERS_WITHIN_S = 2.0


def run_child(servers_version: str, role: Callable[[Settings], Coroutine[Any, Any, None]]) -> int:
    """Run a role until the server is gone, or a signal; the exit code."""
    # Not in the foreground of its terminal, to which it logs nevertheless.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    log = configure_logging(Settings())
    try:
        settings = process_settings()
        log = configure_logging(settings)
        _check_version(servers_version)
        run_async(role(settings))
    except PlatformError as error:
        log.error("child process not started", error=str(error), code=error.code)  # noqa: TRY400 - says enough
        return 1
    return 0


def _check_version(servers: str) -> None:
    """Another release might change the store under the server."""
    if servers != __version__:
        raise InvalidSettings(
            f"The server is version {servers}, and what is installed now is {__version__}: restart the server."
        )


class Supervisor:
    """Who started this process, as it is talked to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, metrics: Metrics) -> None:
        self._reader, self._writer, self._metrics = reader, writer, metrics
        #: What the other processes counted, as it was last said; one scrape asks at a time.
        self._others: Sequence[Count] = ()
        self._told_others = asyncio.Event()
        self._turn = asyncio.Lock()

    async def heed(self, stop: asyncio.Event, leave: asyncio.Event) -> None:
        """Do what it says, until it is gone."""
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                if line == STOP:
                    stop.set()
                elif line == LEAVE:
                    leave.set()
                elif line == ASK:
                    self.tell()
                elif line.endswith(b"\n"):
                    self._others = msgspec.json.decode(line, type=tuple[Count, ...])
                    self._told_others.set()
        if stop.is_set():
            # It did not wait for the end that it asked for: as by a second Ctrl-C, everything ends at once.
            os._exit(1)

    def tell(self) -> None:
        """Say what has been counted here; the first time, that this process is up."""
        if not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(self._metrics.counts()) + b"\n")

    async def others(self) -> Sequence[Count]:
        async with self._turn:
            self._told_others.clear()
            if not self._writer.is_closing():
                self._writer.write(OTHERS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(OTHERS_WITHIN_S):
                        await self._told_others.wait()
            return self._others


@asynccontextmanager
async def heeding(
    connection: socket.socket, metrics: Metrics, stop: asyncio.Event, leave: asyncio.Event
) -> AsyncIterator[Supervisor]:
    """Heed the server meanwhile, and say at the end what was counted."""
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_LINE_BYTES)
    server = Supervisor(reader, writer, metrics)
    task = asyncio.create_task(ending_all(server.heed(stop, leave), stop))
    try:
        yield server
    finally:
        task.cancel()
        server.tell()

"""The worker process's own side: it works and schedules with the settings of its environment, which is the server's,
says what it has counted when asked and at its end, and stops when told or when the server is gone.
"""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress

import msgspec

from vskill_core.errors import InvalidSettings, PlatformError
from vskill_platform import __version__
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.operation.worker_process import STOP
from vskill_platform.cli.process import ending_all, run_async, stop_on_signals
from vskill_platform.observing.logs import configure_logging
from vskill_platform.observing.metrics import Metrics
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.schedule import run_schedule
from vskill_platform.settings import Settings, process_settings

#: How far its priority is below that of the pages.
NICENESS = 10


def main(descriptor: str, servers_version: str) -> int:
    """Until the server is gone, or a signal; the exit code."""
    # Not in the foreground of its terminal, to which it logs nevertheless.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    log = configure_logging(Settings())
    try:
        settings = process_settings()
        log = configure_logging(settings)
        _check_version(servers_version)
        _give_way()
        run_async(_work_for(socket.socket(fileno=int(descriptor)), settings))
    except PlatformError as error:
        log.error("worker process not started", error=str(error), code=error.code)  # noqa: TRY400 - says enough
        return 1
    return 0


def _check_version(servers: str) -> None:
    """Another release might change the store under the server."""
    if servers != __version__:
        raise InvalidSettings(
            f"The server is version {servers}, and what is installed now is {__version__}: restart the server."
        )


def _give_way() -> None:
    """Take a lower priority before any thread or process begins: each gets it from the one that begins it."""
    os.nice(NICENESS)
    # What computes for long makes room for what answers; not every system has it, and a sandbox may forbid it.
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


async def _work_for(server: socket.socket, settings: Settings) -> None:
    with stop_on_signals() as stop:
        reader, writer = await asyncio.open_unix_connection(sock=server)
        async with env_for(settings) as env:
            heeding = asyncio.create_task(ending_all(_heed(reader, writer, env.metrics, stop), stop))
            try:
                async with asyncio.TaskGroup() as group:
                    for role in (run_consumer(env, stop, tries_machine=True), run_schedule(env, stop)):
                        group.create_task(ending_all(role, stop))
            finally:
                heeding.cancel()
                _tell(writer, env.metrics)


async def _heed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, metrics: Metrics, stop: asyncio.Event
) -> None:
    """Do what the server says, until it is gone."""
    with suppress(ConnectionError):
        while line := await reader.readline():
            if line == STOP:
                stop.set()
            else:
                _tell(writer, metrics)
    if stop.is_set():
        # It did not wait for the end that it asked for: as by a second Ctrl-C, everything ends at once.
        os._exit(1)


def _tell(writer: asyncio.StreamWriter, metrics: Metrics) -> None:
    if not writer.is_closing():
        writer.write(msgspec.json.encode(metrics.counts()) + b"\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

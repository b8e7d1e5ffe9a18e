"""The process of `serve` that works the queue and runs the schedule, at a lower priority than the web side."""

import asyncio
import os
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from vskill_platform.bootstrap import env_for
from vskill_platform.cli.operation.supervised import heeding, run_child
from vskill_platform.cli.process import ending_all, stop_on_signals
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.schedule import run_schedule
from vskill_platform.settings import Settings

#: How far its priority is below that of the pages.
NICENESS = 10


def main(descriptor: str, servers_version: str) -> int:
    """Until the server is gone, or a signal; the exit code."""

    def begin(settings: Settings) -> Coroutine[Any, Any, None]:
        _give_way()
        return _work_for(socket.socket(fileno=int(descriptor)), settings)

    return run_child(servers_version, begin)


def _give_way() -> None:
    """Take a lower priority before any thread or process begins: each gets it from the one that begins it."""
    os.nice(NICENESS)
    # What computes for long makes room for what answers; not every system has it, and a sandbox may forbid it.
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


async def _work_for(server: socket.socket, settings: Settings) -> None:
    with stop_on_signals() as stop:
        async with (
            env_for(settings) as env,
            heeding(server, env.metrics, stop, stop),
            asyncio.TaskGroup() as group,
        ):
            for role in (run_consumer(env, stop, tries_machine=True), run_schedule(env, stop)):
                group.create_task(ending_all(role, stop))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

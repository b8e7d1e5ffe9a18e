"""The web processes of `serve --web N`: they accept at one listener and answer as one, and SIGHUP replaces them one
after another (ADR 40).

The listener is `serve`'s own, so it never closes while one of them ends: a client that connects meanwhile is accepted
by another one. A new process is up before an old one leaves.
"""

import asyncio
import socket
from collections.abc import Sequence
from functools import partial

import msgspec

from vskill_platform import __version__
from vskill_platform.cli.operation.role_process import MOST_LINE_BYTES, RoleProcess
from vskill_platform.cli.operation.web_child import WebOrders
from vskill_platform.machine.child_processes import start_own
from vskill_platform.observing.metrics import Count, add_counts, without_gauges
from vskill_platform.worker_context import Env

WEB_CHILD = "vskill_platform.cli.operation.web_child"


class WebProcesses:
    """Several processes that answer as one, and what counts with them: the worker, where it is beside them."""

    def __init__(self, env: Env, listener: socket.socket, number: int, beside: RoleProcess | None) -> None:
        self._env = env
        self._number = number
        self._beside = [beside] if beside is not None else []
        settings = env.settings
        orders = WebOrders(
            listener=listener.fileno(),
            processes=number,
            works=beside is not None,
            host=settings.host,
            port=settings.port,
            rate_limits=settings.rate_limits,
        )
        self._start = partial(
            start_own,
            WEB_CHILD,
            __version__,
            msgspec.json.encode(orders).decode(),
            line_bytes=MOST_LINE_BYTES,
            inherits=(listener.fileno(),),
        )
        #: Each with what asks it to stop, and its end.
        self._running: dict[RoleProcess, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        #: What those counted that have left.
        self._counts_before: Sequence[Count] = ()

    async def run(self, stop: asyncio.Event, again: asyncio.Event) -> None:
        """Until `stop` is set, and then until all have ended; each time that `again` is set, replace all."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._number):
                self._add(group)
            replacing = group.create_task(self._replace_whenever(again, group))
            await stop.wait()
            replacing.cancel()
            for process, (process_stop, _) in self._running.items():
                process.stop_now(process_stop)

    def _add(self, group: asyncio.TaskGroup) -> RoleProcess:
        env, stop = self._env, asyncio.Event()
        process = RoleProcess(env.settings, env.log, self._start, role="web", read_others=self._read_others)
        self._running[process] = stop, group.create_task(self._keep(process, stop))
        return process

    async def _keep(self, process: RoleProcess, stop: asyncio.Event) -> None:
        try:
            await process.run(stop)
        finally:
            del self._running[process]
            self._counts_before = add_counts(self._counts_before, process.counts_before)

    async def _replace_whenever(self, again: asyncio.Event, group: asyncio.TaskGroup) -> None:
        log = self._env.log
        while await again.wait():
            again.clear()
            for old, (old_stop, old_end) in tuple(self._running.items()):
                new = self._add(group)
                if not await new.is_up():
                    self._running[new][0].set()
                    log.error("web processes not replaced", effect="those that ran before go on")
                    break
                old.leave(old_stop)
                await asyncio.wait({old_end})
            else:
                log.info("web processes replaced", number=self._number)

    async def _read_others(self, asking: RoleProcess) -> Sequence[Count]:
        """What all counted but the present process of the one that asks, which adds its own."""
        others = [one for one in (*self._running, *self._beside) if one is not asking]
        found = await asyncio.gather(*(one.counts() for one in others))
        own = without_gauges(self._env.metrics.counts())
        return add_counts(self._counts_before, asking.counts_before, own, *found)

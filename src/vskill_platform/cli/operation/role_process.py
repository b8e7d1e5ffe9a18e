"""A role of `serve` in a process of its own: the queue's work and the jobs, so that no page waits for them, or one of
several web processes. `serve` starts it, starts it again when it ends or hangs, and asks it for what it has counted.

Between them is a pair of sockets. `serve` says `counts`, `stop` or `leave`, a line each, and hears a line of counts; a
web process also asks for the counts of the `others`, which it shows with its own. Where `serve` is gone, the process
stops (ADR 25, ADR 40). `supervised` is the other side.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec
from structlog.typing import FilteringBoundLogger

from vskill_platform import __version__
from vskill_platform.machine.child_processes import RunningProcess, describe_ending, start_own
from vskill_platform.observing.metrics import Count, add_counts, without_gauges
from vskill_platform.settings import Settings
from vskill_platform.web.door.front_door import IDLE_S

WORKER_CHILD = "vskill_platform.cli.operation.worker_child"
ASK, STOP, LEAVE, OTHERS = b"counts\n", b"stop\n", b"leave\n", b"others\n"
#: Of a line with all counts, with room.
MOST_LINE_BYTES = 4 * 1024 * 1024
Start = Callable[[], Awaitable[RunningProcess]]


class Patience(msgspec.Struct, frozen=True):
    """With a child process, in seconds."""

    #: Of a scrape for what it counted, before it goes on with what was said before.
    answer_s: float = 1.0
    #: It is asked this often, and hangs when it has not answered twice for so long.
    ask_every_s: float = 10.0
    hung_s: float = 60.0
    #: After its end until it is started again, at first and after many ends in a row.
    first_pause_s: float = 1.0
    most_pause_s: float = 30.0
    #: One that has lived for this long has not failed at its start.
    steady_s: float = 60.0
    #: How much longer than its work it may take to stop.
    end_s: float = 5.0


start_worker = partial(start_own, WORKER_CHILD, __version__, line_bytes=MOST_LINE_BYTES)


async def no_others(_asking: "RoleProcess") -> Sequence[Count]:
    return ()


class RoleProcess:
    """One at a time, started again whenever it ends."""

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        start: Start = start_worker,
        patience: Patience = Patience(),  # noqa: B008 - it cannot be changed
        *,
        role: str = "worker",
        read_others: Callable[["RoleProcess"], Awaitable[Sequence[Count]]] = no_others,
    ) -> None:
        self._log = log
        self._role = role
        self._start_one = start
        self._patience = patience
        self._read_others = read_others
        #: How long it may take to stop; a web process is not ready for a while first.
        self._stops_within_s = (settings.shutdown_grace_ms + settings.drain_ms) / 1000 + patience.end_s
        #: What it is told at the end.
        self._farewell = STOP
        #: It has answered, or ended without.
        self._is_decided = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()
        #: To the present one, while it listens.
        self._writer: asyncio.StreamWriter | None = None
        #: How often any has answered, and that one has, or will not.
        self._answers = 0
        self._heard = asyncio.Event()
        #: What the present one counted, as it last said, and what those before it did.
        self._counts: Sequence[Count] = ()
        self.counts_before: Sequence[Count] = ()

    async def counts(self) -> Sequence[Count]:
        """What has been counted there, also by those that have ended."""
        await self._ask(self._patience.answer_s)
        return add_counts(self.counts_before, self._counts)

    async def is_up(self) -> bool:
        """Wait until it answers; False if it ends first."""
        await self._is_decided.wait()
        return self._answers > 0

    def leave(self, stop: asyncio.Event) -> None:
        """End a web process whose place another one has taken: connections that it holds may end by themselves."""
        self._farewell = LEAVE
        self._stops_within_s += IDLE_S
        stop.set()

    def stop_now(self, stop: asyncio.Event) -> None:
        """End it with the server; one that is leaving waits for no idle connection any more."""
        stop.set()
        self._say(STOP)

    async def run(self, stop: asyncio.Event) -> None:
        pause_s, patience = 0.0, self._patience
        while not await _is_set_within(stop, pause_s):
            began = time.monotonic()
            try:
                ending = await self._run_once(stop)
            except OSError as error:
                ending = f"not started: {error}"
            self._is_decided.set()
            if stop.is_set():
                return
            lived = time.monotonic() - began >= patience.steady_s
            pause_s = (
                min(pause_s * 2, patience.most_pause_s) if pause_s and not lived else patience.first_pause_s
            )
            # Somebody may have asked it to stop, as to start it anew.
            report = self._log.info if ending == "exit code 0" else self._log.error
            report("child process ended", role=self._role, ending=ending, starts_again_in_s=pause_s)

    async def _run_once(self, stop: asyncio.Event) -> str:
        process = await self._start_one()
        self._log.info("child process started", role=self._role, pid=process.pid)
        self._writer = process.writer
        listening = asyncio.create_task(self._listen(process.reader))
        watching = asyncio.create_task(self._end_if_it_hangs(process))
        ended, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
            self._say(self._farewell)
            within_s = self._stops_within_s
            if not (await asyncio.wait({ended}, timeout=within_s))[0]:
                self._kill(process, f"it did not stop within {within_s:g} s")
            code = await ended
            # The last thing that it says is what it has counted.
            await asyncio.wait({listening}, timeout=self._patience.answer_s)
        finally:
            # Whatever ends this, even without waiting: one that nobody talks to any more stops by itself.
            process.close()
            for task in (listening, watching, ended, stopping, *self._answering):
                task.cancel()
            self.counts_before = add_counts(self.counts_before, without_gauges(self._counts))
            self._counts = ()
        return describe_ending(code)

    # What is said.

    def _say(self, line: bytes) -> bool:
        """False where nobody listens."""
        if self._writer is None or self._writer.is_closing():
            return False
        self._writer.write(line)
        return True

    async def _ask(self, within_s: float) -> bool:
        before = self._answers
        self._heard.clear()
        if self._say(ASK):
            await _is_set_within(self._heard, within_s)
        return self._answers > before

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            with suppress(ConnectionError):
                while (line := await reader.readline()).endswith(b"\n"):
                    if line == OTHERS:
                        task = asyncio.create_task(self._tell_others())
                        self._answering.add(task)
                        task.add_done_callback(self._answering.discard)
                        continue
                    self._counts = msgspec.json.decode(line, type=tuple[Count, ...])
                    self._answers += 1
                    self._heard.set()
                    self._is_decided.set()
        finally:
            self._writer = None
            self._heard.set()

    async def _tell_others(self) -> None:
        self._say(msgspec.json.encode(await self._read_others(self)) + b"\n")

    async def _end_if_it_hangs(self, process: RunningProcess) -> None:
        missed, hung_s = 0, self._patience.hung_s
        while missed < 2:
            await asyncio.sleep(self._patience.ask_every_s)
            missed = 0 if await self._ask(hung_s) else missed + 1
        self._kill(process, f"it has not answered two questions, {hung_s:g} s each")

    def _kill(self, process: RunningProcess, reason: str) -> None:
        self._log.error("child process killed", role=self._role, pid=process.pid, reason=reason)
        process.kill()


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()

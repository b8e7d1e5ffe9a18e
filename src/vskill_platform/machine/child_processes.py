"""Processes beside us, and the one contract for all of them: each leads a group of its own, is talked to over a socket,
is read within limits, and ends with its group.

`start_program` starts other people's programs: git (`sources.command`) and the analysers (`external_scan.sandbox`).
`start_own` starts modules of ours: the scanner (`tiers.pool`), the worker (`cli.operation.worker_process`) and what
colours code (`web.drawing.highlight`); `child_side` is their half. Callers limit the time, by `TimeLimit`. Not covered:
processes that left the group, or outlived a program that ended well.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from vskill_platform.machine.child_side import HEADER, frame

CHUNK = 64 * 1024
#: Of what a program says about itself; more is not kept.
MOST_ERROR_BYTES = 64 * 1024
#: How long the pipes of a killed program may take to close.
END_S = 5.0


class ProcessDied(Exception):
    """The process ended before it had answered."""


class EndedProgram(msgspec.Struct, frozen=True):
    """A program that is over."""

    #: As of `subprocess`: less than zero where a signal ended it.
    code: int = 0
    out: bytes = b""
    err: bytes = b""
    #: There was more output than was asked for; the program was ended.
    cut: bool = False


class RunningProcess:
    """A started process, the sockets to it, and its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._over = asyncio.Event()
        self._connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.pid = process.pid

    @property
    def reader(self) -> asyncio.StreamReader:
        """What it says."""
        return self._connections[0][0]

    @property
    def writer(self) -> asyncio.StreamWriter:
        return self._connections[0][1]

    @property
    def errors(self) -> asyncio.StreamReader:
        """The standard error of a program of other people's; that of our own goes where ours does."""
        return self._connections[1][0]

    @property
    def returncode(self) -> int | None:
        """None while it runs; as of `subprocess`, less than zero where a signal ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until the process itself has ended, even if others hold its sockets."""
        await self._over.wait()
        return self._process.returncode

    async def ask(self, message: object) -> bytes:
        """Send a message, and return the answer, both as frames (`child_side`)."""
        try:
            self.writer.write(frame(message))
            await self.writer.drain()
            (size,) = HEADER.unpack(await self.reader.readexactly(HEADER.size))
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ProcessDied from error

    async def read_to_end(self, out_bytes: int) -> EndedProgram:
        """Read all that a program prints; one that prints too much is not waited for."""
        errors = asyncio.create_task(_read_last(self.errors))
        try:
            out, cut = await _read_up_to(self.reader, out_bytes)
            if cut:
                return EndedProgram(out=out, cut=True)
            return EndedProgram(await self.wait(), out, await errors)
        finally:
            errors.cancel()
            await asyncio.wait({errors})

    def kill(self) -> None:
        """Kill its whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of its sockets."""
        for _, writer in self._connections:
            writer.close()

    async def end(self, *, grace_s: float = 0.0, close_s: float = END_S) -> int | None:
        """Its exit code if it has ended by itself, or else None. Unless that is 0, its group is killed. With a grace,
        its sockets are closed first, and it has that long to end by itself."""
        if grace_s:
            self.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self.wait()
        code = self.returncode
        if code != 0:
            self.kill()
        try:
            # What nobody wants any more is read all the same: a program whose pipe is full would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(close_s):
                    await asyncio.gather(*(_discard(reader) for reader, _ in self._connections), self.wait())
        finally:
            # Where something that left the group still holds a socket, the process itself is dead and reaped.
            self.close()
        return code

    async def connect(self, sockets: Sequence[socket.socket], line_bytes: int) -> None:
        self._watch_for_end()
        left = list(sockets)
        try:
            while left:
                # From here on the event loop closes it, also where the connecting is cancelled.
                self._connections.append(
                    await asyncio.open_unix_connection(sock=left.pop(0), limit=line_bytes)
                )
        finally:
            for ours in left:
                ours.close()

    def _watch_for_end(self) -> None:
        try:
            watch = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # An older kernel, a sandbox that forbids it, or no descriptor is left.
            self._waiting = asyncio.create_task(asyncio.to_thread(self._process.wait))
            self._waiting.add_done_callback(lambda _: self._over.set())
            return
        loop = asyncio.get_running_loop()

        def reap() -> None:
            loop.remove_reader(watch)
            os.close(watch)
            self._process.poll()
            self._over.set()

        loop.add_reader(watch, reap)


async def start_program(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    talks: bool = False,
) -> RunningProcess:
    """Start it in a session of its own. One that talks reads what is written to it, and its errors go nowhere."""
    (ours, theirs), (errors, their_errors) = socket.socketpair(), socket.socketpair()
    return await _start(
        command,
        (ours, errors),
        (theirs, their_errors),
        cwd=folder,
        env=environment,
        stdin=theirs if talks else subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL if talks else their_errors,
        start_new_session=True,
    )


async def start_own(
    module: str, *arguments: str, line_bytes: int = CHUNK, quiet: bool = False
) -> RunningProcess:
    """Start a module of ours with a socket, whose number is its first argument. What lies in the working folder is not
    ours, and not imported. It is in a group of its own, so that Ctrl-C reaches us alone, and in our session, within
    which priorities count."""
    ours, theirs = socket.socketpair()
    return await _start(
        (sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments),
        (ours,),
        (theirs,),
        line_bytes,
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet else None,
        process_group=0,
    )


async def _start(
    command: Sequence[str],
    ours: Sequence[socket.socket],
    theirs: Sequence[socket.socket],
    line_bytes: int = CHUNK,
    **options: Any,
) -> RunningProcess:
    """Start it with their ends of pairs of sockets, and connect to ours.

    The event loop's own way copies the page tables of this process first, which takes ten times as long and stops
    everything. Pipes are pairs of sockets: uvloop closes the descriptor of any other file twice, and in between a
    thread may have opened another one of the same number.
    """
    try:
        process = RunningProcess(subprocess.Popen(command, **options))  # noqa: ASYNC220 - see above
    except BaseException:
        for end in ours:
            end.close()
        raise
    finally:
        for end in theirs:
            end.close()
    try:
        await process.connect(ours, line_bytes)
    except BaseException:
        await asyncio.shield(process.end())
        raise
    return process


def describe_ending(code: int) -> str:
    """An exit code as of `subprocess`, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


async def _read_up_to(pipe: asyncio.StreamReader, most: int) -> tuple[bytes, bool]:
    """What it prints, and whether that was cut at the most."""
    parts: list[bytes] = []
    size = 0
    while chunk := await pipe.read(CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return b"".join(parts)[:most], True
    return b"".join(parts), False


async def _read_last(pipe: asyncio.StreamReader) -> bytes:
    """To the end, so that the process never waits for us; only the last part is kept."""
    kept = b""
    while chunk := await pipe.read(CHUNK):
        kept = (kept + chunk)[-MOST_ERROR_BYTES:]
    return kept


async def _discard(pipe: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await pipe.read(CHUNK):
            pass

"""Child processes, and the one contract for all of them: each leads its own process group, talks over a socket, is read
within limits, and ends with its group.

`start_program` starts other people's programs: git (`sources.command`) and the analysers (`external_scan.sandbox`).
`start_own` starts modules of ours: the scanner (`tiers.pool`), roles of `serve` (`cli.operation.role_process`) and what
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
#: Only the last bytes of a program's standard error are kept.
MOST_ERROR_BYTES = 64 * 1024
#: How long the pipes of a killed program may take to close.
END_S = 5.0


class ProcessDied(Exception):
    """The process ended before it had answered."""


class EndedProgram(msgspec.Struct, frozen=True):
    """A program that has ended."""

    #: As in `subprocess`: negative if a signal ended it.
    code: int = 0
    out: bytes = b""
    err: bytes = b""
    #: The output exceeded its limit, so the program was killed.
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
        return self._connections[0][0]

    @property
    def writer(self) -> asyncio.StreamWriter:
        return self._connections[0][1]

    @property
    def errors(self) -> asyncio.StreamReader:
        """Standard error of a foreign program; our own modules inherit ours."""
        return self._connections[1][0]

    @property
    def returncode(self) -> int | None:
        """None while it runs; as in `subprocess`, negative if a signal ended it."""
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
        """Read all output of a program; stop at the limit without waiting for its end."""
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
        for _, writer in self._connections:
            writer.close()

    async def end(self, *, grace_s: float = 0.0, close_s: float = END_S) -> int | None:
        """Its exit code if it ended by itself, else None. Unless that is 0, kill its group. With `grace_s`, close its
        sockets first and give it that long to end by itself."""
        if grace_s:
            self.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self.wait()
        code = self.returncode
        if code != 0:
            self.kill()
        try:
            # Read and discard the rest: a program whose pipe is full would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(close_s):
                    await asyncio.gather(*(_discard(reader) for reader, _ in self._connections), self.wait())
        finally:
            # A process that left the group may still hold a socket; the program itself is dead and reaped.
            self.close()
        return code

    async def connect(self, sockets: Sequence[socket.socket], line_bytes: int) -> None:
        self._watch_for_end()
        left = list(sockets)
        try:
            while left:
                # From here on the event loop closes it, even if connecting is cancelled.
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
            # No pidfd: an older kernel, a sandbox that forbids it, or no free descriptor.
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
    """Start it in its own session. With `talks` it gets an input, and its standard error is discarded."""
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
    module: str,
    *arguments: str,
    line_bytes: int = CHUNK,
    quiet: bool = False,
    inherits: Sequence[int] = (),
) -> RunningProcess:
    """Start a module of ours with a socket, whose descriptor is its first argument, and with descriptors that it
    `inherits` under their numbers. It imports nothing from the working folder. It has its own group, so that Ctrl-C
    reaches only us, but shares our session, within which priorities count."""
    ours, theirs = socket.socketpair()
    return await _start(
        (sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments),
        (ours,),
        (theirs,),
        line_bytes,
        pass_fds=(theirs.fileno(), *inherits),
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
    """Start it with their ends of socket pairs, and connect to ours.

    The event loop's own subprocess functions fork, copying this process's page tables, which takes ten times as long
    and blocks everything. Pipes are socket pairs, because uvloop closes the descriptor of any other file twice, and in
    between a thread may have opened another file with the same number.
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
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


async def _read_up_to(pipe: asyncio.StreamReader, most: int) -> tuple[bytes, bool]:
    """The output, and whether it was truncated at `most`."""
    parts: list[bytes] = []
    size = 0
    while chunk := await pipe.read(CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return b"".join(parts)[:most], True
    return b"".join(parts), False


async def _read_last(pipe: asyncio.StreamReader) -> bytes:
    """Read to the end, so that the process never blocks on us; keep only the last part."""
    kept = b""
    while chunk := await pipe.read(CHUNK):
        kept = (kept + chunk)[-MOST_ERROR_BYTES:]
    return kept


async def _discard(pipe: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await pipe.read(CHUNK):
            pass

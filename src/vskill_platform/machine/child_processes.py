"""Other people's programs beside us: what they print is read within limits, and what does not end by itself is killed
with its group. git (`sources.command`), the analysers (`external_scan.sandbox`) and what colours code run this way,
each in a session of its own, so that its processes form a group. Not found by this is what left the group, and what a
program that ended by itself left running with its pipes closed. Processes of our own (`tiers.pool`,
`cli.operation.worker_process`) begin by `start_own`.
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

CHUNK = 64 * 1024
#: Of what a program says about itself; more is not kept.
MOST_ERROR_BYTES = 64 * 1024
#: How long the pipes of a killed program may take to close.
END_S = 5.0


class RunningProgram:
    """A started program, what leads to it and from it, and its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._over = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self.pid = process.pid
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    @property
    def returncode(self) -> int | None:
        """None while it runs; as of `subprocess`, less than zero where a signal ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Until the program itself has ended, whoever else holds its pipes."""
        await self._over.wait()
        return self._process.returncode

    async def connect(self, pipes: Mapping[str, socket.socket]) -> None:
        self.watch_for_end()
        left = dict(pipes)
        try:
            for name in pipes:
                # From here on the event loop closes it, also where the connecting is cancelled.
                reader, writer = await asyncio.open_unix_connection(sock=left.pop(name), limit=CHUNK)
                self._writers.append(writer)
                setattr(self, name, writer if name == "stdin" else reader)
        finally:
            for ours in left.values():
                ours.close()

    def watch_for_end(self) -> None:
        """Without it, nobody learns of its end; once for each program."""
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

    def kill(self) -> None:
        """The program alone; `end_group` ends what it started as well."""
        self._process.kill()

    def close(self) -> None:
        """Let go of its pipes."""
        for writer in self._writers:
            writer.close()


async def start_program(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    talks: bool = False,
) -> RunningProgram:
    """Start it in a session of its own; with one that talks there is a pipe to it, and none for its errors.

    The event loop's own way copies the page tables of this process first, which takes ten times as long and stops
    everything. Pipes are pairs of sockets: uvloop closes the descriptor of any other file twice, and in between a
    thread may have opened another one of the same number.
    """
    pairs = {name: socket.socketpair() for name in (("stdin", "stdout") if talks else ("stdout", "stderr"))}
    ours, theirs = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
    given = {name: one.fileno() for name, one in theirs.items()}
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - see above
            command,
            cwd=folder,
            env=environment,
            stdin=given.get("stdin", subprocess.DEVNULL),
            stdout=given["stdout"],
            stderr=given.get("stderr", subprocess.DEVNULL),
            start_new_session=True,
        )
    except BaseException:
        for one in ours.values():
            one.close()
        raise
    finally:
        for one in theirs.values():
            one.close()
    program = RunningProgram(process)
    try:
        await program.connect(ours)
    except BaseException:
        await asyncio.shield(end_group(program, kill=True))
        raise
    return program


def start_own(
    module: str, theirs: socket.socket, *arguments: str, process_group: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a module of ours with the other end of a pair of sockets, whose number is its first argument. What lies in
    the working folder is not ours, and not imported."""
    # A closed socket has no number, while the number that it had may be somebody else's by then.
    descriptor = theirs.fileno()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(descriptor), *arguments],
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        process_group=process_group,
    )


def describe_ending(code: int) -> str:
    """An exit code as of `subprocess`, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def pipe_of(pipe: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if pipe is None:  # pragma: no cover - it was asked for
        raise RuntimeError("no pipe from the program")
    return pipe


async def read_up_to(pipe: asyncio.StreamReader, most: int) -> tuple[bytes, bool]:
    """What it prints, and whether that was cut at the most."""
    parts: list[bytes] = []
    size = 0
    while chunk := await pipe.read(CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return b"".join(parts)[:most], True
    return b"".join(parts), False


async def read_last(pipe: asyncio.StreamReader) -> bytes:
    """To the end, so that the process never waits for us; only the last part is kept."""
    kept = b""
    while chunk := await pipe.read(CHUNK):
        kept = (kept + chunk)[-MOST_ERROR_BYTES:]
    return kept


async def end_group(program: RunningProgram, *, kill: bool, within_s: float = END_S) -> None:
    """With `kill` no process of the group survives; the program itself is reaped in any case."""
    if kill:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
    if program.stdin is not None:
        program.stdin.close()
    try:
        # What nobody wants any more is read all the same: a program whose pipe is full would never end.
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.gather(_discard(program.stdout), _discard(program.stderr), program.wait())
    finally:
        # Where something that left the group still holds a pipe, the program itself is dead and reaped.
        program.close()


async def _discard(pipe: asyncio.StreamReader | None) -> None:
    while pipe is not None and await pipe.read(CHUNK):
        pass

"""Other people's programs beside us: what they print is read within limits, and what does not end by itself is killed
with its group. git (`sources.command`) and the analysers (`external_scan.sandbox`) run this way, each in a session of
its own, so that its processes form a group. Not found by this is what left the group, and what a program that ended by
itself left running with its pipes closed.
"""

import asyncio
import os
import signal
from contextlib import suppress

CHUNK = 64 * 1024
#: Of what a program says about itself; more is not kept.
MOST_ERROR_BYTES = 64 * 1024
#: How long the pipes of a killed program may take to close.
END_S = 5.0


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


async def end_group(process: asyncio.subprocess.Process, *, kill: bool, within_s: float = END_S) -> None:
    """With `kill` no process of the group survives; the program itself is reaped in any case."""
    if kill:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(within_s):
            # asyncio calls a process ended only once its pipes are at their ends, and a reader whose buffer is full
            # stops reading: what nobody wants any more must be read all the same, or this would wait for ever.
            await asyncio.gather(_discard(process.stdout), _discard(process.stderr), process.wait())
    except TimeoutError:
        # Something that left the group still holds a pipe. The process itself is dead and reaped.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way


async def _discard(pipe: asyncio.StreamReader | None) -> None:
    while pipe is not None and await pipe.read(CHUNK):
        pass

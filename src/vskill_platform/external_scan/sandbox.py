"""Where an analyser runs: a private folder that is always removed, and a process of its own with limits, a minimal
environment and, where the system allows, no network.

Time, processor time, memory, file size, processes and output are all bounded. When the time is up or the work is
cancelled the whole group of processes is killed; a worker that dies takes it along (`launch`). No shell is involved.
"""

import asyncio
import enum
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from vskill_platform.external_scan import launch

LAUNCHER = str(Path(launch.__file__).absolute())
PREFIX = "analysis-"
#: Folders of workers that died are removed by the next one that comes by; none lives as long as this.
LEFT_BEHIND_S = 3600
CHUNK = 64 * 1024
#: How long the end of killed processes is waited for.
END_WITHIN_S = 5.0
MOST_ERROR_BYTES = 64 * 1024


class Limits(msgspec.Struct, frozen=True):
    """What one analysis may cost."""

    seconds: float = 60.0
    #: processor time of one process
    cpu_s: int = 60
    memory_bytes: int = 2 * 1024**3
    #: of each file that it writes
    file_bytes: int = 16 * 1024**2
    processes: int = 64
    open_files: int = 256
    out_bytes: int = 8 * 1024**2


class Ending(enum.StrEnum):
    """How a process came to its end."""

    ENDED = "ended"
    TIMED_OUT = "timed_out"
    TOO_MUCH_OUTPUT = "too_much_output"


class Finished(msgspec.Struct, frozen=True):
    """A process that is over."""

    ending: Ending
    code: int = 0
    out: bytes = b""
    err: bytes = b""
    #: Whether it had no network.
    isolated: bool = False


@asynccontextmanager
async def private_folder(root: Path | None) -> AsyncIterator[Path]:
    """A folder that nobody else may look into, gone at the end; None puts it where the system keeps such."""
    folder = await asyncio.to_thread(_make_folder, root)
    try:
        yield folder
    finally:
        # Also when cancelled: what a stranger wrote is not left lying about.
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def _make_folder(root: Path | None) -> Path:
    if root is not None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_left_behind(root)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=root)).absolute()


def _remove_left_behind(root: Path) -> None:
    now = _file_time(root)
    for folder in root.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):
            if now - folder.stat().st_mtime > LEFT_BEHIND_S:
                shutil.rmtree(folder, ignore_errors=True)


def _file_time(root: Path) -> float:
    """What the file system, which may be another machine's, calls now."""
    with tempfile.NamedTemporaryFile(dir=root, prefix=".now-") as file:
        return os.fstat(file.fileno()).st_mtime


async def run(
    command: Sequence[str], folder: Path, limits: Limits, environment: Mapping[str, str]
) -> Finished:
    """One program to its end, or killed. `folder` is its home and where it starts."""
    note = folder / "launched.json"
    given = {
        "parent": os.getpid(),
        "note": str(note),
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "processes": limits.processes,
        "open_files": limits.open_files,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        LAUNCHER,
        json.dumps(given),
        *command,
        cwd=folder,
        env=_environment(command[0], folder, environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=CHUNK,
    )
    finished = Finished(Ending.TIMED_OUT)
    try:
        finished = await _finish(process, limits)
    finally:
        await _end(process, clean=finished.ending is Ending.ENDED)
    if finished.code == launch.CPU_EXHAUSTED:
        finished = Finished(Ending.TIMED_OUT)
    isolated = await asyncio.to_thread(_was_isolated, note)
    return msgspec.structs.replace(finished, isolated=isolated)


def _environment(program: str, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Nothing of ours: no keys, no proxies, no configuration of whoever runs the worker."""
    home = str(folder)
    return {
        "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
        "HOME": home,
        "TMPDIR": home,
        "XDG_CONFIG_HOME": home,
        "XDG_CACHE_HOME": home,
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        **more,
    }


async def _finish(process: asyncio.subprocess.Process, limits: Limits) -> Finished:
    """Read both pipes to their ends; who takes too long or prints too much is not waited for."""
    errors = asyncio.create_task(_read_last(_pipe(process.stderr)))
    try:
        async with asyncio.timeout(limits.seconds):
            out = await _read(_pipe(process.stdout), limits.out_bytes)
            if out is None:
                return Finished(Ending.TOO_MUCH_OUTPUT)
            code, err = await process.wait(), await errors
    except TimeoutError:
        return Finished(Ending.TIMED_OUT)
    finally:
        errors.cancel()
        await asyncio.gather(errors, return_exceptions=True)
    return Finished(Ending.ENDED, code, out, err)


async def _read(pipe: asyncio.StreamReader, most: int) -> bytes | None:
    """All that it prints; None for more than the most."""
    parts: list[bytes] = []
    size = 0
    while chunk := await pipe.read(CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return None
    return b"".join(parts)


async def _read_last(pipe: asyncio.StreamReader) -> bytes:
    """To the end, so that the process never waits for us; only the last part is kept."""
    kept = b""
    while chunk := await pipe.read(CHUNK):
        kept = (kept + chunk)[-MOST_ERROR_BYTES:]
    return kept


async def _end(process: asyncio.subprocess.Process, *, clean: bool) -> None:
    """No process of the group survives, and none is left unreaped. One that ended may have left others behind."""
    if not clean or process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    # A process is over for asyncio only when its pipes have been read to their ends.
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await asyncio.gather(_drain(process.stdout), _drain(process.stderr))
            await process.wait()
    except TimeoutError:
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - something else holds the pipe


async def _drain(pipe: asyncio.StreamReader | None) -> None:
    while pipe is not None and await pipe.read(CHUNK):
        pass


def _was_isolated(note: Path) -> bool:
    with suppress(OSError, ValueError):
        return bool(json.loads(note.read_bytes())["isolated"])
    return False


def _pipe(pipe: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if pipe is None:  # pragma: no cover - it was asked for
        raise RuntimeError("no pipe from the analyser")
    return pipe

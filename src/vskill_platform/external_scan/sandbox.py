"""Where an analyser runs: a private folder that is always removed, and a process of its own with limits, a minimal
environment and, where the system allows, no network.

Time, CPU time, memory, file size, processes and output are all bounded. On timeout or cancellation the whole process
group is killed; it also ends if its worker dies (`launch`). No shell is involved.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from vskill_platform.external_scan import launch
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.child_processes import EndedProgram, start_program

LAUNCHER = str(Path(launch.__file__).absolute())
PREFIX = "analysis-"
#: Older folders belong to workers that died, and the next analysis removes them.
LEFT_BEHIND_S = 3600


class SandboxLimits(msgspec.Struct, frozen=True):
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


class EndedAnalyser(EndedProgram, frozen=True):
    """An analyser that has ended."""

    #: It exceeded its time or CPU time.
    timed_out: bool = False
    #: Whether it had no network.
    isolated: bool = False


@asynccontextmanager
async def private_folder(root: Path | None) -> AsyncIterator[Path]:
    """A folder that only we can read, removed at the end; None means the system's temporary folder."""
    folder = await asyncio.to_thread(_make_folder, root)
    try:
        yield folder
    finally:
        # Even when cancelled: foreign files must not stay behind.
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
    """The file system's current time, which may be another machine's."""
    with tempfile.NamedTemporaryFile(dir=root, prefix=".now-") as file:
        return os.fstat(file.fileno()).st_mtime


async def run(
    command: Sequence[str], folder: Path, limits: SandboxLimits, environment: Mapping[str, str]
) -> EndedAnalyser:
    """Run one program until it ends or is killed. `folder` is its home and working folder."""
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
    process = await start_program(
        (sys.executable, "-I", "-S", LAUNCHER, json.dumps(given), *command),
        folder=folder,
        environment=_environment(command[0], folder, environment),
    )
    ended = None
    try:
        with suppress(TimeoutError):
            async with TimeLimit(limits.seconds):
                ended = await process.read_to_end(limits.out_bytes)
    finally:
        await process.end()
    isolated = await asyncio.to_thread(_was_isolated, note)
    if ended is None or ended.code == launch.CPU_EXHAUSTED:
        return EndedAnalyser(timed_out=True, isolated=isolated)
    return EndedAnalyser(**msgspec.structs.asdict(ended), isolated=isolated)


def _environment(program: str, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """A minimal environment, without our keys, proxies or configuration."""
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


def _was_isolated(note: Path) -> bool:
    with suppress(OSError, ValueError):
        return bool(json.loads(note.read_bytes())["isolated"])
    return False

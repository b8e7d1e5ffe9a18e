"""Processes of a benchmark: servers beside it, sources of another commit, and what processes cost, from `/proc`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
_MB = 1_000_000


class Process(msgspec.Struct, frozen=True):
    """One line of the process table."""

    pid: int
    parent: int
    #: Its own and those of its children that have ended.
    cpu_s: float


def table() -> dict[int, Process]:
    """Every process that can be seen now."""
    found = (_read(int(one.name)) for one in Path("/proc").iterdir() if one.name.isdigit())
    return {one.pid: one for one in found if one is not None}


def _read(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name, in brackets, may hold anything; what follows its end is numbers.
    fields = text.rpartition(")")[2].split()
    return Process(pid, int(fields[1]), sum(map(int, fields[11:15])) / _TICKS)


def family(pid: int, known: dict[int, Process]) -> list[int]:
    """The process and all that it started, directly or not."""
    found = [pid]
    for one in found:
        found += [other.pid for other in known.values() if other.parent == one]
    return [one for one in found if one in known]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Of these processes and everything below them."""
    known = table()
    members = {member for pid in pids for member in family(pid, known)}
    return sum(known[member].cpu_s for member in members)


def resident_bytes(pid: int | str = "self") -> int:
    """What a process holds in memory now, what it shares included."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_mb(pid: int) -> float:
    """What this one process holds, its part of what it shares included (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes * 1024 / _MB


@contextmanager
def start_server(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    python: str | Path = sys.executable,
) -> Iterator[tuple[int, int]]:
    """A server in a process of its own, which prints its port, or as the product does its address: the port and the
    process. It ends with its input, or when it is told to."""
    command, pipe = [python, "-m", module, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            said = next(line for line in process.stdout if line[0].isdigit() or "Address" in line)
            yield int(said.rpartition(":")[2].split()[0]), process.pid
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The sources of a commit, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "--detach", "--quiet", str(place), commit], cwd=ROOT, check=True
        )
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=True)

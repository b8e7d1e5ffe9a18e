"""Ends what a test process started, once that process is over, however it ended; run as a script beside it.

Called as `guardian.py FOLDER WATCHED…`: when one of the watched processes has ended, every process that carries the mark
in the folder's name is killed, and the folder is removed. What earlier runners left, because their guardian was killed
too, is cleared away first. Nothing but the standard library, so that it starts in milliseconds.

The mark is the soft limit of resident memory. Linux has not enforced it for twenty years, hands it on to every child
whatever its environment, session or user, and shows it to everybody in `/proc`; so also what the product starts by
itself, and what a server starts in a session of its own, is found.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

PREFIX = "vskill-tests-"
#: For a server to free what only it can free, such as shared memory; then it is killed.
GRACE_S = 3.0
LOOK_EVERY_S = 0.05
#: `rsslim` among the fields of /proc/PID/stat that follow the name.
_LIMIT_FIELD = 22


def name_of(runner: int, mark: int) -> str:
    """The name of a runner's folder, which says whose it is."""
    return f"{PREFIX}{runner}-{mark:x}"


def marked(mark: int) -> list[int]:
    """The living processes with this mark, without ourselves."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name may hold anything, so what follows is counted from its last bracket.
            state, *fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if state not in "ZX" and int(fields[_LIMIT_FIELD - 1]) == mark:
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def end_marked(mark: int) -> None:
    """Ask them to end, then kill them, until none is left; a new one may be started meanwhile."""
    began = time.monotonic()
    asked: set[int] = set()
    while pids := marked(mark):
        over = time.monotonic() - began > GRACE_S
        for pid in pids:
            if over or pid not in asked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL if over else signal.SIGTERM)
                asked.add(pid)
        time.sleep(LOOK_EVERY_S)


def clear(folder: Path) -> None:
    end_marked(int(folder.name.rpartition("-")[2], 16))
    shutil.rmtree(folder, ignore_errors=True)


def left_behind(root: Path) -> Iterable[Path]:
    """The folders of runners that are over."""
    for folder in root.glob(f"{PREFIX}*-*"):
        runner = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if not Path("/proc", runner).exists() and folder.stat().st_uid == os.getuid():
                yield folder


def wait_for_an_end(pids: Iterable[int]) -> None:
    """Until the first of them has ended."""
    ends = select.poll()
    for pid in pids:
        try:
            ends.register(os.pidfd_open(pid), select.POLLIN)
        except ProcessLookupError:
            return
    ends.poll()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    own = Path(sys.argv[1])
    for folder in left_behind(own.parent):
        clear(folder)
    wait_for_an_end(map(int, sys.argv[2:]))
    clear(own)


if __name__ == "__main__":
    main()

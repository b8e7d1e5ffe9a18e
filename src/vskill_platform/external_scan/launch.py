"""A script that runs first in an analyser's process: it drops the network and sets limits, then starts the analyser and
waits for it.

Called as `launch.py {settings as JSON} PROGRAM ARGUMENT…`, with only the standard library. It writes what it achieved
to the file `note` of the settings, because that depends on the system: namespaces need Linux and a permission.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

NEW_USER, NEW_PID, NEW_NET, NEW_IPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
SET_PDEATHSIG, SET_NO_NEW_PRIVS = 1, 38
#: The exit codes of a program that used up its processor time, and of one that could not be started.
CPU_EXHAUSTED, NOT_STARTED = 124, 126
#: Lower priority than fresh submissions.
NICENESS = 10


def main() -> int:
    """The analyser's exit code, or 128 and the number of the signal that ended it."""
    given = json.loads(sys.argv[1])
    _die_with_parent()
    if os.getppid() != given["parent"]:
        return NOT_STARTED
    libc = ctypes.CDLL(None, use_errno=True)
    isolated = _isolate(libc)
    Path(given["note"]).write_text(json.dumps({"isolated": isolated}))
    analyser = partial(_become, given, sys.argv[2:], isolated)
    # The first process of a PID namespace ignores signals that kill others, so the analyser is the second.
    return _follow(partial(_follow, analyser, given["cpu_s"]) if isolated else analyser, given["cpu_s"])


def _follow(work: Callable[[], int], cpu_s: float) -> int:
    """Do the work in a child, and wait for it; its exit code, or what ended it."""
    child = os.fork()
    if child == 0:
        _die_with_parent()
        os._exit(work())
    _, status, usage = os.wait4(child, 0)
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    used_s = usage.ru_utime + usage.ru_stime
    return CPU_EXHAUSTED if used_s >= cpu_s - 0.5 else 128 + os.WTERMSIG(status)


def _isolate(libc: Any) -> bool:
    """Enter new network and PID namespaces; when the first process of the latter ends, so do all others."""
    ids = os.getuid(), os.getgid()
    spaces = NEW_NET | NEW_PID | NEW_IPC
    unshare = getattr(libc, "unshare", None)
    if unshare is None:
        return False
    if unshare(NEW_USER | spaces) == 0:
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{ids[0]} {ids[0]} 1")
            Path("/proc/self/gid_map").write_text(f"{ids[1]} {ids[1]} 1")
        return True
    return bool(unshare(spaces) == 0)


def _become(given: dict[str, Any], command: list[str], isolated: bool) -> int:  # noqa: FBT001
    """Set every limit and exec the analyser; returns only if it cannot be started."""
    os.nice(NICENESS)
    limits = [
        (resource.RLIMIT_CPU, given["cpu_s"]),
        (resource.RLIMIT_AS, given["memory_bytes"]),
        (resource.RLIMIT_FSIZE, given["file_bytes"]),
        (resource.RLIMIT_NOFILE, given["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ]
    if isolated:
        # Only if isolated: otherwise the limit counts every process of the user, including ours.
        limits.append((resource.RLIMIT_NPROC, given["processes"]))
    for kind, most in limits:
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    return NOT_STARTED


def _die_with_parent() -> None:
    """Ask the kernel to kill the analyser if its worker dies, where supported."""
    with suppress(AttributeError):
        libc = ctypes.CDLL(None)
        libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())

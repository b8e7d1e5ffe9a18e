"""Interrupts a test run and finds out whether anything survives; run as a script: `subreaper.py SIGNAL EVENTS COUNT COMMAND…`.

It is made the parent of every descendant that loses its own, so none can hide: while one lives, this process has a
child. It starts the command, waits until the file of events has that many lines, sends the signal to the command's
process alone, and waits until it has no child any more.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SET_CHILD_SUBREAPER = 36
#: Only guards against hanging.
PATIENCE_S = 300


def main() -> int:
    number, events, count = signal.Signals[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A run in the background of a shell has SIGINT ignored, and whatever it starts inherits that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(sys.argv[4:])
    deadline = time.monotonic() + PATIENCE_S
    while events.read_text("utf-8").count("\n") < count:
        if process.poll() is not None or time.monotonic() > deadline:
            print("the run ended or hung before the moment came")
            _end_children()
            return 2
        time.sleep(0.01)
    process.send_signal(number)
    process.wait()
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if not pid:
            time.sleep(0.02)
    commands = [
        Path("/proc", str(pid), "cmdline").read_text("utf-8").replace("\0", " ") for pid in _children()
    ]
    print("these are left:", commands)
    _end_children()
    return 1


def _children() -> list[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text("utf-8").split()
    return [int(pid) for pid in found]


def _end_children() -> None:
    """Until there are none: whoever loses its parent by this becomes a child too."""
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())

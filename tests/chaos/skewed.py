"""Starts a Python command with a clock that somebody else can move: `python skewed.py FILE -m vskill_platform worker`.

FILE holds 8 bytes, the nanoseconds by which this process's wall clock is ahead, and is read at every look at the
clock, so a clock can jump while the process runs. Steady clocks are left alone, as a machine's are when its time is set.
"""

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path

SHIFT = struct.Struct("q")


def shift_clock(file: Path) -> None:
    """From now on `time.time` and `time.time_ns` are off by what the file says."""
    with file.open("r+b") as opened:
        shift = mmap.mmap(opened.fileno(), SHIFT.size)
    machine_ns = time.time_ns

    def time_ns() -> int:
        (ahead,) = SHIFT.unpack(shift[: SHIFT.size])
        return machine_ns() + int(ahead)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def main() -> None:
    file, first, *rest = sys.argv[1:]
    shift_clock(Path(file))
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()

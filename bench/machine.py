"""Facts about the machine that a run happened on, without which its absolute figures mean nothing."""

import os
import platform
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

_FLUSHES = 200


class Machine(msgspec.Struct, frozen=True):
    """Where and with what a run happened."""

    cores: int
    cpu: str
    system: str
    python: str
    sqlite: str
    #: Microseconds that a write of 4 KB and its flush to the disk take: median, least, most.
    fsync_us: tuple[float, float, float]
    #: Processes that wanted a core when the run began; above 0 somebody else was at work.
    load_before: float

    @property
    def disturbed(self) -> bool:
        """Whether others used enough of the machine to make its absolute figures worthless."""
        return self.load_before > self.cores / 2


def describe(folder: Path) -> Machine:
    """Look at this machine, and measure the disk that the folder is on."""
    return Machine(
        cores=os.cpu_count() or 1,
        cpu=_cpu(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        fsync_us=_fsync_us(folder),
        load_before=round(os.getloadavg()[0], 2),
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _fsync_us(folder: Path) -> tuple[float, float, float]:
    taken: list[float] = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_FLUSHES):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - started) * 1e6)
    return round(statistics.median(taken), 1), round(min(taken), 1), round(max(taken), 1)

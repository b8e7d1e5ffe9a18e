"""A disk that can really be full: a small file system in memory, where this machine lets us mount one (as root on Linux)."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.lifetimes import running


@contextmanager
def small_disk(folder: Path, mebibytes: int = 24) -> Iterator[Path]:
    """The folder on a disk of its own."""
    folder.mkdir(parents=True)
    if not _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)):
        pytest.skip("this machine lets nobody mount a small disk: run this test as root on Linux")
    try:
        yield folder
    finally:
        _run("umount", "--lazy", str(folder))


def fill_disk(folder: Path) -> Path:
    """Leave no byte; the file that takes them all."""
    file = folder / "everything-else"
    with file.open("wb", buffering=0) as out:
        for size in (1_048_576, 4_096, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue
    return file


def _run(*command: str) -> bool:
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        return process.wait() == 0

"""A disk that can really be full: a small file system in memory, where this machine lets us mount one (as root on Linux)."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.lifetimes import running


@contextmanager
def small_disk(folder: Path, mebibytes: int = 24) -> Iterator[Path]:
    """The folder on a disk of its own."""
    folder.mkdir(parents=True)
    if not _mount(folder, mebibytes):
        raise RuntimeError("this machine lets nobody mount a small disk")
    try:
        yield folder
    finally:
        _run("umount", "--lazy", str(folder))


def can_mount() -> bool:
    """Whether this machine lets us have a small disk. A process's own limit of a file's size is no substitute: it makes
    other errors than a disk that is full."""
    if shutil.which("mount") is None:
        return False
    with TemporaryDirectory() as folder:
        return _mount(Path(folder), 1) and _run("umount", "--lazy", folder)


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


def _mount(folder: Path, mebibytes: int) -> bool:
    return _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder))


def _run(*command: str) -> bool:
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        return process.wait() == 0

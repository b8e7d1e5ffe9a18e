"""Blobs as files below one folder: the default. `ab/cd/abcd…` holds the content that is named so.

A file is written whole beside its place, forced to the disk, and renamed into it, so that a crash or a full
disk leaves either all of it or nothing. All file work happens in threads; writes have threads of their own, because a
slow disk blocks them for seconds.
"""

import asyncio
import contextlib
import errno
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from vskill_core.errors import BlobFull, BlobUnavailable
from vskill_platform.ledger.blobs.contract import Blobs, StoredPiece, check_address, is_address
from vskill_platform.machine.durable_files import force_folder, write_file
from vskill_platform.machine.threads import WorkThreads

P = ParamSpec("P")
T = TypeVar("T")

#: Where files are written before they are renamed. It also marks the folder as the right one: in an empty mount point
#: it is absent, and reads fail instead of calling content missing.
_UNFINISHED = "unfinished"

#: Where content waits to be deleted; each file's time says since when.
_ASIDE = "aside"

#: 63 KB.
_PROBE_LINES = 9_000

#: Pieces that are written and synced to the disk at once.
WRITERS = 8

#: A file that was being written this long ago belongs to a process that died.
_ABANDONED_S = 3600.0


class FilesBlobs(Blobs):
    """Content below a folder that `open` has prepared."""

    engine = "files"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unfinished = root / _UNFINISHED
        self._aside = root / _ASIDE
        self._writers = WorkThreads("content", WRITERS)

    @classmethod
    async def open(cls, root: Path) -> "FilesBlobs":
        """Make the folder if need be and prove that it can be written; raises BlobUnavailable if not."""
        blobs = cls(root)
        await blobs._in_thread(blobs._prepare)
        return blobs

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        with self._translated():
            await self._writers.run(self._put, check_address(address), data, replace=replace)

    async def get(self, address: str) -> bytes | None:
        return await self._in_thread(self._get, check_address(address))

    async def has(self, address: str) -> bool:
        return await self._in_thread(self._has, check_address(address))

    async def check(self) -> None:
        with self._translated():
            await self._writers.run(self._probe)

    async def pieces(self) -> AsyncIterator[StoredPiece]:
        """One folder of the first level at a time: there are at most 256."""
        for folder in await self._in_thread(self._folders):
            for piece in await self._in_thread(self._pieces_in, folder):
                yield piece

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._in_thread(self._set_aside, check_address(address), untouched_ms)

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._in_thread(self._delete_aside, check_address(address), untouched_ms)

    async def close(self) -> None:
        """No file stays open between calls."""
        self._writers.close()

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._translated():
            return await asyncio.to_thread(work, *args, **kwargs)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if is_full else error.strerror or repr(error)
            raise (BlobFull if is_full else BlobUnavailable)(
                f"the blob store in {self._root} failed: {reason}", reason=reason, path=str(self._root)
            ) from error

    def _path(self, address: str) -> Path:
        return self._root / address[:2] / address[2:4] / address

    def _prepare(self) -> None:
        self._unfinished.mkdir(parents=True, exist_ok=True)
        now = self._now()
        for left in self._unfinished.iterdir():
            # Another process may rename or remove a listed file first.
            with contextlib.suppress(FileNotFoundError):
                if left.stat().st_mtime < now - _ABANDONED_S:
                    left.unlink()

    def _now(self) -> float:
        """The file system's time, which may differ from this machine's; proves that files can be created."""
        handle, name = tempfile.mkstemp(dir=self._unfinished)
        try:
            return os.fstat(handle).st_mtime
        finally:
            os.close(handle)
            Path(name).unlink()

    def _probe(self) -> None:
        """Write as much as a small skill, synced to the disk, and remove it."""
        write_file(self._unfinished, b"ready?\n" * _PROBE_LINES).unlink()

    def _put(self, address: str, data: bytes, *, replace: bool) -> None:
        path = self._path(address)
        if not replace and _touch_equal(path, data):
            return
        name = write_file(self._unfinished, data)
        try:
            for folder in (path.parent.parent, path.parent):
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                    force_folder(folder.parent)
            name.replace(path)
        except BaseException:
            name.unlink(missing_ok=True)
            raise
        force_folder(path.parent)

    def _get(self, address: str) -> bytes | None:
        try:
            return self._path(address).read_bytes()
        except FileNotFoundError:
            return self._path(address).read_bytes() if self._bring_back(address) else None

    def _has(self, address: str) -> bool:
        try:
            self._path(address).stat()
        except FileNotFoundError:
            return self._bring_back(address)
        return True

    def _bring_back(self, address: str) -> bool:
        path = self._path(address)
        try:
            (self._aside / address).rename(path)
        except FileNotFoundError:
            self._check_present()
            # Another process may have brought it back meanwhile.
            return path.exists()
        os.utime(path)
        force_folder(path.parent)
        return True

    def _folders(self) -> list[Path]:
        self._check_present()
        return [*sorted(self._root.glob("??")), self._aside]

    def _pieces_in(self, folder: Path) -> list[StoredPiece]:
        """The pieces in one folder; other programs' files are ignored."""
        is_aside = folder == self._aside
        now, found = self._now(), []
        for path in sorted(folder.glob("*" if is_aside else "??/*")):
            if is_address(path.name):
                with contextlib.suppress(FileNotFoundError):
                    untouched_ms = int((now - path.stat().st_mtime) * 1000)
                    found.append(StoredPiece(path.name, untouched_ms, is_aside))
        return found

    def _set_aside(self, address: str, untouched_ms: int) -> bool:
        path = self._path(address)
        if not self._is_untouched(path, untouched_ms):
            return False
        self._aside.mkdir(exist_ok=True)
        path.rename(self._aside / address)
        os.utime(self._aside / address)
        return True

    def _delete_aside(self, address: str, untouched_ms: int) -> bool:
        path = self._aside / address
        if not self._is_untouched(path, untouched_ms):
            return False
        path.unlink(missing_ok=True)
        return True

    def _is_untouched(self, path: Path, untouched_ms: int) -> bool:
        try:
            return self._now() - path.stat().st_mtime >= untouched_ms / 1000
        except FileNotFoundError:
            self._check_present()
            return False

    def _check_present(self) -> None:
        """Raise where the whole folder is gone, as when its volume is not mounted."""
        self._unfinished.stat()


def _touch_equal(path: Path, data: bytes) -> bool:
    """Whether these bytes are already there; if so, they count as written now. Reading costs less than writing."""
    try:
        if path.stat().st_size != len(data) or path.read_bytes() != data:
            return False
        os.utime(path)
    except FileNotFoundError:
        return False
    return True

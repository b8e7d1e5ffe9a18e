"""Backup and restore, for every engine in one way: a store's consistent view, its content and, if wanted, the signing
keys, in one file that any tool for tar archives opens. Taken beside the processes that write.

The file holds `records.jsonl` and `dead_letters.jsonl`, one line per record as JSON, then `blobs/…` and `keys/…`, and
last `manifest.json` with the counts and hashes that a restore must reach: a file without it was not finished. Content
is read after the records, and it is written before any record names it, so every record's content is there.
"""

import asyncio
import contextlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from vskill_platform import __version__
from vskill_platform.blobs.contract import check_address
from vskill_platform.blobs.files import FilesBlobs
from vskill_platform.domain.errors import Conflict, InvalidInput, NotFound, StoreCorrupt, StoreUnavailable
from vskill_platform.settings import Settings, keys_folder, shown_location
from vskill_platform.snapshot import (
    PAGE,
    Letter,
    Row,
    Snapshot,
    Tally,
    Totals,
    add_letters,
    open_snapshot,
    open_target,
    puts,
)

T = TypeVar("T")

FORMAT = 1
RECORDS, LETTERS, MANIFEST = "records.jsonl", "dead_letters.jsonl", "manifest.json"
BLOBS, KEYS = "blobs/", "keys/"


class Manifest(msgspec.Struct, frozen=True):
    """What the file holds, written last."""

    format: int
    release: str
    #: Where it came from, without a password.
    store: str
    totals: Totals
    blobs: int
    keys: int


async def back_up(settings: Settings, file: Path, *, with_keys: bool = False) -> Manifest:
    """Write a backup. The file appears under its name only when it is whole, and only its owner may read it."""
    if await asyncio.to_thread(file.exists):
        raise Conflict(f"{file} is there already: give another name, or move it away", file=str(file))
    try:
        writer = await asyncio.to_thread(_Writer, file)
        try:
            async with open_snapshot(settings.store) as view:
                totals = await _add_records(writer, view)
            blobs = await asyncio.to_thread(writer.add_files, BLOBS, _content(settings))
            keys = await asyncio.to_thread(writer.add_files, KEYS, _keys(settings)) if with_keys else 0
            manifest = Manifest(FORMAT, __version__, shown_location(settings.store), totals, blobs, keys)
            await asyncio.to_thread(writer.finish, msgspec.json.encode(manifest))
        finally:
            await asyncio.to_thread(writer.close)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be written: {error.strerror}", file=str(file)) from error
    return manifest


async def restore(settings: Settings, file: Path) -> Manifest:
    """Fill an empty store and its folders from a backup; then compare what is there with what was backed up."""
    manifest = await asyncio.to_thread(read_manifest, file)
    async with open_target(settings.store) as kv:
        if (await kv.list("", limit=1)).items:
            place = shown_location(settings.store)
            raise Conflict(f"{place} holds records already: restore into an empty store", store=place)
        # Content first, as always: no record ever names what is not there.
        await _restore_files(settings, file, manifest)
        async for rows in _in_thread(_pages(file, RECORDS, Row)):
            await kv.commit(puts(rows))
    async for letters in _in_thread(_pages(file, LETTERS, Letter)):
        await add_letters(settings.store, letters)
    await _compare(settings.store, manifest)
    return manifest


async def verify(file: Path) -> Manifest:
    """Restore into a fresh store beside the file, compare, and throw it away."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="vskill-verify-", dir=file.parent)
    try:
        return await restore(Settings(data_dir=folder), file)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _compare(location: str, manifest: Manifest) -> None:
    async with open_snapshot(location) as view:
        found = await view.totals()
    if found != manifest.totals:
        raise StoreCorrupt(
            f"what was restored differs from what was backed up: {found} and {manifest.totals}",
            file=shown_location(location),
        )


# Writing the file.


class _Writer:
    """An archive beside its place; all of it is file work, for threads."""

    def __init__(self, file: Path) -> None:
        self._place = file
        self._partial = file.with_name(f"{file.name}.unfinished")
        handle = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(handle, "wb")
        self._archive = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        # An archive wants to know a member's size before its bytes, so records wait here.
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`

    def add(self, name: str, data: bytes) -> None:
        self._archive.addfile(_member(name, len(data)), io.BytesIO(data))

    def spool(self, page: list[Row]) -> None:
        self._spool.write(b"".join(msgspec.json.encode(row) + b"\n" for row in page))

    def add_spooled(self, name: str) -> None:
        member = _member(name, self._spool.tell())
        self._spool.seek(0)
        self._archive.addfile(member, self._spool)

    def add_files(self, prefix: str, files: Iterator[Path]) -> int:
        """A file that a collector removed meanwhile was wanted by nobody."""
        added = 0
        for path in files:
            with contextlib.suppress(FileNotFoundError):
                self.add(prefix + path.name, path.read_bytes())
                added += 1
        return added

    def finish(self, manifest: bytes) -> None:
        self.add(MANIFEST, manifest)
        self._archive.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._partial.rename(self._place)

    def close(self) -> None:
        """What was not finished is removed."""
        self._spool.close()
        self._file.close()
        self._partial.unlink(missing_ok=True)


async def _add_records(writer: _Writer, view: Snapshot) -> Totals:
    tally = Tally()
    async for page in view.pages():
        tally.add(page)
        await asyncio.to_thread(writer.spool, page)
    await asyncio.to_thread(writer.add_spooled, RECORDS)
    letters = await view.letters()
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in letters)
    await asyncio.to_thread(writer.add, LETTERS, lines)
    return tally.totals(len(letters))


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _content(settings: Settings) -> Iterator[Path]:
    for path in sorted(_blobs_folder(settings).glob("??/??/*")):
        if path.is_file():
            yield path


def _keys(settings: Settings) -> Iterator[Path]:
    for path in sorted(keys_folder(settings).glob("*")):
        if path.is_file():
            yield path


def _blobs_folder(settings: Settings) -> Path:
    engine, _, place = settings.blobs.partition(":")
    if engine != "files":
        raise InvalidInput(
            f"content in {engine}: is kept nowhere, so there is nothing to back up", field="blobs"
        )
    return Path(place)


# Reading the file.


def read_manifest(file: Path) -> Manifest:
    """The last member; a file without it was not finished, or is none of ours."""
    try:
        with tarfile.open(file, "r:") as archive:
            found = archive.extractfile(MANIFEST)
            manifest = msgspec.json.decode(found.read() if found else b"", type=Manifest)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", file=str(file)) from None
    except (tarfile.TarError, KeyError, msgspec.DecodeError, OSError) as error:
        raise StoreCorrupt(f"{file} is no finished backup of ours: {error}", file=str(file)) from error
    if manifest.format != FORMAT:
        raise StoreCorrupt(
            f"{file} has format {manifest.format}; this release reads {FORMAT}", file=str(file)
        )
    return manifest


def _pages(file: Path, name: str, kind: type[T]) -> Iterator[list[T]]:
    with tarfile.open(file, "r:") as archive:
        found = archive.extractfile(name)
        decoder = msgspec.json.Decoder(kind)
        lines = iter(found or ())
        while page := [decoder.decode(line) for line in islice(lines, PAGE)]:
            yield page


async def _in_thread(items: Iterator[T]) -> AsyncIterator[T]:
    """Each step of an iterator that reads files, beside the event loop."""
    while (one := await asyncio.to_thread(next, items, None)) is not None:
        yield one


async def _restore_files(settings: Settings, file: Path, manifest: Manifest) -> None:
    blobs = await FilesBlobs.open(_blobs_folder(settings))
    kept = 0
    async for name, data in _in_thread(_files(file)):
        if name.startswith(BLOBS):
            await blobs.put(check_address(name.removeprefix(BLOBS)), data)
            kept += 1
        else:
            await asyncio.to_thread(_restore_key, keys_folder(settings), name.removeprefix(KEYS), data)
    await blobs.close()
    if kept != manifest.blobs:
        raise StoreCorrupt(f"{file} holds {kept} pieces of content, not {manifest.blobs}", file=str(file))


def _files(file: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(file, "r:") as archive:
        for member in archive:
            if member.isfile() and member.name.startswith((BLOBS, KEYS)):
                found = archive.extractfile(member)
                yield member.name, found.read() if found else b""


def _restore_key(folder: Path, name: str, data: bytes) -> None:
    """A key that is there already is not replaced: what it signed would become invalid."""
    if Path(name).name != name or name.startswith("."):
        raise StoreCorrupt(f"{name!r} is no name of a key", file=name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name
    if path.exists():
        if path.read_bytes() != data:
            raise Conflict(f"{path} holds another key: restore into an empty folder", file=str(path))
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(data)

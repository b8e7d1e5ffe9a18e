"""Backup and restore, the same for every engine: a store's consistent snapshot, its content and, if wanted, the signing
keys, in one tar file. Taken while other processes write.

The file holds `records.jsonl` and `dead_letters.jsonl`, one line per record as JSON, then `blobs/…` and `keys/…`, and
last `manifest.json` with the counts and hashes that a restore must match: a file without it was not finished. Content
is read after the records, and is always stored before any record names it, so every record's content is there. It is
verified by digest on backup and on restore; missing or damaged content is left out, and named.
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

from vskill_core.errors import (
    Conflict,
    ContentDamaged,
    InvalidInput,
    NotFound,
    SchemaUnknown,
    StoreCorrupt,
    StoreUnavailable,
)
from vskill_core.foreign_json import read_json
from vskill_core.release import __version__, release_numbers
from vskill_platform.bootstrap import open_blobs, open_snapshot
from vskill_platform.domain.operation.damage import MOST_NAMES, DamageKind, verified_files
from vskill_platform.domain.skills.content_names import NAMING, addresses_in, bundles_named
from vskill_platform.installation.snapshot import (
    Progress,
    Tally,
    Totals,
    count_totals,
    open_target,
    puts,
    tell_nobody,
)
from vskill_platform.ledger.blobs.contract import Blobs, check_address
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.ledger.kv.contract import SNAPSHOT_PAGE, StoreSnapshot
from vskill_platform.ledger.kv.entries import StoredRecord
from vskill_platform.observing.metrics import Metrics
from vskill_platform.setting_values import shown_location
from vskill_platform.settings import Settings, keys_folder

T = TypeVar("T")

#: A release raises this if earlier releases would misread its records or file.
FORMAT = 2
#: The format of release 0.3.0.
FIRST_FORMAT = 2
RECORDS, LETTERS, MANIFEST = "records.jsonl", "dead_letters.jsonl", "manifest.json"
BLOBS, KEYS = "blobs/", "keys/"


class DamagedPiece(msgspec.Struct, frozen=True):
    """Content that records name and that is missing or damaged."""

    digest: str
    kind: DamageKind
    #: Keys of records that name it.
    named_by: tuple[str, ...]


class BackupManifest(msgspec.Struct, frozen=True):
    """What the file holds, written last."""

    #: What a release must know to restore it.
    format: int
    #: Which release wrote it.
    release: str
    #: Where it came from, without a password.
    store: str
    totals: Totals
    blobs: int
    keys: int
    #: What the file lacks.
    damaged: tuple[DamagedPiece, ...] = ()


class _ContentNames:
    """The content that the records name, and which of it is whole."""

    def __init__(self) -> None:
        #: By digest, the keys of the records that name it as a bundle of files.
        self._bundles: dict[str, list[str]] = {}
        self._others: set[str] = set()
        self._kinds: dict[str, DamageKind] = {}
        self._whole: set[str] = set()

    def add(self, page: list[StoredRecord]) -> None:
        for record in page:
            value = record.value.encode()
            for digest in bundles_named(record.key, value):
                keys = self._bundles.setdefault(digest, [])
                if len(keys) < MOST_NAMES:
                    keys.append(record.key)
            if not record.key.startswith(NAMING):
                self._others |= addresses_in(record.key, value)

    @property
    def addresses(self) -> list[str]:
        return sorted({*self._bundles, *self._others})

    def take(self, address: str, data: bytes | None) -> bool:
        """Note a piece as it was read; whether to keep it."""
        if address not in self._bundles:
            return data is not None
        try:
            verified_files(data, address)
        except ContentDamaged as found:
            self._kinds[address] = DamageKind(found.text("kind"))
            return False
        self._whole.add(address)
        return True

    def damaged(self) -> tuple[DamagedPiece, ...]:
        """The content that records name and that was not found whole."""
        lacking = sorted(self._bundles.keys() - self._whole)
        missing = DamageKind.MISSING
        return tuple(
            DamagedPiece(digest, self._kinds.get(digest, missing), tuple(self._bundles[digest]))
            for digest in lacking
        )


class _LetterLine(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter as a line of the file, without its id, which each queue gives itself."""

    key: str | None
    reason: str
    deliveries: int
    sent_at: int
    died_at: int
    body: bytes

    @classmethod
    def of(cls, letter: DeadLetter) -> "_LetterLine":
        return cls(letter.key, letter.reason, letter.deliveries, letter.sent_at, letter.died_at, letter.body)

    def letter(self) -> DeadLetter:
        return DeadLetter(0, self.body, self.key, self.reason, self.deliveries, self.sent_at, self.died_at)


async def back_up(
    settings: Settings, file: Path, *, with_keys: bool = False, progress: Progress = tell_nobody
) -> BackupManifest:
    """Write a backup. The file appears under its name only when it is whole, and only its owner may read it."""
    if await asyncio.to_thread(file.exists):
        raise Conflict(f"{file} already exists: give another name, or move the file away", file=str(file))
    try:
        writer = await asyncio.to_thread(_Writer, file)
        try:
            names = _ContentNames()
            async with open_snapshot(settings.store) as snapshot:
                totals = await _add_records(writer, snapshot, names, progress)
            async with _opened_blobs(settings) as content:
                blobs = await _add_content(writer, content, names, progress)
            keys = await asyncio.to_thread(writer.add_keys, keys_folder(settings)) if with_keys else 0
            place = shown_location(settings.store)
            manifest = BackupManifest(FORMAT, __version__, place, totals, blobs, keys, names.damaged())
            await asyncio.to_thread(writer.finish, msgspec.json.encode(manifest))
        finally:
            await asyncio.to_thread(writer.close)
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be written: {error.strerror}", file=str(file)) from error
    return manifest


async def restore(settings: Settings, file: Path, progress: Progress = tell_nobody) -> BackupManifest:
    """Fill an empty store and its folders from a backup; then compare the result with the manifest. The returned
    manifest names content that is not whole."""
    manifest = await asyncio.to_thread(read_manifest, file)
    async with open_target(settings.store) as (kv, broker):
        if (await kv.list("", limit=1)).items:
            place = shown_location(settings.store)
            raise Conflict(f"{place} already holds records: restore into an empty store", store=place)
        # Content first, as always: a record's content exists before the record.
        damaged = await _restore_files(settings, file, manifest, progress)
        written = 0
        async for records in _in_thread(_pages(file, RECORDS, StoredRecord)):
            await kv.commit(puts(records, kv.now()))
            written += len(records)
            progress("records written", written, manifest.totals.records)
        async for lines in _in_thread(_pages(file, LETTERS, _LetterLine)):
            await broker.add_dead_letters([line.letter() for line in lines])
        async with kv.snapshot() as snapshot:
            found = await count_totals(snapshot, progress)
    if found != manifest.totals:
        raise StoreCorrupt(
            f"the restored store differs from the backup: {found} instead of {manifest.totals}",
            file=shown_location(settings.store),
        )
    return msgspec.structs.replace(manifest, damaged=damaged)


async def verify(
    file: Path, known: tuple[DamagedPiece, ...] = (), progress: Progress = tell_nobody
) -> BackupManifest:
    """Restore into a temporary store beside the file, compare, and delete it. Damage that was `known` when the file was
    written is reported as it was then."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="vskill-verify-", dir=file.parent)
    try:
        manifest = await restore(Settings(data_dir=folder), file, progress)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    before = {piece.digest: piece for piece in known}
    damaged = tuple(before.get(piece.digest, piece) for piece in manifest.damaged)
    return msgspec.structs.replace(manifest, damaged=damaged)


# Writing the file.


class _Writer:
    """Writes an archive under a temporary name. All methods block: call them in threads."""

    def __init__(self, file: Path) -> None:
        self._place = file
        self._partial = file.with_name(f"{file.name}.unfinished")
        handle = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(handle, "wb")
        self._archive = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        # Tar needs a member's size before its bytes, so records wait here.
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`

    def add(self, name: str, data: bytes) -> None:
        self._archive.addfile(_member(name, len(data)), io.BytesIO(data))

    def spool(self, page: list[StoredRecord]) -> None:
        self._spool.write(b"".join(msgspec.json.encode(record) + b"\n" for record in page))

    def add_spooled(self, name: str) -> None:
        member = _member(name, self._spool.tell())
        self._spool.seek(0)
        self._archive.addfile(member, self._spool)

    def add_keys(self, folder: Path) -> int:
        files = sorted(path for path in folder.glob("*") if path.is_file())
        for path in files:
            self.add(KEYS + path.name, path.read_bytes())
        return len(files)

    def finish(self, manifest: bytes) -> None:
        self.add(MANIFEST, manifest)
        self._archive.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._partial.rename(self._place)

    def close(self) -> None:
        self._spool.close()
        self._file.close()
        self._partial.unlink(missing_ok=True)


async def _add_records(
    writer: _Writer, snapshot: StoreSnapshot, names: _ContentNames, progress: Progress
) -> Totals:
    tally = Tally()
    async for page in snapshot.pages():
        tally.add(page)
        names.add(page)
        await asyncio.to_thread(writer.spool, page)
        progress("records read", tally.records, None)
    await asyncio.to_thread(writer.add_spooled, RECORDS)
    letters = await snapshot.dead_letters()
    lines = b"".join(msgspec.json.encode(_LetterLine.of(letter)) + b"\n" for letter in letters)
    await asyncio.to_thread(writer.add, LETTERS, lines)
    return tally.totals(len(letters))


async def _add_content(writer: _Writer, blobs: Blobs, names: _ContentNames, progress: Progress) -> int:
    """Add all content that the records name and that is whole; how many pieces."""
    added, addresses = 0, names.addresses
    for done, address in enumerate(addresses, start=1):
        data = await blobs.get(address)
        if await asyncio.to_thread(names.take, address, data) and data is not None:
            await asyncio.to_thread(writer.add, BLOBS + address, data)
            added += 1
        progress("content read", done, len(addresses))
    return added


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


@contextlib.asynccontextmanager
async def _opened_blobs(settings: Settings) -> AsyncIterator[Blobs]:
    if settings.blobs == "memory:":
        raise InvalidInput("content in `memory:` is not stored, so it cannot be backed up", field="blobs")
    async with contextlib.AsyncExitStack() as stack:
        yield await open_blobs(settings.blobs, stack, Metrics())


# Reading the file.


def read_manifest(file: Path) -> BackupManifest:
    """Read the last member; a file without it was not finished, or is not a backup of ours."""
    try:
        with tarfile.open(file, "r:") as archive:
            found = archive.extractfile(MANIFEST)
            manifest = read_json(found.read() if found else b"", BackupManifest)
            needs_newer = (
                manifest.format > FORMAT
                or release_numbers(manifest.release)[:2] > release_numbers(__version__)[:2]
            )
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.", file=str(file)) from None
    except (tarfile.TarError, KeyError, ValueError, OSError) as error:
        raise StoreCorrupt(
            f"{file} is not a complete backup of this platform: {error}", file=str(file)
        ) from error
    if manifest.format < FIRST_FORMAT:
        raise SchemaUnknown(
            f"{file} has format {manifest.format}, from before release 0.3.0, which no release reads. "
            "Nothing was written.",
            file=str(file),
        )
    if needs_newer:
        raise SchemaUnknown(
            f"{file} needs release {manifest.release} or a newer one: it has format {manifest.format}. This is release "
            f"{__version__}, which reads formats up to {FORMAT}. Nothing was written.",
            file=str(file),
        )
    return manifest


def _pages(file: Path, name: str, kind: type[T]) -> Iterator[list[T]]:
    with tarfile.open(file, "r:") as archive:
        found = archive.extractfile(name)
        decoder = msgspec.json.Decoder(kind)
        lines = iter(found or ())
        while page := [decoder.decode(line) for line in islice(lines, SNAPSHOT_PAGE)]:
            yield page


async def _in_thread(items: Iterator[T]) -> AsyncIterator[T]:
    """Run each step of an iterator that reads files in a thread."""
    while (one := await asyncio.to_thread(next, items, None)) is not None:
        yield one


async def _restore_files(
    settings: Settings, file: Path, manifest: BackupManifest, progress: Progress
) -> tuple[DamagedPiece, ...]:
    """Restore content and keys; returns the content that is not whole, which is left out."""
    names, seen = _ContentNames(), 0
    async for records in _in_thread(_pages(file, RECORDS, StoredRecord)):
        names.add(records)
    async with _opened_blobs(settings) as blobs:
        async for name, data in _in_thread(_files(file)):
            if name.startswith(BLOBS):
                seen += 1
                progress("content written", seen, manifest.blobs)
                address = check_address(name.removeprefix(BLOBS))
                if await asyncio.to_thread(names.take, address, data):
                    await blobs.put(address, data)
            else:
                await asyncio.to_thread(_restore_key, keys_folder(settings), name.removeprefix(KEYS), data)
    if seen != manifest.blobs:
        raise StoreCorrupt(f"{file} holds {seen} pieces of content, not {manifest.blobs}", file=str(file))
    return names.damaged()


def _files(file: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(file, "r:") as archive:
        for member in archive:
            if member.isfile() and member.name.startswith((BLOBS, KEYS)):
                found = archive.extractfile(member)
                yield member.name, found.read() if found else b""


def _restore_key(folder: Path, name: str, data: bytes) -> None:
    """Restore a key, but never replace an existing one: what it signed would become invalid."""
    if Path(name).name != name or name.startswith("."):
        raise StoreCorrupt(f"{name!r} is not the name of a key file", file=name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name
    if path.exists():
        if path.read_bytes() != data:
            raise Conflict(f"{path} holds another key: restore into an empty folder", file=str(path))
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(data)

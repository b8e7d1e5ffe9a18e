"""Archives inside a skill, opened in memory and under limits: how many members, how many bytes, how much larger than
packed, how deep. Nothing is ever written to disk, and a member that exceeds a limit ends the reading of its archive.
"""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from typing import IO

from vskill_scan.limits import Limits

#: What the standard library may say about an archive that is broken, encrypted or not what it claims to be.
UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    UnicodeError,
    OverflowError,
)
#: Office documents and packages are zip files whose members are of no interest by themselves.
_DOCUMENTS = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".vsdx")
_CHUNK = 64 * 1024


class TooMuch(Exception):
    """An archive exceeds a limit."""


def archive_type(path: str, data: bytes) -> str:
    """`zip`, `tar` or ""; told by how the bytes begin."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")) and not path.lower().endswith(_DOCUMENTS):
        return "zip"
    if data.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")) or data[257:262] == b"ustar":
        return "tar"
    return ""


def members(kind: str, data: bytes, limits: Limits, room: int) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each plain file; TooMuch at the first limit, one of UNREADABLE for a broken
    archive."""
    yield from (_zip_members if kind == "zip" else _tar_members)(
        data, limits, min(room, limits.archive_bytes)
    )


def _zip_members(data: bytes, limits: Limits, room: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if len(infos) > limits.archive_members:
            raise TooMuch(f"it has more than {limits.archive_members} members")
        for info in infos:
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                raise TooMuch("it is encrypted")
            allowed = min(room, max(limits.archive_member_bytes, info.compress_size * limits.archive_ratio))
            with archive.open(info) as member:
                content = _read_bounded(member, allowed)
            room -= len(content)
            yield info.filename, content


def _tar_members(data: bytes, limits: Limits, room: int) -> Iterator[tuple[str, bytes]]:
    room = min(room, max(limits.archive_member_bytes * 10, len(data) * limits.archive_ratio))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as archive:
        for count, info in enumerate(archive, start=1):
            if count > limits.archive_members:
                raise TooMuch(f"it has more than {limits.archive_members} members")
            member = archive.extractfile(info) if info.isreg() else None
            if member is None:
                if info.size > room:
                    raise TooMuch("a member is larger than it may be")
                continue
            content = _read_bounded(member, room)
            room -= len(content)
            yield info.name, content


def _read_bounded(member: IO[bytes], allowed: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while chunk := member.read(_CHUNK):
        total += len(chunk)
        if total > allowed:
            raise TooMuch("its content is much larger than the archive")
        parts.append(chunk)
    return b"".join(parts)

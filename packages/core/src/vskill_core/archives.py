"""The archives in which a version is downloaded: a zip and a tar.gz whose bytes depend on the files alone.

Attestations name the SHA-256 of both, and archives are made again for every download, so they must be identical on
every machine and for ever. Both are therefore written here byte by byte, without compression: a compressor's output
changes between its versions and builds, and skills are small. SKILL.md is at the root, entries are in the order of the
paths' bytes, and there are only plain files.
"""

import hashlib
import itertools
import struct
import zlib
from collections.abc import Iterable

import msgspec

from vskill_core.content import SkillFile, skill_file_of
from vskill_core.errors import InvalidInput
from vskill_core.kind import require_content

ZIP_TYPE = "application/zip"
TAR_TYPE = "application/gzip"

#: 1980-01-01 00:00, the earliest time of a zip: time, then date.
_ZIP_EPOCH = (0, 0x0021)
#: Names are UTF-8.
_ZIP_UTF8 = 0x0800
#: Version 2.0 is enough to read it; 3 in the upper byte says that attributes are Unix modes.
_ZIP_NEEDS, _ZIP_MADE_BY = 20, (3 << 8) | 20

_BLOCK = 512
_TAR_NAME = 100
#: A gzip header without name and time, made by an unknown system.
_GZIP_HEAD = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"
#: The most that one block of uncompressed data holds.
_STORED = 0xFFFF


class ArchiveDigests(msgspec.Struct, frozen=True):
    """SHA-256 of both archives of one content, hex."""

    zip: str
    tar_gz: str


class Artifact(msgspec.Struct, frozen=True):
    """How a content is handed out in one piece."""

    #: only SKILL.md, so that file itself; otherwise a zip
    is_plain: bool
    #: of exactly the bytes served, hex
    sha256: str


def archive_digests(files: Iterable[SkillFile]) -> ArchiveDigests:
    files = tuple(files)
    return ArchiveDigests(
        hashlib.sha256(zip_archive(files)).hexdigest(), hashlib.sha256(tar_archive(files)).hexdigest()
    )


def artifact_of(files: Iterable[SkillFile], digests: ArchiveDigests) -> Artifact:
    """How these files are handed out in one piece."""
    files = tuple(files)
    if len(files) == 1:
        return Artifact(True, hashlib.sha256(skill_file_of(files).data).hexdigest())
    return Artifact(False, digests.zip)


def zip_archive(files: Iterable[SkillFile]) -> bytes:
    """The files as a zip; `NoSkillFound` where they are no skill and no plugin."""
    body, directory = bytearray(), bytearray()
    ordered = _sort_files(files)
    for file in ordered:
        name, facts = file.path.encode(), _zip_facts(file)
        mode = int(file.mode, 8) << 16
        central = struct.pack("<4sH", b"PK\x01\x02", _ZIP_MADE_BY) + facts
        directory += central + struct.pack("<HHHII", 0, 0, 0, mode, len(body)) + name
        body += b"PK\x03\x04" + facts + name + file.data
    count = len(ordered)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)


def tar_archive(files: Iterable[SkillFile]) -> bytes:
    """The files as a tar.gz; `NoSkillFound` where they are no skill and no plugin."""
    parts: list[bytes] = []
    for file in _sort_files(files):
        parts += _tar_entry(file)
    parts.append(bytes(2 * _BLOCK))
    return _gzip(b"".join(parts))


def _sort_files(files: Iterable[SkillFile]) -> tuple[SkillFile, ...]:
    ordered = tuple(sorted(files, key=lambda file: file.path.encode()))
    require_content(ordered)
    for before, after in itertools.pairwise(ordered):
        if before.path == after.path:
            raise InvalidInput(
                f"The path {after.path!r} is given twice.", field="path", fix="give each path once"
            )
    return ordered


def _zip_facts(file: SkillFile) -> bytes:
    """The fields that an entry and its directory entry share: both sizes are equal, and there is no extra field."""
    size, name = len(file.data), file.path.encode()
    head = struct.pack("<HHHHH", _ZIP_NEEDS, _ZIP_UTF8, 0, *_ZIP_EPOCH)
    return head + struct.pack("<IIIHH", zlib.crc32(file.data), size, size, len(name), 0)


def _tar_entry(file: SkillFile) -> Iterable[bytes]:
    name = file.path.encode()
    if len(name) > _TAR_NAME or not name.isascii():
        # The plain header holds 100 bytes of ASCII; POSIX puts any other path into an entry before it.
        record = _pax_record(b"path", name)
        yield tar_header(b"PaxHeader", "100644", len(record), b"x")
        yield pad_block(record)
        name = hashlib.sha256(name).hexdigest().encode()
    yield tar_header(name, file.mode, len(file.data), b"0")
    yield pad_block(file.data)


def tar_header(name: bytes, mode: str, size: int, kind: bytes) -> bytes:
    """The block before a member's bytes: a kind of `0` is a plain file, `x` the attributes of the next one."""
    fields = struct.pack(
        "100s8s8s8s12s12s8sc100s6s2s32s32s8s8s155s12x",
        name,
        _octal(int(mode, 8) & 0o777, 8),
        _octal(0, 8),
        _octal(0, 8),
        _octal(size, 12),
        _octal(0, 12),
        b" " * 8,
        kind,
        b"",
        b"ustar\0",
        b"00",
        b"",
        b"",
        _octal(0, 8),
        _octal(0, 8),
        b"",
    )
    checksum = b"%06o\0 " % sum(fields)
    return fields[:148] + checksum + fields[156:]


def _octal(number: int, width: int) -> bytes:
    return b"%0*o\0" % (width - 1, number)


def _pax_record(key: bytes, value: bytes) -> bytes:
    """`length key=value`, where the length counts its own digits too."""
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return b"%d" % length + rest


def pad_block(data: bytes) -> bytes:
    """The bytes, filled up to the end of a block."""
    return data + bytes(-len(data) % _BLOCK)


def _gzip(data: bytes) -> bytes:
    """Data in gzip's frame, in blocks that are marked as not compressed."""
    parts = [_GZIP_HEAD]
    for start in range(0, len(data), _STORED):
        chunk = data[start : start + _STORED]
        is_last = start + _STORED >= len(data)
        parts += [struct.pack("<BHH", is_last, len(chunk), len(chunk) ^ _STORED), chunk]
    parts.append(struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF))
    return b"".join(parts)

"""The archive of a skill: a tar.gz whose bytes depend on the files alone.

Attestations name its SHA-256, and it is made again for every download and bundle, so it must be identical on every
machine and for ever. It is therefore written here byte by byte, without compression: a compressor's output
changes between its versions and builds, and skills are small. SKILL.md is at the root, entries are in the order of the
paths' bytes, and there are only plain files.
"""

import hashlib
import itertools
import struct
import zlib
from collections.abc import Iterable

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput
from vskill_core.kind import require_content

_BLOCK = 512
_TAR_NAME = 100
#: A gzip header without name and time, made by an unknown system.
_GZIP_HEAD = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"
#: The most that one block of uncompressed data holds.
_STORED = 0xFFFF


def tar_archive(files: Iterable[SkillFile]) -> bytes:
    """The files as a tar.gz; `NoSkillFound` where they are no skill and no plugin."""
    parts: list[bytes] = []
    for file in sort_files(files):
        parts += _tar_entry(file)
    parts.append(bytes(2 * _BLOCK))
    return _gzip(b"".join(parts))


def sort_files(files: Iterable[SkillFile]) -> tuple[SkillFile, ...]:
    """By the bytes of their paths; InvalidInput for a path that is given twice."""
    ordered = tuple(sorted(files, key=lambda file: file.path.encode()))
    require_content(ordered)
    for before, after in itertools.pairwise(ordered):
        if before.path == after.path:
            raise InvalidInput(
                f"The path {after.path!r} is given twice.", field="path", fix="give each path once"
            )
    return ordered


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

"""Uploaded archives (zip, tar, tar.gz), read in memory under limits and never extracted.

The standard library reads a zip: it only parses and inflates. A tar is read here, because the library's reader can be
made to loop. Anything but a plain file with a plain name is refused, and the error names the member and the fix.
SKILL.md, or a plugin's manifest, is at the root or in the one folder that holds everything.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator

import msgspec

from vskill_core.content import (
    DEFAULT_LIMITS,
    ContentLimits,
    Mode,
    SkillFile,
    check_files,
    check_path,
)
from vskill_core.errors import InvalidInput, LimitExceeded
from vskill_core.identity import SKILL_FILE
from vskill_core.kind import OLDER, require_content

#: A large member that inflates to more than this many times its packed size is a bomb.
MOST_RATIO = 200
RATIO_FROM_BYTES = 1024 * 1024
#: Folders and the metadata of a file system count as members, but not as files.
MEMBERS_PER_FILE = 4
#: Metadata of one member of a tar, such as a long name.
MOST_HEADER_BYTES = 64 * 1024
#: Limits of path length and depth apply after the folder around all files is stripped.
_ANY_LENGTH = ContentLimits(path_length=MOST_HEADER_BYTES, depth=MOST_HEADER_BYTES)
#: Characters of a name or a reason in a message.
_SHOWN = 120

#: For archives that a registry made: they hold a header for each file beside the content.
SERVED_LIMITS = msgspec.structs.replace(DEFAULT_LIMITS, bytes_total=DEFAULT_LIMITS.bytes_total * 5 // 4)

BLOCK = 512
#: What macOS adds to archives beside the files themselves.
_LITTER = "__MACOSX/"
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_MAGIC = b"\x1f\x8b"
#: For zlib: a gzip header, and the largest window.
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
#: What the library raises for invalid archives.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
_TAR_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}


def read_archive(data: bytes, limits: ContentLimits = DEFAULT_LIMITS) -> tuple[SkillFile, ...]:
    """The files of the one skill in an archive, sorted by path; InvalidInput, LimitExceeded or NoSkillFound."""
    if len(data) > limits.bytes_total:
        raise _over("The archive", "bytes", limits.bytes_total, "leave out what the skill does not need")
    members = _zip_members(data, limits) if data.startswith(_ZIP_MAGIC) else _tar_members(data, limits)
    files = _without_top([file for file in members if not file.path.startswith(_LITTER)])
    check_files(files, limits)
    require_content(files, "at the root of the archive, or in the one folder that holds everything")
    return tuple(sorted(files, key=lambda file: file.path))


def _without_top(files: list[SkillFile]) -> list[SkillFile]:
    """Strip a single top folder, which many tools add."""
    tops = {file.path.partition("/")[0] for file in files}
    if len(tops) != 1 or any("/" not in file.path or file.path in (SKILL_FILE, OLDER) for file in files):
        return files
    return [SkillFile(file.path.partition("/")[2], file.mode, file.data) for file in files]


class _Room:
    """What may still be read from an archive within the limits."""

    def __init__(self, limits: ContentLimits) -> None:
        self._limits = limits
        self._members = limits.files * MEMBERS_PER_FILE
        self._files = limits.files
        self._bytes = limits.bytes_total

    def member(self) -> None:
        self._members -= 1
        if self._members < 0:
            most = self._limits.files * MEMBERS_PER_FILE
            raise _over("The archive", "members", most, "pack one skill only")

    def file(self, name: str, size: int) -> None:
        """Count a file against the limits, before a byte of it is inflated."""
        check_path(name, _ANY_LENGTH)
        self._files -= 1
        self._bytes -= size
        if self._files < 0:
            raise _over("The archive", "files", self._limits.files, "pack one skill only")
        if size > self._limits.bytes_file:
            raise _over(f"The member {_show_name(name)}", "bytes", self._limits.bytes_file, "make it smaller")
        if self._bytes < 0:
            raise _over("What the archive holds", "bytes", self._limits.bytes_total, "make it smaller")


# Zip.


def _zip_members(data: bytes, limits: ContentLimits) -> Iterator[SkillFile]:
    # The library reads the whole directory at once, so check its length first.
    if data.count(b"PK\x01\x02") > limits.files * MEMBERS_PER_FILE:
        raise _over("The archive", "members", limits.files * MEMBERS_PER_FILE, "pack one skill only")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            room = _Room(limits)
            for member in archive.infolist():
                room.member()
                # Not is_dir(), which fails on an empty name.
                if not member.filename.endswith("/"):
                    _check_zip_member(member)
                    room.file(member.filename, member.file_size)
                    yield SkillFile(member.filename, _zip_mode(member), _inflate(archive, member))
    except _UNREADABLE as error:
        raise _damage_error(str(error)) from None


def _check_zip_member(member: zipfile.ZipInfo) -> None:
    name = member.orig_filename
    if "\0" in name:
        raise _refuse(name, "has a name with a NUL in it", "rename it")
    kind = stat.S_IFMT(member.external_attr >> 16) if member.create_system == 3 else 0
    if kind == stat.S_IFLNK:
        raise _refuse(name, "is a symbolic link", "pack the file that it points to")
    if kind not in (0, stat.S_IFREG):
        raise _refuse(name, "is not a plain file", "leave it out")
    if member.flag_bits & 0x1:
        raise _refuse(name, "is encrypted", "pack it without a password")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refuse(name, "uses an unsupported compression method", "compress it with deflate")
    if member.file_size > RATIO_FROM_BYTES and member.file_size > MOST_RATIO * member.compress_size:
        raise _refuse(name, f"is more than {MOST_RATIO} times larger than its packed form", "leave it out")


def _inflate(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as stream:
        data = stream.read(member.file_size + 1)
    if len(data) != member.file_size:
        raise _refuse(member.filename, "has a different size than the archive says", "pack it again")
    return data


def _zip_mode(member: zipfile.ZipInfo) -> Mode:
    executable = member.create_system == 3 and (member.external_attr >> 16) & stat.S_IXUSR
    return "100755" if executable else "100644"


# Tar: blocks of 512 bytes, each member a header and its bytes.


def _tar_members(data: bytes, limits: ContentLimits) -> Iterator[SkillFile]:
    if data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, limits)
    if data[257:262] != b"ustar":
        raise InvalidInput(
            "The file is not a supported archive.",
            field="archive",
            fix="pack it as zip, tar or tar.gz",
        )
    room = _Room(limits)
    position, noted = 0, b""
    while position + BLOCK <= len(data) and any(header := data[position : position + BLOCK]):
        room.member()
        size, kind = _tar_number(header[124:136]), header[156:157]
        start, position = position + BLOCK, position + BLOCK + -(-size // BLOCK) * BLOCK
        if start + size > len(data) or not _checksum_fits(header):
            raise _damage_error("a member of the tar is cut off or damaged")
        if kind in (b"x", b"L", b"g"):
            noted = _noted_name(kind, data[start : start + size], size) or noted
            continue
        name = _decode(noted or _header_name(header))
        noted = b""
        if kind == b"5":
            continue
        if kind not in (b"0", b"\0"):
            raise _refuse(name, f"is {_TAR_KINDS.get(kind, 'of an unknown kind')}", "pack plain files only")
        room.file(name.removeprefix("./"), size)
        mode: Mode = "100755" if _tar_number(header[100:108]) & stat.S_IXUSR else "100644"
        yield SkillFile(name.removeprefix("./"), mode, data[start : start + size])


def _gunzip(data: bytes, limits: ContentLimits) -> bytes:
    """Inflate, up to the size that the limits and a tar's own blocks allow."""
    most = limits.bytes_total + (limits.files * MEMBERS_PER_FILE + 20) * BLOCK * 2
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        plain = stream.decompress(data, most)
    except zlib.error as error:
        raise _damage_error(str(error)) from None
    if len(plain) >= most:
        raise _over("What the archive holds", "bytes", limits.bytes_total, "make it smaller")
    if not stream.eof:
        raise _damage_error("it ends too early")
    if len(plain) > RATIO_FROM_BYTES and len(plain) > MOST_RATIO * len(data):
        raise _refuse("tar", f"is more than {MOST_RATIO} times larger than its packed form", "leave it out")
    return plain


def _header_name(header: bytes) -> bytes:
    name, prefix = header[:100].split(b"\0")[0], header[345:500].split(b"\0")[0]
    # The old GNU format has times in place of the prefix.
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _noted_name(kind: bytes, text: bytes, size: int) -> bytes:
    """A long name noted before its member, in the GNU or the pax way; empty if the note is something else."""
    if size > MOST_HEADER_BYTES:
        raise _over("A member's metadata", "bytes", MOST_HEADER_BYTES, "pack it with fewer attributes")
    if kind == b"L":
        return text.rstrip(b"\0")
    if kind == b"g":
        return b""
    records = dict(_pax_records(text))
    if b"size" in records or any(key.startswith(b"GNU.sparse") for key in records):
        raise _refuse("tar", "holds a sparse or very large file", "pack plain files only")
    return records.get(b"path", b"")


def _pax_records(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """`length key=value` and a line end, where the length counts all of it."""
    while text:
        digits, space, _ = text[:16].partition(b" ")
        if not space or not digits.isdigit() or not len(digits) + 3 < int(digits) <= len(text):
            raise _damage_error("the metadata of a member cannot be read")
        key, equals, value = text[len(digits) + 1 : int(digits) - 1].partition(b"=")
        if not equals:
            raise _damage_error("the metadata of a member cannot be read")
        yield key, value
        text = text[int(digits) :]


def _tar_number(field: bytes) -> int:
    """A number in octal digits; the binary form is only for sizes beyond our limits."""
    digits = field.strip(b" \0")
    if not digits:
        return 0
    if not set(digits) <= set(b"01234567"):
        raise _damage_error("a number in the tar cannot be read")
    return int(digits, 8)


def _checksum_fits(header: bytes) -> bool:
    return _tar_number(header[148:156]) == sum(header[:148]) + sum(header[156:]) + 8 * 32


def _decode(name: bytes) -> str:
    """Bytes that are not UTF-8 become lone surrogates, which no path may hold."""
    return name.decode("utf-8", "surrogateescape")


def _show_name(name: str) -> str:
    return repr(name[:_SHOWN].encode("ascii", "backslashreplace").decode("ascii"))


def _refuse(name: str, problem: str, fix: str) -> InvalidInput:
    return InvalidInput(f"The member {_show_name(name)} {problem}; {fix}.", field="archive", fix=fix)


def _over(what: str, unit: str, most: int, fix: str) -> LimitExceeded:
    return LimitExceeded(f"{what} has more than {most} {unit}; {fix}.", limit=unit, allowed=most, fix=fix)


def _damage_error(reason: str) -> InvalidInput:
    return InvalidInput(f"The archive is damaged: {reason[:_SHOWN]}.", field="archive", fix="pack it again")

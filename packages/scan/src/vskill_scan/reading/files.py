"""From a skill's files to the texts that are scanned: tells text from binary, reads every text whole, and opens
archives in memory under limits. What it could not read it remembers, so that the scan is not called clean.
"""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from lzma import LZMAError
from typing import IO

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_core.identity import SKILL_FILE
from vskill_scan.limits import Budget, Limits
from vskill_scan.reading.languages import is_named_text
from vskill_scan.reading.visible_text import decode_text
from vskill_scan.rules import structure

#: Files that a report names as not read; one is enough to make the scan incomplete.
MOST_PROBLEMS = 20


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


class ReadText(msgspec.Struct, frozen=True):
    """One text, or something to say about a file that is none."""

    path: str
    text: str | None = None
    findings: tuple[Finding, ...] = ()
    #: SKILL.md or a part of a plugin names it, so the agent will look at it
    referenced: bool = False


class Reading:
    """Reads one skill, and remembers how much of it was seen."""

    def __init__(self, budget: Budget, known_files: Collection[str] = ()) -> None:
        """`known_files` are the hashes of files that the operator has listed."""
        self._budget = budget
        self._known_files = known_files
        self._limits = budget.limits
        self._obeyed: Collection[str] = ()
        #: by folder, the SKILL.md that sends the agent to files in it
        self._leading: dict[str, bytes] = {}
        self._unpacked = 0
        #: the file that is being read
        self.path = ""
        #: what was not read whole, by path, with the reason
        self.unread: dict[str, str] = {}
        self.files_scanned = 0
        self.bytes_scanned = 0

    def sources(self, files: Sequence[SkillFile], obeyed: Collection[str] = ()) -> Iterator[ReadText]:
        """`obeyed` are the files of a plugin that an agent follows or a client starts."""
        self._obeyed = frozenset((SKILL_FILE, *obeyed))
        self._leading = {
            file.path.removesuffix(SKILL_FILE): file.data for file in files if file.path in self._obeyed
        }
        for file in files:
            self.path = file.path
            if self.bytes_scanned + self._unpacked + len(file.data) > self._limits.skill_bytes:
                self.problem(
                    file.path, f"not read: the skill is larger than {self._limits.skill_bytes} bytes"
                )
                continue
            self.files_scanned += 1
            yield from self._read(file.path, file.data, depth=0)

    def _read(self, path: str, data: bytes, depth: int) -> Iterator[ReadText]:
        self.path = path
        self._budget.check()
        listed = structure.listed_files(path, data, self._known_files)
        yield ReadText(path, findings=(*listed, *structure.binary_findings(path, data)))
        kind = archive_type(path, data)
        if kind:
            self._count(len(data), depth)
            yield from self._members(kind, path, data, depth)
            return
        yield self._text(path, data, depth)

    def _members(self, kind: str, path: str, data: bytes, depth: int) -> Iterator[ReadText]:
        if depth >= self._limits.archive_depth:
            self.problem(path, "not opened: archives lie too deep in each other")
            return
        room = self._limits.skill_bytes - self.bytes_scanned - self._unpacked
        try:
            for name, content in members(kind, data, self._limits, room):
                yield from self._read(f"{path}!{name}", content, depth + 1)
        except TooMuch as error:
            self.problem(path, f"not fully opened: {error}")
        except UNREADABLE as error:
            if kind == "zip" or "tar" in path or path.endswith(".tgz"):
                self.problem(path, f"cannot be opened as an archive: {type(error).__name__}")

    def _text(self, path: str, data: bytes, depth: int) -> ReadText:
        self._count(len(data), depth)
        referenced = path in self._obeyed or self._is_named(path)
        text = decode_text(data, named_text=is_named_text(path, data))
        return ReadText(path, text, referenced=referenced)

    def _is_named(self, path: str) -> bool:
        """Whether the SKILL.md of a folder around a file names it."""
        folders = [path[: at + 1] for at, sign in enumerate(path) if sign == "/"]
        for folder in ("", *folders):
            if path[len(folder) :].encode("utf-8", "replace") in self._leading.get(folder, b""):
                return True
        return False

    def _count(self, size: int, depth: int) -> None:
        if depth:
            self._unpacked += size
        else:
            self.bytes_scanned += size

    def problem(self, path: str, what: str) -> None:
        """Something of the skill that was not looked at."""
        if len(self.unread) < MOST_PROBLEMS:
            self.unread.setdefault(path, what)


# Archives: how many members, how many bytes, how much larger than packed. Nothing is ever written to disk, and a member
# that exceeds a limit ends the reading of its archive.


def archive_type(path: str, data: bytes) -> str:
    """`zip`, `tar` or ""; told by how the bytes begin."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")) and not path.lower().endswith(_DOCUMENTS):
        return "zip"
    if data.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")) or data[257:262] == b"ustar":
        return "tar"
    return ""


def members(kind: str, data: bytes, limits: Limits, room: int) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each plain file; TooMuch at the first limit, one of UNREADABLE for a broken archive."""
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

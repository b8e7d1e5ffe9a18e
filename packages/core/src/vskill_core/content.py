"""A skill's content: its files, their manifest, and the one digest that names them.

Sources produce `SkillFile`s, `check_files` admits them, and `digest_of` names them. Scan and judge caches,
deduplication, stored content and blocks by content all go by the digest, which covers every byte, mode and path.
"""

import hashlib
import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from vskill_core.errors import InvalidInput, LimitExceeded, NoSkillFound
from vskill_core.identity import SKILL_FILE, has_control_characters

Mode = Literal["100644", "100755"]
MODES: tuple[Mode, ...] = ("100644", "100755")

#: Bytes of a file's or folder's name: no file system takes more.
MOST_NAME = 255
#: Characters that Windows forbids in names; a colon also names a hidden stream.
_NOT_ON_WINDOWS = frozenset('<>:"|?*')
#: Names of devices on Windows, with any extension.
_DEVICES = frozenset(
    (
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"),
    )
)
#: Characters that macOS ignores when it compares names.
_IGNORED = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF))
#: How Windows shortens `.git`.
_SHORT_GIT = tuple(f"git~{n}" for n in "123456789")


class SkillFile(msgspec.Struct, frozen=True):
    """One file with its bytes."""

    #: relative to the skill's folder, `/` between folders
    path: str
    #: as git writes it: plain or executable
    mode: Mode
    data: bytes


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a manifest: everything about it but its bytes."""

    path: str
    mode: Mode
    size: int
    #: of the raw bytes, hex
    sha256: str


class ContentLimits(msgspec.Struct, frozen=True):
    """What a skill may hold at most; whoever builds the environment may set others."""

    files: int = 1000
    bytes_total: int = 20 * 1024 * 1024
    bytes_file: int = 10 * 1024 * 1024
    #: of a path, in bytes of UTF-8
    path_length: int = 512
    #: folders and file name, so `a/b.txt` has 2
    depth: int = 16


DEFAULT_LIMITS = ContentLimits()


# Admission.


def check_files(files: Sequence[SkillFile], limits: ContentLimits = DEFAULT_LIMITS) -> None:
    """Refuse content that is too large, and paths that are unsafe or collide on some file system."""
    if len(files) > limits.files:
        raise _over("files", len(files), limits.files)
    total = 0
    for file in files:
        check_path(file.path, limits)
        total += len(file.data)
        if len(file.data) > limits.bytes_file:
            raise _over("bytes_file", len(file.data), limits.bytes_file, path=file.path)
    if total > limits.bytes_total:
        raise _over("bytes_total", total, limits.bytes_total)
    _check_collisions([file.path for file in files])


def check_path(path: str, limits: ContentLimits = DEFAULT_LIMITS) -> None:
    """Refuse a path that is absolute, leaves the folder, is not plain text, or cannot be written on every system."""
    parts = path.split("/")
    if has_control_characters(path) or "\\" in path:
        raise _bad_path(path, "use plain characters and '/' between folders")
    if any(part in ("", ".", "..") for part in parts) or parts[0][1:2] == ":":
        raise _bad_path(path, "use a path relative to the skill's folder, without '.' and '..'")
    for part in parts:
        _check_name(path, part)
    if len(path.encode()) > limits.path_length:
        raise _over("path_length", len(path.encode()), limits.path_length, path=path[:80])
    if len(parts) > limits.depth:
        raise _over("depth", len(parts), limits.depth, path=path[:80])


def _check_name(path: str, name: str) -> None:
    """Refuse names that git, Windows or macOS would not write, or would take for `.git`, whatever the source."""
    plain = _fold(name).rstrip(". ")
    if plain == ".git" or plain in _SHORT_GIT:
        raise _bad_path(path, f"leave {name[:80]!a} out: it is, or passes for, the folder of a repository")
    if len(name.encode()) > MOST_NAME:
        raise _bad_path(path, f"use names of at most {MOST_NAME} bytes")
    if name != name.rstrip(". ") or not _NOT_ON_WINDOWS.isdisjoint(name):
        raise _bad_path(
            path,
            f'rename {name[:80]!a}: Windows cannot write it; use none of <>:"|?*, and no dot or space at the end',
        )
    if plain.partition(".")[0].rstrip() in _DEVICES:
        raise _bad_path(path, f"rename {name[:80]!a}: it is the name of a device on Windows")


def skill_file_of(files: Iterable[SkillFile], where: str = "at this address") -> SkillFile:
    """The SKILL.md at the root of the skill's folder; `NoSkillFound` without one."""
    for file in files:
        if file.path == SKILL_FILE:
            return file
    raise NoSkillFound(f"There is no SKILL.md {where}.")


def _check_collisions(paths: Sequence[str]) -> None:
    """Refuse paths that a case-insensitive or Unicode-normalising file system would merge."""
    seen: dict[str, str] = {}
    for path in paths:
        folded = _fold(path)
        if folded in seen:
            raise _bad_path(path, f"rename one of the two: {seen[folded]!r} is the same name on some systems")
        seen[folded] = path
    for path in paths:
        for folder in _folders(_fold(path)):
            if folder in seen:
                raise _bad_path(path, f"rename one of the two: {seen[folder]!r} is a file, not a folder")


def _fold(path: str) -> str:
    """A form in which all names that some file system treats as equal are equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path.translate(_IGNORED)).casefold())


def _folders(path: str) -> list[str]:
    return [path[:end] for end, character in enumerate(path) if character == "/"]


def _bad_path(path: str, fix: str) -> InvalidInput:
    shown = path[:80].encode("ascii", "backslashreplace").decode("ascii")
    return InvalidInput(f"The path {shown!r} is not accepted.", field="path", fix=fix)


def _over(limit: str, found: int, allowed: int, **details: object) -> LimitExceeded:
    message = f"The skill exceeds the limit {limit}: {found}, and at most {allowed} are accepted."
    return LimitExceeded(message, limit=limit, found=found, allowed=allowed, **details)


# Manifest and digest.


def manifest_of(files: Iterable[SkillFile]) -> tuple[FileEntry, ...]:
    """One entry per file, sorted by the bytes of the path; a path given twice is refused."""
    entries = sorted(map(_entry, files), key=_path_bytes)
    for before, after in itertools.pairwise(entries):
        if before.path == after.path:
            raise _bad_path(after.path, "give each path once")
    return tuple(entries)


def manifest_lines(manifest: Iterable[FileEntry]) -> bytes:
    """The bytes that the digest is taken of: per file mode, size, SHA-256 and the length-prefixed path."""
    return b"".join(map(_line, sorted(manifest, key=_path_bytes)))


def digest_of(manifest: Iterable[FileEntry]) -> str:
    """The digest of exactly this content: it changes with any byte, mode or path."""
    return hashlib.sha256(manifest_lines(manifest)).hexdigest()


def digest_of_files(files: Iterable[SkillFile]) -> str:
    """The digest of files that are at hand."""
    return digest_of(manifest_of(files))


def _entry(file: SkillFile) -> FileEntry:
    return FileEntry(file.path, file.mode, len(file.data), hashlib.sha256(file.data).hexdigest())


def _path_bytes(entry: FileEntry) -> bytes:
    return entry.path.encode()


def _line(entry: FileEntry) -> bytes:
    path = entry.path.encode()
    return f"{entry.mode} {entry.size} {entry.sha256} {len(path)}:".encode() + path + b"\n"

"""The files of a commit as `git ls-tree -z` lists them: which belong to a skill, and which a skill may hold.

A line is a mode, a kind, an id, a tab and the raw bytes of the path. Lists are long and mostly not wanted, so lines are
chosen as bytes, and only the chosen ones become entries.
"""

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from vskill_core.content import MODES, ContentLimits, Mode, check_path
from vskill_core.errors import InvalidInput
from vskill_core.identity import SKILL_FILE, clean_path
from vskill_core.kind import OLDER, STANDARD

_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}
_FIXES = {
    "120000": "replace it by the file that it points to",
    "160000": "copy its files into the folder, or move it elsewhere",
}


class TreeEntry(msgspec.Struct, frozen=True):
    """One line of a list: bytes of a name that are not UTF-8 are lone surrogates."""

    mode: str
    id: str
    #: From the root of the repository.
    path: str


def entry_of(line: bytes) -> TreeEntry:
    facts, _, _ = line.partition(b"\t")
    mode, _, number = facts.decode("ascii").split(" ")
    return TreeEntry(mode, number, path_of(line))


def path_of(line: bytes) -> str:
    return line.partition(b"\t")[2].decode("utf-8", "surrogateescape")


def lines_below(lines: Sequence[bytes], folder: str) -> list[bytes]:
    if not folder:
        return list(lines)
    prefix = b"\t" + folder.encode() + b"/"
    # The path follows the first tab, and a line before it holds only digits and a word.
    return [line for line in lines if line.find(prefix) == line.find(b"\t") != -1]


def lines_of(lines: Sequence[bytes], paths: Collection[str]) -> list[bytes]:
    wanted = {path.encode() for path in paths}
    return [line for line in lines if line.partition(b"\t")[2] in wanted]


def folders_with_skill(lines: Sequence[bytes], below: str) -> set[str]:
    """Folders whose SKILL.md is a file, or pretends to be one."""
    return folders_with(SKILL_FILE, lines, below)


def folders_with_manifest(lines: Sequence[bytes], below: str) -> dict[str, list[str]]:
    """Folders that may be plugins, each with the paths of what may be its manifest."""
    found: dict[str, list[str]] = {}
    inside = OLDER.removesuffix(f"/{STANDARD}")
    for name in (OLDER, STANDARD):
        for folder in folders_with(name, lines, below):
            # The older manifest is a file of the folder around it.
            if f"/{folder}".endswith(f"/{inside}"):
                continue
            found.setdefault(folder, []).append(file_in(folder, name))
    return found


def folders_with(name: str, lines: Sequence[bytes], below: str) -> set[str]:
    ending = name.encode()
    paths = (path_of(line) for line in lines if line.endswith((b"\t" + ending, b"/" + ending)))
    folders = (path[: -len(name)].rstrip("/") for path in paths)
    return {folder for folder in folders if not below or f"{folder}/".startswith(f"{below}/")}


def digests_below(lines: Sequence[bytes], folders: Collection[str]) -> dict[str, str]:
    """Of each folder, a digest of every line in or below it. Each line is walked once, name by name, only as far as
    there are such folders."""
    found = {folder: hashlib.sha256() for folder in folders}
    tree: dict[str, Any] = {}
    for folder in filter(None, found):
        here = tree
        for name in folder.split("/"):
            here = here.setdefault(name, {})
    for line in lines:
        digest, here, place = hashlib.sha256(line).digest(), tree, ""
        if "" in found:
            found[""].update(digest)
        for name in path_of(line).split("/")[:-1]:
            if name not in here:
                break
            here, place = here[name], f"{place}/{name}" if place else name
            if place in found:
                found[place].update(digest)
    return {folder: digest.hexdigest() for folder, digest in found.items()}


def skill_file_in(folder: str) -> str:
    return file_in(folder, SKILL_FILE)


def file_in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def can_be_named(path: str) -> bool:
    """Whether one of our URLs can name this folder."""
    try:
        return clean_path(path) == path
    except InvalidInput:
        return False


def check_entry(entry: TreeEntry, limits: ContentLimits) -> None:
    """Raise InvalidInput or LimitExceeded if a skill may not hold it."""
    check_path(entry.path, limits)
    if entry.mode not in MODES:
        kind = _KINDS.get(entry.mode, f"of the mode {entry.mode}")
        fix = _FIXES.get(entry.mode, "use plain files")
        raise InvalidInput(
            f"{shown_path(entry.path)} is {kind}, which a skill may not hold; {fix}.", field="path", fix=fix
        )


def mode_of(entry: TreeEntry) -> Mode:
    return "100755" if entry.mode == "100755" else "100644"


def shown_path(path: str) -> str:
    """The path for messages, even if its bytes are not UTF-8."""
    return repr(path[:120].encode("ascii", "backslashreplace").decode("ascii"))

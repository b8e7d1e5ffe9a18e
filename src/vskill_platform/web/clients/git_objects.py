"""A skill as a git repository of one commit, made of its files alone: objects, and the pack that carries them.

Claude Code fetches plugins with git. The bytes that were verified are in our store, not in a repository, so the
repository is made when somebody asks, and is the same every time. Pure; `plugin_git` speaks the protocol.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from vskill_core.content import SkillFile

_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_FOLDER = "40000"
#: Who made a commit, as git writes it; a registry is no person.
_AUTHOR = "vskill-platform <registry@localhost>"


class GitObject(msgspec.Struct, frozen=True):
    """One object."""

    kind: str
    data: bytes

    @property
    def id(self) -> str:
        # Git names objects by SHA-1; nothing of ours relies on it.
        head = f"{self.kind} {len(self.data)}\0".encode()
        return hashlib.sha1(head + self.data, usedforsecurity=False).hexdigest()


class Repository(msgspec.Struct, frozen=True):
    """The one commit, and everything that it reaches."""

    commit: str
    objects: tuple[GitObject, ...]


def repository_of(files: Iterable[SkillFile], *, message: str, at_ms: int) -> Repository:
    """The same files, message and time are the same commit."""
    found: dict[str, GitObject] = {}
    root = _tree({file.path: file for file in files}, found)
    when = f"{at_ms // 1000} +0000"
    text = f"tree {root}\nauthor {_AUTHOR} {when}\ncommitter {_AUTHOR} {when}\n\n{message}\n"
    commit = _keep(GitObject("commit", text.encode()), found)
    return Repository(commit, tuple(found.values()))


def _tree(files: dict[str, SkillFile], found: dict[str, GitObject]) -> str:
    entries: list[tuple[bytes, bytes]] = []
    folders: dict[str, dict[str, SkillFile]] = {}
    for path, file in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = file
        else:
            blob = _keep(GitObject("blob", file.data), found)
            entries.append((first.encode(), _line(file.mode, first, blob)))
    for name, inside in folders.items():
        # Git sorts a folder as if its name ended in a slash.
        entries.append((name.encode() + b"/", _line(_FOLDER, name, _tree(inside, found))))
    return _keep(GitObject("tree", b"".join(line for _, line in sorted(entries))), found)


def _line(mode: str, name: str, object_id: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(object_id)


def _keep(made: GitObject, found: dict[str, GitObject]) -> str:
    object_id = made.id
    found[object_id] = made
    return object_id


def pack_of(repository: Repository) -> bytes:
    """Every object, none as a difference to another."""
    body = bytearray(struct.pack(">4sII", b"PACK", 2, len(repository.objects)))
    for one in repository.objects:
        body += bytes(_head(_TYPES[one.kind], len(one.data))) + zlib.compress(one.data, 1)
    return bytes(body + hashlib.sha1(body, usedforsecurity=False).digest())


def _head(kind: int, size: int) -> Iterator[int]:
    """The type and the length: four bits, then seven at a time, each byte saying whether another follows."""
    byte, rest = (kind << 4) | (size & 0xF), size >> 4
    while rest:
        yield byte | 0x80
        byte, rest = rest & 0x7F, rest >> 7
    yield byte

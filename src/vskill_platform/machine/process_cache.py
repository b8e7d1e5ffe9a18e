"""Caches of one process.

Content under its digest never changes; the blocklist is cached with its version, which its users compare with the
store's first. Only the words of public skills may be some seconds old.
"""

import asyncio
from typing import Generic, TypeVar

from vskill_platform.domain.people.namespace import Audiences, Directory
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.known_words import KnownWords
from vskill_platform.domain.skills.skill import RevokedList
from vskill_scan.memory.memory import Memory

V = TypeVar("V")

#: Bytes of one kind of value that a process keeps.
MOST_BYTES = 32 * 1024 * 1024
#: Larger values are not cached, so that no single one evicts the others.
MOST_ONE = MOST_BYTES // 32


class Kept(Generic[V]):
    """An LRU cache with a limit on total size."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_one: int = MOST_ONE) -> None:
        self._most = most_bytes
        self._most_one = most_one
        self._size = 0
        self._values: dict[object, tuple[V, int]] = {}

    def get(self, key: object) -> V | None:
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[0]

    def put(self, key: object, value: V, size: int) -> None:
        if size > self._most_one:
            return
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = (value, size)
        self._size += size - before
        while self._size > self._most:
            oldest = next(iter(self._values))
            self._size -= self._values.pop(oldest)[1]


class KeptReads:
    """All caches of one process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.blocklist: Blocklist | None = None
        #: Who may read what, with the version at which it was read.
        self.directory: tuple[int, Directory] | None = None
        #: The words of public skills: when to refresh them, the version of their record, and the words.
        self.known_words: tuple[int, int, KnownWords] | None = None
        #: The memory in force, and the digest by which the store names it; empty where it names none.
        self.memory: tuple[str, Memory] | None = None
        #: SKILL.md by the digest of its content.
        self.texts: Kept[str] = Kept()
        #: Revoked versions, by the readers' audiences; one list is derived at a time.
        self.revoked: dict[Audiences, RevokedList] = {}
        self.revoked_turn = asyncio.Lock()
        #: Documents of issuers by their address: when each was read, and what it says.
        self.issuer_documents: dict[str, tuple[int, bytes]] = {}
        #: Only one list for git is made at a time.
        self.git_list_turn = asyncio.Lock()
        #: The signed list by the readers, serial, day and key that it was made for.
        self.signed: Kept[bytes] = Kept(MOST_BYTES, MOST_BYTES)

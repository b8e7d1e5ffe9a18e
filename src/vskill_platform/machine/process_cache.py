"""What a process keeps of what it has read, so that it need not read it again.

Content by its digest never changes; the blocklist is kept with its version, and its users ask the store for the present
one first. Only the words of public skills may be some seconds old.
"""

import asyncio
from typing import Generic, TypeVar

from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.people.namespace import Directory
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.known_words import KnownWords
from vskill_platform.domain.skills.skill import RevokedList

V = TypeVar("V")

#: Bytes of one kind of value that a process keeps.
MOST_BYTES = 32 * 1024 * 1024
#: A larger one is made anew each time, so that no single one pushes the others out.
MOST_ONE = MOST_BYTES // 32


class Kept(Generic[V]):
    """The values used last, up to a total size."""

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
    """What the reads of one process keep."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.blocklist: Blocklist | None = None
        #: Who may read what, with the version at which it was read.
        self.directory: tuple[int, Directory] | None = None
        #: The words of public skills: when to look for others, the version of their record, and themselves.
        self.known_words: tuple[int, int, KnownWords] | None = None
        #: SKILL.md by the digest of its content.
        self.texts: Kept[str] = Kept()
        #: What is revoked, for the readers of a set of audiences; one list is derived at a time.
        self.revoked: dict[Audiences, RevokedList] = {}
        self.revoked_turn = asyncio.Lock()
        #: One list for git is made at a time.
        self.git_list_turn = asyncio.Lock()
        #: The signed list by the readers, serial, day and key that it was made for.
        self.signed: Kept[bytes] = Kept(MOST_BYTES, MOST_BYTES)

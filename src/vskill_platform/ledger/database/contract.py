"""An open database that the record store and the queue of one process share: its clock, who waits for writes, and when
it is closed."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Protocol


class Waiter(Protocol):
    """What happens after it was made is not missed, even before it waits."""

    async def changed(self, seconds: float) -> None:
        """Return after a write that the channel tells of, or this many seconds. It may return early."""


class Database(ABC):
    """It stays open until every user has detached."""

    def __init__(self) -> None:
        self._users: set[object] = set()
        self._closed = False

    @abstractmethod
    def now(self) -> int:
        """The clock that sets and compares every deadline."""

    @abstractmethod
    def watch(self, channel: str) -> AbstractContextManager[Waiter]:
        """Look, then wait on the watch, then look again: nothing is missed in between."""

    @abstractmethod
    def wake(self, channel: str) -> None:
        """Make this process's watches look again."""

    def attach(self, user: object) -> None:
        self._users.add(user)

    async def detach(self, user: object) -> None:
        self._users.discard(user)
        if not self._users:
            await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Finish what was accepted, and let go of files and connections."""

"""A database that the record store and the queue of one process share, and waiting for writes to it. On SQLite this
process's commits wake their watches directly; other processes' commits are found by polling whether the file has
changed. Nothing polls while nobody waits."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Protocol

#: How often a waiting watch polls for other processes' commits.
POLL_SECONDS = 0.05
#: The same on a server, because notifications may be lost with their connection.
SERVER_POLL_S = 1.0


class Waiter(Protocol):
    """Misses no write that comes after it was made, even before it waits."""

    async def changed(self, seconds: float) -> None:
        """Return after a write to the channel, or this many seconds. It may return early."""


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
        """Finish accepted writes, and close files and connections."""


class Watch(asyncio.Event):
    """One waiter on SQLite; set by commits of this process."""

    def __init__(self, data_version: Callable[[], int]) -> None:
        super().__init__()
        self._data_version = data_version
        self._seen = data_version()
        self.loop = asyncio.get_running_loop()

    async def changed(self, seconds: float) -> None:
        """Return after a commit of the watched kind here, any commit elsewhere, or this many seconds."""
        deadline = self.loop.time() + seconds
        while not self.is_set() and (left := deadline - self.loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL_SECONDS)):
                    await self.wait()
            if not self.is_set():
                before, self._seen = self._seen, self._data_version()
                if self._seen != before:
                    break
        self.clear()


class Watches:
    """The watches of each channel, over all event loops. The writer thread reads what the loops' threads change; single
    dict operations make that safe without a lock."""

    def __init__(self) -> None:
        self._by_channel: dict[str, dict[Watch, None]] = {}

    def add(self, channel: str, watch: Watch) -> None:
        self._by_channel.setdefault(channel, {})[watch] = None

    def remove(self, channel: str, watch: Watch) -> None:
        self._by_channel.get(channel, {}).pop(watch, None)

    def wake(self, channels: Iterable[str]) -> None:
        """Wake them, each in its own event loop, from any thread."""
        for channel in channels:
            for watch in tuple(self._by_channel.get(channel, ())):
                try:
                    watch.loop.call_soon_threadsafe(watch.set)
                except RuntimeError:
                    # Its loop is closed: nobody waits there any more.
                    self.remove(channel, watch)


class ServerWatch(asyncio.Event):
    """One waiter on PostgreSQL; set by notifications. A lost notification only delays it until the next poll."""

    async def changed(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(seconds, SERVER_POLL_S))):
                await self.wait()
        self.clear()

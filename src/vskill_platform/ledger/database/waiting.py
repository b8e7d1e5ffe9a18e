"""Waiting for somebody to write: this process's commits wake their watches directly, other processes' are noticed
by asking SQLite now and then whether the file has changed. Nothing is asked while nobody waits."""

import asyncio
from collections.abc import Callable, Iterable

#: How often a waiting watch asks about other processes.
POLL_SECONDS = 0.05


class Watch:
    """One waiter. What happens after it was made is not missed, even before it waits."""

    def __init__(self, data_version: Callable[[], int]) -> None:
        self._data_version = data_version
        self._seen = data_version()
        self.loop = asyncio.get_running_loop()
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        self._woken = True
        self._stop_waiting()

    async def changed(self, seconds: float) -> None:
        """Return after a commit of the watched kind here, any commit elsewhere, or this many seconds."""
        deadline = self.loop.time() + seconds
        while not self._woken and (left := deadline - self.loop.time()) > 0:
            await self._wait(min(left, POLL_SECONDS))
            if not self._woken and self._has_file_changed():
                break
        self._woken = False

    def _has_file_changed(self) -> bool:
        before, self._seen = self._seen, self._data_version()
        return self._seen != before

    async def _wait(self, seconds: float) -> None:
        self._waiter = self.loop.create_future()
        timer = self.loop.call_later(seconds, self._stop_waiting)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _stop_waiting(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watches:
    """Who waits for what, over all event loops. The writer's thread reads what the loops' threads change, which
    single operations on a dict allow without a lock."""

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
                    watch.loop.call_soon_threadsafe(watch.wake)
                except RuntimeError:
                    # Its loop is closed: nobody waits there any more.
                    self.remove(channel, watch)

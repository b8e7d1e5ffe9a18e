"""Fetched commits that several submissions share: one fetch per repository and commit, however many skills it
holds. Bounded by age, memory and disk; a snapshot in use is never removed."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from vskill_core.errors import Shortage
from vskill_platform.sources.snapshots import Snapshot


class CacheLimits(msgspec.Struct, frozen=True):
    """Limits of the cache."""

    age_s: float = 600.0
    memory_bytes: int = 128 * 1024 * 1024
    disk_bytes: int = 1024 * 1024 * 1024
    #: Snapshots fetched or read this recently will probably be read again, and stay.
    fresh_s: float = 5.0


Key = tuple[str, str]


class _Kept:
    """A snapshot with its readers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.until = 0.0
        self.touched = time.monotonic()
        self.readers = 0
        self.dropped = False


class SnapshotCache:
    """Snapshots by repository and commit, the least recently used first."""

    def __init__(self, limits: CacheLimits | None = None) -> None:
        self._limits = limits or CacheLimits()
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        kept = self._kept.get(key)
        return kept is not None and kept.until > time.monotonic()

    def knows(self, repo_key: str) -> bool:
        return any(repo == repo_key for repo, _ in self._kept)

    async def add(self, key: Key, snapshot: Snapshot) -> None:
        kept = _Kept(snapshot)
        kept.until = kept.touched + self._limits.age_s
        before = self._kept.pop(key, None)
        self._kept[key] = kept
        for one in (before, *self._superfluous()):
            if one is not None:
                await self._drop(one)

    @asynccontextmanager
    async def reading(self, key: Key) -> AsyncIterator[Snapshot]:
        """The snapshot, which stays until the body ends. The caller must know that it is cached."""
        kept = self._kept[key]
        self._kept.move_to_end(key)
        kept.touched = time.monotonic()
        kept.readers += 1
        try:
            yield kept.snapshot
        except Shortage:
            # Its folder may have been deleted: make the next reader fetch it again.
            kept.until = 0.0
            raise
        finally:
            kept.readers -= 1
            if kept.dropped and not kept.readers:
                await asyncio.shield(kept.snapshot.remove())

    async def close(self) -> None:
        while self._kept:
            await self._drop(self._kept.popitem()[1])

    def _superfluous(self) -> list[_Kept]:
        """Evict expired snapshots, and the least recently used while the limits are exceeded."""
        now = time.monotonic()
        stale = [key for key, kept in self._kept.items() if kept.touched < now - self._limits.fresh_s]
        return [self._kept.pop(key) for key in stale if self._kept[key].until <= now or self._too_much()]

    def _too_much(self) -> bool:
        snapshots = [kept.snapshot for kept in self._kept.values()]
        return (
            sum(one.memory_bytes for one in snapshots) > self._limits.memory_bytes
            or sum(one.disk_bytes for one in snapshots) > self._limits.disk_bytes
        )

    async def _drop(self, kept: _Kept) -> None:
        kept.dropped = True
        if not kept.readers:
            await kept.snapshot.remove()

"""A store that can only `get`, as a remote one would look to the functions above it: what the contract's defaults
make of single reads, one after the other, a bounded number at once, or all at once."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from vskill_platform.kv.contract import KV, PAGE, READS_AT_ONCE, read_concurrently
from vskill_platform.kv.entries import Capability, Entry, JoinedPage, Operation, Page, Settled


class GetOnly(KV):
    """The core of another store, with a latency for each call if wanted."""

    engine = "get only"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, inner: KV, at_once: int = READS_AT_ONCE, latency_s: float = 0.0) -> None:
        self._inner = inner
        self._at_once = at_once
        self._latency_s = latency_s

    def now(self) -> int:
        return self._inner.now()

    async def get(self, key: str) -> Entry | None:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        return await self._inner.get(key)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        return await read_concurrently(self, keys, self._at_once)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        return await self._inner.list(prefix, after=after, limit=limit, exclude=exclude)

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        return await self._inner.commit(operations, urgent=urgent)


class Delayed(GetOnly):
    """Another store with everything that it can do for a whole enumeration, and a latency for each page of it."""

    def __init__(self, inner: KV, latency_s: float) -> None:
        super().__init__(inner, latency_s=latency_s)

    async def joined_pages(
        self, prefix: str, *, exclude: Sequence[str] = (), page: int = PAGE
    ) -> AsyncIterator[JoinedPage]:
        await asyncio.sleep(self._latency_s)
        async for joined in self._inner.joined_pages(prefix, exclude=exclude, page=page):
            yield joined
            if joined.after is not None:
                await asyncio.sleep(self._latency_s)


class ThreadedGets(GetOnly):
    """Every read in a thread, as drivers do that wrap a blocking database for an event loop."""

    async def get(self, key: str) -> Entry | None:
        return await asyncio.to_thread(self._get, key)

    def _get(self, key: str) -> Entry | None:
        reading = self._inner.get(key)
        try:
            reading.send(None)
        except StopIteration as done:
            entry: Entry | None = done.value
            return entry
        raise AssertionError("a read by key awaits nothing")

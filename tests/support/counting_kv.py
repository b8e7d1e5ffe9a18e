"""A store that counts how often it is asked: what a page costs wherever the store is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.search import TermQuery
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import (
    Change,
    Entry,
    EntryPage,
    Found,
    Operation,
    Page,
    Settled,
)
from vskill_platform.ledger.kv.query import Condition


class CountingKV(KV):
    """Another store, with every round trip to it counted by name."""

    def __init__(self, inner: KV) -> None:
        self._inner = inner
        self.engine = inner.engine
        self.capabilities = inner.capabilities
        self.calls: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self.calls.total()

    def now(self) -> int:
        return self._inner.now()

    async def get(self, key: str) -> Entry | None:
        self.calls["get"] += 1
        return await self._inner.get(key)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        self.calls["get_many"] += 1
        return await self._inner.get_many(keys)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        self.calls["list"] += 1
        return await self._inner.list(prefix, after=after, limit=limit, exclude=exclude)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        self.calls["scan"] += 1
        return await self._inner.scan(prefix, after=after, limit=limit, exclude=exclude)

    async def select(
        self,
        prefix: str,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        order_by: str = "key",
        descending: bool = False,
        after: str | None = None,
        limit: int = PAGE,
        under: str = "",
    ) -> EntryPage:
        self.calls["select"] += 1
        return await self._inner.select(
            prefix,
            audiences=audiences,
            where=where,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
            under=under,
        )

    async def count_by(self, prefix: str, field: str, *, audiences: Audiences) -> dict[str | None, int]:
        self.calls["count_by"] += 1
        return await self._inner.count_by(prefix, field, audiences=audiences)

    async def count_all(self, prefix: str, *, audiences: Audiences) -> dict[str, dict[str | None, int]]:
        self.calls["count_all"] += 1
        return await self._inner.count_all(prefix, audiences=audiences)

    async def search(self, prefix: str, query: TermQuery, **options: Any) -> Found:
        self.calls["search"] += 1
        return await self._inner.search(prefix, query, **options)

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        self.calls["commit"] += 1
        return await self._inner.commit(operations, urgent=urgent)

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        self.calls["changes"] += 1
        return await self._inner.changes(prefix, after=after, limit=limit)

    async def change_cursor(self) -> str:
        self.calls["change_cursor"] += 1
        return await self._inner.change_cursor()

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        return await self._inner.wait_for_change(cursor, timeout_ms)

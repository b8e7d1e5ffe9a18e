"""An engine with the core alone: one key at a time, no capability. What the contract builds on the core is
proved on it, and so are the stores above, whose concurrent reads its probe watches.
"""

import asyncio
from collections.abc import Sequence

from vskill_core.errors import Conflict, Unsupported
from vskill_platform.ledger.clock import Clock
from vskill_platform.ledger.kv.checks import check_key, check_operations, check_texts
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import (
    ABSENT,
    Add,
    Assert,
    Capability,
    Delete,
    Entry,
    Operation,
    Page,
    Put,
)


class Probe:
    """Watches single reads: how many are in flight, which began and ended when; and lets chosen keys fail."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.most_in_flight = 0
        #: Keys in the order in which their reads began.
        self.reads: list[str] = []
        #: ("start" | "end", key), as they happened.
        self.events: list[tuple[str, str]] = []
        #: A read of one of these keys raises.
        self.failing: dict[str, Exception] = {}

    async def read(self, key: str) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.reads.append(key)
        self.events.append(("start", key))
        try:
            # One turn of the loop: every read that was started beside this one begins before it ends.
            await asyncio.sleep(0)
            if key in self.failing:
                raise self.failing[key]
        finally:
            self.in_flight -= 1
            self.events.append(("end", key))


class MinimalKV(KV):
    """A dict. A commit is one operation; a time to live is kept, since it belongs to `Put`."""

    engine = "minimal"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, clock: Clock, probe: Probe | None = None) -> None:
        self.probe = probe or Probe()
        self._clock = clock
        self._entries: dict[str, tuple[Entry, int | None]] = {}
        self._version = 0

    def now(self) -> int:
        return self._clock.now()

    async def get(self, key: str) -> Entry | None:
        check_key(key)
        await self.probe.read(key)
        return self._read(key)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        await asyncio.sleep(0)
        check_texts("prefix", prefix, after or "", *exclude)
        keys = [key for key in sorted(self._entries, key=str.encode) if key.startswith(prefix)]
        keys = [key for key in keys if not key.startswith(tuple(exclude)) and self._read(key)]
        if after is not None:
            keys = [key for key in keys if key.encode() > after.encode()]
        return Page(tuple(keys[:limit]), keys[limit - 1] if len(keys) > limit else None)

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        await asyncio.sleep(0)
        if len(operations) != 1:
            raise Unsupported(capability=Capability.ATOMIC_COMMIT.value, engine=self.engine)
        check_operations(operations)
        self._apply(operations[0])
        return self._version

    def _read(self, key: str) -> Entry | None:
        entry, until = self._entries.get(key, (None, None))
        return None if until is not None and until <= self.now() else entry

    def _apply(self, operation: Operation) -> None:
        match operation:
            case Put(key, value, if_version, _, ttl_ms):
                self._check(key, if_version)
                self._write(key, value, ttl_ms)
            case Delete(key, if_version):
                self._check(key, if_version)
                self._entries.pop(key, None)
            case Assert(key, version):
                self._check(key, version)
            case Add(key, n):
                entry = self._read(key)
                self._write(key, b"%d" % (n + (int(entry.value) if entry else 0)), None)
            case _:
                raise Unsupported(capability=Capability.SEND_IN_COMMIT.value, engine=self.engine)

    def _check(self, key: str, wanted: int | None) -> None:
        entry = self._read(key)
        if wanted is not None and wanted != (entry.version if entry else ABSENT):
            raise Conflict(key=key)

    def _write(self, key: str, value: bytes, ttl_ms: int | None) -> None:
        self._version += 1
        until = None if ttl_ms is None else self.now() + ttl_ms
        self._entries[key] = (Entry(key, value, self._version), until)

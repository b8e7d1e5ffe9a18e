"""What an answer cost: every read of the store and of content, by kind of question and kind of record, every look at
another host, and every program that was started. Two answers that must not be told apart have cost the same."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.counting_kv import CountingKV
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import Entry, EntryPage, Page, Settled


class ProbedKV(CountingKV):
    """Counts single reads, lists and scans by the kind of record too: `get skill`, `scan skill:alias`."""

    def __init__(self, inner: KV) -> None:
        super().__init__(inner)
        self.reads: Counter[str] = Counter()

    @property
    def seen(self) -> Counter[str]:
        """Every read until now; questions by field and commits as the store counts them."""
        named = {"get", "get_many", "list", "scan"}
        return self.reads + Counter({name: n for name, n in self.calls.items() if name not in named})

    async def get(self, key: str) -> Entry | None:
        self.reads[f"get {kind_of(key)}"] += 1
        return await super().get(key)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        wanted = tuple(dict.fromkeys(keys))
        self.reads["get_many"] += 1
        self.reads.update(f"get_many {kind_of(key)}" for key in wanted)
        return await super().get_many(wanted)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        self.reads[f"list {kind_of(prefix)}"] += 1
        return await super().list(prefix, after=after, limit=limit, exclude=exclude)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        self.reads[f"scan {kind_of(prefix)}"] += 1
        return await super().scan(prefix, after=after, limit=limit, exclude=exclude)


class ProbedBlobs(Blobs):
    """Other content, with every look at it counted."""

    def __init__(self, inner: Blobs) -> None:
        self._inner = inner
        self.engine = inner.engine
        self.reads: Counter[str] = Counter()

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        await self._inner.put(address, data, replace=replace)

    async def get(self, address: str) -> bytes | None:
        self.reads["content get"] += 1
        return await self._inner.get(address)

    async def has(self, address: str) -> bool:
        self.reads["content has"] += 1
        return await self._inner.has(address)

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._inner.set_aside(address, untouched_ms)

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._inner.delete_aside(address, untouched_ms)

    async def close(self) -> None:
        await self._inner.close()


class Probe:
    """The store and the content of one environment, counted together."""

    def __init__(self, kv: KV, blobs: Blobs) -> None:
        self.kv, self.blobs = ProbedKV(kv), ProbedBlobs(blobs)
        #: Looks at repositories, which the source counts itself.
        self.looks: Counter[str] = Counter()

    def start(self) -> None:
        """Forget what was counted."""
        self.kv.reads.clear()
        self.kv.calls.clear()
        self.blobs.reads.clear()
        self.looks.clear()

    @property
    def cost(self) -> Counter[str]:
        return self.kv.seen + self.blobs.reads + self.looks


_programs: list[Counter[str]] = []


def _note_program(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        program, *words = map(str, arguments[1])
        for seen in _programs:
            seen[f"{Path(program).name} {' '.join(words[:1])}"] += 1


sys.addaudithook(_note_program)


@contextmanager
def counted_programs() -> Iterator[Counter[str]]:
    """The programs that this process starts meanwhile, with their first argument."""
    seen: Counter[str] = Counter()
    _programs.append(seen)
    try:
        yield seen
    finally:
        _programs.remove(seen)


def kind_of(key: str) -> str:
    """The kind of record that a key or the beginning of one names."""
    kind, _, rest = key.partition(":")
    return f"{kind}:alias" if kind == "skill" and rest.startswith("alias:") else kind

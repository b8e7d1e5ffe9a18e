"""Migrating to another engine: copies one store into another, while the first may still be in use.

A run walks both stores in key order and writes the differences, so it can be repeated: after an interruption it resumes
after the last page, and once the old processes are stopped it copies what changed since. A marker record in the target
says that it is being filled, and from where; a target that is neither empty nor marked is refused. The marker is
removed when both are equal, by count and hash. Content stays where it is: its files serve either engine.
"""

import msgspec

from vskill_core.errors import Conflict, InvalidInput
from vskill_platform.bootstrap import open_snapshot
from vskill_platform.installation.snapshot import (
    MARKER,
    Progress,
    Totals,
    count_totals,
    open_target,
    puts,
    tell_nobody,
)
from vskill_platform.ledger.broker.contract import Broker, DeadLetter
from vskill_platform.ledger.kv.contract import KV, StoreSnapshot
from vskill_platform.ledger.kv.entries import Delete, Operation, Put, StoredRecord
from vskill_platform.setting_values import shown_location


class Marker(msgspec.Struct, frozen=True):
    """What the target remembers of an unfinished copy."""

    source: str
    #: The last key that was compared in this run; empty if a run is to begin.
    after: str = ""


class Migrated(msgspec.Struct, frozen=True):
    """How a run ended."""

    compared: int
    written: int
    removed: int
    source: Totals
    target: Totals
    #: False if the source has changed since it was copied: stop its processes and run again.
    equal: bool


async def migrate(source: str, target: str, progress: Progress = tell_nobody) -> Migrated:
    if source == target:
        raise InvalidInput("the source and the target are the same store", field="to")
    # The source first: if it cannot be opened, no empty target is left behind.
    async with open_snapshot(source) as here, open_target(target) as (kv, broker):
        marker = await _begin(kv, source, target)
        async with kv.snapshot() as there:
            run = _Run(kv, here, there, marker, progress)
            await run.copy()
            await _copy_letters(here, there, broker)
    async with open_snapshot(source) as here, open_target(target) as (kv, _), kv.snapshot() as there:
        expected, found = await count_totals(here), await count_totals(there)
        equal = expected == found
        await (kv.delete(MARKER) if equal else _mark(kv, Marker(marker.source)))
    return Migrated(run.compared, run.written, run.removed, expected, found, equal)


class _Run:
    """One walk over both stores."""

    def __init__(
        self, kv: KV, source: StoreSnapshot, target: StoreSnapshot, marker: Marker, progress: Progress
    ) -> None:
        self._kv = kv
        self._source = source
        self._target = target
        self._marker = marker
        self._progress = progress
        self.compared = self.written = self.removed = 0

    async def copy(self) -> None:
        after = self._marker.after
        async for page in self._source.pages(after):
            await self._bring_into_line({record.key: record for record in page}, after, page[-1].key)
            after = page[-1].key
            self.compared += len(page)
            self._progress("records compared", self.compared, None)
        await self._bring_into_line({}, after, None)

    async def _bring_into_line(self, wanted: dict[str, StoredRecord], after: str, until: str | None) -> None:
        there = {record.key: record.value for record in await self._target.records(after, until)}
        missing = [
            record for key, record in wanted.items() if there.get(key) != record.value and key != MARKER
        ]
        extra = [key for key in there if key not in wanted and key != MARKER]
        operations: list[Operation] = [*puts(missing, self._kv.now()), *(Delete(key) for key in extra)]
        if until is not None:
            operations.append(_marking(msgspec.structs.replace(self._marker, after=until)))
        if operations:
            await self._kv.commit(operations)
        self.written += len(missing)
        self.removed += len(extra)


async def _begin(kv: KV, source: str, target: str) -> Marker:
    """Resume an unfinished copy, or begin one in an empty store."""
    name = shown_location(source)
    entry = await kv.get(MARKER)
    if entry is not None:
        marker = msgspec.json.decode(entry.value, type=Marker)
        if marker.source != name:
            raise Conflict(
                f"{shown_location(target)} holds an unfinished copy of {marker.source}, not of {name}: "
                "finish that one, or give an empty store",
                key=MARKER,
            )
        return marker
    if (await kv.list("", limit=1)).items:
        raise Conflict(
            f"{shown_location(target)} holds records already, and not an unfinished copy of {name}: "
            "give an empty store",
            key=MARKER,
        )
    marker = Marker(name)
    await _mark(kv, marker)
    return marker


async def _mark(kv: KV, marker: Marker) -> None:
    await kv.commit([_marking(marker)])


def _marking(marker: Marker) -> Put:
    return Put(MARKER, msgspec.json.encode(marker), quiet=True)


async def _copy_letters(source: StoreSnapshot, target: StoreSnapshot, broker: Broker) -> None:
    """Copy missing dead letters. One that was replayed or discarded in the old store after its copy stays copied."""
    there = {_without_id(letter) for letter in await target.dead_letters()}
    await broker.add_dead_letters(
        [letter for letter in await source.dead_letters() if _without_id(letter) not in there]
    )


def _without_id(letter: DeadLetter) -> DeadLetter:
    """Each queue gives ids of its own."""
    return msgspec.structs.replace(letter, id=0)

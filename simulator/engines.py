"""The contracts of the product by delegation to shared memory engines, with faults at every call. Each simulated
process has its own set, so that a process can be cut off while the store lives on."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from simulator.faults import Line, Process, Weather
from simulator.plan import Dependency, Fault
from vskill_core.errors import PlatformError, StoreUnavailable
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    Broker,
    DeadLetterPage,
    Delivery,
    DeliveryEnd,
    Depth,
    Settlement,
)
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import Change, Entry, EntryPage, Operation, Page, Put, Settled
from vskill_platform.ledger.kv.query import Condition

#: An idle receiver waits for longer than it was asked to: most of a history is idle, and each look costs.
PATIENCE = 5
#: Messages that fall behind others come at most this much later.
REORDERED_MS = 20_000


class Channel:
    """The way of messages into the queue, on which they are lost, doubled and delayed; and who waits for them."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._receivers: list[asyncio.Future[None]] = []

    def carry(self, sends: Sequence[Send]) -> tuple[Send, ...]:
        """What really arrives of what was sent."""
        arrived: list[Send] = []
        weather, plan = self._weather, self._weather.plan
        for send in sends:
            if weather.draws(plan.message_lost):
                weather.happened(Fault.MESSAGE_LOST, "channel", str(send.key))
                continue
            if weather.draws(plan.message_reordered):
                weather.happened(Fault.MESSAGE_REORDERED, "channel", str(send.key))
                later = send.delay_ms + int(weather.rng.uniform(0, REORDERED_MS))
                send = msgspec.structs.replace(send, delay_ms=later)  # noqa: PLW2901
            arrived.append(send)
            if weather.draws(plan.message_doubled):
                weather.happened(Fault.MESSAGE_DOUBLED, "channel", str(send.key))
                # Without its key the engine takes it for another message, as two brokers would.
                arrived.append(msgspec.structs.replace(send, key=None))
        for one in arrived:
            self.wake_in(one.delay_ms)
        return tuple(arrived)

    def wake_in(self, delay_ms: int) -> None:
        """Something becomes visible then."""
        self._weather.loop.call_later(delay_ms / 1000, self._wake)

    async def wait(self, seconds: float) -> None:
        receiver: asyncio.Future[None] = self._weather.loop.create_future()
        self._receivers.append(receiver)
        timer = self._weather.loop.call_later(seconds, _release, receiver)
        try:
            await receiver
        finally:
            timer.cancel()
            self._receivers.remove(receiver)

    def _wake(self) -> None:
        for receiver in self._receivers:
            _release(receiver)


def _release(receiver: "asyncio.Future[None]") -> None:
    if not receiver.done():
        receiver.set_result(None)


class FaultyKV(KV):
    """The shared store as one process sees it."""

    engine = "simulated"

    def __init__(self, store: KV, channel: Channel, process: Process, weather: Weather) -> None:
        self._store = store
        self._channel = channel
        self._process = process
        self._weather = weather
        self._line = Line(process, weather, Dependency.KV)
        self.capabilities = store.capabilities

    def now(self) -> int:
        return self._store.now() + self._process.store_skew

    async def get(self, key: str) -> Entry | None:
        return await self._line.call(f"get {key}", lambda: self._store.get(key))

    async def get_many(self, keys: Iterable[str]) -> Settled:
        wanted = tuple(keys)
        settled = await self._line.call(f"get_many {len(wanted)}", lambda: self._store.get_many(wanted))
        failed = self._failing(wanted)
        if not failed:
            return settled
        found = {key: entry for key, entry in settled.found.items() if key not in failed}
        return Settled(found, tuple(key for key in settled.missing if key not in failed), failed)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        return await self._line.call(
            f"list {prefix}", lambda: self._store.list(prefix, after=after, limit=limit, exclude=exclude)
        )

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        return self._with_failures(
            await self._line.call(
                f"scan {prefix}", lambda: self._store.scan(prefix, after=after, limit=limit, exclude=exclude)
            )
        )

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
        return self._with_failures(
            await self._line.call(
                f"select {prefix}",
                lambda: self._store.select(
                    prefix,
                    audiences=audiences,
                    where=where,
                    order_by=order_by,
                    descending=descending,
                    after=after,
                    limit=limit,
                    under=under,
                ),
            )
        )

    async def count_by(self, prefix: str, field: str, *, audiences: Audiences) -> dict[str | None, int]:
        return await self._line.call(
            f"count {prefix}", lambda: self._store.count_by(prefix, field, audiences=audiences)
        )

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        return await self._line.call(
            f"changes {prefix}", lambda: self._store.changes(prefix, after=after, limit=limit)
        )

    async def change_cursor(self) -> str:
        return await self._line.call("change cursor", self._store.change_cursor)

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        return await self._line.call(
            "sweep", lambda: self._store.sweep(changes_before=changes_before, limit=limit)
        )

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        wanted = self.substitute(operations)
        names = [one.key for one in wanted if not isinstance(one, Send)]

        async def apply() -> int:
            await self._touch(wanted)
            sends = [one for one in wanted if isinstance(one, Send)]
            rest = [one for one in wanted if not isinstance(one, Send)]
            return await self._store.commit([*rest, *(self._channel.carry(sends) if sends else ())])

        return await self._line.call(f"commit {' '.join(names)}", apply, writes=True)

    def substitute(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """What is committed in the place of these operations; planted bugs change it."""
        return operations

    async def _touch(self, operations: Sequence[Operation]) -> None:
        """Somebody else changes a field of the record between the read and this write."""
        records = [one for one in operations if isinstance(one, Put) and one.key.startswith("sub:")]
        for one in records:
            if not one.if_version or not self._weather.draws(self._weather.plan.foreign_write):
                continue
            entry = await self._store.get(one.key)
            if entry is not None and entry.version == one.if_version:
                self._weather.happened(Fault.FOREIGN_WRITE, self._process.name, one.key)
                await self._store.commit([Put(one.key, _touched(entry.value), entry.version)])

    def _failing(self, keys: Iterable[str]) -> dict[str, PlatformError]:
        rate = self._weather.plan.partial_read
        failed: dict[str, PlatformError] = {}
        for key in keys:
            if self._weather.draws(rate):
                self._weather.happened(Fault.PARTIAL_READ, self._process.name, key)
                failed[key] = StoreUnavailable(f"simulated: {key}", key=key)
        return failed

    def _with_failures(self, page: EntryPage) -> EntryPage:
        failed = self._failing(entry.key for entry in page.items)
        if not failed:
            return page
        items = tuple(entry for entry in page.items if entry.key not in failed)
        return EntryPage(items, page.after, {**page.failed, **failed})


def _touched(value: bytes) -> bytes:
    """The record with one more of a number that no worker writes: losing it would be a lost update."""
    record = msgspec.json.decode(value)
    record["created_at"] += 1
    return msgspec.json.encode(record)


class FaultyBroker(Broker):
    """The shared queue as one process sees it."""

    engine = "simulated"

    def __init__(self, queue: Broker, channel: Channel, process: Process, weather: Weather) -> None:
        self._queue = queue
        self._channel = channel
        self._weather = weather
        self._line = Line(process, weather, Dependency.BROKER)
        self.capabilities = queue.capabilities

    async def send_batch(self, sends: Sequence[Send]) -> int:
        async def apply() -> int:
            return await self._queue.send_batch(self._channel.carry(sends))

        return await self._line.call(f"send {len(sends)}", apply, writes=True)

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        clock = self._weather.loop.time
        deadline = clock() + PATIENCE * max_wait_ms / 1000
        while True:
            taken = await self._line.call("take", lambda: self._take_now(limit))
            left = deadline - clock()
            if taken or left <= 0:
                return taken
            await self._channel.wait(left)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        async def apply() -> Sequence[bool]:
            for one in settlements:
                if one.outcome is DeliveryEnd.RETRY:
                    self._channel.wake_in(one.delay_ms)
            return await self._queue.settle(settlements)

        names = " ".join(f"{_word(one.outcome)} {one.delivery.key}" for one in settlements)
        return await self._line.call(f"settle {names}", apply, writes=True)

    async def depth(self) -> Depth:
        return await self._line.call("depth", self._queue.depth)

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        return await self._line.call(
            "dead letters", lambda: self._queue.dead_letters(after=after, limit=limit)
        )

    async def replay(self, dead_letter_id: int) -> bool:
        return await self._line.call("replay", lambda: self._queue.replay(dead_letter_id), writes=True)

    async def discard(self, dead_letter_id: int) -> bool:
        return await self._line.call("discard", lambda: self._queue.discard(dead_letter_id), writes=True)

    async def _take_now(self, limit: int) -> Sequence[Delivery]:
        taken = await self._queue.take(limit, 0)
        if taken:
            self._channel.wake_in(LEASE_MS)
        return taken


def _word(outcome: DeliveryEnd | None) -> str:
    return "extend" if outcome is None else outcome.value


class FaultyBlobs(Blobs):
    """The shared content as one process sees it."""

    engine = "simulated"

    def __init__(self, content: Blobs, process: Process, weather: Weather) -> None:
        self._content = content
        self._line = Line(process, weather, Dependency.BLOBS)

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        await self._line.call(
            f"blob put {address[:8]}",
            lambda: self._content.put(address, data, replace=replace),
            writes=True,
        )

    async def get(self, address: str) -> bytes | None:
        return await self._line.call(f"blob get {address[:8]}", lambda: self._content.get(address))

    async def has(self, address: str) -> bool:
        return await self._line.call(f"blob has {address[:8]}", lambda: self._content.has(address))

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._line.call(
            f"blob aside {address[:8]}", lambda: self._content.set_aside(address, untouched_ms), writes=True
        )

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        return await self._line.call(
            f"blob del {address[:8]}", lambda: self._content.delete_aside(address, untouched_ms), writes=True
        )

    async def close(self) -> None:
        """The shared content stays."""

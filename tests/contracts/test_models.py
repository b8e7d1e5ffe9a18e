"""Random histories, step by step against a model: the queue against a plain list, every store against the one in
memory. What single tests forget to combine, these combine.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.contracts.conftest import BrokerEngine, KVEngine, Store, asks_for_the_time, kv_needs
from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from vskill_core.errors import Conflict, PlatformError
from vskill_platform.domain.messages import Send
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    Broker,
    Delivery,
    DeliveryEnd,
    Depth,
    Settlement,
    latest_lease_end,
)
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Capability, Delete, Entry, Operation, Put
from vskill_platform.ledger.kv.memory import MemoryKV

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HISTORIES = settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_folders = count()


def fresh(folder: Path) -> Path:
    made = folder / str(next(_folders))
    made.mkdir()
    return made


@asynccontextmanager
async def opened(engine: KVEngine | BrokerEngine, folder: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """Closed also where a history fails: its shrinking opens hundreds, and would end as a lack of connections."""
    store = await engine.open(fresh(folder), clock)
    try:
        yield store
    finally:
        await store.close()


# The queue.


class ModelMessage:
    def __init__(self, send: Send, now: int) -> None:
        self.send = send
        self.sent_at = now
        self.visible_at = now + send.delay_ms
        self.lease: int | None = None
        self.deliveries = 0

    def is_of_same_owner(self, other: "ModelMessage") -> bool:
        return self.send.owner == other.send.owner

    @property
    def owner(self) -> str:
        return "" if self.deliveries and self.visible_at <= self.sent_at else self.send.owner


class ModelBroker:
    """The queue as the contract tells it, with a list and no indexes. Of one moment's messages, the older first."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.messages: list[ModelMessage] = []
        self.dead = 0
        self.asked = 0
        self._leases = count(1)

    def send(self, send: Send) -> bool:
        there = next((one for one in self.messages if send.key and one.send.key == send.key), None)
        now = self.clock.now()
        if there is None:
            self.messages.append(ModelMessage(send, now))
        elif there.lease is None or not now < there.visible_at <= latest_lease_end(now):
            there.visible_at = min(there.visible_at, now + send.delay_ms)
            if send.first and there.deliveries:
                there.visible_at = min(there.visible_at, there.sent_at)
        return there is None

    def take(self, limit: int) -> list[tuple[ModelMessage, int]]:
        visible = [one for one in self.messages if one.visible_at <= self.clock.now()]
        taken = self._fair(sorted(visible, key=lambda one: one.visible_at), limit)[:limit]
        for one in taken:
            one.lease = next(self._leases)
            one.deliveries += 1
            one.visible_at = self.clock.now() + LEASE_MS
        return [(one, one.lease or 0) for one in taken]

    def _fair(self, visible: list[ModelMessage], limit: int) -> list[ModelMessage]:
        """Where an owner has more than a third of the front, it gets a third over time, and the rest behind others."""
        most, front = max(limit // 3, 1), [one.owner for one in visible[: max(limit, 3)]]
        bulk = {owner for owner in front if owner and front.count(owner) > most}
        if not bulk:
            return visible
        share = (self.asked + limit) // 3 - self.asked // 3
        self.asked += limit
        # Of every owner the first few, and whatever stands in front.
        numbers = {id(one): [*filter(one.is_of_same_owner, visible)].index(one) for one in visible}
        visible = [
            one
            for place, one in enumerate(visible)
            if place < max(limit, 3) or (one.send.owner and numbers[id(one)] < most)
        ]
        ranks: dict[str, int] = {}
        behind: dict[int, bool] = {}
        for one in visible:
            ranks[one.owner] = ranks.get(one.owner, 0) + 1
            behind[id(one)] = bool(one.owner) and ranks[one.owner] > (share if one.owner in bulk else most)
        return sorted(visible, key=lambda one: behind[id(one)])

    def settle(
        self, held: tuple[ModelMessage, int], outcome: DeliveryEnd | None, delay_ms: int, *, first: bool
    ) -> bool:
        message, lease = held
        if message not in self.messages or message.lease != lease:
            return False
        if outcome in {DeliveryEnd.ACK, DeliveryEnd.DEAD_LETTER}:
            self.messages.remove(message)
            self.dead += outcome is DeliveryEnd.DEAD_LETTER
            return True
        message.visible_at = self.clock.now() + delay_ms
        if outcome is DeliveryEnd.RETRY:
            message.lease = None
            if first:
                message.visible_at = min(message.sent_at, self.clock.now())
        return True

    def depth(self) -> Depth:
        ahead = [one for one in self.messages if one.visible_at > self.clock.now()]
        leased = sum(1 for one in ahead if one.lease is not None)
        return Depth(len(self.messages) - len(ahead), len(ahead) - leased, leased, self.dead)


delays = st.sampled_from([0, 0, 0, 1, 7, LEASE_MS - 1, LEASE_MS + 1, 60_000])
firsts = st.sampled_from([False, False, True])
owners = st.sampled_from(["", "x", "x", "x", "y"])
sends = st.tuples(st.just("send"), st.sampled_from([None, None, "a", "b", "c"]), delays, firsts, owners)
takes = st.tuples(st.just("take"), st.integers(1, 4))
settlements = st.tuples(
    st.just("settle"), st.sampled_from([0, 0, 1, 2, 5]), st.sampled_from([None, *DeliveryEnd]), delays, firsts
)
#: The clock also goes back, by less than clocks differ and by hours.
advances = st.tuples(
    st.just("advance"), st.sampled_from([1, 7, LEASE_MS - 1, LEASE_MS, -CLOCK_SLACK_MS, -7_200_000])
)
#: Rounds rather than loose steps, since most of what can go wrong needs something to have been taken.
rounds = st.tuples(
    st.lists(sends, max_size=4), takes, st.lists(st.one_of(settlements, advances), max_size=3)
).map(lambda parts: [*parts[0], parts[1], *parts[2]])


class BrokerPair:
    """A queue and its model, taken through the same history."""

    def __init__(self, broker: Broker, clock: ManualClock) -> None:
        self.broker = broker
        self.clock = clock
        self.model = ModelBroker(clock)
        self.held: list[tuple[Delivery, tuple[ModelMessage, int]]] = []
        self.bodies = count()

    async def send(self, key: str | None, delay_ms: int, first: bool, owner: str) -> None:
        # What goes first is sent without a delay.
        send = Send(b"%d" % next(self.bodies), key, 0 if first else delay_ms, first, owner)
        assert await self.broker.send_batch([send]) == self.model.send(send)

    async def take(self, limit: int) -> None:
        taken, modelled = await self.broker.take(limit, 0), self.model.take(limit)
        assert [(one.body, one.key, one.deliveries) for one in taken] == [
            (one.send.body, one.send.key, one.deliveries) for one, _ in modelled
        ]
        self.held = [*zip(taken, modelled, strict=True), *self.held]

    async def settle(self, place: int, outcome: DeliveryEnd | None, delay_ms: int, first: bool) -> None:
        if place < len(self.held):
            delivery, modelled = self.held[place]
            first = first and outcome is DeliveryEnd.RETRY
            (applied,) = await self.broker.settle([Settlement(delivery, outcome, delay_ms, "why", first)])
            assert applied is self.model.settle(modelled, outcome, delay_ms, first=first)

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    async def check(self) -> None:
        assert await self.broker.depth() == self.model.depth()


@asks_for_the_time()
@HISTORIES
@given(
    steps=st.lists(rounds, min_size=3, max_size=12).map(lambda made: [step for one in made for step in one])
)
async def test_any_history_of_a_queue_is_what_the_contract_says(broker_engine: BrokerEngine, tmp_path, steps):
    clock = ManualClock()
    async with opened(broker_engine, tmp_path, clock) as store:
        pair = BrokerPair(store.broker, clock)
        for name, *arguments in steps:
            await getattr(pair, name)(*arguments)
            await pair.check()


# The store.

KEYS = ["n", "skill:1", "sub:1", "sub:2"]
keys = st.sampled_from(KEYS)
conditions = st.sampled_from([None, None, "current", "current", "old", "absent"])
operations = st.one_of(
    st.tuples(st.just("put"), keys, conditions, st.booleans(), st.sampled_from([None, None, None, 5])),
    st.tuples(st.just("delete"), keys, conditions),
    st.tuples(st.just("assert"), keys, st.sampled_from(["current", "current", "old", "absent"])),
    st.tuples(st.just("add"), st.just("n"), st.integers(-3, 3)),
)
kv_steps = st.one_of(
    st.tuples(st.just("commit"), st.lists(operations, min_size=1, max_size=4)),
    st.tuples(st.just("commit"), st.lists(operations, min_size=1, max_size=1)),
    st.tuples(st.just("advance"), st.sampled_from([1, 4, 5])),
    st.tuples(st.just("sweep"), st.integers(0, 5)),
)


class Life:
    """One store in a history. Versions are told by the number of the commit that gave them, since an engine may
    count as it likes."""

    def __init__(self, kv: KV) -> None:
        self.kv = kv
        self.commits: dict[int, int] = {}
        self.seen: dict[str, list[int]] = {key: [] for key in KEYS}

    async def operation(self, spec: tuple) -> Operation:
        match spec:
            case ("put", key, condition, quiet, ttl_ms):
                value = b"7" if key == "n" else b'{"state":"%d"}' % len(self.commits)
                return Put(key, value, await self.version(key, condition), quiet, ttl_ms)
            case ("delete", key, condition):
                return Delete(key, await self.version(key, condition))
            case ("assert", key, condition):
                return Assert(key, await self.version(key, condition) or ABSENT)
            case (_, key, n):
                return Add(key, n)
        raise AssertionError(spec)

    async def version(self, key: str, condition: str | None) -> int | None:
        if condition is None:
            return None
        entry = await self.kv.get(key)
        current = entry.version if entry else ABSENT
        old = [version for version in self.seen[key] if version != current]
        return {"current": current, "absent": ABSENT, "old": old[-1] if old else 999_999}[condition]

    async def commit(self, specs: list[tuple]) -> object:
        made = [await self.operation(spec) for spec in specs]
        try:
            version = await self.kv.commit(made)
        except PlatformError as error:
            return type(error), error.text("key") if isinstance(error, Conflict) else None
        assert not self.commits or version > max(self.commits)
        self.commits[version] = len(self.commits)
        for one in made:
            if isinstance(one, Put | Add):
                self.seen[one.key].append(version)
        return "committed"

    async def sweep(self, age_ms: int) -> object:
        """Nothing is left for a second one. How many the first one finds is the engine's own: deleting a record that has
        expired removes it at once on PostgreSQL, and leaves it to the sweep elsewhere."""
        await self.kv.sweep(changes_before=self.kv.now() - age_ms)
        return await self.kv.sweep(changes_before=self.kv.now() - age_ms)

    async def advance(self, ms: int) -> None:
        """The clock is shared, and moved once."""

    def told(self, entry: Entry) -> object:
        return entry.key, entry.value, self.commits[entry.version]

    async def state(self) -> object:
        page = await self.kv.scan("")
        changes = (await self.kv.changes("")).items
        by_key = [await self.kv.get(key) for key in KEYS]
        assert list(page.items) == [entry for entry in by_key if entry]
        return (
            [self.told(entry) for entry in page.items],
            sorted((self.commits[one.version], one.key, one.deleted, one.at) for one in changes),
            [self.commits[one.version] for one in changes],
        )


@kv_needs(Capability.ATOMIC_COMMIT, Capability.CHANGES)
@HISTORIES
@given(steps=st.lists(kv_steps, max_size=25))
@example(
    steps=[
        ("commit", [("put", "skill:1", None, False, 5)]),
        ("advance", 5),
        ("commit", [("delete", "skill:1", None)]),
        ("sweep", 0),
    ]
)
async def test_any_history_of_a_store_is_the_same_on_every_engine(kv_engine: KVEngine, tmp_path, steps):
    clock = ManualClock()
    async with opened(kv_engine, tmp_path, clock) as store:
        lives = Life(store.kv), Life(MemoryKV(clock))
        for name, argument in steps:
            clock.advance(argument if name == "advance" else 0)
            answer, expected = [await getattr(life, name)(argument) for life in lives]
            assert answer == expected
            assert await lives[0].state() == await lives[1].state()

"""The engines that the contract suites run over. A new engine is one line in a table here: how to open it and
what it claims. A test that needs a capability runs on the engines that claim it; one that shows a lack, on the
others. Nothing is ever skipped.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.contracts.clocks import SPEED, ContractClock, WaitingClock
from tests.contracts.minimal_kv import MinimalKV
from tests.support.buckets import MemoryBucket
from tests.support.manual_clock import ManualClock
from tests.support.nats import queue_of, server
from tests.support.patience import PATIENCE_S
from tests.support.pgbouncer import through
from tests.support.postgres import database_of
from tests.support.s3 import place_of
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.files import FilesBlobs
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.blobs.s3 import S3Blobs
from vskill_platform.ledger.broker.contract import LEASE_MS, Batch, Broker, BrokerCapability, Settlement
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.broker.nats import LONGEST_DELAY_MS, NatsBroker
from vskill_platform.ledger.broker.postgres import PostgresBroker
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.clock import Clock, SystemClock
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Capability
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.ledger.kv.postgres import PostgresKV
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.observing.metrics import Metrics


class Store(msgspec.Struct):
    """A store and the queue beside it."""

    kv: KV
    broker: Broker
    close: Callable[[], Awaitable[None]]


class KVEngine(msgspec.Struct, frozen=True):
    open: Callable[[Path, Clock], Awaitable[Store]]
    claims: frozenset[Capability]


class BrokerEngine(msgspec.Struct, frozen=True):
    open: Callable[[Path, Clock], Awaitable[Store]]
    claims: frozenset[BrokerCapability]
    #: Its server has a clock of its own, so tests really wait, with everything a given number of times shorter.
    keeps_real_time: bool = False


async def open_memory(folder: Path, clock: Clock) -> Store:
    broker = MemoryBroker(clock)
    kv = MemoryKV(clock, broker)

    async def close() -> None:
        await broker.close()
        await kv.close()

    return Store(kv, broker, close)


async def open_sqlite(folder: Path, clock: Clock) -> Store:
    database = await SqliteDatabase.open(folder / "store.sqlite", clock)
    broker = SqliteBroker(database)
    kv = SqliteKV(database, broker)

    async def close() -> None:
        await broker.close()
        await kv.close()

    return Store(kv, broker, close)


async def open_postgres(folder: Path, clock: Clock) -> Store:
    location = through(await database_of(folder))
    database = await PostgresDatabase.open(location, clock=clock, connections=8)
    broker = PostgresBroker(database)
    kv = PostgresKV(database, broker)

    async def close() -> None:
        await broker.close()
        await kv.close()

    return Store(kv, broker, close)


class SettledNats(NatsBroker):
    """Asked for what is there, it waits until its consumer knows everything that the stream keeps: the server
    acknowledges a message before it can hand it out."""

    async def receive(
        self, max_batch_size: int = 3, max_wait_ms: int = 5_000, batches: int = 1
    ) -> tuple[Batch, ...]:
        async with asyncio.timeout(PATIENCE_S):
            # The server tells nobody when it does.
            while max_wait_ms == 0 and not self._closed and not await self._consumer_knows_all():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return await super().receive(max_batch_size, max_wait_ms, batches)

    async def _consumer_knows_all(self) -> bool:
        kept = await self._js.stream_info(self.place.work)
        known = await self._js.consumer_info(self.place.work, self.place.consumer)
        return kept.state.messages == (known.num_pending or 0) + (known.num_ack_pending or 0)


class FastNats(SettledNats):
    """Every delay shorter, by as much as the waiting clock is faster."""

    async def send_batch(self, sends: Sequence[Send]) -> int:
        return await super().send_batch(
            [msgspec.structs.replace(one, delay_ms=one.delay_ms // SPEED) for one in sends]
        )

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        return await super().settle(
            [msgspec.structs.replace(one, delay_ms=one.delay_ms // SPEED) for one in settlements]
        )


async def open_nats(folder: Path, clock: Clock) -> Store:
    await asyncio.to_thread(server)
    kind = FastNats if isinstance(clock, WaitingClock) else SettledNats
    broker = await kind.open(
        await queue_of(folder), lease_ms=LEASE_MS // SPEED, longest_delay_ms=LONGEST_DELAY_MS // SPEED
    )
    kv = MemoryKV(clock, MemoryBroker(clock))

    async def close() -> None:
        await broker.close()
        await kv.close()

    return Store(kv, broker, close)


async def open_minimal(folder: Path, clock: Clock) -> Store:
    kv = MinimalKV(clock)
    return Store(kv, MemoryBroker(clock), kv.close)


async def open_files_blobs(folder: Path) -> Blobs:
    return await FilesBlobs.open(folder / "blobs")


async def open_memory_blobs(folder: Path) -> Blobs:
    return MemoryBlobs()


async def open_s3_blobs(folder: Path) -> Blobs:
    return await S3Blobs.open(await asyncio.to_thread(place_of, folder), SystemClock(), Metrics())


async def open_bucket_blobs(folder: Path) -> Blobs:
    """The same lines on a bucket in memory."""
    return S3Blobs(MemoryBucket(SystemClock()), "s3://memory", SystemClock(), Metrics())


MEMORY = frozenset(
    {
        Capability.BULK_READS,
        Capability.ATOMIC_COMMIT,
        Capability.CHANGES,
        Capability.SEND_IN_COMMIT,
        Capability.SNAPSHOT,
    }
)
ALL = frozenset(Capability)
ALL_OF_BROKER = frozenset(BrokerCapability)
OF_NATS = frozenset(
    {
        BrokerCapability.FIRST,
        BrokerCapability.DEAD_LETTER_LISTING,
        BrokerCapability.DURABLE,
        BrokerCapability.SHARED,
    }
)
IN_PROCESS = ALL_OF_BROKER - {BrokerCapability.DURABLE, BrokerCapability.SHARED}

KV_ENGINES = {
    "memory": KVEngine(open_memory, MEMORY),
    "sqlite": KVEngine(open_sqlite, ALL),
    "postgresql": KVEngine(open_postgres, ALL),
    "minimal": KVEngine(open_minimal, frozenset()),
}

BROKER_ENGINES = {
    "memory": BrokerEngine(open_memory, IN_PROCESS),
    "sqlite": BrokerEngine(open_sqlite, ALL_OF_BROKER),
    "postgresql": BrokerEngine(open_postgres, ALL_OF_BROKER),
    "nats": BrokerEngine(open_nats, OF_NATS, keeps_real_time=True),
}

BLOB_ENGINES = {
    "files": open_files_blobs,
    "memory": open_memory_blobs,
    "bucket in memory": open_bucket_blobs,
    "s3": open_s3_blobs,
}


def _claiming(*needed: Capability) -> list[str]:
    return [name for name, engine in KV_ENGINES.items() if engine.claims.issuperset(needed)]


def _lacking(capability: Capability) -> list[str]:
    return [name for name, engine in KV_ENGINES.items() if capability not in engine.claims]


def kv_needs(*capabilities: Capability) -> pytest.MarkDecorator:
    """This test opens, by itself, the stores that claim all of these."""
    return pytest.mark.parametrize("kv_engine", _claiming(*capabilities), indirect=True)


def kv_lacks(capability: Capability, *, but_has: Capability) -> pytest.MarkDecorator:
    """This test opens, by itself, the stores that say that they lack the one and claim the other."""
    names = [name for name in _claiming(but_has) if name in _lacking(capability)]
    return pytest.mark.parametrize("kv_engine", names, indirect=True)


def _brokers(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("broker_engine", names, indirect=True)


def needs(*capabilities: BrokerCapability) -> pytest.MarkDecorator:
    """This test runs on the queues that claim all of these."""
    return _brokers([name for name, one in BROKER_ENGINES.items() if one.claims.issuperset(capabilities)])


def lacks(capability: BrokerCapability) -> pytest.MarkDecorator:
    """This test runs on the queues that say that they lack it."""
    return _brokers([name for name, one in BROKER_ENGINES.items() if capability not in one.claims])


def asks_for_the_time() -> pytest.MarkDecorator:
    """This test runs on the queues whose clock is ours to set, also back."""
    return _brokers([name for name, one in BROKER_ENGINES.items() if not one.keeps_real_time])


def _store_fixture(names: list[str]):
    @pytest.fixture(params=names)
    async def store(request, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
        opened = await KV_ENGINES[request.param].open(tmp_path, clock)
        yield opened
        await opened.close()

    return store


def _kv_fixture(names: list[str]):
    @pytest.fixture(params=names)
    async def kv(request, tmp_path: Path, clock: ManualClock) -> AsyncIterator[KV]:
        opened = await KV_ENGINES[request.param].open(tmp_path, clock)
        yield opened.kv
        await opened.close()

    return kv


kv = _kv_fixture(_claiming())
atomic_kv = _kv_fixture(_claiming(Capability.ATOMIC_COMMIT))
changing_kv = _kv_fixture(_claiming(Capability.CHANGES))
sending_store = _store_fixture(_claiming(Capability.SEND_IN_COMMIT))
snapshot_store = _store_fixture(_claiming(Capability.SNAPSHOT))
kv_without_snapshot = _kv_fixture(_lacking(Capability.SNAPSHOT))
kv_without_atomic_commit = _kv_fixture(_lacking(Capability.ATOMIC_COMMIT))
kv_without_changes = _kv_fixture(_lacking(Capability.CHANGES))
kv_without_sending = _kv_fixture(_lacking(Capability.SEND_IN_COMMIT))


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> ContractClock:
    """Of a test over queues, the clock that suits the queue."""
    if "broker_engine" in request.fixturenames and request.getfixturevalue("broker_engine").keeps_real_time:
        return WaitingClock()
    return ContractClock()


@pytest.fixture(params=KV_ENGINES)
def kv_engine(request) -> KVEngine:
    return KV_ENGINES[request.param]


@pytest.fixture(params=BROKER_ENGINES)
def broker_engine(request) -> BrokerEngine:
    return BROKER_ENGINES[request.param]


@pytest.fixture
async def broker(broker_engine: BrokerEngine, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Broker]:
    opened = await broker_engine.open(tmp_path, clock)
    yield opened.broker
    await opened.close()


@pytest.fixture
async def timed_broker(broker_engine: BrokerEngine, tmp_path: Path) -> AsyncIterator[Broker]:
    """On the machine's clock, for the few tests that really wait."""
    opened = await broker_engine.open(tmp_path, SystemClock())
    yield opened.broker
    await opened.close()


@pytest.fixture(params=BLOB_ENGINES)
async def blobs(request, tmp_path: Path) -> AsyncIterator[Blobs]:
    opened = await BLOB_ENGINES[request.param](tmp_path)
    yield opened
    await opened.close()

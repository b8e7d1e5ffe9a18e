"""NATS beneath the broker's contract, and what it must survive: a killed server, a server that lost its disk, streams
that somebody deleted, a cut in the middle of waiting; and that nothing is lost or held by two at once meanwhile."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest

from tests.support.nats import Server, queue_of, server
from tests.support.patience import PATIENCE_S
from vskill_core.errors import QueueUnavailable, StoreUnavailable
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.ledger.broker.nats import NatsBroker
from vskill_platform.ledger.broker.nats_server import ANSWER_S, NatsLocation

pytestmark = pytest.mark.anyio


@pytest.fixture
async def own_server() -> AsyncIterator[Server]:
    """One that a test may kill."""
    started = await asyncio.to_thread(Server)
    yield started
    await asyncio.to_thread(started.remove)


async def receive(broker: NatsBroker, size: int = 10, wait: int = 1_000) -> list[Message]:
    return [one for batch in await broker.receive(size, wait) for one in batch.messages]


async def until_sent(broker: NatsBroker, body: bytes, key: str) -> None:
    """Send until the server is back, as recovery does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await broker.send(body, key)
            except QueueUnavailable:
                await asyncio.sleep(0.1)
            else:
                return


async def test_E9_what_was_sent_before_a_kill_is_there_after_it_and_the_client_comes_back_by_itself(
    own_server,
):
    broker = await NatsBroker.open(own_server.url, lease_ms=500)
    await broker.send_batch([Send(b"held", "h"), Send(b"waiting", "w")])
    (held,) = await receive(broker, 1)
    await asyncio.to_thread(own_server.stop, kill=True)
    await asyncio.to_thread(own_server.start)
    await until_sent(broker, b"after", "a")
    seen: set[bytes] = set()
    async with asyncio.timeout(PATIENCE_S):
        while seen != {b"held", b"waiting", b"after"}:
            for message in await receive(broker):
                seen.add(message.body)
                await message.ack()
    assert held.body == b"held"
    await broker.close()


async def test_E9_while_the_server_is_gone_every_call_fails_at_once_with_the_typed_error(own_server):
    broker = await NatsBroker.open(own_server.url)
    await broker.send(b"m", "k")
    (held,) = await receive(broker, 1)
    await asyncio.to_thread(own_server.stop, kill=True)
    async with asyncio.timeout(PATIENCE_S):
        while broker._client.is_connected:  # noqa: ASYNC110 - the client tells nobody
            await asyncio.sleep(0.01)
    # Not one of them waits for an answer, which would take that long.
    async with asyncio.timeout(ANSWER_S):
        for call in (
            broker.send(b"m"),
            broker.receive(max_wait_ms=0),
            broker.depth(),
            broker.dead_letters(),
            broker.replay(1),
            broker.discard(1),
            held.ack(),
        ):
            with pytest.raises(StoreUnavailable, match=str(own_server.port)) as raised:
                await call
            assert raised.value.status == 503
    assert held.settled is None, "it can be settled when the server is back"
    await broker.close()


async def test_a_receiver_that_waits_while_the_server_is_killed_ends_and_can_wait_again(own_server):
    broker = await NatsBroker.open(own_server.url)
    waiting = asyncio.create_task(receive(broker, wait=1_500))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(own_server.stop, kill=True)
    await asyncio.to_thread(own_server.start)
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(QueueUnavailable):
            assert await waiting == []
    await until_sent(broker, b"m", "k")
    assert [one.body for one in await receive(broker)] == [b"m"]
    await broker.close()


async def test_streams_that_are_gone_are_made_again_because_records_are_the_truth(own_server):
    broker = await NatsBroker.open(own_server.url)
    await broker.send(b"lost", "k")
    client = await nats.connect(own_server.url)
    for stream in ("vskill_work", "vskill_dead"):
        await client.jetstream().delete_stream(stream)
    await client.close()
    assert await broker.send(b"again", "k") is True
    assert [one.body for one in await receive(broker)] == [b"again"]
    await broker.close()


async def test_a_consumer_that_is_gone_is_made_again_by_whoever_asks_for_messages(own_server):
    broker = await NatsBroker.open(own_server.url)
    await broker.send(b"kept", "k")
    client = await nats.connect(own_server.url)
    await client.jetstream().delete_consumer("vskill_work", "workers")
    await client.close()
    assert [one.body for one in await receive(broker)] == [b"kept"]
    await broker.close()


async def test_what_is_no_message_of_ours_is_handed_out_as_it_is(tmp_path: Path):
    """The consumer makes a dead letter of it, with the reason."""
    broker = await NatsBroker.open(await queue_of(tmp_path))
    client = await nats.connect(server().url)
    await client.jetstream().publish(broker.place.subject_of("strange"), b"\xff not ours")
    await client.close()
    (message,) = await receive(broker)
    assert (message.body, message.key) == (b"\xff not ours", None)
    assert await message.dead_letter("why") is True
    (letter,) = (await broker.dead_letters()).items
    assert letter.body == b"\xff not ours"
    await broker.close()


async def test_a_dead_letter_that_is_written_twice_is_kept_once(tmp_path: Path):
    """As after a crash between keeping it and acking the message."""
    broker = await NatsBroker.open(await queue_of(tmp_path), lease_ms=200)
    await broker.send(b"m", "k")
    (first,) = await receive(broker)
    await broker._bury(first.delivery, "why")  # type: ignore[arg-type] # this broker's own kind
    await asyncio.sleep(0.3)
    (second,) = await receive(broker)
    assert await second.dead_letter("why") is True
    assert len((await broker.dead_letters()).items) == 1
    await broker.close()


class History:
    """Random steps of three processes that share a queue."""

    def __init__(self, seed: int, brokers: list[NatsBroker]) -> None:
        self.rng = random.Random(seed)
        self.brokers = brokers
        self.held: dict[int, Message] = {}
        self.sent = self.ended = self.dead = 0

    async def step(self) -> None:
        broker = self.rng.choice(self.brokers)
        key = self.rng.choice([None, *(f"k{n}" for n in range(6))])
        self.sent += await broker.send(b"m", key, self.rng.choice([0, 0, 20, 60]))
        for message in await receive(broker, self.rng.randint(1, 4), 0):
            known = self.held.get(message.delivery.id)
            assert known is None or message.deliveries > known.deliveries
            self.held[message.delivery.id] = message
        for message in list(self.held.values()):
            await self.settle(message)

    async def settle(self, message: Message) -> None:
        what = self.rng.choice(["keep", "ack", "retry", "dead", "extend"])
        if what == "ack":
            self.ended += await message.ack()
        elif what == "retry":
            await message.retry(self.rng.choice([0, 30]))
        elif what == "dead":
            self.dead += await message.dead_letter("why")
            self.ended += 1
        elif what == "extend":
            await message.extend()
        if what in {"ack", "retry", "dead"}:
            del self.held[message.delivery.id]

    async def finish(self) -> None:
        """Whatever is left is acked."""
        for message in self.held.values():
            self.ended += await message.ack()
        first = self.brokers[0]
        while (depth := await first.depth()).leased + depth.ready:
            for message in await receive(first, 20, 200):
                self.ended += await message.ack()


@pytest.mark.parametrize("seed", range(3))
async def test_in_any_history_nothing_is_lost_and_everything_ends_acked_or_dead(tmp_path: Path, seed: int):
    """What remains of the model where the server keeps its own time: conservation."""
    location = await queue_of(tmp_path)
    brokers = [await NatsBroker.open(location, lease_ms=150, longest_delay_ms=60) for _ in range(3)]
    history = History(seed, brokers)
    for _ in range(120):
        await history.step()
    async with asyncio.timeout(PATIENCE_S):
        await history.finish()
    depth = await brokers[0].depth()
    assert (depth.ready, depth.leased, depth.dead) == (0, 0, history.dead)
    assert history.ended >= history.sent, (
        "who lost a lease may settle it too, so some end twice, and none never"
    )
    for broker in brokers:
        await broker.close()


@pytest.mark.parametrize(
    ("location", "servers", "shown", "name", "replicas"),
    [
        ("nats://h", ("nats://h",), "nats://h/vskill", "vskill", 1),
        ("nats://u:p@h:1/x?replicas=3", ("nats://u:p@h:1",), "nats://h:1/x", "x", 3),
        ("tls://a:1,b:2", ("tls://a:1", "tls://b:2"), "tls://a:1,b:2/vskill", "vskill", 1),
    ],
)
def test_a_location_names_servers_a_name_and_replicas(location, servers, shown, name, replicas):
    place = NatsLocation.of(location)
    assert (place.servers, place.shown, place.name, place.replicas) == (servers, shown, name, replicas)

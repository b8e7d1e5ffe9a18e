"""A NATS server that refuses, is full, falls silent or is not what was expected: each call fails in its time with the
typed error and the server's own words, nothing is taken for done that was not done, and it can be done again later."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import api

from tests.chaos.proxy import Proxy
from tests.support.nats import Server, queue_of, server
from tests.support.patience import PATIENCE_S
from vskill_core.errors import QueueUnavailable
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.ledger.broker.nats import NatsBroker

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: How long the server may take to answer, here.
ANSWER_S = 1.0


async def receive(broker: NatsBroker, size: int = 10, wait: int = 1_000) -> list[Message]:
    return [one for batch in await broker.receive(size, wait) for one in batch.messages]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[NatsBroker]:
    await asyncio.to_thread(server)
    opened = await NatsBroker.open(await queue_of(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
async def operator(broker: NatsBroker) -> AsyncIterator[Client]:
    """Somebody who changes the server's settings behind our back."""
    client = await nats.connect(server().url)
    yield client
    await client.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy((await asyncio.to_thread(server)).port)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def distant(tmp_path: Path, proxy: Proxy) -> AsyncIterator[NatsBroker]:
    """Behind a network that can fall silent."""
    location = (await queue_of(tmp_path)).replace(str(server().port), str(proxy.port))
    opened = await NatsBroker.open(location, answer_s=ANSWER_S)
    yield opened
    proxy.stalls_after = b""
    proxy.flow()
    await opened.close()


# Servers that cannot be used.


async def started(*options: str, **changes: bool) -> Server:
    return await asyncio.to_thread(lambda: Server(*options, **changes))


async def leaves_nothing(before: set[asyncio.Task[Any]]) -> bool:
    """Whether all that a connection does beside us has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while asyncio.all_tasks() - before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return True


async def test_a_server_without_jetstream_is_named_with_what_is_missing_and_its_connection_is_closed():
    own = await started(jetstream=False)
    before = asyncio.all_tasks()
    with pytest.raises(
        QueueUnavailable, match=f"127.0.0.1:{own.port}.* JetStream does not answer: is it switched on"
    ):
        await NatsBroker.open(own.url)
    assert await leaves_nothing(before)
    await asyncio.to_thread(own.remove)


async def test_a_wrong_password_is_called_that_and_is_not_shown():
    own = await started("--user", "ada", "--pass", "right-word")
    location = f"nats://ada:{{}}@127.0.0.1:{own.port}"
    with pytest.raises(QueueUnavailable, match="the server refuses this user") as raised:
        await NatsBroker.open(location.format("wrong-word"))
    assert "wrong-word" not in str(raised.value)
    broker = await NatsBroker.open(location.format("right-word"))
    assert await broker.send(b"m") is True
    await broker.close()
    await asyncio.to_thread(own.remove)


async def test_more_replicas_than_the_server_can_keep_are_refused_and_never_ignored(broker: NatsBroker):
    """The streams are there with one; who asks for three must not believe to have them."""
    location = f"{server().url}/{broker.place.name}?replicas=3"
    with pytest.raises(QueueUnavailable, match=r"the server refuses .*replicas"):
        await NatsBroker.open(location)
    assert await broker.send(b"m") is True


async def test_who_is_stopped_while_the_server_says_nothing_leaves_no_connection():
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        gone.set()
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    opening = asyncio.create_task(NatsBroker.open(f"nats://127.0.0.1:{port}"))
    async with asyncio.timeout(PATIENCE_S):
        await arrived.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await gone.wait()
    listener.close()


# What the server refuses.


async def change_stream(operator: Client, name: str, **changes: Any) -> None:
    js = operator.jetstream()
    config = (await js.stream_info(name)).config
    await js.update_stream(config.evolve(**changes))


async def test_a_queue_that_is_full_says_so_and_is_not_taken_for_one_that_has_the_message(
    broker: NatsBroker, operator: Client
):
    """The server has one number for both; a full disk has it too."""
    await change_stream(operator, broker.place.work, max_bytes=200)
    with pytest.raises(QueueUnavailable, match=r"the server refuses .*maximum bytes exceeded"):
        await broker.send(b"m" * 300, "k")
    await change_stream(operator, broker.place.work, max_bytes=-1)
    assert await broker.send(b"m" * 300, "k") is True
    assert await broker.send(b"m" * 300, "k") is False


async def test_a_dead_letter_that_cannot_be_kept_leaves_the_message_where_it_is(
    broker: NatsBroker, operator: Client
):
    await broker.send(b"m", "k")
    (message,) = await receive(broker)
    await change_stream(operator, broker.place.dead, max_bytes=10, discard=api.DiscardPolicy.NEW)
    with pytest.raises(QueueUnavailable, match="maximum bytes exceeded"):
        await message.dead_letter("why")
    depth = await broker.depth()
    assert (depth.leased, depth.dead, message.settled) == (1, 0, None)
    await change_stream(operator, broker.place.dead, max_bytes=-1)
    assert await message.dead_letter("why") is True
    assert (await broker.depth()).dead == 1


async def test_a_dead_letter_that_may_not_be_removed_is_an_error_and_stays(
    broker: NatsBroker, operator: Client
):
    await broker.send(b"m", "k")
    (message,) = await receive(broker)
    await message.dead_letter("why")
    (letter,) = (await broker.dead_letters()).items
    await change_stream(operator, broker.place.dead, deny_delete=True)
    with pytest.raises(QueueUnavailable, match=r"the server refuses .*not permitted"):
        await broker.discard(letter.id)
    assert (await broker.dead_letters()).items == (letter,)


async def test_a_request_for_messages_that_is_refused_is_an_error_in_the_servers_words(
    broker: NatsBroker, operator: Client
):
    """Never an empty queue, which would be believed."""
    await broker.send(b"m", "k")
    await limit_requests(broker, operator, 1)
    with pytest.raises(QueueUnavailable, match=f"{broker.place.name}: Exceeded MaxRequestBatch of 1"):
        await broker.receive(10, 0)
    assert [one.body for one in await receive(broker, 1)] == [b"m"]


async def limit_requests(broker: NatsBroker, operator: Client, most: int) -> None:
    place = broker.place
    found = await operator.jetstream().consumer_info(place.work, place.consumer)
    wanted = {"stream_name": place.work, "config": {**found.config.as_dict(), "max_batch": most}}
    subject = f"$JS.API.CONSUMER.DURABLE.CREATE.{place.work}.{place.consumer}"
    answer = json.loads((await operator.request(subject, json.dumps(wanted).encode())).data)
    assert "error" not in answer, answer


# Streams that are gone.


async def test_what_was_held_when_the_streams_were_deleted_cannot_be_settled_and_says_so(
    broker: NatsBroker, operator: Client
):
    await broker.send_batch([Send(b"1"), Send(b"2")])
    acked, kept = await receive(broker)
    await operator.jetstream().delete_stream(broker.place.work)
    assert await acked.ack() is False
    assert await kept.extend() is False


async def test_streams_that_are_gone_are_made_again_and_a_key_still_has_one_message(
    broker: NatsBroker, operator: Client
):
    await operator.jetstream().delete_stream(broker.place.work)
    assert await broker.send_batch([Send(b"1", "k"), Send(b"2", "k"), Send(b"3", "l")]) == 2
    assert len(await receive(broker)) == 2


# A server that falls silent.


async def test_E9_calls_that_get_no_answer_fail_in_their_time_and_can_be_made_again(
    distant: NatsBroker, proxy: Proxy
):
    await distant.send(b"m", "k")
    (held,) = await receive(distant)
    proxy.stall()
    for call in (held.ack(), distant.send(b"n", "l"), distant.depth(), distant.receive(1, 0)):
        with pytest.raises(QueueUnavailable, match="the server did not answer in time"):
            await asyncio.wait_for(call, PATIENCE_S)
    assert held.settled is None
    proxy.flow()
    assert await held.ack() is True
    assert await distant.send(b"n", "l") is False, "it had arrived; sent twice, it is one message"
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await receive(distant)):
            pass
    assert [one.body for one in found] == [b"n"]


@pytest.fixture
async def near(tmp_path: Path, distant: NatsBroker) -> AsyncIterator[NatsBroker]:
    """Another worker of the same queue, whose network is whole."""
    opened = await NatsBroker.open(await queue_of(tmp_path))
    yield opened
    await opened.close()


async def waiting_receiver(broker: NatsBroker) -> "asyncio.Task[list[Message]]":
    task = asyncio.create_task(receive(broker, wait=5_000))
    await asyncio.sleep(0.1)
    return task


async def stopped(receiver: "asyncio.Task[list[Message]]") -> None:
    receiver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiver


async def test_a_message_that_came_before_the_silence_is_handed_out(
    distant: NatsBroker, near: NatsBroker, proxy: Proxy
):
    """What else there may be is not known; what is in hand is not given up for it."""
    proxy.stalls_after = b"the first"
    waiting = await waiting_receiver(distant)
    await near.send(b"the first", "k")
    async with asyncio.timeout(PATIENCE_S):
        (message,) = await waiting
    assert message.body == b"the first"
    proxy.stalls_after = b""
    proxy.flow()
    assert await message.ack() is True
    assert (await near.depth()).leased == 0


async def test_who_is_stopped_with_a_message_in_hand_gives_it_back(
    distant: NatsBroker, near: NatsBroker, proxy: Proxy
):
    """It comes to another worker long before its lease of 15 s would end."""
    proxy.stalls_after = b"the first"
    waiting = await waiting_receiver(distant)
    await near.send(b"the first", "k")
    await asyncio.sleep(0.1)
    await stopped(waiting)
    assert await receive(near, wait=0) == []
    proxy.stalls_after = b""
    proxy.flow()
    assert [one.body for one in await receive(near, wait=2_000)] == [b"the first"]


async def test_a_message_on_its_way_to_who_was_stopped_goes_back_too(
    distant: NatsBroker, near: NatsBroker, proxy: Proxy
):
    waiting = await waiting_receiver(distant)
    proxy.stall()
    await near.send(b"late", "k")
    await stopped(waiting)
    assert await receive(near, wait=0) == []
    proxy.flow()
    assert [one.body for one in await receive(near, wait=2_000)] == [b"late"]


async def test_silence_holds_up_neither_a_receiver_that_is_stopped_nor_the_end(
    distant: NatsBroker, proxy: Proxy
):
    waiting = await waiting_receiver(distant)
    proxy.stall()
    async with asyncio.timeout(PATIENCE_S):
        await stopped(waiting)
        await distant.close()


async def test_a_receiver_whose_server_stays_away_ends_in_its_time_and_is_served_when_it_is_back():
    own = await started()
    broker = await NatsBroker.open(own.url, answer_s=ANSWER_S)
    waiting = asyncio.create_task(receive(broker, wait=500))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(own.stop, kill=True)
    with pytest.raises(QueueUnavailable, match="the server did not answer in time"):
        await asyncio.wait_for(waiting, PATIENCE_S)
    await asyncio.to_thread(own.start)
    other = await NatsBroker.open(own.url)
    await other.send(b"m", "k")
    async with asyncio.timeout(PATIENCE_S):
        while not broker._client.is_connected:  # noqa: ASYNC110 - the client tells nobody
            await asyncio.sleep(0.01)
    assert [one.body for one in await receive(broker)] == [b"m"]
    await broker.close()
    await other.close()
    await asyncio.to_thread(own.remove)

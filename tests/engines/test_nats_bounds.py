"""One owner's many messages on a real NATS server: others wait for a bounded number of them, and none is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tests.support.nats import queue_of, server
from tests.support.patience import PATIENCE_S
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.ledger.broker.nats import NatsBroker
from vskill_platform.ledger.broker.nats_bounds import MOST_OF_OWNER, UNCOUNTED

pytestmark = pytest.mark.anyio

BULK = 5 * MOST_OF_OWNER


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[tuple[NatsBroker, NatsBroker]]:
    """Two processes on one queue."""
    await asyncio.to_thread(server)
    location = await queue_of(tmp_path)
    one, two = await NatsBroker.open(location), await NatsBroker.open(location)
    yield one, two
    await one.close()
    await two.close()


def bulk(count: int = BULK, *, repeated: bool = False) -> list[Send]:
    return [Send(b"bulk %d" % n, f"b{n}", owner="bulk", repeated=repeated) for n in range(count)]


async def receive(broker: NatsBroker, size: int = 30) -> list[Message]:
    return [one for batch in await broker.receive(size, 1_000) for one in batch.messages]


async def in_queue(broker: NatsBroker) -> int:
    depth = await broker.depth()
    return depth.ready + depth.leased


async def test_a_bulk_delays_another_owner_by_no_more_than_its_bound(brokers):
    web, worker = brokers
    assert await web.send_batch(bulk()) == MOST_OF_OWNER
    assert await worker.send_batch([Send(b"other", "o", owner="other")]) == 1
    seen: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while b"other" not in seen:
            for message in await receive(worker):
                seen.append(message.body)
                await message.ack()
    assert seen.index(b"other") <= MOST_OF_OWNER


async def test_submissions_one_by_one_from_two_processes_are_bounded_too(brokers):
    """Each process may go beyond the bound by what it does not count."""
    sends = bulk(2 * MOST_OF_OWNER)
    for first, second in zip(sends[::2], sends[1::2], strict=True):
        await brokers[0].send_batch([first])
        await brokers[1].send_batch([second])
    assert MOST_OF_OWNER <= await in_queue(brokers[0]) <= MOST_OF_OWNER + 2 * UNCOUNTED


async def test_all_of_a_bulk_is_handed_out_once_as_room_is_made(brokers):
    web, worker = brokers
    await web.send_batch(bulk())
    seen: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(seen) < BULK:
            assert await in_queue(worker) <= MOST_OF_OWNER
            for message in await receive(worker):
                seen.append(message.body)
                await message.ack()
    assert sorted(seen) == sorted(send.body for send in bulk())
    assert await in_queue(worker) == 0


async def test_what_is_kept_back_and_sent_again_is_one_message(brokers):
    web, worker = brokers
    await web.send_batch(bulk(MOST_OF_OWNER + 5))
    await web.send_batch(bulk(MOST_OF_OWNER + 5))
    seen: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(seen) < MOST_OF_OWNER + 5:
            for message in await receive(worker):
                seen.append(message.body)
                await message.ack()
    assert len(set(seen)) == len(seen)


async def test_recovery_fills_the_room_that_there_is_and_comes_again_for_the_rest(brokers):
    web, scheduler = brokers
    assert await web.send_batch(bulk(MOST_OF_OWNER - 10)) == MOST_OF_OWNER - 10
    assert await scheduler.send_batch(bulk(repeated=True)) == 10, "those that are there take no room twice"
    assert await scheduler.send_batch(bulk(repeated=True)) == 0
    for message in await receive(scheduler):
        await message.ack()
    assert await in_queue(scheduler) == MOST_OF_OWNER - 30, "it keeps nothing back"


async def test_work_that_was_begun_goes_on_whatever_its_owner_has(brokers):
    web, _ = brokers
    await web.send_batch(bulk())
    assert await web.send_batch([Send(b"begun", "begun", first=True, owner="bulk")]) == 1


async def test_a_replayed_letter_and_what_recovery_sends_for_its_key_are_one_message(brokers):
    operator, scheduler = brokers
    send = Send(b"m", "k", owner="ann")
    await operator.send_batch([send])
    (message,) = await receive(operator)
    await message.dead_letter("why")
    (letter,) = (await operator.dead_letters()).items
    assert await operator.replay(letter.id)
    assert await scheduler.send_batch([msgspec.structs.replace(send, repeated=True)]) == 0
    assert [(one.body, one.key) for one in await receive(scheduler)] == [(b"m", "k")]

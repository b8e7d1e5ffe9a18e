"""What a clock that is set back does to the queue, on every engine: nothing waits for the length of the jump, and a
lease that is fair is never ended before its time (ADR 4)."""

import pytest

from tests.contracts.conftest import asks_for_the_time
from tests.support.manual_clock import ManualClock
from vskill_platform.domain.messages import Send
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.broker.contract import LEASE_MS, Broker, Depth, Message, latest_lease_end

# A server that keeps its own time measures leases by a clock that cannot be set back.
pytestmark = [pytest.mark.anyio, asks_for_the_time()]

HOURS_BACK = -2 * 3_600_000


async def receive(broker: Broker) -> list[Message]:
    batches = await broker.receive(max_batch_size=10, max_wait_ms=0)
    return [message for batch in batches for message in batch.messages]


async def receive_one(broker: Broker) -> Message:
    (message,) = await receive(broker)
    return message


async def test_B8_the_message_of_a_dead_worker_comes_again_though_the_clock_was_set_back_by_hours(
    broker: Broker, clock: ManualClock
):
    await broker.send(b"m", "k")
    dead = await receive_one(broker)
    clock.advance(HOURS_BACK)
    assert await broker.send(b"m", "k") is False
    heir = await receive_one(broker)
    assert (heir.delivery.id, heir.deliveries) == (dead.delivery.id, 2)
    assert await dead.ack() is False
    assert await heir.ack() is True
    assert await broker.depth() == Depth(0, 0, 0, 0)


async def test_the_same_where_it_is_sent_again_among_others(broker: Broker, clock: ManualClock):
    await broker.send_batch([Send(b"a", "a"), Send(b"b", "b")])
    assert len(await receive(broker)) == 2
    clock.advance(HOURS_BACK)
    assert await broker.send_batch([Send(b"a", "a"), Send(b"b", "b", 1_000), Send(b"c", "c")]) == 1
    assert {message.body for message in await receive(broker)} == {b"a", b"c"}
    clock.advance(1_000)
    assert [message.body for message in await receive(broker)] == [b"b"]


async def test_what_waited_or_was_delayed_when_the_clock_was_set_back_comes_when_it_is_sent_again(
    broker: Broker, clock: ManualClock
):
    await broker.send_batch([Send(b"ready", "r"), Send(b"delayed", "d", 60_000)])
    clock.advance(HOURS_BACK)
    assert await broker.send_batch([Send(b"ready", "r"), Send(b"delayed", "d")]) == 0
    assert {message.body for message in await receive(broker)} == {b"ready", b"delayed"}


async def test_a_living_worker_keeps_its_message_by_extending_it(broker: Broker, clock: ManualClock):
    """An extension puts a lease right that the clock has left behind."""
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    clock.advance(HOURS_BACK)
    assert await held.extend() is True
    await broker.send(b"m", "k")
    assert await receive(broker) == []
    clock.advance(LEASE_MS - 1)
    assert await receive(broker) == []
    assert await held.ack() is True


async def test_a_worker_that_comes_before_the_next_one_still_settles_its_message(
    broker: Broker, clock: ManualClock
):
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    clock.advance(HOURS_BACK)
    await broker.send(b"m", "k")
    assert await held.ack() is True
    assert await receive(broker) == []


@pytest.mark.parametrize("back", [0, 1, CLOCK_SLACK_MS])
async def test_a_fair_lease_is_never_stolen_however_often_it_is_sent_again(
    broker: Broker, clock: ManualClock, back
):
    """Also not by a sender whose clock is behind by no more than clocks differ."""
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    clock.advance(-back)
    for _ in range(3):
        assert await broker.send(b"m", "k") is False
        assert await receive(broker) == []
        clock.advance(1_000)
    assert await held.extend() is True
    assert await broker.send(b"m", "k") is False
    assert await receive(broker) == []


async def test_a_lease_is_never_longer_than_the_longest(broker: Broker, clock: ManualClock):
    """Otherwise sending again would take it for one from before the clock was set back."""
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    await held.extend(10 * LEASE_MS)
    await broker.send(b"m", "k")
    assert await receive(broker) == []
    clock.advance(LEASE_MS)
    assert (await receive_one(broker)).deliveries == 2
    assert latest_lease_end(0) == LEASE_MS + CLOCK_SLACK_MS

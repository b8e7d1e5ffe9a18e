"""Every promise of the queue, on every engine: at least once, under leases, one live message per key, in fair
order; and how a message may be settled.
"""

import asyncio
import gc
import time
from collections import Counter

import msgspec
import pytest

from tests.contracts.clocks import ContractClock
from tests.contracts.conftest import BrokerEngine, lacks, needs
from tests.support.patience import NEVER_MS, PATIENCE_S
from vskill_core.errors import StoreUnavailable, Unsupported
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    Broker,
    BrokerCapability,
    DeadLetter,
    DeliveryEnd,
    Depth,
    Message,
    Settlement,
)
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.database.sqlite import SqliteDatabase

pytestmark = pytest.mark.anyio


async def receive(broker: Broker, size: int = 10, wait: int = 0) -> list[Message]:
    batches = await broker.receive(max_batch_size=size, max_wait_ms=wait)
    return [message for batch in batches for message in batch.messages]


async def receive_one(broker: Broker) -> Message:
    """The message that is there. A server beside us may take a moment to hand it out."""
    (message,) = await receive(broker, 1, wait=int(PATIENCE_S * 1000))
    return message


async def bodies(broker: Broker, size: int = 10) -> list[bytes]:
    return [message.body for message in await receive(broker, size)]


async def holds(broker: Broker, depth: Depth) -> bool:
    """Whether the queue says this depth; of an engine that cannot tell them apart, the sum of the living."""
    found = await broker.depth()
    if BrokerCapability.DEPTH_BY_KIND in broker.capabilities:
        return found == depth
    return (sum((found.ready, found.delayed, found.leased)), found.dead) == (
        sum((depth.ready, depth.delayed, depth.leased)),
        depth.dead,
    )


async def test_an_engine_has_exactly_the_capabilities_that_it_is_listed_with(
    broker_engine: BrokerEngine, tmp_path, clock
):
    store = await broker_engine.open(tmp_path, clock)
    assert store.broker.capabilities == broker_engine.claims
    assert store.broker.engine
    await store.close()


# Sending and receiving.


async def test_what_was_sent_is_received_once_with_all_that_belongs_to_it(
    broker: Broker, clock: ContractClock
):
    sent_at = clock.now()
    assert await broker.send(b"\0\xff body", "key") is True
    clock.advance(5)
    message = await receive_one(broker)
    assert (message.body, message.key, message.deliveries) == (b"\0\xff body", "key", 1)
    assert clock.told(message.delivery.sent_at, sent_at)
    assert await receive(broker) == []


async def test_an_empty_queue_gives_no_batch(broker: Broker):
    assert await broker.receive(max_wait_ms=0) == ()


async def test_a_receive_gives_full_batches_and_a_rest(broker: Broker):
    await broker.send_batch([Send(b"%d" % n) for n in range(8)])
    batches = await broker.receive(max_batch_size=3, max_wait_ms=0, batches=2)
    assert [[message.body for message in batch.messages] for batch in batches] == [
        [b"0", b"1", b"2"],
        [b"3", b"4", b"5"],
    ]
    (rest,) = await broker.receive(max_batch_size=3, max_wait_ms=0, batches=10)
    assert [message.body for message in rest.messages] == [b"6", b"7"]


async def test_messages_of_one_moment_come_in_the_order_in_which_they_were_sent(broker: Broker):
    for n in range(20):
        await broker.send(b"%d" % n)
    assert await bodies(broker, 30) == [b"%d" % n for n in range(20)]


async def test_a_delayed_message_comes_when_its_delay_ends(broker: Broker, clock: ContractClock):
    await broker.send(b"later", delay_ms=5_000)
    await broker.send(b"now")
    assert await bodies(broker) == [b"now"]
    clock.approach(5_000)
    assert await bodies(broker) == []
    clock.arrive()
    assert await bodies(broker) == [b"later"]


@needs(BrokerCapability.LONG_DELAYS)
async def test_a_long_delay_is_kept(broker: Broker, clock: ContractClock):
    day = 86_400_000
    await broker.send(b"tomorrow", "k", delay_ms=day)
    clock.advance(day - 1)
    assert await bodies(broker) == []
    clock.advance(1)
    assert await bodies(broker) == [b"tomorrow"]


@lacks(BrokerCapability.LONG_DELAYS)
async def test_without_long_delays_a_message_that_would_wait_long_is_given_up(broker: Broker):
    """Recovery sends it again when the record is due; until then the key is free."""
    assert await broker.send(b"later", "k", delay_ms=60_000) is False
    await broker.send(b"m", "k")
    assert await (await receive_one(broker)).retry(delay_ms=60_000) is True
    assert await broker.depth() == Depth(0, 0, 0, 0)
    assert await broker.send(b"again", "k") is True
    assert await bodies(broker) == [b"again"]


# One live message per key.


async def test_D16_a_key_has_one_live_message(broker: Broker):
    assert await broker.send(b"1", "k") is True
    assert await broker.send(b"2", "k") is False
    assert (
        await broker.send_batch([Send(b"3", "k"), Send(b"4", "l"), Send(b"5", "l"), Send(b"6"), Send(b"7")])
        == 3
    )
    received = await receive(broker)
    assert Counter(message.key for message in received) == {"k": 1, "l": 1, None: 2}


async def test_a_key_is_free_again_once_its_message_is_acked_or_dead(broker: Broker):
    await broker.send(b"1", "k")
    await (await receive_one(broker)).ack()
    assert await broker.send(b"2", "k") is True
    await (await receive_one(broker)).dead_letter("bad")
    assert await broker.send(b"3", "k") is True
    assert await bodies(broker) == [b"3"]


@needs(BrokerCapability.PULL_FORWARD)
async def test_sending_again_pulls_a_waiting_message_forward_but_never_back(
    broker: Broker, clock: ContractClock
):
    await broker.send(b"m", "k", delay_ms=60_000)
    assert await broker.send(b"m", "k", delay_ms=1_000) is False
    assert await broker.send(b"m", "k", delay_ms=90_000) is False
    clock.advance(999)
    assert await bodies(broker) == []
    clock.advance(1)
    assert await bodies(broker) == [b"m"]
    clock.advance(90_000)
    assert [message.deliveries for message in await receive(broker)] == [2]


@needs(BrokerCapability.PULL_FORWARD)
async def test_sending_pulls_a_retried_message_forward(broker: Broker):
    await broker.send(b"m", "k")
    await (await receive_one(broker)).retry(delay_ms=60_000)
    assert await broker.send(b"m", "k") is False
    assert (await receive_one(broker)).deliveries == 2


@lacks(BrokerCapability.PULL_FORWARD)
async def test_without_pulling_forward_a_message_sent_again_comes_when_its_delay_ends(
    broker: Broker, clock: ContractClock
):
    await broker.send(b"m", "k")
    await (await receive_one(broker)).retry(delay_ms=5_000)
    assert await broker.send(b"m", "k") is False
    assert await receive(broker) == []
    clock.advance(5_000)
    assert (await receive_one(broker)).deliveries == 2


async def test_a_message_in_somebodys_hands_stays_there_and_no_second_one_is_made(
    broker: Broker, clock: ContractClock
):
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    assert await broker.send(b"m", "k") is False
    assert await receive(broker) == []
    clock.approach(LEASE_MS)
    assert await receive(broker) == []
    assert await held.ack() is True
    clock.advance(LEASE_MS)
    assert await receive(broker) == []


# Leases.


async def test_B8_a_lease_that_ends_brings_the_message_to_somebody_else_with_a_new_token(
    broker: Broker, clock: ContractClock
):
    await broker.send(b"m", "k")
    dead = await receive_one(broker)
    clock.approach(LEASE_MS)
    assert await receive(broker) == []
    clock.arrive()
    heir = await receive_one(broker)
    assert heir.delivery.id == dead.delivery.id
    assert heir.delivery.token != dead.delivery.token
    assert heir.deliveries == 2


@needs(BrokerCapability.FENCED_SETTLEMENT)
async def test_D3_who_lost_the_lease_can_settle_nothing(broker: Broker, clock: ContractClock):
    for settle in ("ack", "retry", "dead_letter", "extend"):
        await broker.send(settle.encode(), settle)
        late = await receive_one(broker)
        clock.advance(LEASE_MS)
        heir = await receive_one(broker)
        arguments = ("late",) if settle == "dead_letter" else ()
        assert await getattr(late, settle)(*arguments) is False
        assert await broker.depth() == Depth(ready=0, delayed=0, leased=1, dead=0)
        assert await heir.ack() is True


@lacks(BrokerCapability.FENCED_SETTLEMENT)
async def test_D3_without_fences_a_late_ack_ends_the_message_and_the_heirs_own_ack_harms_nothing(
    broker: Broker, clock: ContractClock
):
    """Which is why the record's version decides whose work counts."""
    await broker.send(b"m", "k")
    late = await receive_one(broker)
    clock.advance(LEASE_MS)
    heir = await receive_one(broker)
    assert await late.ack() is True
    assert await broker.depth() == Depth(0, 0, 0, 0)
    assert await heir.extend() is True
    assert await heir.ack() is True
    assert await broker.send(b"m", "k") is True
    assert await bodies(broker) == [b"m"]


@needs(BrokerCapability.FENCED_SETTLEMENT)
async def test_who_lost_the_lease_cannot_settle_after_the_heir_gave_it_back_either(
    broker: Broker, clock: ContractClock
):
    await broker.send(b"m")
    late = await receive_one(broker)
    clock.advance(LEASE_MS)
    await (await receive_one(broker)).retry()
    assert await late.ack() is False
    assert (await receive_one(broker)).deliveries == 3


async def test_a_settlement_after_the_lease_ended_counts_while_nobody_else_took_it(
    broker: Broker, clock: ContractClock
):
    """The work is done: nobody gains if it is done again."""
    await broker.send(b"m")
    slow = await receive_one(broker)
    clock.advance(LEASE_MS + 1)
    assert await slow.ack() is True
    assert await receive(broker) == []


async def test_an_extended_lease_lasts_from_now(broker: Broker, clock: ContractClock):
    await broker.send(b"m")
    held = await receive_one(broker)
    for _ in range(3):
        clock.approach(LEASE_MS)
        assert await held.extend() is True
        assert await receive(broker) == []
    clock.advance(LEASE_MS)
    assert (await receive_one(broker)).deliveries == 2
    if BrokerCapability.FENCED_SETTLEMENT in broker.capabilities:
        assert await held.extend() is False


async def test_a_message_whose_lease_was_extended_stands_in_nobodys_way(broker: Broker, clock: ContractClock):
    await broker.send(b"held")
    held = await receive_one(broker)
    clock.approach(LEASE_MS)
    await held.extend()
    clock.advance(2)
    await broker.send(b"fresh")
    assert await bodies(broker) == [b"fresh"]


@needs(BrokerCapability.SHORT_LEASES)
async def test_a_lease_can_be_made_shorter(broker: Broker, clock: ContractClock):
    await broker.send(b"m")
    held = await receive_one(broker)
    assert await held.extend(10) is True
    clock.advance(10)
    assert (await receive_one(broker)).deliveries == 2


@lacks(BrokerCapability.SHORT_LEASES)
async def test_without_short_leases_an_extension_lasts_a_whole_lease(broker: Broker, clock: ContractClock):
    await broker.send(b"m")
    held = await receive_one(broker)
    assert await held.extend(10) is True
    clock.approach(LEASE_MS)
    assert await receive(broker) == []
    clock.arrive()
    assert (await receive_one(broker)).deliveries == 2


async def test_an_extension_leaves_the_message_in_the_same_hands(broker: Broker):
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    await held.extend()
    assert await broker.send(b"m", "k") is False
    assert await held.ack() is True


# Settling.


async def test_an_acked_message_never_comes_back(broker: Broker, clock: ContractClock):
    await broker.send(b"m")
    assert await (await receive_one(broker)).ack() is True
    clock.advance(10 * LEASE_MS)
    assert await receive(broker) == []
    assert await broker.depth() == Depth(0, 0, 0, 0)


async def test_a_retried_message_comes_back_after_its_delay(broker: Broker, clock: ContractClock):
    await broker.send(b"m")
    assert await (await receive_one(broker)).retry(delay_ms=5_000) is True
    clock.approach(5_000)
    assert await receive(broker) == []
    clock.arrive()
    again = await receive_one(broker)
    assert again.deliveries == 2
    assert await again.retry() is True
    assert (await receive_one(broker)).deliveries == 3


async def test_D16_there_is_no_limit_of_deliveries(broker: Broker):
    await broker.send(b"m", "k")
    for n in range(1, 40):
        message = await receive_one(broker)
        assert message.deliveries == n
        await message.retry()
    assert (await broker.depth()).dead == 0


@pytest.mark.parametrize("first", ["ack", "retry", "dead_letter"])
@pytest.mark.parametrize("second", ["ack", "retry", "dead_letter", "extend"])
async def test_the_first_settlement_wins(broker: Broker, first, second):
    await broker.send(b"m")
    message = await receive_one(broker)
    assert await getattr(message, first)(*(["why"] if first == "dead_letter" else [])) is True
    settled = message.settled
    before = await broker.depth()
    assert await getattr(message, second)(*(["why"] if second == "dead_letter" else [])) is False
    assert message.settled is settled
    assert await broker.depth() == before


async def test_of_two_settlements_of_a_delivery_in_one_call_the_first_wins(broker: Broker):
    await broker.send_batch([Send(b"1"), Send(b"2")])
    first, second = [message.delivery for message in await receive(broker)]
    answers = await broker.settle(
        [
            Settlement(first, DeliveryEnd.ACK),
            Settlement(first, DeliveryEnd.DEAD_LETTER, reason="too late"),
            Settlement(second, None, LEASE_MS),
            Settlement(second, DeliveryEnd.DEAD_LETTER, reason="why"),
        ]
    )
    assert list(answers) == [True, False, True, True]
    assert await broker.depth() == Depth(ready=0, delayed=0, leased=0, dead=1)


async def test_sending_nothing_and_settling_nothing_changes_nothing(broker: Broker):
    await broker.send(b"m", "k")
    assert await broker.send_batch([]) == 0
    assert list(await broker.settle([])) == []
    assert await bodies(broker) == [b"m"]


async def test_acking_all_leaves_what_was_settled_alone(broker: Broker, clock: ContractClock):
    await broker.send_batch([Send(b"acked"), Send(b"retried"), Send(b"dead"), Send(b"rest"), Send(b"more")])
    (batch,) = await broker.receive(max_batch_size=5, max_wait_ms=0)
    acked, retried, dead, rest, more = batch.messages
    await acked.ack()
    await retried.retry()
    await dead.dead_letter("why")
    await batch.ack_all()
    assert [message.settled for message in (acked, rest, more)] == [DeliveryEnd.ACK] * 3
    assert (retried.settled, dead.settled) == (DeliveryEnd.RETRY, DeliveryEnd.DEAD_LETTER)
    assert await holds(broker, Depth(ready=1, delayed=0, leased=0, dead=1))
    await batch.retry_all()
    clock.advance(LEASE_MS)
    assert await bodies(broker) == [b"retried"]


async def test_retrying_all_leaves_what_was_settled_alone(broker: Broker, clock: ContractClock):
    await broker.send_batch([Send(b"acked"), Send(b"rest"), Send(b"more")])
    (batch,) = await broker.receive(max_wait_ms=0)
    await batch.messages[0].ack()
    await batch.retry_all(delay_ms=3_000)
    assert await holds(broker, Depth(ready=0, delayed=2, leased=0, dead=0))
    await batch.ack_all()
    clock.advance(3_000)
    assert sorted(await bodies(broker)) == [b"more", b"rest"]


async def test_many_settlements_at_once_each_get_their_own_answer(broker: Broker, clock: ContractClock):
    await broker.send_batch([Send(b"1"), Send(b"2")])
    first, second = await receive(broker)
    clock.advance(LEASE_MS)
    (heir,) = await receive(broker, 1)
    answers = await asyncio.gather(first.ack(), second.ack(), heir.ack())
    fenced = BrokerCapability.FENCED_SETTLEMENT in broker.capabilities
    assert tuple(answers) == (not fenced, True, True)
    assert await broker.depth() == Depth(0, 0, 0, 0)


class FailingBroker(MemoryBroker):
    """Its next settlements fail."""

    failing = True

    async def settle(self, settlements):
        if self.failing:
            raise StoreUnavailable
        return await super().settle(settlements)


async def test_a_settlement_that_failed_can_be_made_again(clock: ContractClock):
    broker = FailingBroker(clock)
    await broker.send_batch([Send(b"1"), Send(b"2")])
    (batch,) = await broker.receive(max_wait_ms=0)
    with pytest.raises(StoreUnavailable):
        await batch.messages[0].ack()
    with pytest.raises(StoreUnavailable):
        await batch.retry_all()
    assert [message.settled for message in batch.messages] == [None, None]
    broker.failing = False
    assert await batch.messages[0].ack() is True
    await batch.ack_all()
    assert await broker.depth() == Depth(0, 0, 0, 0)


# Order.


@needs(BrokerCapability.FAIR_ORDER)
async def test_B15_fresh_work_does_not_starve_behind_messages_that_are_retried_for_ever(
    broker: Broker, clock: ContractClock
):
    await broker.send_batch([Send(b"poison %d" % n, f"p{n}") for n in range(5)])
    for turn in range(10):
        clock.advance(1)
        await broker.send(b"fresh", f"f{turn}")
        seen: list[bytes] = []
        while b"fresh" not in seen:
            assert len(seen) < 6, "five older messages may come before it, and none of them twice"
            message = await receive_one(broker)
            seen.append(message.body)
            clock.advance(1)
            await (message.ack() if message.body == b"fresh" else message.retry())


@lacks(BrokerCapability.FAIR_ORDER)
async def test_B15_without_fair_order_fresh_work_still_comes_while_others_wait_out_their_delay(
    broker: Broker,
):
    """The consumer never gives a failing message back without a delay, and that is what makes room."""
    await broker.send_batch([Send(b"poison %d" % n, f"p{n}") for n in range(5)])
    for message in await receive(broker):
        await message.retry(delay_ms=5_000)
    await broker.send(b"fresh", "f")
    assert await bodies(broker) == [b"fresh"]


@needs(BrokerCapability.FAIR_ORDER)
async def test_the_earliest_visible_message_comes_first(broker: Broker, clock: ContractClock):
    await broker.send(b"third", delay_ms=30)
    await broker.send(b"first", delay_ms=10)
    await broker.send(b"second", delay_ms=20)
    clock.advance(100)
    await broker.send(b"fourth")
    assert await bodies(broker) == [b"first", b"second", b"third", b"fourth"]


@needs(BrokerCapability.FIRST)
async def test_a_message_whose_worker_died_comes_next_once_it_is_sent_first(
    broker: Broker, clock: ContractClock
):
    await broker.send_batch([Send(b"begun %d" % n, f"b{n}") for n in range(3)])
    clock.advance(1)
    await broker.send_batch([Send(b"waiting %d" % n, f"w{n}") for n in range(20)])
    assert len(await receive(broker, 3)) == 3
    clock.advance(LEASE_MS)
    assert await broker.send_batch([Send(b"begun %d" % n, f"b{n}", first=True) for n in range(3)]) == 0
    assert sorted(await bodies(broker, 4)) == [b"begun 0", b"begun 1", b"begun 2", b"waiting 0"]


@needs(BrokerCapability.FIRST)
async def test_what_a_worker_holds_stays_there_though_it_is_sent_first(broker: Broker, clock: ContractClock):
    await broker.send(b"m", "k")
    held = await receive_one(broker)
    clock.approach(LEASE_MS)
    assert await broker.send_batch([Send(b"m", "k", first=True)]) == 0
    assert await receive(broker) == []
    assert await held.ack() is True


@needs(BrokerCapability.FIRST)
async def test_a_new_message_that_is_sent_first_is_a_message_like_others(broker: Broker):
    assert await broker.send_batch([Send(b"m", "k", first=True), Send(b"n", first=True)]) == 2
    assert sorted(await bodies(broker)) == [b"m", b"n"]


@needs(BrokerCapability.FIRST)
async def test_what_a_stopping_worker_hands_back_comes_next(broker: Broker, clock: ContractClock):
    await broker.send_batch([Send(b"begun %d" % n) for n in range(3)])
    clock.advance(1)
    await broker.send_batch([Send(b"waiting %d" % n) for n in range(20)])
    (batch,) = await broker.receive(max_batch_size=3, max_wait_ms=0)
    await batch.messages[0].ack()
    clock.advance(1)
    await batch.hand_back()
    assert batch.messages[0].settled is DeliveryEnd.ACK
    assert sorted(await bodies(broker, 3)) == [b"begun 1", b"begun 2", b"waiting 0"]


@needs(BrokerCapability.FIRST, BrokerCapability.FAIR_ORDER)
async def test_a_message_whose_worker_died_comes_behind_what_waited_unless_it_is_sent_first(
    broker: Broker, clock: ContractClock
):
    """Which is where recovery leaves what has killed several workers."""
    await broker.send(b"begun", "b")
    await broker.send(b"waiting", "w")
    await receive_one(broker)
    clock.advance(LEASE_MS)
    assert await broker.send(b"begun", "b") is False
    assert await bodies(broker) == [b"waiting", b"begun"]


# Shares.


@needs(BrokerCapability.FAIR_SHARES)
@pytest.mark.parametrize("others", [1, 5, 100])
@pytest.mark.parametrize("size", [1, 3, 30])
async def test_a_bulk_of_one_owner_leaves_two_thirds_to_others_however_late_they_come(
    broker: Broker, clock: ContractClock, others, size
):
    await broker.send_batch([Send(b"bulk", f"b{n}", owner="bulk") for n in range(300)])
    clock.advance(60_000)
    await broker.send_batch([Send(b"other", f"o{n}", owner=f"owner {n}") for n in range(others)])
    seen: list[bytes] = []
    while seen.count(b"other") < others:
        received = await bodies(broker, size)
        assert received
        seen += received
    assert len(seen) <= others * 3 // 2 + size + 1
    assert seen.count(b"bulk") >= others // 2 - size


@needs(BrokerCapability.FAIR_SHARES)
async def test_a_bulk_is_taken_whole_and_in_order_where_nobody_else_waits(broker: Broker):
    await broker.send_batch([Send(b"%d" % n, owner="bulk") for n in range(100)])
    assert await bodies(broker, 30) == [b"%d" % n for n in range(30)]
    assert await bodies(broker, 100) == [b"%d" % n for n in range(30, 100)]


@needs(BrokerCapability.FAIR_SHARES)
async def test_two_bulks_get_at_least_a_third_each(broker: Broker, clock: ContractClock):
    for owner in ("early", "late"):
        await broker.send_batch([Send(owner.encode(), owner=owner) for _ in range(200)])
        clock.advance(1_000)
    received = await bodies(broker, 90)
    assert min(Counter(received).values()) >= 30


@needs(BrokerCapability.FAIR_SHARES, BrokerCapability.FIRST)
async def test_what_a_bulk_had_begun_comes_next_beyond_its_share(broker: Broker, clock: ContractClock):
    await broker.send_batch([Send(b"begun", f"b{n}", owner="bulk") for n in range(12)])
    assert len(await receive(broker, 12)) == 12
    clock.advance(1)
    await broker.send_batch([Send(b"bulk", f"c{n}", owner="bulk") for n in range(50)])
    await broker.send_batch([Send(b"other", f"o{n}", owner=f"owner {n}") for n in range(50)])
    clock.advance(LEASE_MS)
    await broker.send_batch([Send(b"begun", f"b{n}", first=True) for n in range(12)])
    assert await bodies(broker, 12) == [b"begun"] * 12


@lacks(BrokerCapability.FAIR_SHARES)
async def test_without_shares_messages_come_in_the_order_in_which_they_were_sent(broker: Broker):
    """How many one owner may have there is bounded instead: `tests/engines/test_nats_bounds.py`."""
    await broker.send_batch([Send(b"bulk", owner="bulk") for _ in range(10)])
    await broker.send_batch([Send(b"other", owner="other")])
    assert await bodies(broker, 11) == [*([b"bulk"] * 10), b"other"]


# Waiting.


async def test_a_waiting_receive_is_woken_by_a_send(broker: Broker):
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await broker.send(b"m")
    async with asyncio.timeout(PATIENCE_S):
        assert [message.body for message in await waiting] == [b"m"]


@needs(BrokerCapability.FAIR_ORDER)
async def test_a_waiting_receive_takes_together_what_was_sent_together(broker: Broker):
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.02)
    await broker.send_batch([Send(b"1"), Send(b"2")])
    async with asyncio.timeout(PATIENCE_S):
        assert [message.body for message in await waiting] == [b"1", b"2"]


@lacks(BrokerCapability.FAIR_ORDER)
async def test_what_was_sent_together_may_wake_a_receive_alone_and_the_rest_follows(broker: Broker):
    """The server takes each message by itself, and hands out the first before it has the second."""
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.02)
    await broker.send_batch([Send(b"1"), Send(b"2")])
    async with asyncio.timeout(PATIENCE_S):
        received = await waiting
        while len(received) < 2:
            received += await receive(broker, wait=NEVER_MS)
    assert [message.body for message in received] == [b"1", b"2"]


async def test_a_waiting_receive_is_woken_by_a_retry_and_by_a_replay(broker: Broker):
    await broker.send_batch([Send(b"1"), Send(b"2")])
    one, two = await receive(broker)
    await two.dead_letter("why")
    (letter,) = (await broker.dead_letters()).items
    for give_back in (one.retry(), broker.replay(letter.id)):
        waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
        await asyncio.sleep(0.02)
        await give_back
        async with asyncio.timeout(PATIENCE_S):
            assert len(await waiting) == 1


@needs(BrokerCapability.PULL_FORWARD)
async def test_a_waiting_receive_is_woken_when_a_message_is_pulled_forward(broker: Broker):
    await broker.send(b"m", "k", delay_ms=60_000)
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.02)
    await broker.send(b"m", "k")
    async with asyncio.timeout(PATIENCE_S):
        assert len(await waiting) == 1


async def test_a_waiting_receive_is_woken_by_a_delay_that_ends(timed_broker: Broker):
    began = time.monotonic()
    await timed_broker.send(b"m", delay_ms=60)
    async with asyncio.timeout(PATIENCE_S):
        assert len(await receive(timed_broker, wait=NEVER_MS)) == 1
    assert time.monotonic() - began > 0.05


async def test_a_waiting_receive_is_woken_by_a_lease_that_ends(timed_broker: Broker):
    await timed_broker.send(b"m")
    held = await receive_one(timed_broker)
    await held.extend(60)
    async with asyncio.timeout(PATIENCE_S):
        (message,) = await receive(timed_broker, wait=NEVER_MS)
    assert message.deliveries == 2


async def test_a_receive_ends_empty_when_its_time_is_over(timed_broker: Broker):
    await timed_broker.send(b"m", delay_ms=60_000)
    began = time.monotonic()
    assert await receive(timed_broker, wait=50) == []
    assert time.monotonic() - began > 0.04


async def test_a_message_wakes_one_of_several_waiting_receivers(broker: Broker):
    waiting = [asyncio.create_task(receive(broker, size=1, wait=NEVER_MS)) for _ in range(3)]
    await asyncio.sleep(0.02)
    await broker.send(b"m")
    woken, asleep = await asyncio.wait(waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    assert [[message.body for message in task.result()] for task in woken] == [[b"m"]]
    assert len(asleep) == 2
    await broker.close()
    assert await asyncio.gather(*asleep) == [[], []]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 10])
async def test_a_cancelled_receive_loses_nothing(broker: Broker, clock: ContractClock, turns):
    """Cancelled at any moment around the arrival of a message: it comes, at the latest when a lease ends."""
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.01)
    await broker.send(b"m", "k")
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    try:
        received = await waiting
    except asyncio.CancelledError:
        received = await receive(broker, wait=50)
        if not received:
            clock.advance(LEASE_MS)
            received = await receive(broker)
    assert [message.body for message in received] == [b"m"]


@needs(BrokerCapability.DURABLE)
async def test_what_was_leased_for_a_receiver_that_has_gone_comes_to_another_at_once(broker: Broker):
    """Both are cancelled while the engine is at it: one gets the message and gives it back, the other has nothing to
    give. The clock stands still, so no lease ends."""
    await broker.send(b"m", "k")
    gone = [asyncio.create_task(broker.take(1, 0)) for _ in range(2)]
    await asyncio.sleep(0)
    for one in gone:
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
    async with asyncio.timeout(PATIENCE_S):
        assert [message.body for message in await receive(broker, wait=NEVER_MS)] == [b"m"]


async def test_in_memory_a_cancelled_receive_has_leased_nothing(clock: ContractClock):
    broker = MemoryBroker(clock)
    waiting = asyncio.create_task(broker.take(1, 5_000))
    await asyncio.sleep(0)
    await broker.send(b"m")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await broker.depth() == Depth(ready=1, delayed=0, leased=0, dead=0)


async def test_on_sqlite_a_receive_that_fails_after_it_was_cancelled_is_nobodys_error(
    tmp_path, clock: ContractClock
):
    """There is nothing to give back, and no line in the log about an error that nobody looked at."""
    database = await SqliteDatabase.open(tmp_path / "store.sqlite", clock)
    broker = SqliteBroker(database)
    await broker.send(b"m")
    unseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    # On the very connection that writes; its thread is idle.
    database._writer._connection.execute("PRAGMA query_only = ON")
    waiting = asyncio.create_task(broker.take(1, 5_000))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(StoreUnavailable):
        await broker.send(b"behind it")
    gc.collect()
    await asyncio.sleep(0)
    assert unseen == []
    database._writer._connection.execute("PRAGMA query_only = OFF")
    assert await bodies(broker) == [b"m"]
    await broker.close()


async def test_a_cancelled_receiver_does_not_take_the_wake_up_from_another(broker: Broker):
    cancelled, kept = (asyncio.create_task(receive(broker, wait=NEVER_MS)) for _ in range(2))
    await asyncio.sleep(0.02)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await broker.send(b"m")
    async with asyncio.timeout(PATIENCE_S):
        assert len(await kept) == 1


async def test_closing_ends_the_wait_of_receivers(broker: Broker):
    waiting = asyncio.create_task(receive(broker, wait=NEVER_MS))
    await asyncio.sleep(0.02)
    await broker.close()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting == []


async def test_five_consumers_take_three_hundred_messages_once_each(broker: Broker):
    await broker.send_batch([Send(b"%d" % n, f"k{n}") for n in range(300)])
    seen: Counter[bytes] = Counter()

    async def consume() -> None:
        while batches := await broker.receive(max_batch_size=3, max_wait_ms=20, batches=4):
            for batch in batches:
                seen.update(message.body for message in batch.messages)
                await asyncio.sleep(0)
                await batch.ack_all()

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(consume() for _ in range(5)))
    assert seen == {b"%d" % n: 1 for n in range(300)}
    assert await broker.depth() == Depth(0, 0, 0, 0)


# Dead letters.


async def test_a_dead_letter_keeps_all_that_a_person_needs(broker: Broker, clock: ContractClock):
    sent_at = clock.now()
    await broker.send(b"m", "k")
    await (await receive_one(broker)).retry()
    clock.advance(7)
    assert await (await receive_one(broker)).dead_letter("no such record") is True
    (letter,) = (await broker.dead_letters()).items
    assert (letter.body, letter.key, letter.reason, letter.deliveries) == (b"m", "k", "no such record", 2)
    assert clock.told(letter.sent_at, sent_at)
    assert clock.told(letter.died_at, sent_at + 7)
    clock.advance(10 * LEASE_MS)
    assert await receive(broker) == []


async def test_dead_letters_are_listed_in_pages_oldest_first(broker: Broker, clock: ContractClock):
    assert BrokerCapability.DEAD_LETTER_LISTING in broker.capabilities
    await broker.send_batch([Send(b"%d" % n) for n in range(5)])
    for message in reversed(await receive(broker)):
        clock.advance(1)
        await message.dead_letter("why")
    listed, after = [], None
    while True:
        page = await broker.dead_letters(after=after, limit=2)
        listed += [letter.body for letter in page.items]
        after = page.after
        if after is None:
            break
    assert listed == [b"4", b"3", b"2", b"1", b"0"]
    whole = await broker.dead_letters(limit=5)
    assert (len(whole.items), whole.after) == (5, None)
    await broker.send(b"waits")
    assert await broker.dead_letter_count() == 5


async def test_no_dead_letters_are_an_empty_page(broker: Broker):
    page = await broker.dead_letters()
    assert (page.items, page.after) == ((), None)
    assert await broker.dead_letter_count() == 0


async def bury(broker: Broker, body: bytes, key: str | None) -> int:
    await broker.send(body, key)
    await (await receive_one(broker)).dead_letter("why")
    return (await broker.dead_letters()).items[-1].id


async def test_a_replayed_dead_letter_is_a_fresh_message(broker: Broker, clock: ContractClock):
    number = await bury(broker, b"m", "k")
    clock.advance(3)
    assert await broker.replay(number) is True
    message = await receive_one(broker)
    assert (message.body, message.key, message.deliveries) == (b"m", "k", 1)
    assert clock.told(message.delivery.sent_at, clock.now())
    assert await broker.replay(number) is False
    assert (await broker.dead_letters()).items == ()


async def test_replaying_beside_a_live_message_of_the_key_makes_no_second_one(broker: Broker):
    number = await bury(broker, b"m", "k")
    await broker.send(b"m", "k", delay_ms=60_000)
    assert await broker.replay(number) is True
    assert len(await receive(broker)) == 1
    assert await holds(broker, Depth(ready=0, delayed=0, leased=1, dead=0))


async def test_a_discarded_dead_letter_is_gone(broker: Broker):
    kept, gone = await bury(broker, b"kept", "k"), await bury(broker, b"gone", None)
    assert await broker.discard(gone) is True
    assert await broker.discard(gone) is False
    assert await broker.replay(gone) is False
    assert [letter.id for letter in (await broker.dead_letters()).items] == [kept]
    assert await broker.dead_letter_count() == 1


@needs(BrokerCapability.DEAD_LETTER_COPIES)
async def test_dead_letters_of_another_queue_are_kept_as_they_are_under_ids_of_this_one(broker: Broker):
    own = await bury(broker, b"own", "k")
    others = [
        DeadLetter(own, b"\0first", None, "why", 3, 1_000, 2_000),
        DeadLetter(own, b"second", "k", "why not", 1, 3_000, 4_000),
    ]
    await broker.add_dead_letters(others)
    await broker.add_dead_letters([])
    kept = (await broker.dead_letters()).items
    assert [msgspec.structs.replace(letter, id=0) for letter in kept[1:]] == [
        msgspec.structs.replace(letter, id=0) for letter in others
    ]
    assert len({letter.id for letter in kept}) == 3
    assert await broker.replay(kept[2].id) is True
    assert (await receive_one(broker)).body == b"second"


@lacks(BrokerCapability.DEAD_LETTER_COPIES)
async def test_a_queue_that_cannot_copy_dead_letters_says_so(broker: Broker):
    with pytest.raises(Unsupported, match="dead letter copies"):
        await broker.add_dead_letters([DeadLetter(1, b"m", None, "why", 1, 1, 1)])
    assert (await broker.dead_letters()).items == ()


# Depth.


@needs(BrokerCapability.DEPTH_BY_KIND, BrokerCapability.LONG_DELAYS)
async def test_C2_the_depth_counts_each_message_once_by_what_it_waits_for(
    broker: Broker, clock: ContractClock
):
    await broker.send_batch([Send(b"%d" % n) for n in range(6)])
    await broker.send(b"delayed", delay_ms=LEASE_MS + 5)
    first, second, third, _ = await receive(broker, 4)
    await first.ack()
    await second.retry(delay_ms=LEASE_MS + 5)
    await third.dead_letter("why")
    assert await broker.depth() == Depth(ready=2, delayed=2, leased=1, dead=1)
    clock.advance(LEASE_MS)
    assert await broker.depth() == Depth(ready=3, delayed=2, leased=0, dead=1)
    clock.advance(5)
    assert await broker.depth() == Depth(ready=5, delayed=0, leased=0, dead=1)


@lacks(BrokerCapability.DEPTH_BY_KIND)
async def test_C2_without_kinds_the_living_and_the_dead_are_still_counted_once_each(broker: Broker):
    await broker.send_batch([Send(b"%d" % n) for n in range(6)])
    await broker.send(b"delayed", delay_ms=5_000)
    first, second, third, _ = await receive(broker, 4)
    await first.ack()
    await second.retry(delay_ms=5_000)
    await third.dead_letter("why")
    assert await holds(broker, Depth(ready=2, delayed=2, leased=1, dead=1))


# Surviving and sharing.


async def test_durable_means_that_a_queue_opened_again_has_its_messages_and_their_leases(
    broker_engine: BrokerEngine, tmp_path, clock
):
    first = await broker_engine.open(tmp_path, clock)
    await first.broker.send_batch([Send(b"held"), Send(b"ready"), Send(b"dead")])
    _, _, dead = await receive(first.broker, 3)
    await dead.dead_letter("why")
    await first.broker.send(b"ready")
    depth = await first.broker.depth()
    await first.close()
    second = await broker_engine.open(tmp_path, clock)
    kept = BrokerCapability.DURABLE in broker_engine.claims
    assert await second.broker.depth() == (depth if kept else Depth(0, 0, 0, 0))
    clock.advance(LEASE_MS)
    assert len(await receive(second.broker)) == (3 if kept else 0)
    await second.close()


async def test_shared_means_that_two_who_open_it_share_the_work(broker_engine: BrokerEngine, tmp_path, clock):
    first, second = await broker_engine.open(tmp_path, clock), await broker_engine.open(tmp_path, clock)
    shared = BrokerCapability.SHARED in broker_engine.claims
    waiting = asyncio.create_task(receive(second.broker, wait=NEVER_MS if shared else 0))
    await asyncio.sleep(0.02)
    await first.broker.send(b"m", "k")
    async with asyncio.timeout(PATIENCE_S):
        received = await waiting
    assert [message.body for message in received] == ([b"m"] if shared else [])
    assert len(await receive(first.broker)) == (0 if shared else 1)
    assert [await message.ack() for message in received] == ([True] if shared else [])
    await first.close()
    await second.close()

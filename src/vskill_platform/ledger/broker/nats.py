"""The queue on NATS JetStream, for many workers beside any store: a work-queue stream with one subject per key, so
that a key has at most one live message, and a stream of dead letters beside it.

The server measures leases (its `ack_wait`). `capabilities` leaves out what it cannot do, and the record makes up for
it: a late ack is harmless because the record's version decides, and a long delay acks the message because recovery
sends it again when the record is due. A message is never part of a record store's commit: it is sent after the
commit, and recovery covers the gap.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from vskill_core.errors import QueueUnavailable
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker import nats_server
from vskill_platform.ledger.broker import nats_wire as wire
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    Broker,
    BrokerCapability,
    DeadLetter,
    DeadLetterPage,
    Delivery,
    DeliveryEnd,
    Depth,
    Settlement,
)
from vskill_platform.ledger.broker.nats_bounds import OwnerBounds
from vskill_platform.ledger.clock import SystemClock

_log = structlog.get_logger(__name__)
_CLOCK = SystemClock()

#: Longer delays are left to recovery: delayed messages would use up the server's limit of unacknowledged ones.
LONGEST_DELAY_MS = 5_000
#: How many publications wait for their acknowledgement at once.
SENDS_AT_ONCE = 256

_NO_MESSAGES = ("404", "408")


class _Inbox:
    """Where the server sends requested messages; one request at a time."""

    subscription: Subscription

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.answers: asyncio.Queue[Msg | None] = asyncio.Queue()
        self.listening = True


class NatsBroker(Broker):
    """Messages in JetStream."""

    engine = "nats"
    capabilities = frozenset(
        {
            # The server redelivers before it delivers new messages.
            BrokerCapability.FIRST,
            BrokerCapability.DEAD_LETTER_LISTING,
            BrokerCapability.DURABLE,
            BrokerCapability.SHARED,
        }
    )

    def __init__(
        self,
        client: Client,
        place: nats_server.NatsLocation,
        lease_ms: int,
        longest_delay_ms: int,
        answer_s: float = nats_server.ANSWER_S,
    ) -> None:
        self.place = place
        self._client = client
        self._js: JetStreamContext = client.jetstream(timeout=answer_s)
        self._answer_s = answer_s
        self._lease_ms = lease_ms
        self._longest_delay_ms = longest_delay_ms
        #: Inboxes for requested messages: those in use, and those that can be reused.
        self._asking: set[_Inbox] = set()
        self._idle: list[_Inbox] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._bounds = OwnerBounds(self._live_tokens, self._send)
        self._closed = False

    @classmethod
    async def open(
        cls,
        location: str,
        *,
        lease_ms: int = LEASE_MS,
        longest_delay_ms: int = LONGEST_DELAY_MS,
        answer_s: float = nats_server.ANSWER_S,
    ) -> "NatsBroker":
        """Connect, and create missing streams. A server that takes longer than `answer_s` is unavailable."""
        place = nats_server.NatsLocation.of(location)
        client = await nats_server.connect(place)
        broker = cls(client, place, lease_ms, longest_delay_ms, answer_s)
        try:
            with nats_server.translate_errors(place.shown):
                await nats_server.create_queues(broker._js, place, lease_ms)
        except BaseException:
            await client.close()
            raise
        return broker

    # Sending.

    async def send_batch(self, sends: Sequence[Send]) -> int:
        """Messages beyond an owner's bound are sent later, and count as not new."""
        kept = [send for send in sends if send.delay_ms <= self._longest_delay_ms]
        kept = await self._bounds.admit(kept)
        new = 0
        for start in range(0, len(kept), SENDS_AT_ONCE):
            chunk = kept[start : start + SENDS_AT_ONCE]
            new += sum(await self._gather(self._send(send) for send in chunk))
        return new

    async def _send(self, send: Send) -> bool:
        return await self._publish(self.place.subject_of(wire.token_of(send)), wire.payload_of(send))

    async def _live_tokens(self, owner: str) -> set[str]:
        every = self.place.subject_of(f"{wire.owner_token(owner)}.*")
        with self._talking():
            try:
                found = await self._js.stream_info(self.place.work, subjects_filter=every)
            except NotFoundError:
                await self._create_again()
                return set()
        start = len(self.place.subject_of(""))
        return {subject[start:] for subject in found.state.subjects or ()}

    async def _publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> bool:
        """False if the subject has a message already. Creates missing streams, and tries again once."""
        with self._talking():
            try:
                return await self._publish_once(subject, payload, headers)
            except NoStreamResponseError:
                await self._create_again()
                return await self._publish_once(subject, payload, headers)

    async def _publish_once(self, subject: str, payload: bytes, headers: dict[str, str] | None) -> bool:
        try:
            await self._js.publish(subject, payload, headers=headers)
        except APIError as error:
            if not nats_server.subject_taken(error):
                raise
            return False
        return True

    async def _create_again(self) -> None:
        """After the server lost its disk or was replaced: the records are the truth, so an empty queue will do."""
        _log.warning("the queue's streams are gone; making them again", broker=self.place.shown)
        with nats_server.translate_errors(self.place.shown):
            await nats_server.create_queues(self._js, self.place, self._lease_ms)

    # Receiving.

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        deadline = time.monotonic() + max_wait_ms / 1000
        while not self._closed:
            taken = self._due(await self._take(limit, deadline))
            if taken or time.monotonic() >= deadline:
                return taken
        return ()

    async def _take(self, limit: int, deadline: float) -> list[Msg]:
        """The messages that are there; if none, wait for the next one and take what came with it.

        A request that waits asks for one message only, so that no part of it stays open: a message that the server
        sends to a receiver that has stopped listening is redelivered only when its lease ends.
        """
        there = await self._pull(limit, 0)
        left = deadline - time.monotonic()
        if there or left <= 0 or self._closed:
            return there
        first = await self._pull(1, left)
        if not first or limit == 1:
            return first
        try:
            return [*first, *await self._pull(limit - 1, 0)]
        except QueueUnavailable:
            return first
        except asyncio.CancelledError:
            self._give_back(first)
            raise

    async def _pull(self, batch: int, wait_s: float) -> list[Msg]:
        """One request: the messages that are there, or with `wait_s` the first to come."""
        self._check_connected()
        taken: list[Msg] = []
        inbox = self._idle.pop() if self._idle else await self._new_inbox()
        self._asking.add(inbox)
        request = wire.pull_request(batch, wait_s)
        try:
            with nats_server.translate_errors(self.place.shown):
                await self._client.publish(self.place.next_subject, request, inbox.subject)
                async with asyncio.timeout(wait_s + self._answer_s):
                    await self._collect(inbox, batch, taken)
        except BaseException:
            self._abandon(inbox, taken)
            raise
        self._asking.discard(inbox)
        self._idle.append(inbox)
        return taken

    async def _collect(self, inbox: "_Inbox", batch: int, taken: list[Msg]) -> None:
        while len(taken) < batch and (message := await inbox.answers.get()) is not None:
            if wire.status_of(message) is not None:
                await self._check_status(message)
                return
            taken.append(message)

    async def _new_inbox(self) -> "_Inbox":
        inbox = _Inbox(self._client.new_inbox())

        async def arrived(message: Msg) -> None:
            if inbox.listening:
                inbox.answers.put_nowait(message)
            else:
                self._give_back([message])

        with nats_server.translate_errors(self.place.shown):
            inbox.subscription = await self._client.subscribe(inbox.subject, cb=arrived)
        return inbox

    def _abandon(self, inbox: "_Inbox", taken: Iterable[Msg]) -> None:
        """The receiver is gone: return the messages that came, and those still on their way."""
        self._give_back(taken)
        self._asking.discard(inbox)
        inbox.listening = False
        waiting = [inbox.answers.get_nowait() for _ in range(inbox.answers.qsize())]
        self._give_back(message for message in waiting if message is not None)
        if self._client.is_connected:
            self._in_background(inbox.subscription.drain())  # type: ignore[no-untyped-call]

    async def _check_status(self, message: Msg) -> None:
        """Raise, unless the status only says that there are no messages."""
        status = wire.status_of(message)
        if status in _NO_MESSAGES:
            return
        words = (message.headers or {}).get("Description", "nobody answers for the queue")
        if status == "503" or "Consumer Deleted" in words:
            await self._create_again()
            return
        raise QueueUnavailable(f"{self.place.shown}: {words}", reason=words)

    def _give_back(self, messages: Iterable[Msg]) -> None:
        """Return messages without waiting: if that fails, their leases end by themselves."""
        for message in messages:
            if wire.status_of(message) is None and not self._closed:
                self._in_background(self._client.publish(message.reply, wire.NAK))

    def _due(self, messages: Iterable[Msg]) -> list[Delivery]:
        """Deliveries of messages whose delay is over; the others are delayed again until then."""
        due: list[Delivery] = []
        for message in messages:
            envelope, delivery = wire.delivery_of(message)
            early = delivery.sent_at + envelope.delay_ms - _CLOCK.now() if envelope.delay_ms else 0
            if early > 0 and delivery.deliveries == 1:
                nak = wire.nak_after(min(early, envelope.delay_ms))
                self._in_background(self._client.publish(delivery.reply, nak))
                continue
            if envelope.delay_ms and delivery.deliveries > 1:
                # The first delivery only started the delay.
                delivery = msgspec.structs.replace(delivery, deliveries=delivery.deliveries - 1)
            due.append(delivery)
        return due

    # Settling.

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        first: dict[int, Settlement] = {}
        for one in settlements:
            if one.outcome is not None:
                first.setdefault(one.delivery.id, one)
        return await self._gather(
            self._settle(one, refused=one.outcome is not None and first[one.delivery.id] is not one)
            for one in settlements
        )

    async def _settle(self, settlement: Settlement, *, refused: bool) -> bool:
        """`refused`: it is the second settlement of the same delivery in one call."""
        if refused:
            return False
        delivery = settlement.delivery
        assert isinstance(delivery, wire.NatsDelivery)  # noqa: S101 - this broker hands out no other
        match settlement.outcome:
            case None:
                return await self._tell(delivery, wire.IN_PROGRESS)
            case DeliveryEnd.RETRY if settlement.delay_ms <= self._longest_delay_ms:
                return await self._tell(delivery, wire.nak_after(settlement.delay_ms))
            case DeliveryEnd.DEAD_LETTER:
                await self._bury(delivery, settlement.reason)
        return await self._tell(delivery, wire.ACK)

    async def _tell(self, delivery: wire.NatsDelivery, words: bytes) -> bool:
        """Settle and wait for the server's answer; False if nobody responds, because the queue is gone."""
        with self._talking():
            try:
                await self._client.request(delivery.reply, words, timeout=self._answer_s)
            except NoRespondersError:
                return False
        return True

    async def _bury(self, delivery: wire.NatsDelivery, reason: str) -> None:
        """Store the dead letter before the ack. A crash in between duplicates nothing: the server knows the id."""
        headers = {"Nats-Msg-Id": f"{delivery.id}-{delivery.sent_at}"}
        token = delivery.subject.removeprefix(self.place.subject_of(""))
        await self._publish(self.place.dead_subject, wire.dead_payload(delivery, reason, token), headers)

    # Looking.

    async def depth(self) -> Depth:
        """The server cannot tell delayed from leased: both count as leased, and so do returned messages."""
        with self._talking():
            work, dead, consumer = await asyncio.gather(
                self._js.stream_info(self.place.work),
                self._js.stream_info(self.place.dead),
                self._js.consumer_info(self.place.work, self.place.consumer),
            )
        live = work.state.messages
        ready = min(consumer.num_pending or 0, live)
        return Depth(ready=ready, delayed=0, leased=live - ready, dead=dead.state.messages)

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        items: list[DeadLetter] = []
        place = after or 0
        while len(items) <= limit and (kept := await self._dead(place + 1, onwards=True)) is not None:
            items.append(wire.dead_letter_of(kept))
            place = items[-1].id
        page = tuple(items[:limit])
        return DeadLetterPage(page, page[-1].id if len(items) > limit else None)

    async def _dead(self, number: int, *, onwards: bool = False) -> api.RawStreamMsg | None:
        subject = self.place.dead_subject if onwards else None
        with self._talking():
            try:
                return await self._js.get_msg(self.place.dead, seq=number, subject=subject, next=onwards)
            except NotFoundError:
                return None

    async def replay(self, dead_letter_id: int) -> bool:
        """Queue it before removing it: a crash in between leaves it in both places, never in none."""
        kept = await self._dead(dead_letter_id)
        if kept is None:
            return False
        token, payload = wire.replay_of(kept)
        await self._publish(self.place.subject_of(token), payload)
        await self.discard(dead_letter_id)
        return True

    async def discard(self, dead_letter_id: int) -> bool:
        with self._talking():
            try:
                return await self._js.delete_msg(self.place.dead, dead_letter_id)
            except APIError:
                # The server has several errors for a missing message.
                if await self._dead(dead_letter_id) is None:
                    return False
                raise

    # Closing.

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._bounds.close()
        for inbox in self._asking:
            inbox.answers.put_nowait(None)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _check_connected(self) -> None:
        """Fail fast while reconnecting; callers handle the outage."""
        if self._closed or not self._client.is_connected:
            raise QueueUnavailable(f"{self.place.shown} cannot be reached", reason="not connected")

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Translate the server's errors."""
        self._check_connected()
        with nats_server.translate_errors(self.place.shown):
            yield

    async def _gather(self, calls: Iterable[Awaitable[bool]]) -> list[bool]:
        """Await all calls; then raise the first error, if any."""
        results: list[bool | BaseException] = await asyncio.gather(*calls, return_exceptions=True)
        for one in results:
            if isinstance(one, BaseException):
                raise one
        return [one is True for one in results]

    def _in_background(self, work: Awaitable[object]) -> None:
        """Run it with the usual timeout, because closing the queue waits for it."""

        async def finish() -> None:
            try:
                async with asyncio.timeout(self._answer_s):
                    await work
            except Exception as error:  # noqa: BLE001 - whatever it is, the lease ends by itself
                _log.debug("message not given back; its lease will end", error=repr(error))

        task = asyncio.ensure_future(finish())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

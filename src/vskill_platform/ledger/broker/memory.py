"""The queue in memory: the engine of tests, demos and the simulator, beside the store in memory.

A message has one time, `visible_at`: when it was due, when its delay ends, or when its lease does. The earliest is
taken first. No change awaits anything, so a cancelled receiver has leased nothing.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec

from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    Broker,
    BrokerCapability,
    Candidate,
    DeadLetter,
    DeadLetterPage,
    Delivery,
    DeliveryEnd,
    Depth,
    FairShare,
    Settlement,
    latest_lease_end,
)
from vskill_platform.ledger.clock import Clock


class _Live(msgspec.Struct):
    """A message that is not settled."""

    id: int
    body: bytes
    key: str | None
    visible_at: int
    sent_at: int
    owner: str = ""
    deliveries: int = 0
    #: The token of the last lease; 0 while it waits.
    token: int = 0

    @property
    def candidate(self) -> Candidate:
        begun = self.deliveries and self.visible_at <= self.sent_at
        return Candidate(self.visible_at, self.id, "" if begun else self.owner)


class MemoryBroker(Broker):
    """Live messages by id, and a heap of the times at which they are visible."""

    engine = "memory"
    capabilities = frozenset(BrokerCapability) - {BrokerCapability.DURABLE, BrokerCapability.SHARED}

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._share = FairShare()
        self._numbers = count(1)
        self._live: dict[int, _Live] = {}
        self._by_key: dict[str, _Live] = {}
        #: Pairs of time and id. One whose message has another time by now is stale, and dropped when it comes up.
        self._times: list[tuple[int, int]] = []
        self._dead: dict[int, DeadLetter] = {}
        self._receivers: set[asyncio.Future[None]] = set()
        self._closed = False

    # Sending.

    async def send_batch(self, sends: Sequence[Send]) -> int:
        return self.send_now(sends)

    def send_now(self, sends: Sequence[Send]) -> int:
        """Send without an await, so that a commit of the in-memory store can include it."""
        return sum([self._send(send) for send in sends])

    def _send(self, send: Send) -> bool:
        now = self._clock.now()
        visible_at = now + send.delay_ms
        there = self._by_key.get(send.key) if send.key is not None else None
        if there is None:
            message = _Live(next(self._numbers), send.body, send.key, visible_at, now, send.owner)
            self._live[message.id] = message
            if message.key is not None:
                self._by_key[message.key] = message
            self._show(message, visible_at)
            return True
        if send.first and there.deliveries:
            visible_at = min(visible_at, there.sent_at)
        if visible_at < there.visible_at and not self._is_held(there, now):
            self._show(there, visible_at)
        return False

    def _is_held(self, message: _Live, now: int) -> bool:
        """Whether it is leased. A lease that ends too far ahead was given before the clock was set back."""
        return message.token != 0 and now < message.visible_at <= latest_lease_end(now)

    def _show(self, message: _Live, visible_at: int) -> None:
        message.visible_at = visible_at
        heapq.heappush(self._times, (visible_at, message.id))
        self._wake()

    # Receiving.

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max_wait_ms / 1000
        while not self._closed:
            taken = self._lease(limit)
            left = deadline - loop.time()
            if taken or left <= 0:
                return taken
            await self._wait(left)
        return ()

    def _lease(self, limit: int) -> tuple[Delivery, ...]:
        now = self._clock.now()
        front: dict[int, _Live] = {}
        while len(front) < self._share.front(limit):
            message = self._earliest()
            if message is None or message.visible_at > now:
                break
            heapq.heappop(self._times)
            front[message.id] = message
        chosen = [*front.values()][:limit]
        if self._share.bulk_owners((one.candidate.owner for one in front.values()), limit):
            others = self._earliest_by_owner(now, self._share.most(limit))
            candidates = {one.candidate for one in (*front.values(), *others)}
            chosen = [self._live[one.id] for one in self._share.choose(candidates, limit)]
        taken = tuple([self._hand_out(message, now) for message in chosen])
        for message in front.values():
            if message.visible_at <= now:
                heapq.heappush(self._times, (message.visible_at, message.id))
        return taken

    def _earliest_by_owner(self, now: int, most: int) -> Iterator[_Live]:
        """The earliest messages of every owner; messages without an owner come by age alone."""
        seen: Counter[str] = Counter()
        visible = [one for one in self._live.values() if one.owner and one.visible_at <= now]
        for message in sorted(visible, key=lambda one: (one.visible_at, one.id)):
            seen[message.owner] += 1
            if seen[message.owner] <= most:
                yield message

    def _earliest(self) -> _Live | None:
        while self._times:
            visible_at, number = self._times[0]
            message = self._live.get(number)
            if message is not None and message.visible_at == visible_at:
                return message
            heapq.heappop(self._times)
        return None

    def _hand_out(self, message: _Live, now: int) -> Delivery:
        message.token = next(self._numbers)
        message.deliveries += 1
        message.visible_at = now + LEASE_MS
        heapq.heappush(self._times, (message.visible_at, message.id))
        return Delivery(
            message.id, message.token, message.body, message.key, message.deliveries, message.sent_at
        )

    async def _wait(self, seconds: float) -> None:
        """Wait until something was sent or returned, the next message is visible, or the timeout ends."""
        earliest = self._earliest()
        if earliest is not None:
            seconds = min(seconds, max(earliest.visible_at - self._clock.now(), 1) / 1000)
        receiver: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._receivers.add(receiver)
        try:
            await asyncio.wait((receiver,), timeout=seconds)
        finally:
            self._receivers.discard(receiver)

    def _wake(self) -> None:
        for receiver in self._receivers:
            if not receiver.done():
                receiver.set_result(None)

    # Settling.

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        return tuple([self._settle(settlement) for settlement in settlements])

    def _settle(self, settlement: Settlement) -> bool:
        message = self._live.get(settlement.delivery.id)
        if message is None or message.token != settlement.delivery.token:
            return False
        now, outcome = self._clock.now(), settlement.outcome
        if outcome in (None, DeliveryEnd.RETRY):
            if outcome is not None:
                message.token = 0
            self._show(message, settlement.visible_at(now))
            return True
        del self._live[message.id]
        if message.key is not None:
            del self._by_key[message.key]
        if outcome is DeliveryEnd.DEAD_LETTER:
            facts = (message.body, message.key, settlement.reason, message.deliveries, message.sent_at, now)
            number = next(self._numbers)
            self._dead[number] = DeadLetter(number, *facts)
        return True

    # Looking.

    async def depth(self) -> Depth:
        now = self._clock.now()
        ahead = [message for message in self._live.values() if message.visible_at > now]
        leased = sum(1 for message in ahead if message.token)
        return Depth(len(self._live) - len(ahead), len(ahead) - leased, leased, len(self._dead))

    def all_dead_letters(self) -> list[DeadLetter]:
        return list(self._dead.values())

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        found = [letter for letter in self._dead.values() if after is None or letter.id > after]
        return DeadLetterPage(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None)

    async def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            number = next(self._numbers)
            self._dead[number] = msgspec.structs.replace(letter, id=number)

    async def replay(self, dead_letter_id: int) -> bool:
        letter = self._dead.pop(dead_letter_id, None)
        if letter is not None:
            self._send(Send(letter.body, letter.key))
        return letter is not None

    async def discard(self, dead_letter_id: int) -> bool:
        return self._dead.pop(dead_letter_id, None) is not None

    async def close(self) -> None:
        self._closed = True
        self._wake()

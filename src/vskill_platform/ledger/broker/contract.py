"""The broker contract: messages at least once, each under a lease, at most one live message per key.

An engine moves messages (`send_batch`, `receive`, `settle`) and knows nothing of submissions. How a message may
be settled, and that the first settlement wins, is written once, here, for every engine. There is no limit of
deliveries: attempts are counted in the record, where people can see them.
"""

import enum
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import structlog

from vskill_core.errors import Unsupported
from vskill_platform.domain.messages import Send
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS

_log = structlog.get_logger(__name__)

#: How long a received message stays invisible unless extended. Equal to a claim's length.
LEASE_MS = 15_000


def latest_lease_end(now: int) -> int:
    """The latest end of a lease that was given or extended by now, on any machine's clock.

    If a lease ends later, the clock has gone back since and its start is unknown, so sending its message again treats
    the lease as ended.
    """
    return now + LEASE_MS + CLOCK_SLACK_MS


#: While others wait, one owner gets at most one in this many of the messages taken.
FAIR_PARTS = 3
#: How many owners one receive looks at if one of them exceeds its share.
OWNERS_AT_ONCE = 64


class Candidate(NamedTuple):
    """A message that can be taken now."""

    visible_at: int
    id: int
    owner: str


class FairShare:
    """Leaves room for others where one owner's messages fill the front of the queue (a bulk submission, a rescan of
    everything). That owner then gets a third of the messages taken, and more only if nobody else waits. A message that
    was handed out before and returned to its first place had its turn already, so it counts for no owner.

    One instance counts for all receives of a queue in this process, so that small receives add up to a third as well.
    """

    def __init__(self) -> None:
        self._asked = 0
        #: Round robin over owners by name, OWNERS_AT_ONCE per receive: the next receive continues after this one.
        self.looked_to = ""

    @staticmethod
    def most(limit: int) -> int:
        return max(limit // FAIR_PARTS, 1)

    @staticmethod
    def front(limit: int) -> int:
        return max(limit, FAIR_PARTS)

    @classmethod
    def bulk_owners(cls, owners: Iterable[str], limit: int) -> frozenset[str]:
        """Owners of too many of the earliest messages."""
        counts = Counter(owner for owner in owners if owner)
        return frozenset(owner for owner, count in counts.items() if count > cls.most(limit))

    def choose(self, candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
        """The messages to take: the earliest, within each owner's share if the front has bulk owners."""
        ordered = sorted(candidates)
        bulk = self.bulk_owners((one.owner for one in ordered[: self.front(limit)]), limit)
        if not bulk:
            return ordered[:limit]
        before, self._asked = self._asked // FAIR_PARTS, self._asked + limit
        share = self._asked // FAIR_PARTS - before
        seen: Counter[str] = Counter()
        within: list[Candidate] = []
        beyond: list[Candidate] = []
        for one in ordered:
            seen[one.owner] += 1
            most = share if one.owner in bulk else self.most(limit)
            (beyond if one.owner and seen[one.owner] > most else within).append(one)
        return (within + beyond)[:limit]


class BrokerCapability(enum.Enum):
    """What an engine can do beyond the core."""

    #: A settlement has no effect once another consumer has the lease.
    FENCED_SETTLEMENT = "fenced settlement"
    #: Fresh messages do not wait behind retried ones that became visible later.
    FAIR_ORDER = "fair order"
    #: A message that was handed out and is sent `first` comes before everything that was sent later.
    FIRST = "first"
    #: While others wait, one owner gets at most a third of the messages taken.
    FAIR_SHARES = "fair shares"
    #: Dead letters can be listed page by page, replayed and discarded.
    DEAD_LETTER_LISTING = "dead letter listing"
    #: Dead letters of another queue can be added as they are.
    DEAD_LETTER_COPIES = "dead letter copies"
    #: The engine keeps any delay; without this a long delay acks the message, and recovery sends it again.
    LONG_DELAYS = "long delays"
    #: Sending again makes a delayed message visible earlier; without this it waits until its short delay ends.
    PULL_FORWARD = "pulling forward"
    #: A lease can be shortened; without this every extension lasts one whole lease.
    SHORT_LEASES = "short leases"
    #: `depth` counts delayed, leased and ready separately; without this only their sum and the dead letters are exact.
    DEPTH_BY_KIND = "depth by kind"
    DURABLE = "durable"
    SHARED = "shared between processes"


class DeliveryEnd(enum.Enum):
    """How a delivery ends."""

    ACK = "ack"
    RETRY = "retry"
    DEAD_LETTER = "dead letter"


class Delivery(msgspec.Struct, frozen=True):
    """One delivery of a message: what an engine hands out, and the lease that settles it."""

    id: int
    #: Names this lease; a later delivery of the same message has another.
    token: int
    body: bytes
    key: str | None
    #: How many times it was handed out, this one included.
    deliveries: int
    sent_at: int


class Settlement(msgspec.Struct, frozen=True):
    """What to do with a delivery. `outcome` None extends the lease."""

    delivery: Delivery
    outcome: DeliveryEnd | None = None
    #: Until it is visible again (RETRY), or until the lease ends (extension).
    delay_ms: int = 0
    reason: str = ""
    #: A RETRY at the place where it stood when it was sent.
    first: bool = False

    def visible_at(self, now: int) -> int:
        return min(self.delivery.sent_at, now) if self.first else now + self.delay_ms


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that nobody will receive any more, and why."""

    id: int
    body: bytes
    key: str | None
    reason: str
    deliveries: int
    sent_at: int
    died_at: int


class DeadLetterPage(msgspec.Struct, frozen=True):
    """One page of dead letters."""

    items: tuple[DeadLetter, ...]
    #: The id to go on after; None at the end.
    after: int | None = None


class Depth(msgspec.Struct, frozen=True):
    """How many messages there are, by what they wait for."""

    ready: int
    delayed: int
    leased: int
    dead: int


class Message:
    """A received message. The first of ack, retry and dead_letter wins; later calls do nothing."""

    def __init__(self, broker: "Broker", delivery: Delivery) -> None:
        self._broker = broker
        self.delivery = delivery
        self.settled: DeliveryEnd | None = None

    @property
    def body(self) -> bytes:
        return self.delivery.body

    @property
    def key(self) -> str | None:
        return self.delivery.key

    @property
    def deliveries(self) -> int:
        return self.delivery.deliveries

    async def ack(self) -> bool:
        """It is done. False if it was settled already or another consumer has the lease."""
        return await self._settle(Settlement(self.delivery, DeliveryEnd.ACK))

    async def retry(self, delay_ms: int = 0) -> bool:
        return await self._settle(Settlement(self.delivery, DeliveryEnd.RETRY, delay_ms))

    async def dead_letter(self, reason: str) -> bool:
        return await self._settle(Settlement(self.delivery, DeliveryEnd.DEAD_LETTER, reason=reason))

    async def extend(self, lease_ms: int = LEASE_MS) -> bool:
        """Extend the lease, at most to one whole lease from now. False if it is lost."""
        if self.settled is not None:
            return False
        (kept,) = await self._broker.settle([Settlement(self.delivery, None, min(lease_ms, LEASE_MS))])
        return kept

    async def _settle(self, settlement: Settlement) -> bool:
        if self.settled is not None:
            return False
        self.settled = settlement.outcome
        try:
            (applied,) = await self._broker.settle([settlement])
        except BaseException:
            self.settled = None
            raise
        return applied


class Batch:
    """Messages received together and handled as one call of the consumer."""

    def __init__(self, messages: Sequence[Message], broker: "Broker") -> None:
        self.messages = tuple(messages)
        self._broker = broker

    async def ack_all(self) -> None:
        await self._settle_rest(DeliveryEnd.ACK)

    async def retry_all(self, delay_ms: int = 0) -> None:
        await self._settle_rest(DeliveryEnd.RETRY, delay_ms)

    async def hand_back(self) -> None:
        """Return whatever is not settled yet to its old place, because the worker stops."""
        await self._settle_rest(DeliveryEnd.RETRY, first=True)

    async def _settle_rest(self, outcome: DeliveryEnd, delay_ms: int = 0, *, first: bool = False) -> None:
        rest = [message for message in self.messages if message.settled is None]
        if not rest:
            return
        for message in rest:
            message.settled = outcome
        try:
            await self._broker.settle([Settlement(m.delivery, outcome, delay_ms, first=first) for m in rest])
        except BaseException:
            for message in rest:
                message.settled = None
            raise


class Broker(ABC):
    """A queue. Times are milliseconds; the engine's own clock measures leases and delays."""

    engine: str
    capabilities: frozenset[BrokerCapability]

    async def send(self, body: bytes, key: str | None = None, delay_ms: int = 0) -> bool:
        """Queue one message. False if a live message of that key was there already."""
        return await self.send_batch([Send(body, key, delay_ms)]) == 1

    @abstractmethod
    async def send_batch(self, sends: Sequence[Send]) -> int:
        """Queue messages; how many are new.

        A waiting message of the same key is pulled forward to the earlier of the two times; with `first`, one
        that was handed out before goes to its first place. A leased message stays as it is, because its worker
        reads the record again before it acks. A lease beyond `latest_lease_end` counts as ended: the message
        becomes visible at the requested time.
        """

    async def send_after_commit(self, sends: Sequence[Send]) -> None:
        """Queue messages after a commit in another database. A failed send must not make the commit look failed:
        recovery sends the message again."""
        try:
            await self.send_batch(sends)
        except Exception as error:  # noqa: BLE001 - whatever it is, the commit stands
            _log.warning("message not sent after commit", error=repr(error), messages=len(sends))

    async def receive(
        self, max_batch_size: int = 3, max_wait_ms: int = 5_000, batches: int = 1
    ) -> tuple[Batch, ...]:
        """Up to `batches` batches of up to `max_batch_size` visible messages, oldest visible first.

        Waits up to `max_wait_ms` for the first message; empty if there was none.
        """
        deliveries = await self.take(max_batch_size * batches, max_wait_ms)
        messages = [Message(self, delivery) for delivery in deliveries]
        return tuple(
            Batch(messages[start : start + max_batch_size], self)
            for start in range(0, len(messages), max_batch_size)
        )

    @abstractmethod
    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        """Lease up to `limit` visible messages, the earliest first (but see `FairShare`), waiting for the first."""

    @abstractmethod
    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """Apply each settlement whose lease still holds; whether each one did. Urgent for extensions."""

    @abstractmethod
    async def depth(self) -> Depth:
        """How much is queued."""

    async def dead_letter_count(self) -> int:
        """How many dead letters there are. Every health check asks, so the cost must not depend on what waits."""
        return (await self.depth()).dead

    @abstractmethod
    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        """Dead letters, oldest first."""

    @abstractmethod
    async def replay(self, dead_letter_id: int) -> bool:
        """Queue a dead letter again, as a fresh message. False if it is gone."""

    @abstractmethod
    async def discard(self, dead_letter_id: int) -> bool:
        """Remove a dead letter. False if it is gone."""

    async def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Keep dead letters of another queue, in this order, with new ids and otherwise unchanged."""
        raise Unsupported(capability=BrokerCapability.DEAD_LETTER_COPIES.value, engine=self.engine)

    async def close(self) -> None:
        """Stop waiting receivers and close connections."""

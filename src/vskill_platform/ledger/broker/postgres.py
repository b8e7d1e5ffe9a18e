"""The queue on PostgreSQL: its own tables beside the records, so that a record and its message are one commit.

Receivers skip rows that others are taking (`SKIP LOCKED`), so any number of workers on any number of machines share one
queue. A notification wakes them; if it is lost, they poll after a second. Settlements of one process that arrive
together, or while another is under way, run in one statement: their slots become free together, and one receive fills
them.
"""

import asyncio
import time
from collections.abc import Sequence
from contextvars import Context
from typing import Any

import msgspec

from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import (
    LEASE_MS,
    OWNERS_AT_ONCE,
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
from vskill_platform.ledger.database.postgres import PostgresDatabase

MESSAGES = "vskill_messages"

_SEND = "SELECT send_messages($1, $2, $3, $4, $5, $6)"
_SEND_KEYLESS = """
INSERT INTO messages (visible_at, sent_at, body, owner)
SELECT one.at, $4, one.body, one.owner FROM unnest($1::bigint[], $2::bytea[], $3::text[]) AS one (at, body, owner)
"""
_PUT_FIRST = """
UPDATE messages SET visible_at = sent_at WHERE key = ANY ($1) AND deliveries > 0
AND visible_at > sent_at AND NOT (leased AND visible_at > $2 AND visible_at <= $3)
"""
#: Lease the messages of `due`, and return them in that order.
_LEASE = """
, taken AS (
    UPDATE messages AS m SET visible_at = $3, leased = true, deliveries = m.deliveries + 1
    FROM due WHERE m.id = due.id
    RETURNING m.id, m.deliveries, m.body, m.key, m.sent_at, due.place
)
SELECT id, deliveries, body, key, sent_at FROM taken ORDER BY place, id
"""
#: A message returned to its first place had its turn already, so it counts for no owner (`FairShare`).
_OWNER = "CASE WHEN deliveries > 0 AND visible_at <= sent_at THEN '' ELSE owner END"
# Takes nothing if one owner has too many of the earliest messages: then `_BY_OWNER` finds candidates.
_TAKE = f"""
WITH due AS (
    SELECT id, visible_at AS place FROM messages WHERE visible_at <= $1 AND NOT EXISTS (
        SELECT FROM (
            SELECT {_OWNER} AS owner FROM messages WHERE visible_at <= $1 ORDER BY visible_at, id LIMIT $4
        ) AS front WHERE owner <> '' GROUP BY owner HAVING count(*) > $5
    ) ORDER BY visible_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
){_LEASE}"""  # noqa: S608 - our own text
# The earliest messages of some owners, found one owner after the other by index, and the earliest of all; and, as a row
# without an id, the last owner examined. The round wraps from the last owner to the first and ends where it began: each
# further step would scan all delayed messages again.
_BY_OWNER = f"""
WITH RECURSIVE owners (owner, number) AS (
    SELECT $2::text COLLATE "C", 0
    UNION ALL
    SELECT coalesce(
        (SELECT m.owner FROM messages AS m
            WHERE m.owner > owners.owner AND m.owner <> '' AND m.visible_at <= $1 ORDER BY m.owner LIMIT 1),
        (SELECT m.owner FROM messages AS m
            WHERE m.owner <> '' AND m.visible_at <= $1 ORDER BY m.owner LIMIT 1)
    ), number + 1 FROM owners WHERE owner IS NOT NULL AND number < $3 AND (number = 0 OR owner <> $2)
), front AS (
    SELECT visible_at, id, {_OWNER} AS owner FROM messages WHERE visible_at <= $1 ORDER BY visible_at, id LIMIT $4
)
SELECT visible_at, id, owner FROM front
UNION SELECT one.visible_at, one.id, one.owner
FROM (SELECT DISTINCT owner FROM owners WHERE number > 0) AS whose CROSS JOIN LATERAL (
    SELECT visible_at, id, {_OWNER} AS owner FROM messages AS m
    WHERE m.owner = whose.owner AND m.owner <> '' AND visible_at <= $1 ORDER BY visible_at, id LIMIT $5
) AS one
UNION ALL (SELECT NULL, NULL, owner FROM owners ORDER BY number DESC LIMIT 1)
"""  # noqa: S608 - our own text
# Another receiver may have taken some of them meanwhile.
_TAKE_CHOSEN = f"""
WITH due AS (
    SELECT id, array_position($2::bigint[], id) AS place FROM messages
    WHERE id = ANY ($2::bigint[]) AND visible_at <= $1 FOR UPDATE SKIP LOCKED
){_LEASE}"""  # noqa: S608 - our own text
_FIRST = "SELECT min(visible_at) FROM messages"
#: A settlement applies only while its lease holds.
_HELD = "m.id = one.id AND m.deliveries = one.token AND m.leased"
_ACK = f"""
DELETE FROM messages AS m USING unnest($1::bigint[], $2::integer[]) AS one (id, token)
WHERE {_HELD} RETURNING m.id, one.token
"""  # noqa: S608 - our own text
_SHOW = f"""
UPDATE messages AS m SET visible_at = one.at, leased = one.keeps
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::boolean[]) AS one (id, token, at, keeps)
WHERE {_HELD} RETURNING m.id, one.token
"""  # noqa: S608 - our own text
_BURY = f"""
WITH dead AS (
    DELETE FROM messages AS m USING unnest($1::bigint[], $2::integer[], $3::text[]) AS one (id, token, reason)
    WHERE {_HELD} RETURNING m.id, one.token, m.key, one.reason, m.deliveries, m.sent_at, m.body
), kept AS (
    INSERT INTO dead_letters (key, reason, deliveries, sent_at, died_at, body)
    SELECT key, reason, deliveries, sent_at, $4, body FROM dead ORDER BY id
)
SELECT id, token FROM dead
"""  # noqa: S608 - our own text
_DEPTH = """
SELECT count(*) FILTER (WHERE visible_at <= $1), count(*) FILTER (WHERE visible_at > $1 AND NOT leased),
    count(*) FILTER (WHERE visible_at > $1 AND leased), (SELECT count(*) FROM dead_letters)
FROM messages
"""
_DEAD_LETTERS = """
SELECT id, body, key, reason, deliveries, sent_at, died_at FROM dead_letters WHERE id > $1 ORDER BY id LIMIT $2
"""
_COPY = """
INSERT INTO dead_letters (key, reason, deliveries, sent_at, died_at, body) VALUES ($1, $2, $3, $4, $5, $6)
"""


class PostgresBroker(Broker):
    """Messages in PostgreSQL."""

    engine = "postgresql"
    capabilities = frozenset(BrokerCapability)

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self._closed = False
        self._share = FairShare()
        #: Settlements that wait for the next statement, and the task that executes it.
        self._unsettled: list[tuple[Sequence[Settlement], asyncio.Future[Sequence[bool]]]] = []
        self._settling: asyncio.Task[None] | None = None
        database.attach(self)

    # Sending.

    async def send_batch(self, sends: Sequence[Send]) -> int:
        if not sends:
            return 0
        async with self.database.transaction() as connection:
            return await send_in(connection, sends, self.database.now())

    # Receiving.

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        deadline = time.monotonic() + max_wait_ms / 1000
        with self.database.watch(MESSAGES) as watch:
            while not self._closed:
                taken = await self._take_now(limit)
                left = deadline - time.monotonic()
                if taken or left <= 0:
                    return taken
                first = await self.database.fetchval(_FIRST)
                if first is not None:
                    left = min(left, max(0.01, (first - self.database.now()) / 1000))
                await watch.changed(left)
        return ()

    async def _take_now(self, limit: int) -> Sequence[Delivery]:
        taking = asyncio.ensure_future(self._lease(limit))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Return messages leased for a cancelled receiver, instead of waiting until the leases end.
            taking.add_done_callback(self._give_back)
            raise

    async def _lease(self, limit: int) -> Sequence[Delivery]:
        now, share = self.database.now(), self._share
        until = now + LEASE_MS
        async with self.database.connection() as connection:
            rows = await connection.fetch(_TAKE, now, limit, until, share.front(limit), share.most(limit))
            if not rows:
                chosen = await self._choose_fairly(connection, now, limit)
                rows = await connection.fetch(_TAKE_CHOSEN, now, chosen, until) if chosen else []
        return [
            Delivery(number, count, bytes(body), key, count, sent_at)
            for number, count, body, key, sent_at in rows
        ]

    async def _choose_fairly(self, connection: Any, now: int, limit: int) -> list[int]:
        share = self._share
        asked = (now, share.looked_to, OWNERS_AT_ONCE, share.front(limit), share.most(limit))
        *found, (_, _, last) = await connection.fetch(_BY_OWNER, *asked)
        share.looked_to = last or ""
        return [one.id for one in share.choose([Candidate(*row) for row in found], limit)]

    def _give_back(self, taking: "asyncio.Future[Sequence[Delivery]]") -> None:
        if taking.cancelled() or taking.exception() is not None or not taking.result():
            return
        settlements = [Settlement(one, DeliveryEnd.RETRY, first=True) for one in taking.result()]
        giving = asyncio.ensure_future(self.settle(settlements))
        # Retrieve the error only to silence asyncio: the lease ends by itself.
        giving.add_done_callback(lambda done: done.cancelled() or done.exception())

    # Settling.

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        if not settlements:
            return ()
        settled: asyncio.Future[Sequence[bool]] = asyncio.get_running_loop().create_future()
        self._unsettled.append((settlements, settled))
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle_together(), context=Context())
        return await settled

    async def _settle_together(self) -> None:
        """Settle everything that has come meanwhile in one go, give each caller its results, and repeat until none
        waits."""
        while self._unsettled:
            together, self._unsettled = self._unsettled, []
            try:
                applied = iter(
                    await self._settle([one for settlements, _ in together for one in settlements])
                )
            except Exception as error:  # noqa: BLE001 - every waiting caller gets it
                for _, settled in together:
                    if not settled.done():
                        settled.set_exception(error)
                continue
            for settlements, settled in together:
                answers = [next(applied) for _ in settlements]
                if not settled.done():
                    settled.set_result(answers)

    async def _settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """A lease ends at most once, and an end wins over an extension."""
        extensions: dict[tuple[int, int], Settlement] = {}
        ends: dict[tuple[int, int], Settlement] = {}
        for one in settlements:
            chosen = extensions if one.outcome is None else ends
            chosen.setdefault(_lease_of(one), one)
        held = await self._apply([*{**extensions, **ends}.values()])
        return [
            _lease_of(one) in held and (one.outcome is None or ends[_lease_of(one)] is one)
            for one in settlements
        ]

    async def _apply(self, settlements: Sequence[Settlement]) -> set[tuple[int, int]]:
        now = self.database.now()
        acked = [one for one in settlements if one.outcome is DeliveryEnd.ACK]
        shown = [one for one in settlements if one.outcome in (None, DeliveryEnd.RETRY)]
        dead = [one for one in settlements if one.outcome is DeliveryEnd.DEAD_LETTER]
        times, keep = [one.visible_at(now) for one in shown], [one.outcome is None for one in shown]
        reasons = [one.reason.replace("\0", "") for one in dead]
        held: set[tuple[int, int]] = set()
        async with self.database.connection() as connection:
            for statement, settled, arguments in (
                (_ACK, acked, ()),
                (_SHOW, shown, (times, keep)),
                (_BURY, dead, (reasons, now)),
            ):
                if settled:
                    rows = await connection.fetch(statement, *_leases(settled), *arguments)
                    held.update((number, token) for number, token in rows)
            if any(one.outcome is DeliveryEnd.RETRY and one.delay_ms == 0 for one in shown):
                await connection.execute("SELECT pg_notify($1, '')", MESSAGES)
        return held

    # Looking.

    async def depth(self) -> Depth:
        return Depth(*await self.database.fetchrow(_DEPTH, self.database.now()))

    async def dead_letter_count(self) -> int:
        return int(await self.database.fetchval("SELECT count(*) FROM dead_letters"))

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        async with self.database.connection() as connection:
            found = await read_dead_letters(connection, after=after or 0, limit=limit + 1)
        items = tuple(found[:limit])
        return DeadLetterPage(items, items[-1].id if len(found) > limit else None)

    async def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        rows = [(one.key, one.reason, one.deliveries, one.sent_at, one.died_at, one.body) for one in letters]
        async with self.database.connection() as connection:
            await connection.executemany(_COPY, rows)

    async def replay(self, dead_letter_id: int) -> bool:
        async with self.database.transaction() as connection:
            row = await connection.fetchrow(
                "DELETE FROM dead_letters WHERE id = $1 RETURNING body, key", dead_letter_id
            )
            if row is not None:
                send = Send(bytes(row[0]), row[1])
                await send_in(connection, [send], self.database.now())
        return row is not None

    async def discard(self, dead_letter_id: int) -> bool:
        statement = "DELETE FROM dead_letters WHERE id = $1 RETURNING id"
        return await self.database.fetchval(statement, dead_letter_id) is not None

    async def close(self) -> None:
        self._closed = True
        self.database.wake(MESSAGES)
        await self.database.detach(self)


async def read_dead_letters(connection: Any, *, after: int = 0, limit: int | None = None) -> list[DeadLetter]:
    """The dead letters that the connection's transaction sees, oldest first."""
    rows = await connection.fetch(_DEAD_LETTERS, after, limit)
    return [DeadLetter(number, bytes(body), *rest) for number, body, *rest in rows]


def _leases(settlements: Sequence[Settlement]) -> tuple[list[int], list[int]]:
    return [one.delivery.id for one in settlements], [one.delivery.token for one in settlements]


def _lease_of(settlement: Settlement) -> tuple[int, int]:
    return settlement.delivery.id, settlement.delivery.token


def _columns(sends: Sequence[Send], now: int) -> tuple[list[int], list[bytes], list[str]]:
    times = [now + send.delay_ms for send in sends]
    return times, [send.body for send in sends], [send.owner for send in sends]


async def send_in(connection: Any, sends: Sequence[Send], now: int) -> int:
    """Queue messages in the connection's transaction; how many are new."""
    keyless = [send for send in sends if send.key is None]
    keyed: dict[str, Send] = {}
    for send in sends:
        if send.key is not None:
            known = keyed.setdefault(send.key, send)
            keyed[send.key] = msgspec.structs.replace(known, delay_ms=min(known.delay_ms, send.delay_ms))
    if keyless:
        await connection.execute(_SEND_KEYLESS, *_columns(keyless, now), now)
    keys = sorted(keyed)
    columns = _columns([keyed[key] for key in keys], now)
    latest = latest_lease_end(now)
    new = await connection.fetchval(_SEND, keys, *columns, now, latest)
    if first := sorted(send.key for send in sends if send.first and send.key is not None):
        await connection.execute(_PUT_FIRST, first, now, latest)
    return int(new) + len(keyless)

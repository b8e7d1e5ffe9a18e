"""The queue on SQLite: its own tables in the file of the record store, so that a record and its message are one
commit.

A message has one time, `visible_at`, which delays and leases move; the earliest is taken first. A message's id and
delivery count identify a lease: ids are never reused, and every delivery is counted. Operations of all waiting callers
are executed together, each kind with a fixed number of statements.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, starmap
from typing import Any

import msgspec

from vskill_core.errors import StoreUnavailable
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
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.database.writer import Insert, Tx, WriteKind

#: The watches of this channel wake when a message may be visible earlier than expected.
MESSAGES = "messages"

_KEYS_THERE = """
SELECT json_group_array(wanted.value) FROM json_each(?) AS wanted JOIN messages ON messages.key = wanted.value
"""
_INSERT = Insert("INSERT INTO messages (key, visible_at, sent_at, body, owner)", 5)
_PULL_FORWARD = """
UPDATE messages SET visible_at = wanted.value FROM json_each(?) AS wanted
WHERE messages.key = wanted.key AND visible_at > wanted.value AND (leased = 0 OR visible_at > ?)
"""
_PUT_FIRST = """
UPDATE messages SET visible_at = sent_at WHERE key IN (SELECT value FROM json_each(?)) AND deliveries > 0
AND visible_at > sent_at AND NOT (leased = 1 AND visible_at > ? AND visible_at <= ?)
"""
_FIRST_VISIBLE = "SELECT min(visible_at) FROM messages"
#: A message returned to its first place had its turn already, so it counts for no owner (`FairShare`).
_OWNER = "iif(deliveries > 0 AND visible_at <= sent_at, '', owner)"
# One row for all, since fetching row by row would wait for the GIL after each.
_MESSAGES = f"SELECT json_group_array(json_array(id, deliveries + 1, hex(body), key, sent_at, {_OWNER}))"
_FRONT = "SELECT * FROM messages WHERE visible_at <= :now ORDER BY visible_at, id LIMIT :front"
_VISIBLE = f"{_MESSAGES} FROM ({_FRONT}) AS front"
_CHOSEN = f"{_MESSAGES} FROM messages WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own text
# The earliest messages of some owners, found one owner after the other by index, and the earliest of all; and the last
# owner examined. The round wraps from the last owner to the first and ends where it began: each further step would scan
# all delayed messages again.
_BY_OWNER = f"""
WITH RECURSIVE owners (owner, number) AS (
    SELECT :after, 0
    UNION ALL
    SELECT coalesce(
        (SELECT m.owner FROM messages AS m
            WHERE m.owner > owners.owner AND m.owner <> '' AND m.visible_at <= :now ORDER BY m.owner LIMIT 1),
        (SELECT m.owner FROM messages AS m
            WHERE m.owner <> '' AND m.visible_at <= :now ORDER BY m.owner LIMIT 1)
    ), number + 1 FROM owners WHERE owner IS NOT NULL AND number < :owners AND (number = 0 OR owner <> :after)
), found AS (
    SELECT visible_at, id, {_OWNER} AS owner
    FROM (SELECT DISTINCT owner AS name FROM owners WHERE number > 0) AS one CROSS JOIN messages WHERE id IN (
        SELECT id FROM messages WHERE owner = one.name AND owner <> '' AND visible_at <= :now
        ORDER BY visible_at, id LIMIT :most
    )
    UNION
    SELECT visible_at, id, {_OWNER} FROM ({_FRONT}) AS front
)
SELECT json_group_array(json_array(visible_at, id, owner)), (SELECT owner FROM owners ORDER BY number DESC LIMIT 1)
FROM found
"""  # noqa: S608 - our own text
_LEASE = """
UPDATE messages SET visible_at = ?, leased = 1, deliveries = deliveries + 1
WHERE id IN (SELECT value FROM json_each(?))
"""
_HELD = """
SELECT json_group_array(json_array(m.id, deliveries)) FROM json_each(?) AS lease JOIN messages AS m
ON m.id = lease.value ->> 0 AND deliveries = lease.value ->> 1 AND leased = 1
"""
_DELETE = "DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))"
_SHOW = """
UPDATE messages SET visible_at = shown.value ->> 1, leased = shown.value ->> 2 FROM json_each(?) AS shown
WHERE messages.id = shown.value ->> 0
"""
_BURY = """
INSERT INTO dead_letters (key, reason, deliveries, sent_at, died_at, body)
SELECT m.key, dead.value ->> 1, deliveries, sent_at, ?, body FROM json_each(?) AS dead JOIN messages AS m
ON m.id = dead.value ->> 0
"""
_COPY = Insert("INSERT INTO dead_letters (key, reason, deliveries, sent_at, died_at, body)", 6)
_DEPTH = """
SELECT count(*) FILTER (WHERE visible_at <= ?1),
    count(*) FILTER (WHERE visible_at > ?1 AND NOT leased),
    count(*) FILTER (WHERE visible_at > ?1 AND leased),
    (SELECT count(*) FROM dead_letters)
FROM messages
"""
_DEAD = "SELECT count(*) FROM dead_letters"
_DEAD_LETTERS = """
SELECT id, body, key, reason, deliveries, sent_at, died_at FROM dead_letters WHERE id > ? ORDER BY id LIMIT ?
"""


class SqliteBroker(Broker):
    """Messages in a SQLite file."""

    engine = "sqlite"
    capabilities = frozenset(BrokerCapability)

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self._share = FairShare()
        self._settlements = WriteKind("settle", self._run_settle)
        self._sends = WriteKind("send", self._run_send)
        self._takes = WriteKind("take", self._run_take)
        self._closed = False
        database.attach(self)

    # Sending.

    async def send_batch(self, sends: Sequence[Send]) -> int:
        return await self.database.write(self._sends, sends) if sends else 0

    def _run_send(self, tx: Tx, batches: Sequence[Sequence[Send]]) -> Sequence[int]:
        new = iter(self.send_in(tx, [send for batch in batches for send in batch]))
        return [sum(islice(new, len(batch))) for batch in batches]

    def send_in(self, tx: Tx, sends: Sequence[Send]) -> list[bool]:
        """Queue messages as part of this transaction; whether each is new."""
        now = self.database.now()
        live = set(_read_json(tx, _KEYS_THERE, [send.key for send in sends if send.key is not None]))
        rows: list[list[object]] = []
        times: dict[str, int] = {}
        new: list[bool] = []
        for send in sends:
            visible_at = now + send.delay_ms
            new.append(send.key is None or (send.key not in live and send.key not in times))
            if new[-1]:
                rows.append([send.key, visible_at, now, send.body, send.owner])
            if send.key is not None:
                times[send.key] = min(visible_at, times.get(send.key, visible_at))
        if rows:
            _INSERT.into(tx, rows)
        if len(rows) < len(sends):
            latest = latest_lease_end(now)
            tx.execute(_PULL_FORWARD, (_json(times), latest))
            if first := [send.key for send in sends if send.first]:
                tx.execute(_PUT_FIRST, (_json(first), now, latest))
        tx.signals.add(MESSAGES)
        return new

    # Receiving.

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        try:
            return await self._take_in_time(limit, max_wait_ms)
        except StoreUnavailable:
            if self._closed:
                # Closed during a read: this must end the wait, as closing during a pause does.
                return ()
            raise

    async def _take_in_time(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max_wait_ms / 1000
        with self.database.watch(MESSAGES) as watch:
            while not self._closed:
                wait_ms = self._until_visible()
                taken = await self._take_now(limit) if wait_ms == 0 else ()
                left = deadline - loop.time()
                if taken or left <= 0:
                    return taken
                if wait_ms != 0:
                    await watch.changed(left if wait_ms is None else min(left, wait_ms / 1000))
        return ()

    def _until_visible(self) -> int | None:
        """Milliseconds until a message is visible; None if the queue is empty."""
        ((visible_at,),) = self.database.point_read(_FIRST_VISIBLE)
        return None if visible_at is None else max(visible_at - self.database.now(), 0)

    async def _take_now(self, limit: int) -> Sequence[Delivery]:
        taking = self.database.submit(self._takes, limit)
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Return messages leased for a cancelled receiver, instead of waiting until the leases end.
            taking.add_done_callback(self._give_back)
            raise

    def _give_back(self, taking: asyncio.Future[Sequence[Delivery]]) -> None:
        if taking.cancelled() or taking.exception() is not None or not taking.result():
            return
        with suppress(StoreUnavailable):
            settlements = [Settlement(one, DeliveryEnd.RETRY, first=True) for one in taking.result()]
            # Retrieve the error only to silence asyncio: the lease ends by itself.
            self.database.submit(self._settlements, settlements).add_done_callback(asyncio.Future.exception)

    def _run_take(self, tx: Tx, limits: Sequence[int]) -> Sequence[Sequence[Delivery]]:
        now, limit = self.database.now(), sum(limits)
        ((found,),) = tx.execute(_VISIBLE, {"now": now, "front": FairShare.front(limit)})
        rows = msgspec.json.decode(found)
        if FairShare.bulk_owners((row[-1] for row in rows), limit):
            rows = self._choose_fairly(tx, now, limit)
        deliveries = iter(
            [
                Delivery(number, count, bytes.fromhex(body), key, count, sent_at)
                for number, count, body, key, sent_at, _ in rows[:limit]
            ]
        )
        taken = [tuple(islice(deliveries, limit)) for limit in limits]
        numbers = [delivery.id for mine in taken for delivery in mine]
        if numbers:
            tx.execute(_LEASE, (now + LEASE_MS, _json(numbers)))
        return taken

    def _choose_fairly(self, tx: Tx, now: int, limit: int) -> list[Any]:
        share = self._share
        asked = {"now": now, "front": share.front(limit), "most": share.most(limit)}
        looked = {"after": share.looked_to, "owners": OWNERS_AT_ONCE}
        ((found, last),) = tx.execute(_BY_OWNER, {**asked, **looked})
        share.looked_to = last or ""
        chosen = share.choose([Candidate(*one) for one in msgspec.json.decode(found)], limit)
        rows = {row[0]: row for row in _read_json(tx, _CHOSEN, [one.id for one in chosen])}
        return [rows[one.id] for one in chosen]

    # Settling.

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        if not settlements:
            return ()
        urgent = any(settlement.outcome is None for settlement in settlements)
        return await self.database.write(self._settlements, settlements, urgent=urgent)

    def _run_settle(self, tx: Tx, batches: Sequence[Sequence[Settlement]]) -> Sequence[Sequence[bool]]:
        leases = [[one.delivery.id, one.delivery.token] for batch in batches for one in batch]
        held: dict[int, int] = dict(_read_json(tx, _HELD, leases))
        settling = _Settling(held, self.database.now())
        applied = [tuple([settling.apply(one) for one in batch]) for batch in batches]
        settling.flush(tx)
        return applied

    # Looking.

    async def depth(self) -> Depth:
        now = self.database.now()
        ready, delayed, leased, dead = await self.database.read(
            lambda connection: connection.execute(_DEPTH, (now,)).fetchone()
        )
        return Depth(ready, delayed, leased, dead)

    async def dead_letter_count(self) -> int:
        ((count,),) = await self.database.read_soon(lambda read: read(_DEAD, ()))
        return int(count)

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        found = await self.database.read(
            lambda connection: read_dead_letters(connection, after=after or 0, limit=limit + 1)
        )
        items = tuple(found[:limit])
        return DeadLetterPage(items, items[-1].id if len(found) > limit else None)

    async def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        rows = [(one.key, one.reason, one.deliveries, one.sent_at, one.died_at, one.body) for one in letters]
        await self.database.run(lambda tx: _COPY.into(tx, rows))

    async def replay(self, dead_letter_id: int) -> bool:
        return await self.database.run(lambda tx: self._replay(tx, dead_letter_id))

    def _replay(self, tx: Tx, number: int) -> bool:
        rows = tx.execute("DELETE FROM dead_letters WHERE id = ? RETURNING body, key", (number,)).fetchall()
        if rows:
            self.send_in(tx, [Send(body, key) for body, key in rows])
        return bool(rows)

    async def discard(self, dead_letter_id: int) -> bool:
        statement = "DELETE FROM dead_letters WHERE id = ?"
        return await self.database.run(lambda tx: tx.execute(statement, (dead_letter_id,)).rowcount > 0)

    async def close(self) -> None:
        self._closed = True
        self.database.wake(MESSAGES)
        await self.database.detach(self)


class _Settling:
    """The combined effect of one transaction's settlements."""

    def __init__(self, held: dict[int, int], now: int) -> None:
        self._held = held
        self._now = now
        self._removed: list[int] = []
        self._shown: dict[int, tuple[int, int, int]] = {}
        self._dead: list[tuple[int, str]] = []

    def apply(self, settlement: Settlement) -> bool:
        """Whether its lease still held. A settlement that ends a lease makes later ones of it fail."""
        number = settlement.delivery.id
        if self._held.get(number) != settlement.delivery.token:
            return False
        visible_at = settlement.visible_at(self._now)
        if settlement.outcome is None:
            self._shown[number] = (number, visible_at, 1)
            return True
        del self._held[number]
        if settlement.outcome is DeliveryEnd.RETRY:
            self._shown[number] = (number, visible_at, 0)
            return True
        self._removed.append(number)
        if settlement.outcome is DeliveryEnd.DEAD_LETTER:
            self._dead.append((number, settlement.reason))
        return True

    def flush(self, tx: Tx) -> None:
        if self._shown:
            tx.execute(_SHOW, (_json(list(self._shown.values())),))
            tx.signals.add(MESSAGES)
        if self._dead:
            tx.execute(_BURY, (self._now, _json(self._dead)))
        if self._removed:
            tx.execute(_DELETE, (_json(self._removed),))


def read_dead_letters(connection: sqlite3.Connection, *, after: int = 0, limit: int = -1) -> list[DeadLetter]:
    """The dead letters that the connection sees, oldest first; -1 is no limit."""
    return list(starmap(DeadLetter, connection.execute(_DEAD_LETTERS, (after, limit))))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _read_json(tx: Tx, statement: str, argument: Sequence[object]) -> Any:
    """Execute a statement whose parameter and result are each one JSON array."""
    ((found,),) = tx.execute(statement, (_json(argument),)) if argument else (("[]",),)
    return msgspec.json.decode(found)

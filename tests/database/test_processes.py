"""Two processes on one file: each notices what the other writes."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.database import children
from tests.support.patience import NEVER_MS, PATIENCE_S
from vskill_core.errors import CursorGone
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import DeliveryEnd, Settlement
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.database.writer import Tx, WriteKind
from vskill_platform.ledger.kv.entries import Add
from vskill_platform.ledger.kv.sqlite import SqliteKV

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WRITER = """
async def main():
    database = await SqliteDatabase.open(path, SystemClock())
    broker = SqliteBroker(database)
    kv = SqliteKV(database, broker)
    print("ready", flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "put":
            await kv.put(words[0], words[1].encode())
        elif command == "delete":
            await kv.delete(words[0])
        elif command == "send":
            await broker.send(words[0].encode(), words[0])
        print("done", flush=True)
    await kv.close()
    await broker.close()
asyncio.run(main())
"""


class Other:
    """A second process that writes what it is told to."""

    def __init__(self, path: Path) -> None:
        self._child = children.start(WRITER, path)
        assert children.line_of(self._child) == "ready"

    def tell(self, command: str) -> None:
        children.tell(self._child, command)
        assert children.line_of(self._child) == "done"

    def end(self) -> None:
        children.finish(self._child)


@pytest.fixture
def other(database: SqliteDatabase, path: Path) -> Iterator[Other]:
    process = Other(path)
    yield process
    process.end()


async def test_another_processs_changes_wake_a_follower_and_can_be_resumed(kv, other):
    """E6: events come from the store, in order, across processes."""
    cursor = await kv.change_cursor()
    waiting = asyncio.create_task(kv.wait_for_change(cursor, NEVER_MS))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await asyncio.to_thread(other.tell, "put sub:a 1")
    assert await asyncio.wait_for(waiting, PATIENCE_S)
    await asyncio.to_thread(other.tell, "put sub:b 2")
    await asyncio.to_thread(other.tell, "delete sub:a")
    page = await kv.changes("sub:", after=cursor, limit=2)
    rest = await kv.changes("sub:", after=page.after)
    seen = [(one.key, one.deleted) for one in (*page.items, *rest.items)]
    assert seen == [("sub:a", False), ("sub:b", False), ("sub:a", True)]
    assert await kv.wait_for_change(rest.after, 0) is False


async def test_another_processs_message_wakes_a_receiver(broker, other, clock):
    clock.advance(10**12)  # the other process goes by the machine's clock: its messages are visible by ours
    receiving = asyncio.create_task(broker.take(1, NEVER_MS))
    await asyncio.sleep(0.1)
    assert not receiving.done()
    await asyncio.to_thread(other.tell, "send hello")
    (delivery,) = await asyncio.wait_for(receiving, PATIENCE_S)
    assert delivery.body == b"hello"


async def test_two_processes_write_at_once_and_nothing_is_lost(kv, path):
    script = """
        async def main():
            kv = SqliteKV(await SqliteDatabase.open(path, SystemClock()))
            for _ in range(100):
                await kv.commit([Add("counter"), Put(f"mine:{os.getpid()}:{_}", b"1")])
            await kv.close()
        asyncio.run(main())
        """
    others = [children.start(script, path) for _ in range(2)]
    ours = [await kv.commit([Add("counter")]) for _ in range(100)]
    await asyncio.gather(*(asyncio.to_thread(children.finish, child) for child in others))
    assert len(set(ours)) == 100
    assert (await kv.get("counter")).value == b"300"
    assert len((await kv.list("mine:")).items) == 200


async def test_a_process_with_slow_writes_does_not_keep_another_from_writing(database, path, clock):
    """As on a slow disk: without a pause between two of its transactions, the other one waited for all of them."""
    done: list[int] = []

    def run(tx: Tx, arguments: Sequence[int]) -> Sequence[int]:
        time.sleep(0.2)
        done.extend(arguments)
        return arguments

    slow: WriteKind[int, int] = WriteKind("slow", run, at_once=1)
    other = SqliteKV(await SqliteDatabase.open(path, clock, busy_ms=int(PATIENCE_S * 1000)))
    writing = [database.submit(slow, number) for number in range(15)]
    await writing[0]
    waited = []
    for number in range(3):
        before = len(done)
        await other.put(f"key-{number}", b"1")
        waited.append(len(done) - before)
    assert max(waited) < 6, "it had its turn after a few of them"
    for future in writing:
        future.cancel()
    await other.close()


async def test_a_cursor_that_was_swept_by_another_process_is_gone(kv, path, clock):
    cursor = await kv.change_cursor()
    for n in range(5):
        await kv.put(f"a:{n}", b"1")
    script = """
        async def main():
            kv = SqliteKV(await SqliteDatabase.open(path, SystemClock()))
            print(await kv.sweep(changes_before=10**15))
            await kv.close()
        asyncio.run(main())
        """
    assert await asyncio.to_thread(children.run, script, path) == "5"
    with pytest.raises(CursorGone):
        await kv.changes("", after=cursor)
    assert (await kv.changes("")).items == ()
    assert int(await kv.change_cursor()) == int(cursor) + 5
    await kv.put("a:9", b"1")
    assert [one.key for one in (await kv.changes("")).items] == ["a:9"]


async def test_a_receiver_that_waits_for_nothing_writes_nothing(database, broker, path):
    before = database.point_read("PRAGMA data_version")
    assert await broker.take(3, 200) == ()
    assert database.point_read("PRAGMA data_version") == before


async def test_a_receiver_that_is_cancelled_gives_back_what_it_leased(broker):
    for _ in range(10):
        await broker.send(b"work", "key")
        receiving = asyncio.create_task(broker.take(1, 5_000))
        await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        (delivery,) = await broker.take(1, 5_000)
        assert (delivery.key, delivery.body) == ("key", b"work")
        assert await broker.settle([Settlement(delivery, DeliveryEnd.ACK)]) == (True,)


async def test_a_delayed_message_wakes_its_receiver_by_itself(path):
    broker = SqliteBroker(await SqliteDatabase.open(path, SystemClock()))
    began = time.monotonic()
    await broker.send_batch([Send(b"later", delay_ms=150)])
    (delivery,) = await asyncio.wait_for(broker.take(1, NEVER_MS), PATIENCE_S)
    assert time.monotonic() - began >= 0.15
    assert delivery.body == b"later"
    await broker.close()

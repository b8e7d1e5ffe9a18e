"""The one writer: many callers in one transaction, each with its own result, whatever becomes of the others."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.database import children
from tests.support.patience import PATIENCE_S
from vskill_core.errors import Conflict, StoreBusy, StoreFull, StoreUnavailable
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.search import every_term
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.database import writer
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.database.writer import Tx, WriteKind
from vskill_platform.ledger.kv.entries import ABSENT, Add, Put
from vskill_platform.ledger.kv.sqlite import SqliteKV

pytestmark = pytest.mark.anyio


class Gate:
    """Holds the writer's thread inside a transaction, so that what is submitted meanwhile waits together."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._reached = threading.Event()
        self._open = threading.Event()
        self._kind: WriteKind[None, None] = WriteKind("gate", self._run)

    def _run(self, tx: Tx, arguments: Sequence[None]) -> Sequence[None]:
        self._reached.set()
        self._open.wait(PATIENCE_S)
        return arguments

    async def __aenter__(self) -> None:
        self._passed = self._database.submit(self._kind, None)
        await asyncio.to_thread(self._reached.wait, 10)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.sleep(0)
        self._open.set()
        await self._passed


def recording(log: list[list[Any]]) -> WriteKind[Any, Any]:
    """A kind that logs which operations ran together."""

    def run(tx: Tx, arguments: Sequence[Any]) -> Sequence[Any]:
        log.append(list(arguments))
        return arguments

    return WriteKind("recording", run)


async def test_what_waits_together_runs_together(database):
    log: list[list[int]] = []
    kind = recording(log)
    async with Gate(database):
        futures = [database.submit(kind, n) for n in range(100)]
    assert await asyncio.gather(*futures) == list(range(100))
    assert log == [list(range(100))]


async def test_a_group_is_bounded_and_urgent_operations_go_first(database):
    log: list[list[int]] = []
    kind = recording(log)
    async with Gate(database):
        futures = [database.submit(kind, n) for n in range(300)]
        futures += [database.submit(kind, n, urgent=True) for n in (-1, -2)]
    await asyncio.gather(*futures)
    assert [len(group) for group in log] == [writer.MAX_OPERATIONS, 302 - writer.MAX_OPERATIONS]
    assert log[0][:3] == [-1, -2, 0]


async def test_a_group_that_takes_long_commits_and_the_rest_follows(database):
    """Nobody's urgent write waits behind more than a few milliseconds of other people's."""
    began = threading.Event()
    log: list[object] = []

    def run(tx: Tx, arguments: Sequence[Any]) -> Sequence[Any]:
        log.extend(arguments)
        threading.Event().wait(2 * writer.MAX_SECONDS)
        began.set()
        return arguments

    slow: WriteKind[Any, Any] = WriteKind("slow", run, at_once=1)
    async with Gate(database):
        futures = [database.submit(slow, n) for n in range(4)]
    await asyncio.to_thread(began.wait, 10)
    urgent = database.submit(slow, "urgent", urgent=True)
    await asyncio.gather(*futures, urgent)
    assert sorted(log, key=str) == [0, 1, 2, 3, "urgent"]
    assert log.index("urgent") < 3


async def test_one_callers_conflict_never_fails_anothers_write(database, kv):
    """D3: the late one loses, and it alone."""
    await kv.put("a", b"1")
    async with Gate(database):
        commits = [
            asyncio.create_task(kv.commit([Put(f"new:{n}", b"1", if_version=5 if n % 3 == 0 else ABSENT)]))
            for n in range(30)
        ]
        await asyncio.sleep(0.01)
    outcomes = await asyncio.gather(*commits, return_exceptions=True)
    for n, outcome in enumerate(outcomes):
        if n % 3 == 0:
            assert isinstance(outcome, Conflict)
            assert outcome.text("key") == f"new:{n}"
        else:
            assert (await kv.get(f"new:{n}")).version == outcome
    assert len((await kv.list("new:")).items) == 20


async def test_commits_of_one_group_see_each_other_in_turn(database, kv):
    first = await kv.put("a", b"0")
    async with Gate(database):
        commits = [asyncio.create_task(kv.put("a", b"%d" % n, if_version=first)) for n in range(5)]
        counts = [asyncio.create_task(kv.commit([Add("n", 2)])) for _ in range(5)]
        await asyncio.sleep(0.01)
    outcomes = await asyncio.gather(*commits, return_exceptions=True)
    assert [isinstance(outcome, Conflict) for outcome in outcomes] == [False, True, True, True, True]
    versions = await asyncio.gather(*counts)
    assert len(set(versions)) == 5
    entry = await kv.get("n")
    assert (entry.value, entry.version) == (b"10", max(versions))


async def test_what_is_deleted_and_written_again_in_one_group_is_there_once(database, kv):
    await kv.put("sub:a", b'{"state": "RECEIVED", "skill_name": "alpha"}')
    async with Gate(database):
        tasks = [
            asyncio.create_task(kv.delete("sub:a")),
            asyncio.create_task(kv.put("sub:a", b'{"state": "PUBLISHED", "skill_name": "alpha"}')),
            asyncio.create_task(kv.put("sub:b", b'{"state": "RECEIVED", "skill_name": "beta"}')),
            asyncio.create_task(kv.delete("sub:b")),
        ]
        await asyncio.sleep(0.01)
    await asyncio.gather(*tasks)
    assert await kv.count_by("sub:", "state", audiences=EVERYTHING) == {"PUBLISHED": 1}
    assert [
        entry.key for entry in (await kv.search("sub:", every_term("alpha"), audiences=EVERYTHING)).items
    ] == ["sub:a"]
    assert (await kv.search("sub:", every_term("beta"), audiences=EVERYTHING)).items == ()
    changes = (await kv.changes("sub:")).items
    assert [(one.key, one.deleted) for one in changes[1:]] == [
        ("sub:a", True),
        ("sub:a", False),
        ("sub:b", False),
        ("sub:b", True),
    ]


async def test_an_operation_that_breaks_the_group_fails_alone(database, kv):
    def run(tx: Tx, arguments: Sequence[Any]) -> Sequence[Any]:
        for argument in arguments:
            tx.execute("INSERT INTO changes (key, version, deleted, at) VALUES (?, 0, 0, 0)", (argument,))
        return arguments

    kind: WriteKind[Any, Any] = WriteKind("raw", run)
    async with Gate(database):
        futures = [database.submit(kind, argument) for argument in ("a", None, "b")]
        put = asyncio.create_task(kv.put("c", b"1"))
        await asyncio.sleep(0.01)
    good, bad, also_good = await asyncio.gather(*futures, return_exceptions=True)
    assert (good, also_good) == ("a", "b")
    assert "NOT NULL" in str(bad)
    assert database.path.name in str(bad)
    assert (await kv.get("c")).version == await put
    assert [one.key for one in (await kv.changes("")).items].count("a") == 1


async def test_a_bug_in_an_operation_reaches_its_caller_and_the_writer_lives(database, kv):
    def run(tx: Tx, arguments: Sequence[Any]) -> Sequence[Any]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(WriteKind("buggy", run), None)
    await kv.put("a", b"1")


class Fatal(BaseException):
    """What no operation raises and nobody foresees."""


async def test_nobody_waits_for_a_writer_that_has_died(database, kv):
    """The operation that ended the thread, what ran beside it, what waited behind it and what comes later: each
    hears of it, and closing does not hang."""

    def run(tx: Tx, arguments: Sequence[Any]) -> Sequence[Any]:
        raise Fatal("out of the blue")

    async with asyncio.timeout(PATIENCE_S):
        async with Gate(database):
            beside = asyncio.create_task(kv.put("a", b"1"))
            fatal = database.submit(WriteKind("fatal", run), None)
            behind = [database.submit(recording([]), n) for n in range(writer.MAX_OPERATIONS)]
            await asyncio.sleep(0.01)
        outcomes = await asyncio.gather(beside, fatal, *behind, return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, StoreUnavailable)
            assert "died of Fatal('out of the blue')" in str(outcome)
        with pytest.raises(StoreUnavailable, match="died"):
            await kv.put("b", b"1")
        with pytest.raises(StoreUnavailable, match="died"):
            await kv.check()
        assert await kv.get("a") is None
        await database.close()


async def test_what_a_loop_submits_in_one_turn_is_one_transaction(database):
    """Without anything that holds the writer up: it is not woken before the loop's turn is over."""
    log: list[list[int]] = []
    kind = recording(log)
    for start in range(0, 500, 50):
        await asyncio.gather(*(database.write(kind, n) for n in range(start, start + 50)))
    assert log == [list(range(start, start + 50)) for start in range(0, 500, 50)]


async def test_closing_in_the_same_turn_finishes_what_was_submitted_before(path, clock):
    database = await SqliteDatabase.open(path, clock)
    future = database.submit(recording([]), 1)
    await database.close()
    assert await future == 1


async def test_a_cancelled_waiter_breaks_nothing_and_its_write_may_stand(database, kv):
    async with Gate(database):
        tasks = [asyncio.create_task(kv.put(f"a:{n}", b"1")) for n in range(3)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert (await kv.list("a:")).items == ("a:0", "a:1", "a:2")


async def test_several_event_loops_write_through_one_writer(database, kv):
    def other_loop(n: int) -> list[int]:
        async def write() -> list[int]:
            return [await kv.put(f"loop:{n}:{i}", b"1") for i in range(20)]

        return asyncio.run(write())

    versions = await asyncio.gather(*(asyncio.to_thread(other_loop, n) for n in range(3)))
    assert len({version for mine in versions for version in mine}) == 60
    assert len((await kv.list("loop:")).items) == 60


async def test_a_loop_that_is_gone_does_not_stop_the_writer(database, kv):
    async def give_up() -> None:
        database.submit(recording([]), 1)

    gate = Gate(database)
    async with gate:
        await asyncio.to_thread(asyncio.run, give_up())
    await kv.put("a", b"1")


async def test_closing_finishes_what_was_accepted_and_refuses_the_rest(path, clock):
    database = await SqliteDatabase.open(path, clock)
    async with Gate(database):
        futures = [database.submit(recording([]), n) for n in range(10)]
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0.01)
    await closing
    assert await asyncio.gather(*futures) == list(range(10))
    with pytest.raises(StoreUnavailable, match="closed"):
        database.submit(recording([]), 1)
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.read(lambda connection: 1)
    with pytest.raises(StoreUnavailable, match="closed"):
        database.point_read("SELECT 1")


async def test_the_file_stays_open_until_its_last_user_has_closed(path, clock):
    database = await SqliteDatabase.open(path, clock)
    broker = SqliteBroker(database)
    kv = SqliteKV(database, broker)
    await broker.close()
    await kv.put("a", b"1")
    await kv.close()
    with pytest.raises(StoreUnavailable):
        await kv.put("b", b"1")


# A disk that is full, a lock that is held.


def limit_pages(tx: Tx, arguments: Sequence[int]) -> Sequence[int]:
    """SQLite refuses to grow the file beyond a number of pages, as it does on a full disk."""
    (pages,) = tx.execute("PRAGMA page_count").fetchone()
    tx.execute(f"PRAGMA max_page_count = {pages + arguments[0]}")
    return arguments


async def test_a_full_disk_is_named_and_the_store_goes_on_when_there_is_space(database, kv):
    await kv.put("before", b"1")
    await database.write(WriteKind("limit", limit_pages), 0)
    with pytest.raises(StoreFull, match=database.path.name):
        await kv.put("large", b"x" * 100_000)
    assert (await kv.get("before")).value == b"1"
    assert await kv.get("large") is None
    await database.write(WriteKind("limit", limit_pages), 1_000_000)
    await kv.put("large", b"x" * 100_000)
    assert len((await kv.get("large")).value) == 100_000


async def test_on_a_full_disk_what_still_fits_is_written(database, kv):
    await kv.put("small", b"1")
    await database.write(WriteKind("limit", limit_pages), 0)
    async with Gate(database):
        large = asyncio.create_task(kv.put("large", b"x" * 100_000))
        small = asyncio.create_task(kv.put("small", b"2"))
        await asyncio.sleep(0.01)
    outcomes = await asyncio.gather(large, small, return_exceptions=True)
    assert isinstance(outcomes[0], StoreFull)
    assert (await kv.get("small")).value == b"2"
    await database.write(WriteKind("limit", limit_pages), 1_000_000)


def test_a_process_that_may_not_write_more_stays_up_and_loses_nothing(path):
    """The operating system refuses the write itself (a limit of the file's size stands for the disk's)."""
    script = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        async def main():
            kv = SqliteKV(await SqliteDatabase.open(path, SystemClock()))
            version = await kv.put("kept", b"1")
            size = os.path.getsize(path + "-wal")
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
            for _ in range(3):
                try:
                    await kv.put("large", b"x" * 500_000)
                except PlatformError as error:
                    print(error.status, end=" ")
            try:
                await kv.check()
            except PlatformError as error:
                print(error.status, end=" ")
            assert (await kv.get("kept")).version == version
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            await kv.put("large", b"x" * 500_000)
            await kv.check()
            await kv.close()
        asyncio.run(main())
        """
    assert children.run(script, path) in ("503 503 503", "503 503 503 503")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT key FROM records ORDER BY key").fetchall() == [
            ("kept",),
            ("large",),
        ]
    connection.close()


async def test_a_lock_that_another_process_holds_is_busy_and_then_over(database, kv, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match=path.name):
        await kv.put("a", b"1")
    with pytest.raises(StoreBusy):
        await kv.check()
    assert await kv.get("a") is None
    other.execute("ROLLBACK")
    other.close()
    await kv.put("a", b"1")


async def test_readers_cannot_write(database):
    with pytest.raises(StoreUnavailable):
        await database.read(lambda connection: connection.execute("DELETE FROM records"))
    with pytest.raises(StoreUnavailable):
        database.point_read("DELETE FROM records")

"""Where a read of the SQLite engine runs: here while it is short, in a thread of its own where it is not."""

import sqlite3
import threading

import pytest

from vskill_core.errors import StoreError, StoreUnavailable
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.ledger.database.sqlite import Read, SqliteDatabase
from vskill_platform.ledger.kv.query import Is
from vskill_platform.ledger.kv.sqlite import SqliteKV

pytestmark = pytest.mark.anyio

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT sum(i) FROM n"


async def _sum(database: SqliteDatabase, count: int) -> tuple[int, list[str]]:
    """The sum of so many numbers, and the threads in which it was begun."""
    threads: list[str] = []

    def find(read: Read) -> int:
        threads.append(threading.current_thread().name)
        ((found,),) = read(_NUMBERS, (count,))
        return int(found)

    return await database.read_soon(find), threads


async def test_a_short_read_stays_here_and_a_long_one_ends_in_a_thread(database):
    here = threading.current_thread().name
    assert await _sum(database, 10) == (55, [here])
    found, threads = await _sum(database, 100_000)
    assert found == 5_000_050_000
    assert threads[0] == here
    assert threads[1].startswith("reader")


async def test_a_short_read_stays_here_however_often_it_is_asked(database):
    """SQLite counts the steps of a statement over all of its runs."""
    here = threading.current_thread().name
    assert {name for _ in range(300) for name in (await _sum(database, 100))[1]} == {here}


@pytest.mark.parametrize(("apart", "count"), [(1, 500), (1_500, 5)])
async def test_many_rows_or_far_ones_end_in_a_thread_and_cost_the_next_short_read_nothing(
    database, apart: int, count: int
):
    """A statement that SQLite itself ends between two rows is compiled anew for every run after that."""
    rows = (
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ?) "
        f"SELECT i FROM n WHERE i % {apart} = 0"
    )
    here = threading.current_thread().name
    threads: list[str] = []
    compiled: list[int] = []

    def note(action: int, *_: str | None) -> int:
        compiled.append(action)
        return sqlite3.SQLITE_OK

    def many(read: Read) -> int:
        threads.append(threading.current_thread().name)
        return len(read(rows, (apart * count,)))

    def few(read: Read) -> list[tuple[int]]:
        return read(rows, (1,))

    assert await database.read_soon(many) == count
    assert threads[0] == here != threads[1]
    database._point.set_authorizer(note)
    assert await database.read_soon(few) == [(0,)]
    compiled.clear()
    assert await database.read_soon(few) == [(0,)]
    assert not compiled


async def test_a_long_read_leaves_no_limit_behind(database):
    await _sum(database, 100_000)
    assert database.point_read(_NUMBERS, (100_000,)) == [(5_000_050_000,)]


async def test_a_read_that_fails_says_so_once_and_as_ours(database):
    with pytest.raises(StoreError):
        await database.read_soon(lambda read: read("SELECT 1 FROM nothing", ()))
    await database.close()
    with pytest.raises(StoreUnavailable):
        await _sum(database, 10)


async def test_a_list_is_the_same_whether_it_is_short_or_long(kv: SqliteKV):
    for number in range(600):
        await kv.put(f"sub:{number:04}", b'{"state": "X", "updated_at": %d}' % number)
    for limit in (5, 600):
        page = await kv.select(
            "sub:", audiences=EVERYTHING, where={"state": Is("X")}, order_by="updated_at", limit=limit
        )
        assert [entry.key for entry in page.items] == [f"sub:{number:04}" for number in range(limit)]

"""Where a read of the SQLite engine runs: here while it is short, in a thread of its own where it is not."""

import sqlite3
import threading

import pytest

from vskill_platform.database.sqlite import SqliteDatabase
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.errors import StoreError, StoreUnavailable
from vskill_platform.kv.query import Is
from vskill_platform.kv.sqlite import SqliteKV

pytestmark = pytest.mark.anyio

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT sum(i) FROM n"


async def _sum(database: SqliteDatabase, count: int) -> tuple[int, list[str]]:
    """The sum of so many numbers, and the threads in which it was begun."""
    threads: list[str] = []

    def read(connection: sqlite3.Connection) -> int:
        threads.append(threading.current_thread().name)
        ((found,),) = connection.execute(_NUMBERS, (count,)).fetchall()
        return int(found)

    return await database.read_soon(read), threads


async def test_a_short_read_stays_here_and_a_long_one_ends_in_a_thread(database):
    here = threading.current_thread().name
    assert await _sum(database, 10) == (55, [here])
    found, threads = await _sum(database, 100_000)
    assert found == 5_000_050_000
    assert threads[0] == here
    assert threads[1].startswith("reader")


async def test_a_long_read_leaves_no_limit_behind(database):
    await _sum(database, 100_000)
    assert database.point_read(_NUMBERS, (100_000,)) == [(5_000_050_000,)]


async def test_a_read_that_fails_says_so_once_and_as_ours(database):
    with pytest.raises(StoreError):
        await database.read_soon(lambda connection: connection.execute("SELECT 1 FROM nothing"))
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

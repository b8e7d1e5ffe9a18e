"""A process that stands still, or whose machine is gone, in the middle of a transaction: PostgreSQL ends that, and nobody
waits for what it had locked. With `make test-debian` all of it goes through PgBouncer."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import pytest

from tests.chaos.proxy import Proxy
from tests.database.children import finish, line_of, start, tell
from tests.support.pgbouncer import through
from tests.support.postgres import database_of
from vskill_platform.ledger.broker.postgres import PostgresBroker
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.postgres import PostgresKV

pytestmark = pytest.mark.anyio

#: Locks a record and waits to be told to go on, with a shorter limit than usual.
HOLDER = """
from vskill_core.errors import StoreUnavailable
from vskill_platform.ledger.database import postgres
postgres.IDLE_S = 0.5

async def main():
    database = await postgres.PostgresDatabase.open(path, connections=2)
    try:
        async with database.transaction() as connection:
            await connection.fetchval("SELECT value FROM records WHERE key = 'a:1' FOR UPDATE")
            print("locked", flush=True)
            sys.stdin.readline()
            await connection.execute("UPDATE records SET value = 'late' WHERE key = 'a:1'")
    except StoreUnavailable:
        print("ended,", await database.fetchval("SELECT value FROM records WHERE key = 'a:1'"))
    await database.close()

asyncio.run(main())
"""


@pytest.fixture(params=["", "pool_mode=transaction"], ids=["own connections", "shared connections"])
async def location(request, tmp_path) -> str:
    return through(urlsplit(await database_of(tmp_path))._replace(query=request.param).geturl())


@pytest.fixture
async def kv(location: str) -> AsyncIterator[PostgresKV]:
    database = await PostgresDatabase.open(location, connections=2)
    opened = PostgresKV(database, PostgresBroker(database))
    await opened.put("a:1", b"1")
    yield opened
    await database.close()


@pytest.fixture
async def proxy(location: str) -> AsyncIterator[Proxy]:
    made = Proxy(urlsplit(location).port or 0)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("how", ["stands still", "is cut off without a word"])
async def test_E9_what_a_vanished_process_has_locked_is_free_again(kv, location, proxy, how):
    by_proxy = urlsplit(location)._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()
    holder = await asyncio.to_thread(start, HOLDER, by_proxy)
    assert await asyncio.to_thread(line_of, holder) == "locked"
    go, come_back = vanish(how, holder, proxy)
    go()
    await kv.put("a:1", b"2")
    come_back()
    tell(holder, "go on")
    assert await asyncio.to_thread(finish, holder) == "ended, 2"


def vanish(
    how: str, holder: subprocess.Popen[str], proxy: Proxy
) -> tuple[Callable[[], None], Callable[[], None]]:
    if how == "stands still":
        return (
            lambda: os.kill(holder.pid, signal.SIGSTOP),
            lambda: os.kill(holder.pid, signal.SIGCONT),
        )
    return proxy.stall, proxy.flow


async def test_the_server_looks_whether_a_silent_machine_is_still_there(kv, location):
    if "pool_mode" not in location:
        asked = await kv._db.fetchval("SHOW tcp_keepalives_idle")
        assert asked == "30"

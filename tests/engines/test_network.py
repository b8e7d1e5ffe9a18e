"""A network between the process and PostgreSQL that breaks in every way: each call succeeds or fails with the typed
error, and when the network is whole again, so is the store, by itself."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.chaos.proxy import Proxy
from tests.support.patience import PATIENCE_S
from tests.support.postgres import database_of
from vskill_core.errors import StoreUnavailable
from vskill_platform.ledger.broker.postgres import PostgresBroker
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.postgres import PostgresKV

pytestmark = pytest.mark.anyio


@pytest.fixture
async def proxy(tmp_path) -> AsyncIterator[Proxy]:
    made = Proxy(urlsplit(await database_of(tmp_path)).port or 0)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def kv(tmp_path, proxy: Proxy) -> AsyncIterator[PostgresKV]:
    direct = urlsplit(await database_of(tmp_path))
    location = direct._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()
    database = await PostgresDatabase.open(location, connections=4)
    yield PostgresKV(database, PostgresBroker(database))
    await database.close()


async def write(kv: PostgresKV, number: int) -> bool:
    """Whether it was written; any error but the typed one fails the test."""
    try:
        await kv.put(f"a:{number}", b"{}")
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("fault", ["cut", "half_close"])
async def test_E9_every_call_through_a_broken_network_fails_as_unavailable_and_later_ones_succeed(
    kv: PostgresKV, proxy: Proxy, fault
):
    for round_number in range(10):
        writing = [asyncio.create_task(write(kv, 100 * round_number + n)) for n in range(20)]
        await asyncio.sleep(0.001 * round_number)
        getattr(proxy, fault)()
        await asyncio.gather(*writing)
    async with asyncio.timeout(PATIENCE_S):
        while not all([await write(kv, n) for n in range(1_000, 1_008)]):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


async def test_E9_a_server_whose_last_words_arrive_without_the_end_of_the_connection(
    kv: PostgresKV, proxy: Proxy, tmp_path
):
    """The driver's own error about it is none that it documents for callers; a worker once died of it."""
    assert await write(kv, 1)
    proxy.lingering = True
    direct = await asyncpg.connect(await database_of(tmp_path))
    await direct.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    await direct.close()
    await asyncio.sleep(0.1)
    assert not await write(kv, 2)
    proxy.lingering = False
    async with asyncio.timeout(PATIENCE_S):
        while not await write(kv, 3):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


async def test_a_network_that_stalls_for_a_moment_only_delays(kv: PostgresKV, proxy: Proxy):
    proxy.stall()
    writing = asyncio.create_task(write(kv, 1))
    await asyncio.sleep(0.3)
    assert not writing.done()
    proxy.flow()
    async with asyncio.timeout(PATIENCE_S):
        assert await writing

"""A database file for each test, and what else these tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.sqlite import SqliteKV


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def database(path: Path, clock: ManualClock) -> AsyncIterator[SqliteDatabase]:
    opened = await SqliteDatabase.open(path, clock, busy_ms=300)
    yield opened
    await opened.close()


@pytest.fixture
def broker(database: SqliteDatabase) -> SqliteBroker:
    return SqliteBroker(database)


@pytest.fixture
def kv(database: SqliteDatabase, broker: SqliteBroker) -> SqliteKV:
    return SqliteKV(database, broker)

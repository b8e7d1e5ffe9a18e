"""Stores to copy from and into: a SQLite file or a PostgreSQL database of the test's own."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.postgres import new_database, server


@pytest.fixture
def new_store(tmp_path: Path) -> Callable[[str], Awaitable[str]]:
    """The location of a store that nobody has used."""
    numbers = iter(range(100))

    async def make(engine: str) -> str:
        if engine == "sqlite":
            return f"sqlite:{tmp_path / f'store-{next(numbers)}.db'}"
        return await new_database(await asyncio.to_thread(server))

    return make

"""Stores to copy from and into: a SQLite file or a PostgreSQL database of the test's own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import structlog

from tests.support.postgres import new_database, server


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command configures logging for its process, which here is the tests'."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


@pytest.fixture
def new_store(tmp_path: Path) -> Callable[[str], Awaitable[str]]:
    """The location of a store that nobody has used."""
    numbers = iter(range(100))

    async def make(engine: str) -> str:
        if engine == "sqlite":
            return f"sqlite:{tmp_path / f'store-{next(numbers)}.db'}"
        return await new_database(await asyncio.to_thread(server))

    return make

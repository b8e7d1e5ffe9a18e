"""A search of a real server that runs out of time: what fits the words is the answer, and suggestions may be missing."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import pytest

from tests.search.judged import fill, load_skills
from tests.support.envs import active_env, open_test_env
from tests.support.faults import HookedKV
from tests.support.patience import PATIENCE_S
from tests.support.postgres import database_of
from vskill_core.errors import StoreTimeout
from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Found
from vskill_platform.store.skills import catalogue
from vskill_platform.store.skills.vocabulary import write_vocabulary

pytestmark = pytest.mark.anyio

search_skills = partial(catalogue.search_skills, audiences=PUBLIC_ONLY, further_s=PATIENCE_S)

#: One skill has all words of the first text, and none has all of the second.
ONE, NONE = "kubernetes crash events", "kubernetes invoices haiku"
#: Milliseconds that the server gives a statement.
STATEMENT_MS = 3_000


class LockedKV(HookedKV):
    """A real store whose records another transaction locks before one of its searches, counted from 0."""

    def __init__(self, inner: KV, stack: AsyncExitStack, location: str, locked: int) -> None:
        super().__init__(inner)
        self._stack = stack
        self._location = location
        self._left = locked

    async def search(self, *arguments: Any, **options: Any) -> Found:
        if self._left == 0:
            await self._stack.enter_async_context(lock_records(self._location))
        self._left -= 1
        return await super().search(*arguments, **options)


@asynccontextmanager
async def lock_records(location: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(location)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


@pytest.fixture
async def location(tmp_path) -> str:
    """A filled store."""
    async with open_test_env("postgresql", tmp_path) as env:
        await fill(env.kv, load_skills())
        await write_vocabulary()
    return await database_of(tmp_path)


@asynccontextmanager
async def locked_before(search: int, location: str, env) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        with active_env(env, kv=LockedKV(env.kv, stack, location, search)):
            yield


async def test_a_later_search_without_time_leaves_what_the_closer_ones_found(location, tmp_path):
    async with open_test_env("postgresql", tmp_path):
        whole = await search_skills(ONE)
    store = f"{location}?statement_timeout={STATEMENT_MS}"
    async with open_test_env("postgresql", tmp_path, store=store) as env:
        async with locked_before(1, location, env):
            cut = await search_skills(ONE)
        assert [skill.slug for skill in cut.items] == ["kubernetes"]
        assert cut.items == whole.items[:1] and len(whole.items) > 1
        assert cut.truncated


async def test_a_later_search_has_a_time_of_its_own_and_the_store_goes_on(location, tmp_path):
    async with open_test_env("postgresql", tmp_path) as env:
        whole = await search_skills(NONE)
        async with locked_before(1, location, env):
            cut = await search_skills(NONE, further_s=0.1)
        # Nothing fits all words; that there may be more says that this is not all.
        assert (cut.items, cut.truncated) == ((), True) and whole.items
        assert await search_skills(NONE) == whole


async def test_the_first_search_without_time_is_an_error_that_says_so(location, tmp_path):
    store = f"{location}?statement_timeout={STATEMENT_MS}"
    async with open_test_env("postgresql", tmp_path, store=store) as env, locked_before(0, location, env):
        with pytest.raises(StoreTimeout, match="the statement took too long") as caught:
            await search_skills(ONE)
        assert (caught.value.status, caught.value.code) == (503, "store_timeout")

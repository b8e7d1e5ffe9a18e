"""A search of a real server that runs out of time is an error that says so."""

import asyncpg
import pytest

from tests.search.judged import fill, load_skills
from tests.support.envs import open_test_env
from tests.support.postgres import database_of
from vskill_core.errors import StoreTimeout
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.store.skills.catalogue import search_skills
from vskill_platform.store.skills.vocabulary import read_known_words

pytestmark = pytest.mark.anyio

#: Milliseconds that the server gives a statement.
STATEMENT_MS = 3_000


async def test_a_search_without_time_is_an_error_and_the_store_goes_on(tmp_path):
    async with open_test_env("postgresql", tmp_path) as env:
        await fill(env.kv, load_skills())
    location = await database_of(tmp_path)
    store = f"{location}?statement_timeout={STATEMENT_MS}"
    async with open_test_env("postgresql", tmp_path, store=store):
        await read_known_words()
        connection = await asyncpg.connect(location)
        async with connection.transaction():
            await connection.execute("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreTimeout, match="the statement took too long") as caught:
                await search_skills("kubernetes", audiences=PUBLIC_ONLY)
        await connection.close()
        assert (caught.value.status, caught.value.code) == (503, "store_timeout")
        assert (await search_skills("kubernetes", audiences=PUBLIC_ONLY)).items

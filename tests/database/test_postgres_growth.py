"""Questions to PostgreSQL that must not grow with the number of records: what their plans read."""

import re

import pytest

from tests.support import postgres
from vskill_platform.database.postgres import PostgresDatabase
from vskill_platform.domain.audience import EVERYTHING, PUBLIC_ONLY
from vskill_platform.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.kv.entries import Put
from vskill_platform.kv.postgres import _FOLD_STEP, PostgresKV
from vskill_platform.kv.postgres_query import search, select
from vskill_platform.kv.query import Is, Query

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kv(tmp_path):
    database = await PostgresDatabase.open(await postgres.database_of(tmp_path))
    store = PostgresKV(database)
    yield store
    await store.close()


async def plan_of(kv: PostgresKV, statement: str, arguments: list[object]) -> str:
    rows = await kv._db.fetch(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {statement}", *arguments)
    return "\n".join(row[0] for row in rows)


def most_removed(plan: str) -> int:
    return max(map(int, re.findall(r"Rows Removed by (?:Filter|Index Recheck): (\d+)", plan)), default=0)


async def fill(kv: PostgresKV, count: int) -> None:
    """Submissions that ended, whose addresses share a word that no name has."""
    for start in range(0, count, 500):
        await kv.commit(
            [
                Put(
                    f"sub:{number:06d}",
                    b'{"state":"PUBLISHED","updated_at":%d,"created_at":%d,"skill_name":"name-%d",'
                    b'"repo_url":"https://example.org/r%d"}' % (number, number, number, number),
                )
                for number in range(start, start + 500)
            ]
        )
    await kv._db.fetch("ANALYZE records")


async def test_records_without_a_due_time_are_found_by_index_among_many_that_have_none(kv):
    """Queue health asks each active state for those: it must not walk through everything that has ended."""
    await fill(kv, 5_000)
    query = Query.of(
        SUBMISSIONS, {"state": Is("RECEIVED"), "due_at": Is(None)}, "key", False, None, 101, EVERYTHING
    )
    plan = await plan_of(kv, *select(query, 0))
    assert "sub_by_state_due_at" in plan
    assert most_removed(plan) < 100


async def test_a_word_that_all_addresses_and_no_name_have_is_not_looked_for_in_every_record(kv):
    await fill(kv, 5_000)
    statement, arguments, _ = search(SUBMISSIONS, ["example"], PUBLIC_ONLY, (), 0, 20)
    plan = await plan_of(kv, statement, arguments)
    assert most_removed(plan) < 1_000, plan
    assert len((await kv.search(SUBMISSIONS.prefix, "example", limit=20, audiences=EVERYTHING)).items) == 20


async def test_whole_words_of_the_name_come_before_beginnings_and_both_before_other_fields(kv):
    texts = {"a": ("chart", ""), "b": ("charting", ""), "c": ("other", "a chart of everything")}
    await kv.commit(
        [
            Put(f"skill:o/r/{key}", b'{"name":"%s","description":"%s"}' % (name.encode(), text.encode()))
            for key, (name, text) in texts.items()
        ]
    )
    found = await kv.search(SKILLS.prefix, "chart", audiences=EVERYTHING)
    assert sorted(one.key[-1] for one in found.items[:2]) == ["a", "b"]
    assert found.items[2].key == "skill:o/r/c"


async def test_every_count_is_folded_however_many_there_are(kv):
    await fill(kv, 500)
    await kv._db.fetch(
        "INSERT INTO count_deltas (collection, field, value, known, n) "
        "SELECT 'sub', 'state', 'PUBLISHED', true, 0 FROM generate_series(1, $1::integer)",
        2 * _FOLD_STEP,
    )
    await kv.sweep(changes_before=0)
    assert await kv._db.fetchval("SELECT count(*) FROM count_deltas") == 0
    assert await kv.count_by(SUBMISSIONS.prefix, "state", audiences=EVERYTHING) == {"PUBLISHED": 500}

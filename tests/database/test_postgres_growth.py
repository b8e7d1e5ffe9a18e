"""Questions to PostgreSQL that must not grow with the number of records: what their plans read."""

import base64
import re

import pytest

from tests.support import postgres
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.skills.search import TermQuery, WantedTerm, every_term
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.ledger.kv.postgres import PostgresKV
from vskill_platform.ledger.kv.postgres_fields import FOLD_STEP
from vskill_platform.ledger.kv.postgres_query import search, select
from vskill_platform.ledger.kv.query import CheckedSearch, In, Is, Query

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


async def fill(kv: PostgresKV, count: int, at: int | None = None) -> None:
    """Submissions that ended, whose addresses share a word that no name has; all at one time, or each at its own."""
    for start in range(0, count, 500):
        await kv.commit(
            [
                Put(
                    f"sub:{number:06d}",
                    b'{"state":"PUBLISHED","updated_at":%d,"created_at":%d,"skill_name":"name-%d",'
                    b'"repo_url":"https://example.org/r%d"}'
                    % (number if at is None else at, number, number, number),
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
    # What was written last waits outside of the index's order, until there is more of it than here.
    await kv._db.fetch("SELECT gin_clean_pending_list('sub_words')")
    plan = await plan_of(
        kv, *search(CheckedSearch(SUBMISSIONS, every_term("example"), PUBLIC_ONLY, (), (), 20), 0)
    )
    assert most_removed(plan) < 1_000, plan
    assert (
        len(
            (await kv.search(SUBMISSIONS.prefix, every_term("example"), limit=20, audiences=EVERYTHING)).items
        )
        == 20
    )


async def fill_skills(kv: PostgresKV, audience: str, numbers: range) -> None:
    for start in range(numbers.start, numbers.stop, 500):
        await kv.commit(
            [
                Put(
                    f"skill:o/r/{number:06d}",
                    b'{"name":"foo %d","audience":"%s","listing":{"updated_at":%d}}'
                    % (number, audience.encode(), number),
                )
                for number in range(start, min(start + 500, numbers.stop))
            ]
        )


OWN = frozenset({"public", "ns:own"})


@pytest.mark.parametrize("analysed", [False, True], ids=["new", "analysed"])
async def test_a_reader_of_few_records_does_not_wait_for_hidden_matches(kv, analysed):
    await fill_skills(kv, "ns:hidden", range(5_000))
    await fill_skills(kv, "ns:own", range(5_000, 5_300))
    # What was written last waits outside of the index's order, until there is more of it than here.
    await kv._db.fetch("SELECT gin_clean_pending_list('skill_words')")
    if analysed:
        await kv._db.fetch("ANALYZE records")
    plan = await plan_of(kv, *search(CheckedSearch(SKILLS, every_term("foo"), OWN, (), (), 20), 0))
    assert most_removed(plan) < 100, plan
    assert "rows=300.00" in plan
    found = await kv.search(SKILLS.prefix, every_term("foo"), limit=20, audiences=OWN)
    assert [entry.key for entry in found.items] == [f"skill:o/r/{n:06d}" for n in range(5_000, 5_020)]
    assert found.truncated


@pytest.mark.parametrize("audiences", [PUBLIC_ONLY, EVERYTHING])
async def test_a_search_reads_what_holds_its_words(kv, audiences):
    await fill_skills(kv, "public", range(3_000))
    await fill(kv, 3_000)
    await kv._db.fetch("SELECT gin_clean_pending_list('skill_words')")
    await kv._db.fetch("ANALYZE records")
    terms = (WantedTerm("1234", weight=7.0), WantedTerm("none", weight=8.0))
    plan = await plan_of(
        kv, *search(CheckedSearch(SKILLS, TermQuery(terms), audiences, (), ("weight",), 300), 0)
    )
    assert most_removed(plan) == 0, plan
    assert "Bitmap Index Scan on skill_words" in plan


async def test_a_search_among_many_records_is_planned_for_its_words(kv):
    """A statement that the connection keeps would soon have one plan for common and rare words."""
    await fill_skills(kv, "public", range(3))
    for _ in range(8):
        assert len((await kv.search(SKILLS.prefix, every_term("foo"), audiences=EVERYTHING)).items) == 3
    kept = await kv._db.fetch(
        "SELECT statement FROM pg_prepared_statements WHERE statement LIKE $1", "%WITH matched%"
    )
    assert not kept


@pytest.mark.parametrize("analysed", [False, True], ids=["new", "analysed"])
async def test_a_page_of_few_audiences_reads_one_record_of_each_and_its_own(kv, analysed):
    audiences = [f"ns:{number}" for number in range(8)]
    for number, audience in enumerate(audiences):
        await fill_skills(kv, audience, range(number * 200, number * 200 + 200))
    if analysed:
        await kv._db.fetch("ANALYZE records")
    query = Query.of(SKILLS, {}, "listed_at", True, None, 30, frozenset(audiences))
    plan = await plan_of(kv, *select(query, 0))
    read = sum(map(int, re.findall(r"Index Scan .*actual rows=(\d+)", plan)))
    assert 31 <= read <= 31 + len(audiences), plan


@pytest.mark.parametrize("descending", [False, True])
async def test_a_page_reads_its_own_however_many_records_share_a_time(kv, descending):
    await fill(kv, 3_000, at=7)
    after = base64.urlsafe_b64encode(b'[7,"sub:001500"]').decode()
    states = In(tuple(sorted(State)))
    query = Query.of(SUBMISSIONS, {"state": states}, "updated_at", descending, after, 30, EVERYTHING)
    plan = await plan_of(kv, *select(query, 0))
    read = sum(map(int, re.findall(r"Index Scan .*actual rows=(\d+)", plan)))
    assert (read, most_removed(plan)) == (31, 0), plan


async def test_words_of_the_name_come_before_those_of_other_fields(kv):
    texts = {"a": ("chart", ""), "b": ("charting", ""), "c": ("other", "a chart of everything")}
    await kv.commit(
        [
            Put(f"skill:o/r/{key}", b'{"name":"%s","description":"%s"}' % (name.encode(), text.encode()))
            for key, (name, text) in texts.items()
        ]
    )
    query = TermQuery((WantedTerm("chart", "chart", 1.0),))
    found = await kv.search(SKILLS.prefix, query, audiences=EVERYTHING)
    assert sorted(one.key[-1] for one in found.items[:2]) == ["a", "b"]
    assert found.items[2].key == "skill:o/r/c"


async def test_every_count_is_folded_however_many_there_are(kv):
    await fill(kv, 500)
    await kv._db.fetch(
        "INSERT INTO count_deltas (collection, field, value, known, n) "
        "SELECT 'sub', 'state', 'PUBLISHED', true, 0 FROM generate_series(1, $1::integer)",
        2 * FOLD_STEP,
    )
    await kv.sweep(changes_before=0)
    assert await kv._db.fetchval("SELECT count(*) FROM count_deltas") == 0
    assert await kv.count_by(SUBMISSIONS.prefix, "state", audiences=EVERYTHING) == {"PUBLISHED": 500}

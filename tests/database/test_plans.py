"""How SQLite answers: by the declared indexes, and never by sorting or reading more than a page needs."""

import sqlite3

import msgspec
import pytest

from vskill_platform.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.kv.query import Between, In, Is, Query
from vskill_platform.kv.sqlite_query import key_ranges, read_ranges, select

pytestmark = pytest.mark.anyio

STATES = ("RECEIVED", "TIER1_SCANNING", "TIER2_SCANNING", "AUTO_APPROVED")

QUERIES = [
    (SUBMISSIONS, {"state": Is("RECEIVED")}, "updated_at", "sub_by_state_updated_at"),
    (SUBMISSIONS, {"state": Is(None)}, "updated_at", "sub_by_state_updated_at"),
    (SUBMISSIONS, {"state": In(STATES), "updated_at": Between(most=5)}, "updated_at", "sub_by_state_updated_at"),
    (SUBMISSIONS, {"state": In(STATES), "due_at": Between(most=5)}, "due_at", "sub_by_state_due_at"),
    (SUBMISSIONS, {"created_at": Between(1, 5)}, "created_at", "sub_by_created_at"),
    (SUBMISSIONS, {}, "created_at", "sub_by_created_at"),
    (SUBMISSIONS, {"digest": Is("d")}, "key", "sub_by_digest"),
    (SUBMISSIONS, {"submitter": Is("s")}, "created_at", "sub_by_submitter_created_at"),
    (SKILLS, {}, "updated_at", "skill_by_updated_at"),
    (SKILLS, {"owner": Is("o")}, "updated_at", "skill_by_owner_updated_at"),
    (SKILLS, {"certification": In(("SCANNED", "VERIFIED"))}, "updated_at", "skill_by_certification_updated_at"),
    (SKILLS, {"current_digest": Is("d")}, "key", "skill_by_current_digest"),
    (SKILLS, {}, "key", "sqlite_autoindex_records_1"),
]


class Watched:
    """Reads that also keep the plan of each statement."""

    def __init__(self, database):
        self._connection = sqlite3.connect(database.path)
        self.plans: list[str] = []

    def __call__(self, text, parameters):
        plan = self._connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters).fetchall()
        self.plans += [row[3] for row in plan]
        return self._connection.execute(text, parameters).fetchall()

    def steps(self, text, parameters):
        """How many instructions of SQLite's machine a statement takes, in hundreds."""
        count = 0

        def tick():
            nonlocal count
            count += 1
            return 0

        self._connection.set_progress_handler(tick, 100)
        self._connection.execute(text, parameters).fetchall()
        self._connection.set_progress_handler(None, 100)
        return count

    def close(self):
        self._connection.close()


@pytest.fixture
def watched(database):
    watched = Watched(database)
    yield watched
    watched.close()


@pytest.mark.parametrize(("collection", "where", "order_by", "index"), QUERIES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("resumed", [False, True])
async def test_each_question_runs_along_its_index_in_order(watched, collection, where, order_by, index, descending, resumed):
    after = None
    if resumed:
        value = None if order_by == "key" else 3
        after = _cursor(value, collection.prefix + "m")
    query = Query.of(collection, where, order_by, descending, after, 10)
    select(watched, query, now=0)
    searches = [step for step in watched.plans if " records " in f"{step} "]
    assert searches
    assert all(f"USING INDEX {index} (" in step or f"USING COVERING INDEX {index} (" in step for step in searches)
    assert not any(step.startswith("SCAN records") for step in watched.plans)


def _cursor(value, key):
    import base64

    return base64.urlsafe_b64encode(msgspec.json.encode((value, key))).decode()


async def _fill(kv, number, state, start=0):
    from vskill_platform.kv.entries import Put

    for first in range(start, start + number, 500):
        await kv.commit(
            [
                Put(f"sub:{n:06}", msgspec.json.encode({"state": state, "updated_at": n, "created_at": n}))
                for n in range(first, min(first + 500, start + number))
            ]
        )


async def test_a_page_costs_the_same_among_many_as_among_few(kv, watched):
    """Issue: `get_stuck_submissions` among 1,000,000 takes what it takes among 10,000. Counted in SQLite's own
    instructions, not in time."""
    query = Query.of(
        SUBMISSIONS, {"state": In(STATES), "updated_at": Between(most=10**9)}, "updated_at", False, None, 50
    )
    await _fill(kv, 100, "RECEIVED")
    few = _cost(watched, query)
    await _fill(kv, 4000, "PUBLISHED", start=1000)
    await _fill(kv, 4000, "RECEIVED", start=6000)
    assert _cost(watched, query) <= few * 1.2 + 1


def _cost(watched, query):
    costs = []

    def counting(text, parameters):
        costs.append(watched.steps(text, parameters))
        return watched(text, parameters)

    assert len(select(counting, query, now=0)) == query.limit + 1
    return sum(costs)


async def test_records_without_the_field_are_not_read_on_the_way(kv, watched):
    """Published submissions have no due time: they must not be stepped over."""
    await kv.put("sub:due", b'{"state": "PUBLISHED", "due_at": 0, "next_attempt_at": 5}')
    query = Query.of(SUBMISSIONS, {"state": Is("PUBLISHED")}, "due_at", False, None, 10)
    rows = []

    def cost():
        def counting(text, parameters):
            rows[:] = watched(text, parameters)
            return rows or [watched.steps(text, parameters)]

        select(counting, query, now=0)

    cost()
    assert len(rows) == 1
    few = _steps_of(watched, query)
    await _fill(kv, 3000, "PUBLISHED")
    assert _steps_of(watched, query) <= few + 1


def _steps_of(watched, query):
    steps = []

    def counting(text, parameters):
        steps.append(watched.steps(text, parameters))
        return watched(text, parameters)

    select(counting, query, now=0)
    return sum(steps)


async def test_AC_US2_03_excluded_keys_are_not_stepped_over(kv, watched):
    from vskill_platform.kv.entries import Put

    for first in range(0, 3000, 500):
        await kv.commit([Put(f"skill:alias:{n:05}:x", b"1") for n in range(first, first + 500)])
    await kv.commit([Put("skill:a", b"{}"), Put("skill:z", b"{}")])
    steps = []

    def counting(text, parameters):
        steps.append(watched.steps(text, parameters))
        return watched(text, parameters)

    rows = read_ranges(counting, "key", key_ranges("skill:", None, ("skill:alias:",)), 100, 0)
    assert rows == [("skill:a",), ("skill:z",)]
    assert sum(steps) <= 2


async def test_waiting_messages_are_found_and_leased_by_index(watched):
    from vskill_platform.broker import sqlite as broker

    for statement, parameters in [
        (broker._VISIBLE, (0, 30)),
        ("SELECT min(visible_at) FROM messages", ()),
        (broker._HELD, ("[[1,1]]",)),
        (broker._LEASE, (0, "[1]")),
        (broker._DELETE, ("[1]",)),
        (broker._SHOW, ("[[1,2,0]]",)),
        (broker._PULL_FORWARD, ('{"a":1}',)),
        (broker._KEYS_THERE, ('["a"]',)),
    ]:
        plan = watched._connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
        steps = [row[3] for row in plan]
        assert not any(step.startswith(("SCAN messages", "SCAN m")) for step in steps), (statement, steps)
        assert not any("TEMP B-TREE" in step for step in steps), (statement, steps)

"""How SQLite answers: by the declared indexes, and never by sorting or reading more than a page needs. Costs are
counted in instructions of SQLite's machine, not in time."""

import asyncio
import base64
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.skills.search import TermQuery, WantedTerm, every_term
from vskill_platform.ledger.broker import sqlite as broker_sql
from vskill_platform.ledger.broker.contract import OWNERS_AT_ONCE
from vskill_platform.ledger.database.sqlite import Read, SqliteDatabase
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.ledger.kv.query import Between, CheckedSearch, Condition, In, Is, Query
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.ledger.kv.sqlite_query import (
    key_ranges,
    read_ranges,
    search,
    select,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STATES = ("RECEIVED", "TIER1_SCANNING", "TIER2_SCANNING", "AUTO_APPROVED")

FEW = frozenset({"public", "ns:a", "ns:b"})

QUERIES = [
    (SUBMISSIONS, {"state": Is("RECEIVED")}, "updated_at", EVERYTHING, "sub_by_state_updated_at"),
    (SUBMISSIONS, {"state": Is(None)}, "updated_at", EVERYTHING, "sub_by_state_updated_at"),
    (
        SUBMISSIONS,
        {"state": In(STATES), "updated_at": Between(most=5)},
        "updated_at",
        EVERYTHING,
        "sub_by_state_updated_at",
    ),
    (SUBMISSIONS, {"state": In(STATES)}, "updated_at", FEW, "sub_by_audience_state_updated_at"),
    (SUBMISSIONS, {"state": Is("RECEIVED")}, "updated_at", PUBLIC_ONLY, "sub_by_audience_state_updated_at"),
    (
        SUBMISSIONS,
        {"state": In(STATES), "due_at": Between(most=5)},
        "due_at",
        EVERYTHING,
        "sub_by_state_due_at",
    ),
    (SUBMISSIONS, {"created_at": Between(1, 5)}, "created_at", PUBLIC_ONLY, "sub_by_audience_created_at"),
    (SUBMISSIONS, {}, "created_at", EVERYTHING, "sub_by_audience_created_at"),
    (SUBMISSIONS, {"digest": Is("d")}, "key", EVERYTHING, "sub_by_digest"),
    (SUBMISSIONS, {"submitter": Is("s")}, "created_at", FEW, "sub_by_audience_submitter_created_at"),
    (SKILLS, {}, "listed_at", PUBLIC_ONLY, "skill_by_audience_listed_at"),
    (SKILLS, {}, "listed_at", FEW, "skill_by_audience_listed_at"),
    (SKILLS, {}, "listed_at", EVERYTHING, "skill_by_audience_listed_at"),
    (SKILLS, {"owner": Is("o")}, "listed_at", FEW, "skill_by_audience_owner_listed_at"),
    (
        SKILLS,
        {"certification": In(("SCANNED", "VERIFIED"))},
        "listed_at",
        FEW,
        "skill_by_audience_certification_listed_at",
    ),
    (
        SKILLS,
        {"category": Is("c"), "owner": Is("o")},
        "listed_at",
        FEW,
        "skill_by_audience_owner_listed_at",
    ),
    (SKILLS, {"category": Is("c"), "trust": Is("T2")}, "installs", FEW, "skill_by_audience_installs"),
    (SKILLS, {"current_digest": Is("d")}, "key", EVERYTHING, "skill_by_current_digest"),
    (SKILLS, {}, "key", FEW, "skill_by_audience"),
    (SKILLS, {}, "key", EVERYTHING, "sqlite_autoindex_records_1"),
]


class Watched:
    """Executes statements and keeps what SQLite plans to do and what it took."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self.plan: list[str] = []
        #: In hundreds of instructions.
        self.cost = 0

    def __call__(self, text: str, parameters: Any) -> list[Any]:
        self.plan += [row[3] for row in self._connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
        self._connection.set_progress_handler(self._count, 100)
        rows = self._connection.execute(text, parameters).fetchall()
        self._connection.set_progress_handler(None, 100)
        return rows

    def _count(self) -> int:
        self.cost += 1
        return 0

    async def run(self, function: Callable[..., list[Any]], *arguments: Any) -> tuple[list[Any], int]:
        """The rows that the product's function reads through this, and what that cost."""
        self.cost = 0
        rows = await asyncio.to_thread(function, self, *arguments)
        return rows, self.cost

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def watched(database: SqliteDatabase) -> Iterator[Watched]:
    watched = Watched(database.path)
    yield watched
    watched.close()


async def fill(kv: SqliteKV, numbers: range, **record: object) -> None:
    for first in range(numbers.start, numbers.stop, 500):
        block = range(first, min(first + 500, numbers.stop))
        await kv.commit(
            [
                Put(f"sub:{n:06}", msgspec.json.encode({"updated_at": n, "created_at": n, **record}))
                for n in block
            ]
        )


def cursor(value: int | None, key: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((value, key))).decode()


@pytest.mark.parametrize(("collection", "where", "order_by", "audiences", "index"), QUERIES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("resumed", [False, True])
async def test_each_question_runs_along_its_index(
    watched, collection, where, order_by, audiences, index, descending, resumed
):
    after = cursor(None if order_by == "key" else 3, collection.prefix + "m") if resumed else None
    query = Query.of(collection, where, order_by, descending, after, 10, audiences)
    await watched.run(select, query, 0)
    on_records = [step for step in watched.plan if " records " in step]
    assert on_records
    assert all(f"SEARCH records USING INDEX {index} (" in step for step in on_records)


async def test_a_page_costs_the_same_among_many_as_among_few(kv, watched):
    """What `get_stuck_submissions` asks: its time must not grow with what is not stuck, nor with what is stuck
    beyond the page."""
    where: dict[str, Condition] = {"state": In(STATES), "updated_at": Between(most=10**9)}
    query = Query.of(SUBMISSIONS, where, "updated_at", False, None, 50, EVERYTHING)
    await fill(kv, range(100), state="RECEIVED")
    rows, few = await watched.run(select, query, 0)
    assert len(rows) == 51
    await fill(kv, range(1000, 5000), state="PUBLISHED")
    await fill(kv, range(6000, 10000), state="RECEIVED")
    rows, many = await watched.run(select, query, 0)
    assert len(rows) == 51
    assert many <= few * 1.1 + 1


async def test_a_later_page_costs_what_the_first_one_does(kv, watched):
    await fill(kv, range(5000), state="RECEIVED")
    costs = []
    for after in (None, cursor(4000, "sub:004000")):
        query = Query.of(SUBMISSIONS, {"state": Is("RECEIVED")}, "updated_at", False, after, 50, EVERYTHING)
        rows, cost = await watched.run(select, query, 0)
        assert len(rows) == 51
        costs.append(cost)
    assert costs[1] <= costs[0] * 1.1 + 1


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("audiences", [EVERYTHING, FEW], ids=["everything", "few"])
@pytest.mark.parametrize("state", [Is("RECEIVED"), In(STATES)], ids=["one state", "states"])
async def test_a_page_costs_the_same_however_many_records_share_a_time(
    kv, watched, state, audiences, descending
):
    """What was copied in at once has one time: a page goes on behind the key where the one before ended."""
    costs = []
    for numbers, key in ((range(200), "sub:000100"), (range(1000, 5000), "sub:003000")):
        await fill(kv, numbers, state="RECEIVED", updated_at=7)
        after = cursor(7, key)
        query = Query.of(SUBMISSIONS, {"state": state}, "updated_at", descending, after, 50, audiences)
        rows, cost = await watched.run(select, query, 0)
        assert len(rows) == 51
        costs.append(cost)
    assert costs[1] <= costs[0] * 1.1 + 1


MANY = frozenset({"public", *(f"ns:{number}" for number in range(60))})


async def fill_skills(kv: SqliteKV, audience: str, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, 500):
        await kv.commit(
            [
                Put(
                    f"skill:{n:06}",
                    msgspec.json.encode({"name": "foo", "audience": audience, "listing": {"updated_at": n}}),
                )
                for n in range(first, min(first + 500, numbers.stop))
            ]
        )


@pytest.mark.parametrize("audiences", [PUBLIC_ONLY, FEW, MANY], ids=["public", "few", "many"])
async def test_what_may_not_be_read_is_not_read(kv, watched, audiences):
    """A page costs the same when the newest import is hidden, and a search skips it with its words."""
    query = Query.of(SKILLS, {}, "listed_at", True, None, 30, audiences)
    asked = TermQuery((WantedTerm("foo", "foo", 1.0),))
    for number in range(61):
        await fill_skills(kv, f"ns:{number}", range(number * 50, number * 50 + 50))
    await fill_skills(kv, "public", range(4000, 5000))
    rows, cost = await watched.run(select, query, 0)
    hits, search_cost = await watched.run(
        search, CheckedSearch(SKILLS, asked, audiences, (), ("weight",), 30), 0
    )
    assert (len(rows), len(hits)) == (31, 31)
    await fill_skills(kv, "ns:hidden", range(10_000, 16_000))
    again, among_hidden = await watched.run(select, query, 0)
    hits_again, search_among = await watched.run(
        search, CheckedSearch(SKILLS, asked, audiences, (), ("weight",), 30), 0
    )
    assert (again, hits_again) == (rows, hits)
    assert among_hidden <= cost * 1.1 + 1
    assert search_among <= search_cost * 1.5 + 2


async def test_records_without_the_field_are_not_read_on_the_way(kv, watched):
    """Published submissions have no due time: a page in that order must not step over them."""
    await kv.put("sub:due", b'{"state": "PUBLISHED", "next_attempt_at": 5}')
    query = Query.of(SUBMISSIONS, {"state": Is("PUBLISHED")}, "due_at", False, None, 10, EVERYTHING)
    rows, alone = await watched.run(select, query, 0)
    assert [row[0] for row in rows] == ["sub:due"]
    await fill(kv, range(3000), state="PUBLISHED")
    rows, among = await watched.run(select, query, 0)
    assert [row[0] for row in rows] == ["sub:due"]
    assert among <= alone + 1


async def test_AC_US2_03_excluded_keys_are_not_stepped_over(kv, watched):
    for first in range(0, 3000, 500):
        await kv.commit([Put(f"skill:alias:{n:05}:x", b"1") for n in range(first, first + 500)])
    await kv.commit([Put("skill:a", b"{}"), Put("skill:z", b"{}")])

    def keys(read: Read) -> list[Any]:
        return read_ranges(read, "key", key_ranges("skill:", None, ("skill:alias:",)), 100, 0)

    rows, cost = await watched.run(keys)
    assert rows == [("skill:a",), ("skill:z",)]
    assert cost <= 2


async def test_counts_are_read_not_counted(kv, database, watched):
    """AC: counts among 1,000,000 records cost what they cost among few."""
    await fill(kv, range(2000), state="PUBLISHED")
    rows, cost = await watched.run(
        lambda read: read("SELECT n FROM counts WHERE collection = ? AND field = ?", ["sub", "state"])
    )
    assert rows == [(2000,)]
    assert cost <= 1


async def test_a_search_reads_what_matches_and_no_more(kv, watched):
    await fill(kv, range(2000), skill_name="common words")
    await kv.put("sub:rare", b'{"skill_name": "rare words"}')
    found, cost = await watched.run(
        search, CheckedSearch(SUBMISSIONS, every_term("rare"), PUBLIC_ONLY, (), (), 30), 0
    )
    assert len(found) == 1
    assert cost <= 12


async def test_a_search_for_a_common_word_orders_its_matches_by_a_narrow_index(kv, watched):
    """The records themselves, which are many times as wide, are read only of what is shown."""
    await fill(kv, range(300), skill_name="common words")
    await watched.run(search, CheckedSearch(SUBMISSIONS, every_term("common"), PUBLIC_ONLY, (), (), 30), 0)
    assert any("USING COVERING INDEX sub_narrow" in step for step in watched.plan), watched.plan


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (broker_sql._VISIBLE, [0, 30]),
        (broker_sql._CHOSEN, ["[1]"]),
        (broker_sql._FIRST_VISIBLE, []),
        (broker_sql._HELD, ["[[1,1]]"]),
        (broker_sql._LEASE, [0, "[1]"]),
        (broker_sql._DELETE, ["[1]"]),
        (broker_sql._SHOW, ["[[1,2,0]]"]),
        (broker_sql._PULL_FORWARD, ['{"a":1}', 0]),
        (broker_sql._PUT_FIRST, ['["a"]', 0, 0]),
        (broker_sql._KEYS_THERE, ['["a"]']),
    ],
)
async def test_messages_are_found_by_their_indexes(watched, statement, parameters):
    watched(statement, parameters)
    assert not any(
        step.startswith(("SCAN messages", "SCAN m")) for step in watched.plan if "min" not in statement
    )
    assert not any("TEMP B-TREE" in step for step in watched.plan)


async def test_a_fair_look_costs_the_same_when_ten_thousand_wait(broker, watched, clock):
    """What is delayed is stepped over in one round of the owners, however often the round could be made again."""

    def look(read: Callable[[str, Any], list[Any]]) -> list[Any]:
        return read(
            broker_sql._BY_OWNER,
            {"now": clock.now(), "front": 30, "most": 10, "after": "ann", "owners": OWNERS_AT_ONCE},
        )

    await broker.send_batch([Send(b"", owner="ann")] * 100 + [Send(b"", owner="ben")])
    found, few = await watched.run(look)
    assert found[0][1] == "ann"
    await broker.send_batch([Send(b"", owner="ann")] * 10_000)
    again, many = await watched.run(look)
    assert again == found
    assert many <= few * 1.1 + 1
    await broker.send_batch([Send(b"", owner="cid", delay_ms=60_000)] * 10_000)
    again, beside_delayed = await watched.run(look)
    assert again == found
    instructions_for_each = 100 * (beside_delayed - many) / 10_000
    assert instructions_for_each <= 5

"""The declared fields as SQLite keeps them: the same as the contract reads, for whatever is stored."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.search import every_term
from vskill_platform.domain.skills.terms import MAX_TERMS, field_terms
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.collections import COLLECTIONS, Value
from vskill_platform.ledger.kv.fields import FIELD_COLUMNS, column, derive, kept_fields
from vskill_platform.ledger.kv.query import In, Is
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.ledger.kv.sqlite_fields import search_columns, search_table
from vskill_platform.ledger.kv.sqlite_query import index_name

BY_NAME = {collection.name: collection for collection in COLLECTIONS}


@pytest.fixture
def file(path: Path) -> Iterator[sqlite3.Connection]:
    """A file as the migrations make it."""
    asyncio.run(_make(path))
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


async def _make(path: Path) -> None:
    await (await SqliteDatabase.open(path, ManualClock())).close()


# What the migrations declare, against what the collections declare.


def test_every_declared_field_that_is_indexed_or_counted_has_its_column(file):
    columns = [row[1] for row in file.execute("PRAGMA table_info(records)")]
    derived = [name for name in columns if name.split("_")[0] in BY_NAME and "_" in name]
    assert set(derived) == set(FIELD_COLUMNS)


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda one: one.name)
def test_every_declared_index_is_there_and_no_other(file, collection):
    found = {
        name: sql
        for name, sql in file.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        )
        if name.startswith(f"{collection.name}_by_")
    }
    expected = {index_name(collection, index): index for index in collection.indexes}
    assert found.keys() == expected.keys()
    for name, index in expected.items():
        columns = ", ".join([*(column(collection, field) for field in index), "key"])
        assert f"ON records ({columns})" in found[name]
        assert found[name].endswith(f"WHERE collection = '{collection.name}'")


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda one: one.name)
def test_every_counted_field_has_its_triggers_and_every_searched_one_its_place(file, collection):
    triggers = {name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    for field in collection.counted:
        base = column(collection, field)
        assert {f"{base}_inserted", f"{base}_deleted", f"{base}_changed"} <= triggers
    searched = [row[1] for row in file.execute(f"PRAGMA table_info({search_table(collection)})")]
    assert tuple(searched) == (search_columns(collection) if collection.searched else ())


# What is kept, against what the contract reads.

_names = st.sampled_from(
    sorted({name for kind in COLLECTIONS for name in kind.fields} | {"claim", "until", "next_attempt_at"})
)
_numbers = (
    st.integers()
    | st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) + 1, 10**30, 0])
    | st.floats(allow_nan=False)
)
_texts = st.text() | st.sampled_from(["a\0b", '"', "\\", "RECEIVED", "1", "\U0001f600", "Ünïcode", "漢字"])
_plain = st.none() | st.booleans() | _numbers | _texts
_json = st.recursive(
    _plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_names | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
_records = st.dictionaries(_names, _json, max_size=8)
#: As they come from msgspec, and as no writer of ours would write them: doubled keys, escapes, odd numbers.
_odd = st.sampled_from(
    [
        b"",
        b"null",
        b"[]",
        b'"state"',
        b"{",
        b'{"state": "A", "state": "B"}',
        b'{"st\\u0061te": "A"}',
        b'{"state": "\\u0000"}',
        b'{"state": "\\ud800"}',
        b'{"state": "\\ud83d\\ude00"}',
        b'{"updated_at": 1.0}',
        b'{"updated_at": 1e3}',
        b'{"updated_at": -0}',
        b'{"updated_at": true}',
        b'{"updated_at": 9223372036854775808}',
        b'{"updated_at": "5"}',
        b'{"claim": {"until": null}, "next_attempt_at": 5}',
        b'{"claim": {"until": "x"}, "next_attempt_at": 5}',
        b'{"claim": [], "next_attempt_at": 5}',
        b'{"claim": {"until": 7}, "next_attempt_at": 5}',
        b' {"state" : "A"} \n',
        b'{"state": "A"} trailing',
        b"{'state': 'A'}",
        b'{"state": "tab\there"}',
        b"[" * 3000 + b"]" * 3000,
        b'{"state": NaN}',
    ]
)


_keys = st.sampled_from(
    ["sub:a", "sub:", "skill:o/r/s", "skill:alias:x", "subrun:a:1", "other", "sub_alias:x"]
)


@given(key=_keys, value=_records.map(msgspec.json.encode) | _odd | st.text().map(str.encode))
@settings(max_examples=examples(100))
def test_columns_hold_exactly_what_the_contract_reads(key, value):
    columns = derive(key, value)
    held = dict(zip(("searched", "collection", *FIELD_COLUMNS), columns, strict=True))
    for collection in COLLECTIONS:
        for field in kept_fields(collection):
            expected = collection.fields[field].read(value) if collection.holds(key) else None
            assert held[column(collection, field)] == expected
            assert type(held[column(collection, field)]) is type(expected)
    holding = [collection.name for collection in COLLECTIONS if collection.holds(key)]
    assert held["collection"] == (holding[0] if holding else None)


@given(records=st.lists(st.tuples(_keys, _records.map(msgspec.json.encode) | _odd), min_size=1, max_size=8))
@settings(max_examples=examples(10), deadline=None)
def test_stored_fields_counts_and_terms_agree_with_the_records(tmp_path_factory, records):
    """Whatever was written over whatever, in one group or several: counts are exact, and select finds it."""
    path = tmp_path_factory.mktemp("fields") / "store.sqlite"
    storable = [(key, value) for key, value in records if b"\0" not in value]
    asyncio.run(_check_stored(path, storable))


async def _check_stored(path: Path, records: list[tuple[str, bytes]]) -> None:
    kv = SqliteKV(await SqliteDatabase.open(path, ManualClock()))
    half = len(records) // 2
    await asyncio.gather(*(kv.put(key, value) for key, value in records[:half]))
    for key, value in records[half:]:
        await kv.put(key, value)
    for collection in COLLECTIONS:
        entries = (await kv.scan(collection.prefix, exclude=collection.exclude)).items
        for field in collection.counted:
            counts: dict[Value, int] = {}
            for entry in entries:
                found = collection.fields[field].read(entry.value)
                counts[found] = counts.get(found, 0) + 1
            assert await kv.count_by(collection.prefix, field, audiences=EVERYTHING) == counts
        for entry in entries:
            words = " ".join(collection.search_texts(entry.value)).split() if collection.searched else ()
            for term in [word for word in sorted(words) if word.isalnum()][:3]:
                hits = await kv.search(collection.prefix, every_term(term), audiences=EVERYTHING)
                assert entry.key in {one.key for one in hits.items}
    await kv.close()


@pytest.mark.anyio
async def test_a_number_is_never_found_by_its_digits(kv):
    await kv.put("sub:a", b'{"state": "1", "updated_at": 1}')
    assert (
        await kv.select("sub:", where={"state": Is(1)}, order_by="updated_at", audiences=EVERYTHING)
    ).items == ()
    assert (
        await kv.select("sub:", where={"state": In((1, 2))}, order_by="updated_at", audiences=EVERYTHING)
    ).items == ()


@pytest.mark.anyio
async def test_texts_are_indexed_again_only_when_they_changed(database, kv):
    def postings() -> Any:
        return database.point_read("SELECT count(*), max(id) FROM sub_search_data")

    await kv.put("sub:a", b'{"skill_name": "alpha", "state": "RECEIVED"}')
    before = postings()
    await kv.put("sub:a", b'{"skill_name": "alpha", "state": "PUBLISHED"}')
    assert postings() == before
    await kv.put("sub:a", b'{"skill_name": "beta", "state": "PUBLISHED"}')
    assert postings() != before
    assert (await kv.search("sub:", every_term("alpha"), audiences=EVERYTHING)).items == ()
    assert len((await kv.search("sub:", every_term("beta"), audiences=EVERYTHING)).items) == 1


@pytest.mark.anyio
@given(text=st.text(max_size=60))
@settings(max_examples=examples(25), deadline=None)
def test_the_tokenizer_keeps_every_term_whole(text):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'ascii')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, row)")
    terms = field_terms(text, is_name=True)
    connection.execute("INSERT INTO t VALUES (?)", (terms,))
    assert {term for (term,) in connection.execute("SELECT term FROM v")} == set(terms.split())
    connection.close()


@pytest.mark.anyio
async def test_a_query_of_as_many_terms_as_there_may_be_is_answered(kv):
    text = " ".join(f"w{n}" for n in range(MAX_TERMS))
    await kv.put("skill:a/b/c", msgspec.json.encode({"name": "x", "description": text}))
    assert len((await kv.search("skill:", every_term(text), audiences=EVERYTHING)).items) == 1
    assert (
        await kv.search("skill:", every_term(text + " more"), audiences=EVERYTHING)
    ).items != ()  # terms beyond the limit are left out
    assert (await kv.search("skill:", every_term("zz " + text), audiences=EVERYTHING)).items == ()

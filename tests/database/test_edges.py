"""What only this engine has to be careful about: values that its columns cannot hold, keys in its JSON, a queue
in another place, reads after the file is closed."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from vskill_core.errors import InvalidInput, PlatformError, StoreUnavailable, UnindexedQuery
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.search import TermQuery, WantedTerm, every_term
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.entries import Add, Assert, Capability, Entry, Put
from vskill_platform.ledger.kv.query import Between, In, Is
from vskill_platform.ledger.kv.sqlite import SqliteKV

pytestmark = pytest.mark.anyio

HUGE = 2**70


# Questions.


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"updated_at": Between(least=HUGE)}, []),
        ({"updated_at": Between(most=-HUGE)}, []),
        ({"updated_at": Between(-HUGE, HUGE)}, ["sub:a", "sub:b"]),
        ({"updated_at": Between(most=1)}, ["sub:a"]),
        ({"updated_at": Between(2, 1)}, []),
    ],
)
@pytest.mark.parametrize("descending", [False, True])
async def test_a_range_beyond_every_integer_of_a_column_is_answered(kv, where, expected, descending):
    for n, name in enumerate("ab", start=1):
        await kv.put(f"sub:{name}", b'{"state": "X", "updated_at": %d}' % n)
    page = await kv.select(
        "sub:",
        where={"state": Is("X"), **where},
        order_by="updated_at",
        descending=descending,
        audiences=EVERYTHING,
    )
    assert [entry.key for entry in page.items] == (expected[::-1] if descending else expected)
    found = await kv.search("sub:", every_term("x"), where=where, audiences=EVERYTHING)
    assert found.items == ()


async def test_a_value_that_no_column_can_hold_is_had_by_nobody(kv):
    await kv.put("sub:a", b'{"state": "X", "skill_name": "x", "updated_at": 1}')
    for condition in (Is(HUGE), In((HUGE,)), In(())):
        assert (
            await kv.select("sub:", where={"state": condition}, order_by="updated_at", audiences=EVERYTHING)
        ).items == ()
        assert (
            await kv.search("sub:", every_term("x"), where={"state": condition}, audiences=EVERYTHING)
        ).items == ()


async def test_a_range_over_texts_holds_nothing(kv):
    await kv.put("sub:a", b'{"digest": "5", "skill_name": "x"}')
    assert (
        await kv.search("sub:", every_term("x"), where={"digest": Between(least=1)}, audiences=EVERYTHING)
    ).items == ()


async def test_a_search_filters_by_fields_that_have_a_column(kv):
    await kv.put("skill:o/r/a", b'{"name": "x", "owner": "o", "repo": "r", "listing": {"updated_at": 5}}')
    await kv.put("skill:o/s/a", b'{"name": "x", "owner": "o", "repo": "s", "listing": {"updated_at": 6}}')
    for where, expected in [
        ({"owner": Is("o"), "listed_at": Is(5)}, ["skill:o/r/a"]),
        ({"listed_at": In((6, 7))}, ["skill:o/s/a"]),
        ({"owner": In(("o", "p")), "listed_at": Between(6, 9)}, ["skill:o/s/a"]),
        ({"owner": Is(None)}, []),
    ]:
        found = await kv.search("skill:", every_term("x"), where=where, audiences=EVERYTHING)
        assert [entry.key for entry in found.items] == expected


async def test_the_first_searched_field_counts_most(kv):
    await kv.put("skill:1", b'{"name": "other", "description": "marrow and more"}')
    await kv.put("skill:2", b'{"name": "marrow", "description": "other and more"}')
    query = TermQuery((WantedTerm("marrow", weight=1.0),))
    found = await kv.search("skill:", query, audiences=EVERYTHING)
    assert [entry.key for entry in found.items] == ["skill:2", "skill:1"]
    with pytest.raises(UnindexedQuery):
        await kv.search("skill:", query, where={"repo": Is("r")}, audiences=EVERYTHING)


async def test_a_cursor_of_another_order_is_bad_input(kv):
    for n in range(3):
        await kv.put(f"sub:{n}", b'{"created_at": %d}' % n)
    by_key = await kv.select("sub:", limit=1, audiences=EVERYTHING)
    with pytest.raises(InvalidInput, match="another sort order"):
        await kv.select("sub:", order_by="created_at", after=by_key.after, audiences=EVERYTHING)


@pytest.mark.parametrize("descending", [False, True])
async def test_a_cursor_outside_the_range_does_not_widen_it(kv, descending):
    """The range of a later page may be another one: both hold."""
    for n in range(6):
        await kv.put(f"sub:{n}", b'{"created_at": %d}' % n)
    page = await kv.select(
        "sub:", order_by="created_at", descending=descending, limit=2, audiences=EVERYTHING
    )
    later = await kv.select(
        "sub:",
        where={"created_at": Between(2, 3)},
        order_by="created_at",
        descending=descending,
        after=page.after,
        audiences=EVERYTHING,
    )
    assert sorted(entry.key for entry in later.items) == ["sub:2", "sub:3"]


@pytest.mark.parametrize("descending", [False, True])
async def test_a_cursor_at_the_ranges_end_repeats_nothing(kv, descending):
    for key in "abc":
        await kv.put(f"sub:{key}", b'{"created_at": 2}')
    seen, after = [], None
    for _ in range(3):
        page = await kv.select(
            "sub:",
            where={"created_at": Between(2, 2)},
            order_by="created_at",
            descending=descending,
            after=after,
            limit=1,
            audiences=EVERYTHING,
        )
        seen += [entry.key for entry in page.items]
        after = page.after
    assert (sorted(seen), after) == (["sub:a", "sub:b", "sub:c"], None)


async def test_keys_go_both_ways_page_by_page(kv):
    keys = ["skill:a", "skill:alia", "skill:alias:x", "skill:alias;", "skill:z"]
    for key in keys:
        await kv.put(key, b"{}")
    expected = [key for key in keys if not key.startswith("skill:alias:")]
    for descending in (False, True):
        seen, after = [], None
        while True:
            page = await kv.select(
                "skill:", descending=descending, after=after, limit=1, audiences=EVERYTHING
            )
            seen += [entry.key for entry in page.items]
            after = page.after
            if after is None:
                break
        assert seen == (expected[::-1] if descending else expected)


async def test_the_last_characters_of_all_are_characters_too(kv):
    for key in ("\U0010ffff", "\U0010ffff\U0010ffff", "\ud7ffx", "\ue000", "a\U0010ffffb", "b"):
        await kv.put(key, b"1")
    assert (await kv.list("\U0010ffff")).items == ("\U0010ffff", "\U0010ffff\U0010ffff")
    assert (await kv.list("\ud7ff")).items == ("\ud7ffx",)
    assert (await kv.list("a\U0010ffff")).items == ("a\U0010ffffb",)
    assert (await kv.list("", exclude=("\U0010ffff",))).items == ("a\U0010ffffb", "b", "\ud7ffx", "\ue000")


# Keys.

_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@given(keys=st.lists(st.text(_characters, min_size=1, max_size=20), min_size=1, max_size=5, unique=True))
@settings(max_examples=examples(15), deadline=None)
def test_any_text_can_be_a_key(tmp_path_factory, keys):
    """Keys travel to SQLite inside JSON: each comes out as it went in."""
    asyncio.run(_check_keys(tmp_path_factory.mktemp("keys"), keys))


async def _check_keys(folder: Path, keys: list[str]) -> None:
    kv = SqliteKV(await SqliteDatabase.open(folder / "store.sqlite", ManualClock()))
    first = await kv.commit([Put(key, b"1") for key in keys])
    second = await kv.commit([*(Assert(key, first) for key in keys), *(Add(key, 4) for key in keys)])
    settled = await kv.get_many(keys)
    assert {key: (entry.value, entry.version) for key, entry in settled.found.items()} == dict.fromkeys(
        keys, (b"5", second)
    )
    assert sorted((await kv.list("")).items) == sorted(keys)
    await kv.close()


# Messages.


class BrokenBroker(MemoryBroker):
    async def send_batch(self, sends):
        raise StoreUnavailable("the queue is down")


async def test_B5_a_commit_stands_though_its_message_could_not_be_sent(database, clock):
    kv = SqliteKV(database, BrokenBroker(clock))
    assert Capability.SEND_IN_COMMIT not in kv.capabilities
    version = await kv.commit([Put("sub:a", b"{}"), Send(b"look", "a"), Send(b"look", "b")])
    assert await kv.get("sub:a") == Entry("sub:a", b"{}", version)


async def test_a_queue_in_another_place_gets_the_message_after_the_commit(database, clock):
    elsewhere = MemoryBroker(clock)
    kv = SqliteKV(database, elsewhere)
    await kv.commit([Put("sub:a", b"{}"), Send(b"look", "a")])
    assert [delivery.key for delivery in await elsewhere.take(3, 0)] == ["a"]


async def test_a_queue_in_another_file_is_another_place(database, tmp_path, clock):
    other = SqliteBroker(await SqliteDatabase.open(tmp_path / "other.sqlite", clock))
    kv = SqliteKV(database, other)
    assert Capability.SEND_IN_COMMIT not in kv.capabilities
    await kv.commit([Send(b"look", "a")])
    assert [delivery.key for delivery in await other.take(3, 0)] == ["a"]
    await other.close()


async def test_a_refused_commit_sends_nothing(kv, broker):
    with pytest.raises(PlatformError):
        await kv.commit([Assert("sub:a", 7), Send(b"look", "a")])
    assert await broker.take(1, 0) == ()
    assert await broker.settle([]) == ()


async def test_closing_ends_a_receivers_wait(path, clock):
    broker = SqliteBroker(await SqliteDatabase.open(path, clock))
    receiving = asyncio.create_task(broker.take(1, 60_000))
    await asyncio.sleep(0.02)
    await broker.close()
    assert await asyncio.wait_for(receiving, PATIENCE_S) == ()


# After closing.


async def test_reads_of_a_closed_store_fail_as_unavailable_never_as_empty(path, clock):
    """C7: empty and failed are different things."""
    kv = SqliteKV(await SqliteDatabase.open(path, clock))
    await kv.put("a", b"1")
    await kv.close()
    with pytest.raises(StoreUnavailable):
        await kv.get("a")
    settled = await kv.get_many(["a", "b"])
    assert settled.failed.keys() == {"a", "b"}
    assert (settled.found, settled.missing) == ({}, ())
    with pytest.raises(StoreUnavailable):
        await kv.scan("")
    with pytest.raises(StoreUnavailable):
        await kv.count_by("sub:", "state", audiences=EVERYTHING)

"""Every promise of the store's core, on every engine: versions, commits, listings, settled reads, expiry."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.conftest import KVEngine, Store
from tests.contracts.minimal_kv import MinimalKV
from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from tests.support.patience import NEVER_MS, PATIENCE_S
from vskill_core.errors import (
    Conflict,
    InvalidInput,
    RecordMalformed,
    StoreUnavailable,
    Unsupported,
)
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Broker, DeadLetterPage, Delivery, Depth, Settlement
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.checks import MAX_KEY
from vskill_platform.ledger.kv.contract import KV, READS_AT_ONCE, iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Capability, Delete, Entry, Operation, Put
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.ledger.kv.sqlite import SqliteKV

pytestmark = pytest.mark.anyio


async def fill(kv: KV, keys) -> None:
    """In one commit where the engine can, else one by one."""
    puts = [Put(key, key.encode()) for key in keys]
    if Capability.ATOMIC_COMMIT in kv.capabilities:
        for start in range(0, len(puts), 500):
            await kv.commit(puts[start : start + 500])
        return
    for put in puts:
        await kv.commit([put])


async def keys_of(kv: KV, prefix: str = "", **options) -> list[str]:
    return list((await kv.list(prefix, **options)).items)


async def value_of(kv: KV, key: str) -> bytes | None:
    entry = await kv.get(key)
    return None if entry is None else entry.value


@pytest.mark.parametrize("page", [1, 2, 3, 4, 1000])
async def test_joined_pages_are_what_scanning_gives(kv: KV, page: int):
    """In the same order, without what is excluded and what is not in the range, to the end."""
    keys = ["a", 'b:"', "b:1", "b:alias:x", "b:alias:y", "b:b", "b:é", "c"]
    for key in keys:
        await kv.put(key, b'{"of": %b}' % msgspec.json.encode(key))
    found = []
    async for joined in kv.joined_pages("b:", exclude=("b:alias:",), page=page):
        pairs = msgspec.json.decode(joined.pairs)
        assert len(pairs) == joined.count <= page
        found += pairs
    assert [(key, value["of"]) for key, value in found] == [
        (key, key) for key in sorted(keys) if key.startswith("b:") and not key.startswith("b:alias:")
    ]


async def test_joined_pages_of_nothing_are_one_empty_page(kv: KV):
    assert [page.pairs async for page in kv.joined_pages("none:")] == [b"[]"]


async def test_joined_pages_may_be_left_before_their_end(kv: KV):
    await fill(kv, [f"a:{number}" for number in range(10)])
    async for page in kv.joined_pages("a:", page=2):
        assert page.after == "a:1"
        break
    assert len((await kv.list("a:")).items) == 10


async def test_an_engine_has_exactly_the_capabilities_that_it_is_listed_with(
    kv_engine: KVEngine, tmp_path, clock
):
    store = await kv_engine.open(tmp_path, clock)
    assert store.kv.capabilities == kv_engine.claims
    assert store.kv.engine
    await store.close()


# Versions.


async def test_a_value_comes_back_as_it_was_put_with_the_version_that_the_put_returned(kv: KV):
    version = await kv.put("k", b'{"a": 1}')
    assert version > ABSENT
    assert await kv.get("k") == Entry("k", b'{"a": 1}', version)


async def test_an_unknown_key_is_None_and_no_error(kv: KV):
    assert await kv.get("nothing") is None


@pytest.mark.parametrize("value", [b"", b" ", "ä€𝄞\u202e".encode(), b"x" * 300_000, b"[]", b"\x01\x7f\t\r\n"])
async def test_any_utf8_without_NUL_is_a_value(kv: KV, value):
    await kv.put("k", value)
    assert await value_of(kv, "k") == value


@pytest.mark.parametrize("value", [b"a\0b", b"\0", b"\xff", b"\xed\xa0\x80", b"\xc3"])
async def test_what_is_not_utf8_or_has_a_NUL_is_refused_and_nothing_is_written(kv: KV, value):
    with pytest.raises(InvalidInput) as caught:
        await kv.put("k", value)
    assert caught.value.field == "value"
    assert await kv.get("k") is None


async def test_D4_put_if_absent_writes_once_and_then_conflicts(kv: KV):
    await kv.put("k", b"first", if_version=ABSENT)
    with pytest.raises(Conflict) as caught:
        await kv.put("k", b"second", if_version=ABSENT)
    assert caught.value.text("key") == "k"
    assert await value_of(kv, "k") == b"first"


async def test_D3_a_write_that_names_an_old_version_loses(kv: KV):
    old = await kv.put("k", b"1")
    new = await kv.put("k", b"2", if_version=old)
    assert new > old
    with pytest.raises(Conflict) as caught:
        await kv.put("k", b"late", if_version=old)
    assert caught.value.text("key") == "k"
    assert await kv.get("k") == Entry("k", b"2", new)


async def test_two_expectations_of_one_key_that_contradict_each_other_conflict_before_all_others(
    atomic_kv: KV,
):
    """Whatever the store holds: every engine names the same key."""
    with pytest.raises(Conflict) as refused:
        await atomic_kv.commit([Delete("absent", 7), Delete("k", ABSENT), Assert("k", 7)])
    assert refused.value.details["key"] == "k"


async def test_naming_a_version_of_a_key_that_is_gone_conflicts(kv: KV):
    version = await kv.put("k", b"1")
    await kv.delete("k")
    with pytest.raises(Conflict):
        await kv.put("k", b"2", if_version=version)
    with pytest.raises(Conflict):
        await kv.delete("k", if_version=version)
    assert await kv.get("k") is None


async def test_a_put_without_a_version_overwrites(kv: KV):
    await kv.put("k", b"1")
    version = await kv.put("k", b"2")
    assert await kv.get("k") == Entry("k", b"2", version)


async def test_a_put_of_the_same_value_still_has_a_new_version(kv: KV):
    assert await kv.put("k", b"1") != await kv.put("k", b"1")


async def test_a_delete_removes_the_key_and_a_second_one_is_no_error(kv: KV):
    await kv.put("k", b"1")
    await kv.delete("k")
    assert await kv.get("k") is None
    await kv.delete("k")


async def test_a_delete_that_names_an_old_version_loses(kv: KV):
    old = await kv.put("k", b"1")
    new = await kv.put("k", b"2")
    with pytest.raises(Conflict) as caught:
        await kv.delete("k", if_version=old)
    assert caught.value.text("key") == "k"
    await kv.delete("k", if_version=new)
    assert await kv.get("k") is None


async def test_a_version_never_comes_back_after_a_delete(kv: KV):
    seen = set()
    for _ in range(5):
        seen.add(await kv.put("k", b"1"))
        await kv.delete("k")
    assert len(seen) == 5


async def test_a_stale_version_does_not_match_the_key_made_again(kv: KV):
    """ABA: whoever read the first life of a key cannot write into its second."""
    first = await kv.put("k", b"1")
    await kv.delete("k")
    await kv.put("k", b"1", if_version=ABSENT)
    with pytest.raises(Conflict):
        await kv.put("k", b"2", if_version=first)


# Keys.


@pytest.mark.parametrize("key", ["", "\0", "a\0b", "\ud800", "x" * (MAX_KEY + 1), "ä" * (MAX_KEY // 2 + 1)])
async def test_a_key_that_is_empty_has_a_NUL_or_is_too_long_is_refused(kv: KV, key):
    for operation in (Put(key, b"1"), Delete(key), Add(key), Assert(key, ABSENT)):
        with pytest.raises(InvalidInput) as caught:
            await kv.commit([operation])
        assert caught.value.field == "key"


@pytest.mark.parametrize(
    "key",
    [
        "x" * MAX_KEY,
        "ä" * (MAX_KEY // 2),
        " ",
        "%",
        "_",
        "sub:'; DROP TABLE records; --",
        "a\nb",
        "\\",
        "*",
        "[a-z]",
        "\U0010ffff",
        "skill:é/e\u0301",
    ],
)
async def test_any_other_key_is_kept_as_it_is(kv: KV, key):
    await kv.put(key, b"1")
    assert await keys_of(kv) == [key]
    assert await keys_of(kv, key) == [key]
    assert (await kv.get_many([key])).found.keys() == {key}
    await kv.delete(key)
    assert await keys_of(kv) == []


async def test_keys_that_look_alike_are_different(kv: KV):
    keys = ["é", "e\u0301", "E", "e", "e ", "ß", "ss"]
    await fill(kv, keys)
    assert sorted(await keys_of(kv)) == sorted(keys)
    assert await value_of(kv, "E") == b"E"


# Commits.


async def test_a_commit_gives_all_its_keys_one_version(atomic_kv: KV):
    await atomic_kv.put("gone", b"1")
    version = await atomic_kv.commit([Put("a", b"1"), Put("b", b"2"), Add("n", 3), Delete("gone")])
    assert await atomic_kv.get("a") == Entry("a", b"1", version)
    assert await atomic_kv.get("b") == Entry("b", b"2", version)
    assert await atomic_kv.get("n") == Entry("n", b"3", version)
    assert await atomic_kv.get("gone") is None


@pytest.mark.parametrize("place", [0, 1, 4])
@pytest.mark.parametrize(
    "failing",
    [
        Assert("guard", 999_999),
        Assert("guard", ABSENT),
        Assert("none", 1),
        Put("guard", b"x", 999_999),
        Delete("none", 5),
    ],
)
async def test_D14_one_condition_that_fails_writes_nothing_wherever_it_stands(atomic_kv: KV, failing, place):
    await atomic_kv.put("guard", b"1")
    await atomic_kv.put("old", b"1")
    operations: list[Operation] = [Put("a", b"1"), Put("old", b"2"), Add("n", 1), Put("b", b"1")]
    operations.insert(place, failing)
    with pytest.raises(Conflict) as caught:
        await atomic_kv.commit(operations)
    assert caught.value.text("key") == failing.key
    assert await keys_of(atomic_kv) == ["guard", "old"]
    assert await value_of(atomic_kv, "old") == b"1"
    assert await value_of(atomic_kv, "guard") == b"1"


async def test_asserts_that_hold_let_the_commit_through_and_leave_their_keys_alone(atomic_kv: KV):
    version = await atomic_kv.put("guard", b"1")
    await atomic_kv.commit([Assert("guard", version), Assert("none", ABSENT), Put("a", b"1")])
    assert await atomic_kv.get("guard") == Entry("guard", b"1", version)
    assert await atomic_kv.get("none") is None


async def test_a_key_may_be_asserted_and_written_in_one_commit(atomic_kv: KV):
    version = await atomic_kv.put("k", b"1")
    await atomic_kv.commit([Assert("k", version), Put("k", b"2"), Assert("k", version)])
    assert await value_of(atomic_kv, "k") == b"2"


@pytest.mark.parametrize("second", [Put("k", b"2"), Delete("k"), Add("k")])
@pytest.mark.parametrize("first", [Put("k", b"1"), Delete("k"), Add("k")])
async def test_a_key_written_twice_in_one_commit_is_refused(atomic_kv: KV, first, second):
    with pytest.raises(InvalidInput, match="twice"):
        await atomic_kv.commit([Put("a", b"1"), first, second])
    assert await keys_of(atomic_kv) == []


async def test_a_refused_value_writes_nothing_of_its_commit(atomic_kv: KV):
    with pytest.raises(InvalidInput):
        await atomic_kv.commit([Put("a", b"1"), Put("b", b"\xff")])
    assert await keys_of(atomic_kv) == []


async def test_an_urgent_commit_is_a_commit(kv: KV):
    version = await kv.commit([Put("k", b"1", quiet=True)], urgent=True)
    assert await kv.get("k") == Entry("k", b"1", version)


async def test_an_engine_without_atomic_commits_says_so(kv_without_atomic_commit: KV):
    kv = kv_without_atomic_commit
    with pytest.raises(Unsupported, match="atomic commit"):
        await kv.commit([Put("a", b"1"), Put("b", b"1")])
    assert await keys_of(kv) == []


async def test_a_commit_that_only_asserts_tells_whether_it_holds(kv: KV):
    version = await kv.put("k", b"1")
    await kv.commit([Assert("k", version)])
    with pytest.raises(Conflict):
        await kv.commit([Assert("k", ABSENT)])


# Writers at once.


async def increment(kv: KV, key: str) -> None:
    while True:
        entry = await kv.get(key)
        value, version = (int(entry.value), entry.version) if entry else (0, ABSENT)
        try:
            await kv.put(key, b"%d" % (value + 1), if_version=version)
        except Conflict:
            continue
        return


async def test_D7_fifty_concurrent_increments_by_compare_and_swap_lose_none(kv: KV):
    await asyncio.gather(*(increment(kv, "n") for _ in range(50)))
    assert await value_of(kv, "n") == b"50"


async def test_concurrent_adds_lose_none(kv: KV):
    await asyncio.gather(*(kv.commit([Add("n", n)]) for n in range(-10, 41)))
    assert await value_of(kv, "n") == str(sum(range(-10, 41))).encode()


async def test_A2_thirty_concurrent_writers_all_appear(kv: KV):
    """Each publishes its own record and counts itself in a shared one: nothing vanishes."""

    async def publish(n: int) -> None:
        await kv.put(f"skill:o/r/{n:02}", b"{}", if_version=ABSENT)
        await increment(kv, "shared")

    await asyncio.gather(*(publish(n) for n in range(30)))
    assert await keys_of(kv, "skill:") == [f"skill:o/r/{n:02}" for n in range(30)]
    assert await value_of(kv, "shared") == b"30"


async def test_D4_of_thirty_concurrent_creators_of_one_key_exactly_one_wins(kv: KV):
    outcomes = await asyncio.gather(
        *(kv.put("k", b"%d" % n, if_version=ABSENT) for n in range(30)), return_exceptions=True
    )
    versions = [outcome for outcome in outcomes if not isinstance(outcome, Conflict)]
    assert len(versions) == 1
    entry = await kv.get("k")
    assert entry is not None
    assert entry.version == versions[0]


async def test_one_callers_conflict_fails_no_other_callers_commit(atomic_kv: KV):
    await atomic_kv.put("taken", b"1")
    outcomes = await asyncio.gather(
        *(
            atomic_kv.commit(
                [Put(f"k{n:02}", b"1"), Assert("taken", ABSENT)] if n % 3 == 0 else [Put(f"k{n:02}", b"1")]
            )
            for n in range(30)
        ),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Conflict) for outcome in outcomes] == [n % 3 == 0 for n in range(30)]
    assert await keys_of(atomic_kv, "k") == [f"k{n:02}" for n in range(30) if n % 3]


async def test_commits_of_several_keys_never_show_half(atomic_kv: KV):
    """Two keys that are always written together are always read at one version."""

    async def write() -> None:
        for _ in range(20):
            await atomic_kv.commit([Put("a", b"1"), Put("b", b"1")])

    async def read() -> None:
        for _ in range(20):
            page = await atomic_kv.scan("")
            assert len({entry.version for entry in page.items}) <= 1
            await asyncio.sleep(0)

    await asyncio.gather(write(), read(), write(), read())


# Counters.


async def test_a_counter_begins_at_zero_and_may_go_below_it(kv: KV):
    await kv.commit([Add("n")])
    await kv.commit([Add("n", 5)])
    version = await kv.commit([Add("n", -10)])
    assert await kv.get("n") == Entry("n", b"-4", version)


async def test_adding_raises_the_version_so_that_an_assert_notices(kv: KV):
    before = await kv.commit([Add("control:blocklist")])
    assert await kv.commit([Add("control:blocklist")]) > before
    with pytest.raises(Conflict):
        await kv.commit([Assert("control:blocklist", before)])


async def test_adding_to_what_is_no_counter_is_refused_and_writes_nothing(atomic_kv: KV):
    await atomic_kv.put("n", b"{}")
    with pytest.raises(RecordMalformed) as caught:
        await atomic_kv.commit([Put("a", b"1"), Add("n")])
    assert caught.value.text("key") == "n"
    assert await atomic_kv.get("a") is None
    assert await value_of(atomic_kv, "n") == b"{}"


# Listings.


async def test_A5_a_listing_reaches_the_end_of_2600_keys_page_by_page(kv: KV):
    keys = [f"p:{n:05}" for n in range(2_600)]
    await fill(kv, [*keys, "o:1", "q:1"])
    listed: list[str] = []
    sizes: list[int] = []
    after = None
    while True:
        page = await kv.list("p:", after=after)
        listed += page.items
        sizes.append(len(page.items))
        after = page.after
        if after is None:
            break
    assert listed == keys
    assert sizes == [1000, 1000, 600]


async def test_A5_iterating_reads_every_entry_once(kv: KV):
    keys = [f"p:{n:04}" for n in range(250)]
    await fill(kv, keys)
    found = [entry.key async for page in iterate_pages(kv, "p:", page=60) for entry in page.items]
    assert found == keys


async def test_a_page_that_ends_with_the_last_key_has_no_next_one(kv: KV):
    await fill(kv, ["a", "b"])
    page = await kv.list("", limit=2)
    assert (page.items, page.after) == (("a", "b"), None)
    entries = await kv.scan("", limit=2)
    assert (len(entries.items), entries.after) == (2, None)


async def test_keys_are_listed_in_the_order_of_their_bytes(kv: KV):
    keys = ["k:z", "k:Z", "k:ä", "k:\uffff", "k:\U0001f600", "k:a", "k:", "k:10", "k:9", "k:\ue000"]
    await fill(kv, keys)
    assert await keys_of(kv, "k:") == sorted(keys, key=str.encode)


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    keys=st.sets(st.text("ab:%_\\é\uffff\U0001f600\U0010ffff", min_size=1, max_size=4), max_size=12),
    prefix=st.text("ab:%é\uffff\U0010ffff", max_size=2),
    exclude=st.lists(st.text("ab:_é\U0010ffff", min_size=1, max_size=3), max_size=2),
    limit=st.integers(1, 5),
)
async def test_paging_through_any_keys_gives_each_once_in_order(kv: KV, keys, prefix, exclude, limit):
    for key in await keys_of(kv):
        await kv.delete(key)
    await fill(kv, keys)
    expected = [
        key
        for key in sorted(keys, key=str.encode)
        if key.startswith(prefix) and not key.startswith(tuple(exclude))
    ]
    listed: list[str] = []
    scanned: list[str] = []
    after = None
    while True:
        page = await kv.list(prefix, after=after, limit=limit, exclude=exclude)
        entries = await kv.scan(prefix, after=after, limit=limit, exclude=exclude)
        assert page.after == entries.after
        listed += page.items
        scanned += [entry.key for entry in entries.items]
        after = page.after
        if after is None:
            break
    assert listed == expected
    assert scanned == expected


async def test_a_listing_can_go_on_after_a_key_that_is_gone(kv: KV):
    await fill(kv, ["a", "b", "c", "d"])
    page = await kv.list("", limit=2)
    await kv.delete("b")
    assert await keys_of(kv, after=page.after) == ["c", "d"]


async def test_a_listing_after_a_key_before_the_prefix_begins_at_the_prefix(kv: KV):
    await fill(kv, ["a:1", "b:1", "c:1"])
    assert await keys_of(kv, "b:", after="a") == ["b:1"]
    assert await keys_of(kv, "b:", after="c") == []


async def test_AC_US2_03_excluded_keys_are_neither_listed_nor_scanned(kv: KV):
    await fill(kv, ["skill:a", "skill:alias:a:1", "skill:alias:b:2", "skill:aliaz", "skill:b"])
    wanted = ["skill:a", "skill:aliaz", "skill:b"]
    assert await keys_of(kv, "skill:", exclude=("skill:alias:",)) == wanted
    page = await kv.scan("skill:", exclude=("skill:alias:",))
    assert [entry.key for entry in page.items] == wanted


async def test_pages_are_full_even_where_many_keys_are_excluded(kv: KV):
    await fill(kv, [*(f"skill:alias:{n:03}" for n in range(50)), "skill:a", "skill:b", "skill:c"])
    page = await kv.list("skill:", limit=2, exclude=("skill:alias:",))
    assert page.items == ("skill:a", "skill:b")
    assert page.after is not None


async def test_a_scan_gives_whole_entries_in_key_order(kv: KV):
    await fill(kv, ["c", "a", "b"])
    page = await kv.scan("")
    assert [(entry.key, entry.value) for entry in page.items] == [("a", b"a"), ("b", b"b"), ("c", b"c")]
    assert page.items[0] == await kv.get("a")
    assert (page.after, page.failed) == (None, {})


async def test_an_empty_range_is_empty(kv: KV):
    assert (await kv.list("none:")).items == ()
    assert (await kv.scan("none:")).items == ()
    assert [page.items async for page in iterate_pages(kv, "none:")] == [()]


# Many reads.


async def test_TC_051_reading_many_keys_tells_found_from_missing(kv: KV):
    await fill(kv, ["a", "b"])
    settled = await kv.get_many(["b", "none", "a", "a", "none"])
    assert {key: entry.value for key, entry in settled.found.items()} == {"a": b"a", "b": b"b"}
    assert settled.missing == ("none",)
    assert settled.failed == {}


async def test_TC_052_reading_no_keys_is_empty(kv: KV):
    settled = await kv.get_many([])
    assert (settled.found, settled.missing, settled.failed) == ({}, (), {})


async def test_reading_more_keys_than_one_chunk_finds_them_all(kv: KV):
    keys = [f"k{n:05}" for n in range(2_300)]
    await fill(kv, keys)
    settled = await kv.get_many(iter([*keys, "none"]))
    assert settled.found.keys() == set(keys)
    assert settled.missing == ("none",)


async def test_reading_what_cannot_be_a_key_is_bad_input_and_fails_no_other_read(kv: KV):
    await kv.put("a", b"1")
    for key in ("", "a\0b", "\ud800"):
        with pytest.raises(InvalidInput):
            await kv.get(key)
    settled = await kv.get_many(["a", "a\0b", "", "\ud800", "none"])
    assert (list(settled.found), settled.missing) == (["a"], ("none",))
    assert settled.failed.keys() == {"a\0b", "", "\ud800"}
    assert all(isinstance(error, InvalidInput) for error in settled.failed.values())


@pytest.mark.parametrize("odd", ["\ud800", "a\udfff"])
async def test_a_prefix_that_cannot_be_encoded_is_bad_input(kv: KV, odd):
    for call in (kv.list(odd), kv.scan(odd), kv.list("", after=odd), kv.list("", exclude=("a", odd))):
        with pytest.raises(InvalidInput):
            await call


@pytest.mark.parametrize("odd", ["\0", "a\0b", "x" * (2 * MAX_KEY)])
async def test_nothing_begins_with_what_cannot_be_a_key(kv: KV, odd):
    await fill(kv, ["a", "b", "\ue000", "\U0001f600"])
    assert (await kv.list(odd)).items == ()
    assert (await kv.scan(odd)).items == ()
    assert await keys_of(kv, exclude=(odd,)) == ["a", "b", "\ue000", "\U0001f600"]


# Expiry.


async def test_a_cache_entry_is_gone_when_its_time_is_over(kv: KV, clock: ManualClock):
    await kv.put("c:cache", b"1", ttl_ms=1_000)
    await kv.put("c:record", b"1")
    clock.advance(999)
    assert await keys_of(kv, "c:") == ["c:cache", "c:record"]
    clock.advance(1)
    assert await kv.get("c:cache") is None
    assert await keys_of(kv, "c:") == ["c:record"]
    assert [entry.key for entry in (await kv.scan("c:")).items] == ["c:record"]
    assert (await kv.get_many(["c:cache", "c:record"])).missing == ("c:cache",)


async def test_an_expired_key_is_absent_to_a_condition(kv: KV, clock: ManualClock):
    old = await kv.put("c", b"1", ttl_ms=10)
    clock.advance(10)
    with pytest.raises(Conflict):
        await kv.put("c", b"2", if_version=old)
    assert await kv.put("c", b"2", if_version=ABSENT) > old
    assert await value_of(kv, "c") == b"2"


async def test_A8_a_put_without_a_time_to_live_never_expires_whatever_was_there(kv: KV, clock: ManualClock):
    await kv.put("k", b"1", ttl_ms=10)
    await kv.put("k", b"2")
    clock.advance(10**12)
    assert await value_of(kv, "k") == b"2"
    await kv.sweep(changes_before=0)
    assert await value_of(kv, "k") == b"2"


async def test_putting_again_renews_the_time_to_live(kv: KV, clock: ManualClock):
    await kv.put("k", b"1", ttl_ms=10)
    clock.advance(9)
    await kv.put("k", b"2", ttl_ms=10)
    clock.advance(9)
    assert await value_of(kv, "k") == b"2"


async def test_an_expired_counter_starts_over(kv: KV, clock: ManualClock):
    await kv.put("n", b"41", ttl_ms=10)
    clock.advance(10)
    await kv.commit([Add("n")])
    assert await value_of(kv, "n") == b"1"


async def test_deleting_an_expired_key_is_no_error(kv: KV, clock: ManualClock):
    await kv.put("k", b"1", ttl_ms=10)
    clock.advance(10)
    await kv.delete("k")
    assert await kv.get("k") is None


async def test_sweeping_removes_expired_entries_a_bounded_number_at_a_time(
    changing_kv: KV, clock: ManualClock
):
    for n in range(5):
        await changing_kv.put(f"c:{n}", b"1", ttl_ms=10)
    await changing_kv.put("record", b"1")
    clock.advance(10)
    assert await changing_kv.sweep(changes_before=0, limit=3) == 3
    assert await changing_kv.sweep(changes_before=0, limit=3) == 2
    assert await changing_kv.sweep(changes_before=0) == 0
    assert await keys_of(changing_kv) == ["record"]


# Messages in a commit.


async def test_B5_a_message_sent_in_a_commit_is_delivered(sending_store: Store):
    await sending_store.kv.commit([Put("sub:1", b"{}"), Send(b"look at 1", "1:1")])
    (batch,) = await sending_store.broker.receive(max_wait_ms=0)
    assert [(message.body, message.key) for message in batch.messages] == [(b"look at 1", "1:1")]


async def test_a_message_sent_in_a_commit_that_conflicts_is_not_sent(sending_store: Store):
    await sending_store.kv.put("sub:1", b"{}")
    with pytest.raises(Conflict):
        await sending_store.kv.commit([Send(b"m", "1:1"), Put("sub:1", b"{}", if_version=ABSENT)])
    assert await sending_store.broker.receive(max_wait_ms=0) == ()
    assert (await sending_store.broker.depth()).ready == 0


async def test_messages_in_a_commit_keep_their_delay_and_their_key(sending_store: Store, clock: ManualClock):
    await sending_store.kv.commit([Send(b"later", "k", delay_ms=5_000), Send(b"now")])
    depth = await sending_store.broker.depth()
    assert (depth.ready, depth.delayed) == (1, 1)
    await sending_store.kv.commit([Put("x", b"1"), Send(b"again", "k")])
    (batch,) = await sending_store.broker.receive(max_wait_ms=0)
    assert sorted(message.body for message in batch.messages) == [b"later", b"now"]


async def test_a_send_in_a_commit_wakes_a_waiting_receiver(sending_store: Store):
    waiting = asyncio.create_task(sending_store.broker.receive(max_wait_ms=NEVER_MS))
    await asyncio.sleep(0.02)
    await sending_store.kv.commit([Put("x", b"1"), Send(b"m")])
    async with asyncio.timeout(PATIENCE_S):
        (batch,) = await waiting
    assert batch.messages[0].body == b"m"


async def test_an_engine_without_sending_says_so(kv_without_sending: KV):
    with pytest.raises(Unsupported, match="send in commit"):
        await kv_without_sending.commit([Send(b"m")])


# The store's clock, and its end.


async def test_the_store_has_the_clock_it_was_given(kv: KV, clock: ManualClock):
    before = kv.now()
    clock.advance(1_234)
    assert kv.now() == before + 1_234


async def test_a_healthy_store_passes_its_check(kv: KV):
    await kv.check()


async def test_durable_means_that_a_store_opened_again_has_it_all(kv_engine: KVEngine, tmp_path, clock):
    first = await kv_engine.open(tmp_path, clock)
    version = await first.kv.put("k", b"1")
    await first.close()
    second = await kv_engine.open(tmp_path, clock)
    kept = Entry("k", b"1", version) if Capability.DURABLE in kv_engine.claims else None
    assert await second.kv.get("k") == kept
    await second.kv.put("k", b"2")
    later = await second.kv.get("k")
    assert later is not None
    assert kept is None or later.version > version
    await second.close()


async def test_shared_means_that_two_who_open_it_see_each_other(kv_engine: KVEngine, tmp_path, clock):
    first, second = await kv_engine.open(tmp_path, clock), await kv_engine.open(tmp_path, clock)
    version = await first.kv.put("k", b"1", if_version=ABSENT)
    if Capability.SHARED in kv_engine.claims:
        assert await second.kv.get("k") == Entry("k", b"1", version)
        with pytest.raises(Conflict):
            await second.kv.put("k", b"2", if_version=ABSENT)
        assert await second.kv.put("k", b"2", if_version=version) > version
        await asyncio.gather(*(increment((first, second)[n % 2].kv, "n") for n in range(20)))
        assert await value_of(first.kv, "n") == b"20"
    else:
        assert await second.kv.get("k") is None
    await first.close()
    await second.close()


# What the contract builds on the core, and what only one engine has.


@pytest.fixture
def minimal(clock: ManualClock) -> MinimalKV:
    return MinimalKV(clock)


async def test_TC_050_the_default_reads_many_keys_at_once_but_not_all_of_very_many(minimal: MinimalKV):
    await fill(minimal, [f"k{n}" for n in range(5)])
    await minimal.get_many([f"k{n}" for n in range(5)])
    assert minimal.probe.most_in_flight == 5
    assert [kind for kind, _ in minimal.probe.events] == ["start"] * 5 + ["end"] * 5

    await minimal.get_many([f"none{n}" for n in range(3 * READS_AT_ONCE)])
    assert minimal.probe.most_in_flight == READS_AT_ONCE


async def test_AC_US1_02_a_read_that_fails_hides_no_other(minimal: MinimalKV):
    await fill(minimal, ["a", "b", "c"])
    minimal.probe.failing = {"a": StoreUnavailable("a's disk"), "b": OSError("b's disk")}
    settled = await minimal.get_many(["a", "b", "c", "d"])
    assert (list(settled.found), settled.missing) == (["c"], ("d",))
    assert str(settled.failed["a"]) == "a's disk"
    assert isinstance(settled.failed["b"], StoreUnavailable)
    assert "b's disk" in str(settled.failed["b"])

    page = await minimal.scan("")
    assert [entry.key for entry in page.items] == ["c"]
    assert page.failed.keys() == {"a", "b"}


async def test_TC_052_the_default_makes_not_one_read_for_no_keys(minimal: MinimalKV):
    await minimal.get_many([])
    assert minimal.probe.reads == []


async def test_TC_077_the_default_scan_does_not_read_what_is_excluded(minimal: MinimalKV):
    await fill(minimal, ["skill:foo", "skill:bar", "skill:alias:old"])
    await minimal.scan("skill:", exclude=("skill:alias:",))
    assert sorted(minimal.probe.reads) == ["skill:bar", "skill:foo"]


async def test_the_default_sweep_removes_nothing(minimal: MinimalKV):
    assert await minimal.sweep(changes_before=10**15) == 0


class BrokerElsewhere(Broker):
    """A queue of no store's kind, which may be down."""

    engine = "elsewhere"
    capabilities = MemoryBroker.capabilities

    def __init__(self, clock: ManualClock, *, down: bool) -> None:
        self._inner = MemoryBroker(clock)
        self._down = down

    async def send_batch(self, sends: Sequence[Send]) -> int:
        if self._down:
            raise ConnectionError("no route")
        return await self._inner.send_batch(sends)

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        return await self._inner.take(limit, max_wait_ms)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        return await self._inner.settle(settlements)

    async def depth(self) -> Depth:
        return await self._inner.depth()

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        return await self._inner.dead_letters(after=after, limit=limit)

    async def replay(self, dead_letter_id: int) -> bool:
        return await self._inner.replay(dead_letter_id)

    async def discard(self, dead_letter_id: int) -> bool:
        return await self._inner.discard(dead_letter_id)


async def open_memory_kv(folder: Path, clock: ManualClock, outbox: Broker | None) -> KV:
    return MemoryKV(clock, outbox)


async def open_sqlite_kv(folder: Path, clock: ManualClock, outbox: Broker | None) -> KV:
    return SqliteKV(await SqliteDatabase.open(folder / "store.sqlite", clock), outbox)


OUTBOX_ENGINES = pytest.mark.parametrize(
    "open_kv", [pytest.param(open_memory_kv, id="memory"), pytest.param(open_sqlite_kv, id="sqlite")]
)


@OUTBOX_ENGINES
@pytest.mark.parametrize("down", [False, True])
async def test_B5_with_a_queue_elsewhere_the_message_follows_the_commit_and_its_loss_fails_nothing(
    open_kv, down, tmp_path, clock: ManualClock
):
    outbox = BrokerElsewhere(clock, down=down)
    kv = await open_kv(tmp_path, clock, outbox)
    assert Capability.SEND_IN_COMMIT not in kv.capabilities
    version = await kv.commit([Put("k", b"1"), Send(b"m", "k")])
    assert await kv.get("k") == Entry("k", b"1", version)
    with pytest.raises(Conflict):
        await kv.commit([Put("k", b"1", if_version=ABSENT), Send(b"never")])
    await kv.put("other", b"1")
    sent = [delivery.body for delivery in await outbox.take(10, 0)]
    assert sent == ([] if down else [b"m"])
    await kv.close()


@OUTBOX_ENGINES
async def test_a_store_without_a_queue_refuses_messages_before_it_writes(
    open_kv, tmp_path, clock: ManualClock
):
    kv = await open_kv(tmp_path, clock, None)
    assert Capability.SEND_IN_COMMIT not in kv.capabilities
    with pytest.raises(Unsupported):
        await kv.commit([Put("k", b"1"), Send(b"m")])
    assert await kv.get("k") is None
    await kv.close()

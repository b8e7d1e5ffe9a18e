"""Following a store: what changed, in order, from any cursor that is still kept, without missing one."""

import asyncio

import pytest

from tests.contracts.conftest import KVEngine, kv_lacks, kv_needs
from tests.support.manual_clock import ManualClock
from tests.support.patience import NEVER_MS, PATIENCE_S
from vskill_core.errors import Conflict, CursorGone, InvalidInput, Unsupported
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Capability, Change, Delete, Put

pytestmark = pytest.mark.anyio


async def follow(
    kv: KV, prefix: str = "", after: str | None = None, limit: int = 1000
) -> tuple[list[Change], str]:
    """All that there is after the cursor, and the cursor to go on from."""
    found: list[Change] = []
    while True:
        page = await kv.changes(prefix, after=after, limit=limit)
        assert page.after is not None
        found += page.items
        after = page.after
        if not page.items:
            return found, after


def told(changes) -> list[tuple[str, bool]]:
    return [(change.key, change.deleted) for change in changes]


async def test_changes_are_told_in_the_order_of_their_commits_deletes_included(
    changing_kv: KV, clock: ManualClock
):
    first = await changing_kv.put("a", b"1")
    clock.advance(5)
    second = await changing_kv.commit([Put("b", b"1"), Add("n")])
    third = await changing_kv.delete("a")
    changes, _ = await follow(changing_kv)
    assert told(changes[:1]) == [("a", False)]
    assert sorted(told(changes[1:3])) == [("b", False), ("n", False)]
    assert told(changes[3:]) == [("a", True)]
    assert [change.version for change in changes] == [first, second, second, third]
    assert changes[1].at - changes[0].at == 5
    assert changes[0].at == clock.now() - 5


async def test_following_goes_on_from_any_cursor_and_misses_nothing(changing_kv: KV):
    for n in range(20):
        await changing_kv.put(f"k{n % 7}", b"%d" % n)
    changes, end = await follow(changing_kv, limit=3)
    assert [change.key for change in changes] == [f"k{n % 7}" for n in range(20)]
    for place in (0, 7, 19):
        rest, _ = await follow(changing_kv, after=changes[place].cursor)
        assert rest == changes[place + 1 :]
    await changing_kv.put("new", b"1")
    assert told((await follow(changing_kv, after=end))[0]) == [("new", False)]


async def test_a_page_holds_no_more_than_was_asked_for(changing_kv: KV):
    await changing_kv.commit([Put(f"k{n}", b"1") for n in range(5)])
    page = await changing_kv.changes("", limit=2)
    assert len(page.items) == 2
    assert page.after == page.items[-1].cursor


async def test_the_cursor_of_now_is_followed_by_what_comes_after(changing_kv: KV):
    await changing_kv.put("before", b"1")
    cursor = await changing_kv.change_cursor()
    assert (await changing_kv.changes("", after=cursor)).items == ()
    await changing_kv.put("after", b"1")
    assert told((await changing_kv.changes("", after=cursor)).items) == [("after", False)]


async def test_an_empty_store_has_a_cursor_to_follow_from(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    page = await changing_kv.changes("")
    assert page.items == ()
    await changing_kv.put("k", b"1")
    for one in (cursor, page.after):
        assert told((await changing_kv.changes("", after=one)).items) == [("k", False)]


async def test_only_the_prefix_is_told_and_its_cursor_passes_the_rest(changing_kv: KV):
    await changing_kv.put("sub:1", b"1")
    for n in range(10):
        await changing_kv.put(f"skill:{n}", b"1")
    await changing_kv.put("sub:2", b"1")
    await changing_kv.put("sub%", b"1")
    changes, end = await follow(changing_kv, "sub:", limit=1)
    assert told(changes) == [("sub:1", False), ("sub:2", False)]
    assert await changing_kv.wait_for_change(end, 0) is False


async def test_a_quiet_put_is_not_told(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    await changing_kv.commit([Put("loud", b"1"), Put("quiet", b"1", quiet=True)])
    await changing_kv.put("loud", b"2", quiet=True)
    assert told((await follow(changing_kv, after=cursor))[0]) == [("loud", False)]


async def test_what_changed_nothing_is_not_told(changing_kv: KV):
    await changing_kv.put("k", b"1")
    cursor = await changing_kv.change_cursor()
    with pytest.raises(Conflict):
        await changing_kv.commit([Put("a", b"1"), Put("k", b"1", if_version=ABSENT)])
    await changing_kv.commit([Assert("none", ABSENT), Delete("none")])
    assert (await follow(changing_kv, after=cursor))[0] == []


async def test_E6_a_follower_beside_thirty_writers_sees_every_change(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    seen: list[str] = []

    async def watch() -> None:
        place = cursor
        while len(seen) < 90:
            assert await changing_kv.wait_for_change(place, 5_000)
            page = await changing_kv.changes("w:", after=place, limit=7)
            seen.extend(change.key for change in page.items)
            place = str(page.after)

    async def write(n: int) -> None:
        for step in range(3):
            await changing_kv.put(f"w:{n}:{step}", b"1")

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(watch())
        for n in range(30):
            group.create_task(write(n))
    assert sorted(seen) == sorted(f"w:{n}:{step}" for n in range(30) for step in range(3))


# Waiting.


async def test_waiting_tells_at_once_what_is_there_already(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    await changing_kv.put("k", b"1")
    assert await changing_kv.wait_for_change(cursor, 0) is True


async def test_waiting_ends_without_a_change_when_its_time_is_over(changing_kv: KV):
    assert await changing_kv.wait_for_change(await changing_kv.change_cursor(), 30) is False


async def test_a_commit_wakes_all_who_wait(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    waiting = [asyncio.create_task(changing_kv.wait_for_change(cursor, NEVER_MS)) for _ in range(3)]
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in waiting)
    await changing_kv.commit([Put("k", b"1"), Put("l", b"1")])
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*waiting) == [True] * 3


async def test_a_cancelled_wait_leaves_the_others_waiting(changing_kv: KV):
    cursor = await changing_kv.change_cursor()
    cancelled, kept = (asyncio.create_task(changing_kv.wait_for_change(cursor, NEVER_MS)) for _ in range(2))
    await asyncio.sleep(0.02)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await changing_kv.put("k", b"1")
    async with asyncio.timeout(PATIENCE_S):
        assert await kept is True


@kv_needs(Capability.SHARED, Capability.CHANGES)
async def test_a_second_opener_of_a_shared_store_follows_it(kv_engine: KVEngine, tmp_path, clock):
    writer, reader = await kv_engine.open(tmp_path, clock), await kv_engine.open(tmp_path, clock)
    cursor = await reader.kv.change_cursor()
    waiting = asyncio.create_task(reader.kv.wait_for_change(cursor, NEVER_MS))
    await asyncio.sleep(0.02)
    await writer.kv.commit([Put("a", b"1"), Delete("none")])
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting is True
    assert told((await follow(reader.kv, after=cursor))[0]) == [("a", False)]
    await writer.close()
    await reader.close()


@kv_lacks(Capability.SHARED, but_has=Capability.CHANGES)
async def test_a_second_opener_of_a_store_that_is_not_shared_hears_nothing_of_it(
    kv_engine: KVEngine, tmp_path, clock
):
    writer, reader = await kv_engine.open(tmp_path, clock), await kv_engine.open(tmp_path, clock)
    cursor = await reader.kv.change_cursor()
    await writer.kv.put("a", b"1")
    assert await reader.kv.wait_for_change(cursor, 50) is False
    assert told((await follow(reader.kv, after=cursor))[0]) == []
    await writer.close()
    await reader.close()


# What is not kept for ever.


async def test_a_cursor_older_than_what_is_kept_is_gone(changing_kv: KV, clock: ManualClock):
    start = await changing_kv.change_cursor()
    await changing_kv.put("a", b"1")
    clock.advance(10)
    await changing_kv.put("b", b"1")
    (a, b), _ = await follow(changing_kv)
    assert await changing_kv.sweep(changes_before=clock.now()) == 1
    with pytest.raises(CursorGone):
        await changing_kv.changes("", after=start)
    assert (await changing_kv.changes("", after=a.cursor)).items == (b,)
    assert (await changing_kv.changes("")).items == (b,)


async def test_sweeping_everything_keeps_the_cursor_of_now(changing_kv: KV, clock: ManualClock):
    await changing_kv.commit([Put("a", b"1"), Put("b", b"1")])
    cursor = await changing_kv.change_cursor()
    clock.advance(1)
    assert await changing_kv.sweep(changes_before=clock.now()) == 2
    assert (await changing_kv.changes("", after=cursor)).items == ()
    assert await changing_kv.change_cursor() == cursor
    await changing_kv.put("c", b"1")
    assert told((await changing_kv.changes("", after=cursor)).items) == [("c", False)]
    assert told((await changing_kv.changes("")).items) == [("c", False)]


async def test_sweeping_changes_is_bounded_and_leaves_the_records(changing_kv: KV, clock: ManualClock):
    await changing_kv.commit([Put(f"k{n}", b"1") for n in range(5)])
    clock.advance(1)
    assert await changing_kv.sweep(changes_before=clock.now(), limit=3) == 3
    assert len((await changing_kv.changes("")).items) == 2
    assert len((await changing_kv.list("")).items) == 5


async def test_who_waits_at_a_cursor_that_is_gone_is_woken_to_hear_it(changing_kv: KV, clock: ManualClock):
    cursor = await changing_kv.change_cursor()
    await changing_kv.put("a", b"1")
    clock.advance(1)
    await changing_kv.sweep(changes_before=clock.now())
    assert await changing_kv.wait_for_change(cursor, 0) is True


@pytest.mark.parametrize("cursor", ["x", "", "1.5", "é", "99999999999999", "7-99999999999999"])
async def test_a_cursor_that_this_store_did_not_give_is_gone(changing_kv: KV, cursor):
    """Those of another engine too: a backup or a copy brings them along in the records of jobs."""
    with pytest.raises(CursorGone):
        await changing_kv.changes("", after=cursor)


async def test_a_prefix_that_cannot_be_encoded_is_bad_input(changing_kv: KV):
    with pytest.raises(InvalidInput):
        await changing_kv.changes("\ud800")


async def test_an_engine_without_changes_says_so(kv_without_changes: KV):
    for call in (
        kv_without_changes.changes(""),
        kv_without_changes.change_cursor(),
        kv_without_changes.wait_for_change("0", 0),
    ):
        with pytest.raises(Unsupported, match="changes"):
            await call

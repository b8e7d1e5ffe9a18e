"""A snapshot shows a whole store as it was at one moment, whatever is written while it is read."""

import asyncio

import pytest

from tests.contracts.conftest import Store
from tests.support.manual_clock import ManualClock
from vskill_core.errors import Unsupported
from vskill_platform.ledger.kv.contract import KV, SNAPSHOT_PAGE, StoreSnapshot
from vskill_platform.ledger.kv.entries import Add, Delete, Put, StoredRecord

pytestmark = pytest.mark.anyio


async def contents(snapshot: StoreSnapshot) -> dict[str, str]:
    return {record.key: record.value for record in await snapshot.records()}


async def test_a_snapshot_stays_still_while_others_write(snapshot_store: Store):
    kv = snapshot_store.kv
    await kv.commit([Put("changed", b"1"), Put("deleted", b"1"), Put("kept", b"1"), Add("n", 3)])
    before = {"changed": "1", "deleted": "1", "kept": "1", "n": "3"}
    async with kv.snapshot() as snapshot:
        await kv.commit([Put("changed", b"2"), Delete("deleted"), Put("new", b"1"), Add("n")])
        assert await contents(snapshot) == before
        await asyncio.gather(*(kv.put(f"more:{n}", b"1") for n in range(50)))
        assert await contents(snapshot) == before
        async with kv.snapshot() as later:
            assert len(await contents(later)) == 4 + 50
        assert await contents(snapshot) == before


async def test_pages_hold_every_record_once_in_the_order_of_the_keys_bytes(snapshot_store: Store):
    kv = snapshot_store.kv
    keys = [f"k:{n:04}" for n in range(SNAPSHOT_PAGE + 3)] + ["a", "Z", "z:\uffff", "z:\U0001f600", "\ue000"]
    await kv.commit([Put(key, b"1") for key in keys])
    async with kv.snapshot() as snapshot:
        pages = [page async for page in snapshot.pages()]
    assert len(pages) == 2
    assert [record.key for page in pages for record in page] == sorted(keys, key=str.encode)


async def test_a_part_is_after_one_key_and_up_to_another(snapshot_store: Store):
    kv = snapshot_store.kv
    await kv.commit([Put(key, b"1") for key in "abcdef"])
    async with kv.snapshot() as snapshot:

        async def part(*given) -> str:
            return "".join(record.key for record in await snapshot.records(*given))

        assert await part("b") == "cdef"
        assert await part("b", "d") == "cd"
        assert await part("bb", "dd") == "cd"
        assert await part("b", None, 2) == "cd"
        assert await part("b", "c", 9) == "c"
        assert await part("f") == ""
        assert [len(page) async for page in snapshot.pages("e")] == [1]


async def test_values_are_shown_as_they_are_stored_and_caches_with_their_end(
    snapshot_store: Store, clock: ManualClock
):
    kv = snapshot_store.kv
    await kv.put("odd:ключ", '{"not": json, "ünï\u2603'.encode())
    await kv.put("cache:lives", b"1", ttl_ms=5_000)
    await kv.put("cache:ended", b"1", ttl_ms=10)
    clock.advance(20)
    async with kv.snapshot() as snapshot:
        # Time goes on outside, as everything else does.
        clock.advance(10_000)
        assert await snapshot.records() == [
            StoredRecord("cache:lives", "1", clock.now() - 10_020 + 5_000),
            StoredRecord("odd:ключ", '{"not": json, "ünï\u2603'),
        ]


async def test_dead_letters_of_the_stores_own_queue_belong_to_it(snapshot_store: Store):
    """Those who back up or move a store take them along."""
    kv, broker = snapshot_store.kv, snapshot_store.broker
    for body in (b"one", b"\0two"):
        await broker.send(body, f"key of {len(body)}")
        ((message,),) = [batch.messages for batch in await broker.receive(1, 0)]
        await message.dead_letter("why")
    listed = list((await broker.dead_letters()).items)
    async with kv.snapshot() as snapshot:
        await broker.discard(listed[0].id)
        assert await snapshot.dead_letters() == listed
    assert [letter.body for letter in listed] == [b"one", b"\0two"]


async def test_an_empty_store_has_an_empty_snapshot(snapshot_store: Store):
    async with snapshot_store.kv.snapshot() as snapshot:
        assert [page async for page in snapshot.pages()] == []
        assert await snapshot.dead_letters() == []


async def test_a_snapshot_that_is_left_by_an_error_holds_nothing_up(snapshot_store: Store):
    kv = snapshot_store.kv
    await kv.put("k", b"1")

    async def read_a_little() -> None:
        async with kv.snapshot() as snapshot:
            await snapshot.records(limit=1)
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        await read_a_little()
    await kv.put("k", b"2")
    async with kv.snapshot() as snapshot:
        assert await contents(snapshot) == {"k": "2"}


async def test_an_engine_without_snapshots_says_so(kv_without_snapshot: KV):
    with pytest.raises(Unsupported, match="snapshot"):
        kv_without_snapshot.snapshot()

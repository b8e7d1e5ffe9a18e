"""Only content that no record names is deleted, after a week and a day in which nobody wanted it."""

import os

import pytest

from tests.support.envs import active_env, open_test_env, skill_files
from tests.support.faults import UnreadableKV
from tests.support.manual_clock import ManualClock
from tests.upkeep.steps import published_upload
from vskill_core.content import digest_of_files
from vskill_core.errors import BlobUnavailable, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.packed_content import pack
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.upkeep.collector import ASIDE_MS, MOST_FAILED, UNTOUCHED_MS, Collected, collect

pytestmark = pytest.mark.anyio

REFUSED = skill_files("refused", "# Nobody took it\n")
REFUSED_DIGEST = digest_of_files(REFUSED)


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path) as opened:
        yield opened


async def age(env, ms: int) -> None:
    """Everything in the content store was touched this much earlier."""
    root = env.blobs._root
    for path in root.rglob("*"):
        if path.is_file():
            at = path.stat().st_mtime - ms / 1000
            os.utime(path, (at, at))


async def kept(env) -> str:
    digest = await published_upload(env, "kept")
    await env.blobs.put(REFUSED_DIGEST, pack(REFUSED))
    return digest


async def addresses(env) -> dict[str, bool]:
    return {piece.address: piece.is_aside async for piece in env.blobs.pieces()}


async def test_what_no_record_names_is_set_aside_after_a_week_and_deleted_a_day_later(env):
    digest = await kept(env)
    assert await collect() == Collected(2)
    await age(env, UNTOUCHED_MS)
    assert await collect(dry_run=True) == Collected(2, set_aside=1)
    assert await addresses(env) == {digest: False, REFUSED_DIGEST: False}
    assert await collect() == Collected(2, set_aside=1)
    assert await addresses(env) == {digest: False, REFUSED_DIGEST: True}
    assert await collect() == Collected(2)
    await age(env, ASIDE_MS)
    assert await collect(dry_run=True) == Collected(2, deleted=1)
    assert await collect() == Collected(2, deleted=1)
    assert await addresses(env) == {digest: False}


async def test_what_somebody_wants_meanwhile_stays(env):
    await kept(env)
    await age(env, UNTOUCHED_MS)
    await collect()
    assert await env.blobs.get(REFUSED_DIGEST) == pack(REFUSED)
    await age(env, ASIDE_MS)
    assert await collect() == Collected(2)
    assert REFUSED_DIGEST in await addresses(env)


async def test_what_a_record_names_meanwhile_is_brought_back(env):
    await kept(env)
    await age(env, UNTOUCHED_MS)
    await collect()
    # Whatever the record is, as long as the address stands in it.
    await env.kv.put(keys.collection("of-something"), b'{"pack":"%b"}' % REFUSED_DIGEST.encode())
    await age(env, ASIDE_MS)
    assert await collect() == Collected(2, brought_back=1)
    assert (await addresses(env))[REFUSED_DIGEST] is False


async def test_a_record_that_only_tells_about_content_does_not_keep_it(env):
    await kept(env)
    await env.kv.put(keys.audit("x" * 26), b'{"target":"%b"}' % REFUSED_DIGEST.encode())
    await age(env, UNTOUCHED_MS)
    assert (await collect()).set_aside == 1


async def test_a_record_that_cannot_be_read_stops_it(env):
    """It may name anything."""
    await kept(env)
    await age(env, UNTOUCHED_MS)
    await env.kv.put(keys.collection("x"), b"{}")
    with active_env(env, kv=UnreadableKV(env.kv, keys.collection("x"))), pytest.raises(StoreUnavailable):
        await collect()
    assert not any((await addresses(env)).values())


async def test_the_job_counts_what_it_did(env):
    await kept(env)
    await age(env, UNTOUCHED_MS)
    assert await run_job(next(job for job in JOBS if job.name == "collector"), forced=True)
    assert b'vskill_content_collected_total{step="set_aside"} 1.0' in env.metrics.render()


class Archived(MemoryBlobs):
    """Pieces that were put long ago. Some can be listed and not moved."""

    def __init__(self, pieces: int, stuck: int) -> None:
        self.time = ManualClock()
        super().__init__(self.time)
        self.addresses = [f"{number:064x}" for number in range(pieces)]
        self.stuck = self.addresses[:stuck]
        self.tried: list[str] = []

    async def fill(self) -> None:
        for address in self.addresses:
            await self.put(address, b"old")
        self.time.advance(UNTOUCHED_MS)

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        if address in self.stuck:
            self.tried.append(address)
            raise BlobUnavailable("InvalidObjectState because a test says so")
        return await super().set_aside(address, untouched_ms)


async def test_pieces_that_can_never_be_moved_do_not_stop_it_and_are_told(env):
    blobs = Archived(9, stuck=MOST_FAILED - 1)
    await blobs.fill()
    with active_env(env, blobs=blobs), pytest.raises(BlobUnavailable, match="2 pieces"):
        await collect()
    assert {piece.address for piece in [one async for one in blobs.pieces()] if not piece.is_aside} == set(
        blobs.stuck
    )
    assert b'vskill_content_collected_total{step="set_aside"} 7.0' in env.metrics.render()


async def test_however_many_can_never_be_moved_the_others_have_their_turn(env):
    blobs = Archived(3 * MOST_FAILED, stuck=2 * MOST_FAILED)
    await blobs.fill()
    with active_env(env, blobs=blobs):
        # Each run that has another order comes further, by chance; a thousand that do not would be a fault.
        for _ in range(1_000):
            with pytest.raises(BlobUnavailable):
                await collect()
            if set(blobs.content) == set(blobs.stuck):
                return
    pytest.fail("the same pieces stopped each run")


async def test_a_store_that_is_away_is_not_asked_for_every_piece(env):
    blobs = Archived(50, stuck=50)
    await blobs.fill()
    with active_env(env, blobs=blobs), pytest.raises(BlobUnavailable):
        await collect()
    assert len(blobs.tried) == MOST_FAILED

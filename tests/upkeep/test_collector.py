"""Only content that no record names is deleted, after a week and a day in which nobody wanted it."""

import os

import pytest

from tests.support.envs import active_env, open_test_env, skill_files
from tests.support.faults import UnreadableKV
from tests.upkeep.steps import published_upload
from vskill_core.content import digest_of_files, pack
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.upkeep.collector import ASIDE_MS, UNTOUCHED_MS, Collected, collect

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

"""Damaged content is found, listed and never served; that a store cannot be asked is no damage."""

import asyncio

import msgspec
import pytest

from tests.support.buckets import MemoryBucket
from tests.support.damage import BREAKS, flip, lose
from tests.support.envs import active_env, open_test_env, run_until_quiet, skill_files
from tests.support.faults import HookedKV, UnreadableKV
from tests.support.system_reads import get_submission
from tests.upkeep.steps import published_upload, uploaded
from vskill_client.wire.base import NoParameters
from vskill_core.errors import BlobUnavailable, ContentDamaged, StoreUnavailable
from vskill_platform.actions.operation.content import show
from vskill_platform.actions.principal import ANYBODY, resolve
from vskill_platform.actions.skills.skill_names import read_files
from vskill_platform.actions.verdicts.dossier import read_dossier, read_dossier_files
from vskill_platform.domain import keys
from vskill_platform.domain.operation.damage import DamageKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import IntakeOutcome, submit_upload
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.blobs.s3 import S3Blobs
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import queue_health, queue_health_for
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import Settings
from vskill_platform.store.operation.jobs import read_job
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.stored_content import forget_damage, list_damage, read_content, read_damage
from vskill_platform.upkeep.scrub import EVERY_MS, PASS_EVERY_MS, ScrubProgress, least_charge, scrub

pytestmark = pytest.mark.anyio

SCRUB = next(job for job in JOBS if job.name == "scrub")
UNAVAILABLE = "the disk is away because a test says so"


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def a_pass(env) -> None:
    """Until the scrub has read everything once more."""
    env.clock.advance(PASS_EVERY_MS)
    began = env.kv.now()
    while (await read_job("scrub"))[0].state.get("ended_at", 0) < began:
        assert await run_job(SCRUB, forced=True)
        env.clock.advance(EVERY_MS)


@pytest.mark.parametrize("kind", BREAKS)
async def test_damage_is_found_with_its_kind_and_who_names_it(env, kind):
    digest = await published_upload(env, "demo")
    await published_upload(env, "other")
    await a_pass(env)
    assert await list_damage() == ()
    await BREAKS[kind](env.blobs, digest)
    await a_pass(env)
    (damage,) = await list_damage()
    assert (damage.digest, damage.kind) == (digest, DamageKind(kind))
    assert damage.named_by[0] == "version:upload~ann/skills/demo:1.0.0"


@pytest.mark.parametrize("kind", BREAKS)
async def test_a_reader_gets_no_wrong_byte_and_the_damage_is_noted_at_once(env, kind):
    digest = await published_upload(env, "demo")
    await BREAKS[kind](env.blobs, digest)
    reader = await resolve(ANYBODY)
    with pytest.raises(ContentDamaged, match=kind) as caught:
        await read_files(digest)
    assert (caught.value.status, caught.value.code) == (503, "content_damaged")
    with pytest.raises(ContentDamaged):
        await read_dossier_files(await read_dossier(env, reader, "upload~ann/skills/demo"))
    damage = await read_damage(digest)
    assert damage is not None and damage.kind == kind
    assert set(damage.named_by) >= {"version:upload~ann/skills/demo:1.0.0"}


async def test_a_read_fails_as_damaged_also_where_that_cannot_be_noted(env):
    digest = await published_upload(env, "demo")
    await flip(env.blobs, digest)
    failing = HookedKV(env.kv)
    failing.failing = {"commit", "select"}
    with active_env(env, kv=failing), pytest.raises(ContentDamaged):
        await read_content(digest)
    assert await list_damage() == ()


async def test_health_tells_the_truth_to_operators_and_says_unhealthy_to_everybody(env):
    digest = await published_upload(env, "demo")
    await lose(env.blobs, digest)
    await a_pass(env)
    health = await queue_health()
    assert not health.healthy and health.damaged == 1
    assert (keys.damage(digest), "its stored files are missing") in [
        (one.key, one.problem) for one in health.violations
    ]
    assert AlertCode.CONTENT_DAMAGED in [alert.code for alert in health.alerts]
    public = await queue_health_for(frozenset({"public"}))
    assert not public.healthy
    assert public.violations == () and public.damaged == 0


async def test_the_same_files_submitted_again_mend_it_and_the_audit_says_so(env):
    digest = await published_upload(env, "demo")
    await flip(env.blobs, digest)
    await a_pass(env)
    again = await submit_upload(skill_files("demo"), namespace="ann", slug="demo")
    assert again.outcome is IntakeOutcome.ALREADY_VERIFIED
    assert await list_damage() == ()
    assert await read_content(digest) == skill_files("demo")
    latest = (await list_audit()).items[0]
    assert (latest.action, latest.target) == ("content mended", digest)
    assert latest.details["kind"] == "changed"


async def test_equal_length_is_not_trusted_even_where_nobody_has_noticed_yet(env):
    digest = await published_upload(env, "demo")
    await flip(env.blobs, digest)
    await submit_upload(skill_files("demo"), namespace="ann", slug="demo")
    assert await read_content(digest) == skill_files("demo")


async def test_what_is_whole_again_is_forgotten_by_the_next_pass(env):
    digest = await published_upload(env, "demo")
    whole = await env.blobs.get(digest)
    await flip(env.blobs, digest)
    await a_pass(env)
    await env.blobs.put(digest, whole, replace=True)
    await a_pass(env)
    assert await list_damage() == ()


async def test_a_run_reads_its_share_of_bytes_and_goes_on_where_it_stopped(env):
    for number in range(6):
        await published_upload(env, f"skill-{number}", f"# {number}\n" + "x" * 4_000)
    slow = msgspec.structs.replace(env.settings, scrub_bytes_per_s=1_000)
    progress, sizes = ScrubProgress(), []
    env.clock.advance(PASS_EVERY_MS)
    with active_env(env, settings=slow):
        while not progress.ended_at:
            before = progress.bytes
            progress = await scrub(progress)
            sizes.append(progress.bytes - before)
    assert progress.ended_pieces == 6
    assert len([size for size in sizes if size]) >= 5
    # Each run may read one piece too much, and the next ones pay for it.
    assert sum(sizes) <= (len(sizes) + 1) * 5_000


async def test_a_large_piece_is_paid_for_by_later_runs(env):
    await published_upload(env, "large", "x" * 30_000)
    slow = msgspec.structs.replace(env.settings, scrub_bytes_per_s=1_000)
    env.clock.advance(PASS_EVERY_MS)
    with active_env(env, settings=slow):
        progress = await scrub(ScrubProgress())
        assert progress.owed > 25_000
        later = await scrub(progress)
    assert (later.bytes, later.owed) == (progress.bytes, progress.owed - 5_000)


class AwayBlobs(MemoryBlobs):
    """Content that cannot be read, all of it or some."""

    def __init__(self, inner: Blobs, *digests: str) -> None:
        super().__init__()
        self._inner = inner
        self._digests = digests

    async def get(self, address: str) -> bytes | None:
        if not self._digests or address in self._digests:
            raise BlobUnavailable(UNAVAILABLE)
        return await self._inner.get(address)

    async def check(self) -> None:
        if not self._digests:
            raise BlobUnavailable(UNAVAILABLE)


async def test_a_store_that_cannot_be_asked_is_never_damage(env):
    digests = [await published_upload(env, f"skill-{number}", f"# {number}\n") for number in range(4)]
    env.clock.advance(PASS_EVERY_MS)
    with active_env(env, blobs=AwayBlobs(env.blobs)):
        with pytest.raises(BlobUnavailable, match=UNAVAILABLE):
            await scrub(ScrubProgress())
        with pytest.raises(BlobUnavailable, match=UNAVAILABLE) as caught:
            await read_content(digests[0])
    assert not isinstance(caught.value, ContentDamaged)
    assert await list_damage() == ()


async def test_one_piece_that_cannot_be_read_does_not_stop_the_scrub(env):
    first, second = sorted(
        [await published_upload(env, "one", "# 1\n"), await published_upload(env, "two", "# 2\n")]
    )
    await lose(env.blobs, second)
    env.clock.advance(PASS_EVERY_MS)
    with active_env(env, blobs=AwayBlobs(env.blobs, first)):
        progress = await scrub(ScrubProgress())
    assert (progress.ended_pieces, progress.unread) == (2, 1)
    assert [one.digest for one in await list_damage()] == [second]


async def test_pieces_that_can_never_be_read_fail_the_job_and_do_not_hold_it(env):
    """Three or more in a row: the next run goes on behind them."""
    digests = [await published_upload(env, f"skill-{number}", f"# {number}\n") for number in range(6)]
    env.clock.advance(PASS_EVERY_MS)
    began, failed = env.kv.now(), 0
    with active_env(env, blobs=AwayBlobs(env.blobs, *digests[:5])):
        for _ in range(len(digests) + 1):
            outcome = await run_job(SCRUB, forced=True)
            failed += outcome is not None and outcome.error is not None
            state = (await read_job("scrub"))[0].state
            if state["ended_at"] >= began:
                break
    assert state["ended_at"] >= began, "the scrub did not get past what it cannot read"
    assert (state["ended_pieces"], state["unread"]) == (6, 5)
    assert failed >= 1
    assert await list_damage() == ()


async def test_uploads_that_wait_and_old_runs_are_read_too(env):
    number, waiting = (submission := await uploaded("demo", "# One\n")).id, submission.upload
    assert waiting is not None
    await lose(env.blobs, waiting)
    await a_pass(env)
    assert [one.named_by for one in await list_damage()] == [(f"sub:{number}",)]
    # Its run waits for the repair instead of blaming the content.
    await run_until_quiet(env)
    record = await get_submission(number)
    assert (record.state, record.attempts.waiting_for) == (
        State.RECEIVED,
        "the repair of its stored files",
    )
    assert await published_upload(env, "demo", "# One\n") == waiting
    await published_upload(env, "demo", "# Two\n")
    assert (await get_submission(number)).run == 2
    await lose(env.blobs, waiting)
    await a_pass(env)
    (damage,) = await list_damage()
    assert set(damage.named_by) == {
        "version:upload~ann/skills/demo:1.0.0",
        f"subrun:{number}:1",
    }


async def test_damage_that_cannot_be_read_is_an_error_and_never_an_empty_list(env):
    await env.kv.put(keys.damage("a" * 64), b"{}")
    with (
        active_env(env, kv=UnreadableKV(env.kv, keys.damage("a" * 64))),
        pytest.raises(StoreUnavailable),
    ):
        await list_damage()


async def test_large_content_is_verified_too(env):
    digest = await published_upload(env, "large", "x" * 100_000)
    assert await read_content(digest) == skill_files("large", "x" * 100_000)
    await flip(env.blobs, digest)
    with pytest.raises(ContentDamaged):
        await read_content(digest)


async def test_several_who_find_it_whole_say_so_once(env):
    digest = await published_upload(env, "demo")
    await flip(env.blobs, digest)
    await a_pass(env)
    await asyncio.gather(*(forget_damage(digest, "whole again") for _ in range(5)))
    assert [one.action for one in (await list_audit()).items] == ["content mended"]


async def test_where_requests_are_paid_for_a_day_has_no_more_of_them_than_set(tmp_path):
    """Small pieces count for as much of a run's share as the requests of a day leave."""
    settings = Settings(data_dir=str(tmp_path), store="memory:", scrub_requests_per_day=34_560)
    async with open_test_env("memory", tmp_path, settings=settings) as env:
        for number in range(6):
            await published_upload(env, f"demo-{number}")
        bucket = S3Blobs(MemoryBucket(env.clock), "s3://memory", env.clock, env.metrics)
        async for piece in env.blobs.pieces():
            await bucket.put(piece.address, await env.blobs.get(piece.address) or b"")
        with active_env(env, blobs=bucket) as paid:
            assert (await show(paid, NoParameters())).pass_ms is None
            runs = 0
            while (await read_job("scrub"))[0].state.get("ended_pieces", 0) != 6:
                assert await run_job(SCRUB, forced=True)
                runs += 1
            # 34,560 a day are two in each run of five seconds; the last finds that there are no more.
            assert runs == 4
            assert b'vskill_content_requests_total{kind="get"} 6.0' in env.metrics.render()
            assert (await show(paid, NoParameters())).pass_ms == 6 * 2_500
        assert least_charge(env) == 0

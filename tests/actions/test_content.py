"""What operators see of stored content and do about it, by action, page and command."""

import pytest

from tests.support.damage import flip
from tests.support.envs import open_test_env, run_until_quiet
from tests.upkeep.steps import published_upload, repair_task
from vskill_client.wire.base import NoParameters
from vskill_core.errors import ContentDamaged, NotFound
from vskill_platform.actions.operation.content import (
    COLLECT_CONTENT,
    REPAIR_CONTENT,
    SHOW_CONTENT,
    CollectContent,
    RepairContent,
)
from vskill_platform.actions.principal import Principal
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.stored_content import read_content

pytestmark = pytest.mark.anyio

ADA = Principal("ada", Role.ADMIN)


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path) as opened:
        yield opened


async def show(env):
    return await SHOW_CONTENT(env, ADA, NoParameters())


async def test_what_is_damaged_and_what_was_verified(env):
    assert (await show(env)).verified_at is None
    digest = await published_upload(env, "demo")
    scrub = next(job for job in JOBS if job.name == "scrub")
    await run_job(scrub, forced=True)
    seen = await show(env)
    assert (seen.total, seen.damaged, seen.verified_pieces) == (0, (), 1)
    assert seen.verified_at is not None and seen.verified_bytes > 100
    await flip(env.blobs, digest)
    with pytest.raises(ContentDamaged):
        await read_content(digest)
    await run_until_quiet(env)
    (damage,) = (await show(env)).damaged
    assert (damage.digest, damage.kind) == (digest, "changed")
    assert "submit the same files again" in damage.repair


async def test_a_repair_is_asked_for_and_audited(env):
    digest = await published_upload(env, "demo")
    with pytest.raises(NotFound, match="not known to be damaged"):
        await REPAIR_CONTENT(env, ADA, RepairContent(digest=digest))
    await flip(env.blobs, digest)
    with pytest.raises(ContentDamaged):
        await read_content(digest)
    await run_until_quiet(env)
    await REPAIR_CONTENT(env, ADA, RepairContent(digest=digest))
    await run_until_quiet(env)
    assert (await repair_task(digest)).run == 2
    latest = (await list_audit()).items[0]
    assert (latest.action, latest.target, latest.by) == ("content repair", digest, "admin:ada")


async def test_a_dry_run_collects_and_audits_nothing(env):
    await env.blobs.put("a" * 64, b"nobody names it")
    done = await COLLECT_CONTENT(env, ADA, CollectContent(dry_run=True))
    assert (done.pieces, done.set_aside, done.deleted) == (1, 0, 0)
    assert (await list_audit()).items == ()
    await COLLECT_CONTENT(env, ADA, CollectContent())
    assert [one.action for one in (await list_audit()).items] == ["content collected"]

"""Damaged content is mended from the repository and commit that it came from, or waits and says for what."""

import shutil
from contextlib import asynccontextmanager

import pytest

from tests.support.damage import BREAKS, flip, lose
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.upkeep.steps import published_digest, published_upload, repair_task
from vskill_core.errors import ContentDamaged
from vskill_core.identity import normalise, submission_id
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.intake.submit import IntakeOutcome, submit_repository
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.stored_content import ask_for_repair, list_damage, read_content
from vskill_platform.upkeep.scrub import REPAIR_AGAIN_MS, ScrubProgress, scrub

pytestmark = pytest.mark.anyio

URL = "https://github.com/ann/tools"


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture
def opened(tmp_path, server):
    """Opens the same installation, as often as wanted: a new process has fetched nothing yet."""

    @asynccontextmanager
    async def open_again():
        async with open_test_env("sqlite", tmp_path, source_rewrites=(server.rewrite(),)) as env:
            yield env

    return open_again


@pytest.fixture
async def env(opened):
    async with opened() as env:
        yield env


async def published(env) -> str:
    await submit_repository(URL)
    await run_until_quiet(env)
    return await published_digest(submission_id(normalise(URL)))


async def found_damaged(digest: str) -> None:
    """A read finds it, which asks for the repair."""
    with pytest.raises(ContentDamaged):
        await read_content(digest)


@pytest.mark.parametrize("kind", BREAKS)
async def test_it_is_mended_from_its_repository_and_the_audit_says_so(env, server, kind):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    digest = await published(env)
    await BREAKS[kind](env.blobs, digest)
    await found_damaged(digest)
    await run_until_quiet(env)
    assert await list_damage() == ()
    assert [file.path for file in await read_content(digest)] == ["SKILL.md"]
    assert (await repair_task(digest)).outcome.startswith(f"repaired from {URL} at ")
    assert (await list_audit()).items[0].action == "content mended"


async def test_it_is_mended_from_the_commit_that_was_verified_and_not_from_the_head(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    digest = await published(env)
    repo.commit({"SKILL.md": skill_md("tools", "Changed since.")})
    await flip(env.blobs, digest)
    await found_damaged(digest)
    await run_until_quiet(env)
    assert await list_damage() == ()
    assert b"Changed since" not in (await read_content(digest))[0].data


async def test_other_files_at_the_source_are_never_taken(opened, server):
    """History was rewritten: the commit is gone, and what is at the head has another digest."""
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    async with opened() as env:
        digest = await published(env)
    shutil.rmtree(repo.folder)
    server.repo("ann/tools", {"SKILL.md": skill_md("tools", "Rewritten.")})
    async with opened() as env:
        await lose(env.blobs, digest)
        await found_damaged(digest)
        await run_until_quiet(env)
        assert "has other files at" in (await repair_task(digest)).outcome
        assert [one.digest for one in await list_damage()] == [digest]


async def test_an_old_version_is_mended_once_the_scrub_knows_which_record_names_it(env, server):
    """A reader who meets the damage knows the digest alone, and only current versions are found by it."""
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    old = await published(env)
    repo.commit({"SKILL.md": skill_md("tools", "Changed since.")})
    assert await published(env) != old
    await lose(env.blobs, old)
    await found_damaged(old)
    await run_until_quiet(env)
    assert "are not known yet" in (await repair_task(old)).outcome
    await scrub(ScrubProgress())
    await run_until_quiet(env)
    assert await list_damage() == ()


async def test_an_upload_waits_for_whoever_has_the_files(env):
    digest = await published_upload(env, "demo")
    await lose(env.blobs, digest)
    await found_damaged(digest)
    await run_until_quiet(env)
    task = await repair_task(digest)
    assert task.state is TaskState.DONE and "submit the same files again" in task.outcome
    assert len(await list_damage()) == 1


async def test_what_found_no_way_is_tried_again_later(env):
    digest = await published_upload(env, "demo")
    await lose(env.blobs, digest)
    await found_damaged(digest)
    await run_until_quiet(env)
    for advance, run in ((0, 1), (REPAIR_AGAIN_MS, 2), (1_000, 2)):
        env.clock.advance(advance)
        await scrub(ScrubProgress())
        await run_until_quiet(env)
        assert (await repair_task(digest)).run == run


async def test_a_host_that_is_down_is_waited_for(opened, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    async with opened() as env:
        digest = await published(env)
    server.faults["/"] = 503
    async with opened() as env:
        await lose(env.blobs, digest)
        await found_damaged(digest)
        await run_until_quiet(env)
        task = await repair_task(digest)
        assert task.state is TaskState.ACTIVE and task.attempts.waiting_for == "github.com"
        server.faults.clear()
        env.clock.advance(60_000)
        await run_until_quiet(env)
        assert await list_damage() == ()


async def test_submitting_the_repository_again_brings_its_files_again(env, server):
    """It is not `already verified` as long as its files are damaged, whether or not anybody has noticed."""
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    digest = await published(env)
    assert (await submit_repository(URL)).outcome is IntakeOutcome.ALREADY_VERIFIED
    await flip(env.blobs, digest)
    again = await submit_repository(URL)
    assert again.outcome is IntakeOutcome.REQUEUED
    assert again.submission is not None and "damaged" in again.submission.history[-1].reason
    await run_until_quiet(env)
    assert await published_digest(again.submission.id) == digest
    assert await list_damage() == ()
    assert (await submit_repository(URL)).outcome is IntakeOutcome.ALREADY_VERIFIED


async def test_what_somebody_put_back_is_found_whole_by_the_repair(env):
    """As from a backup."""
    digest = await published_upload(env, "demo")
    whole = await env.blobs.get(digest)
    await lose(env.blobs, digest)
    await found_damaged(digest)
    await env.blobs.put(digest, whole)
    await run_until_quiet(env)
    assert (await repair_task(digest)).outcome == "it was read and found whole"
    assert await list_damage() == ()


async def test_a_repair_of_what_is_whole_changes_nothing(env):
    await ask_for_repair("a" * 64)
    await run_until_quiet(env)
    assert (await repair_task("a" * 64)).outcome == "nothing to repair: it is not damaged"

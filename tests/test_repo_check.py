"""Repository health: reachable, gone and unavailable are told apart over real git, nothing is forgotten, new commits
start new runs, and checks never crowd out fresh work."""

import asyncio
from contextvars import Context

import msgspec
import pytest

from tests.support.acting import run_again, take_down
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git, git_server, skill_md
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidInput, NoEnvironment, NotFound, SourceGone
from vskill_core.identity import Identity, normalise, submission_id, upload_identity
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import TaskState, task_key
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_repository
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.sources.contract import Watchable
from vskill_platform.sources.router import SourceRouter, UploadSource
from vskill_platform.stages.repo_check import (
    MOST_OUTSTANDING,
    NEW_COMMIT,
    REPO_CHECK,
    RepoCheckProgress,
    ask_for_check,
    ask_for_checks,
    read_runs,
    start_runs,
)
from vskill_platform.store.repo_health import Reach, RepoHealth, get_health, list_health, read_health
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.tasks import read_task
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

URL = "https://github.com/ann/tools"
REPO = normalise(URL)
DAY_MS = 24 * 3_600_000
MIT = b"""MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in it. The
above copyright notice and this permission notice shall be included in all copies.
"""


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, server):
    async with open_test_env(request.param, tmp_path, source_rewrites=(server.rewrite(),)) as opened:
        yield opened


@pytest.fixture
async def plain_env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def published(env, url: str = URL, path: str = ""):
    await submit_repository(url, path)
    await run_until_quiet(env)
    record = await get_submission(submission_id(normalise(url, path)))
    assert record.state is State.PUBLISHED
    return record


async def checked(env, repo: Identity = REPO) -> RepoHealth:
    await ask_for_check(repo)
    await run_until_quiet(env)
    task, _ = await read_task(REPO_CHECK, repo.repo_key)
    assert task is not None and task.state is TaskState.DONE, task
    return await get_health(repo)


# What a check finds.


async def test_a_reachable_repository_with_its_head_branch_commit_time_and_licence(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "LICENSE": MIT}, branch="trunk")
    health = await checked(env)
    made = int(git(repo.folder, "log", "-1", "--format=%ct", "refs/heads/trunk")) * 1000
    facts = health.facts
    assert (health.status, health.detail, health.gone_since) == (Reach.REACHABLE, "", None)
    assert (facts.commit, facts.branch, facts.committed_at) == (repo.head(), "trunk", made)
    assert (facts.licence, facts.licence_file, facts.moved_to) == ("MIT", "LICENSE", None)
    assert (health.checked_at, health.reached_at) == (env.kv.now(), env.kv.now())


async def test_archived_is_unknown_and_never_false(env, server):
    """Plain git does not tell, and what is not known is not said."""
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    assert (await checked(env)).facts.archived is None
    stored = await env.kv.get(keys.repohealth(REPO.repo_key))
    assert b"archived" not in stored.value


@pytest.mark.parametrize(
    ("files", "licence", "file"),
    [
        ({"README.md": b"x"}, "NONE", None),
        ({"COPYING": b"All rights reserved, and then some."}, "NOASSERTION", "COPYING"),
        ({"LICENSE": b"see elsewhere", "COPYING.txt": MIT}, "MIT", "COPYING.txt"),
        ({"LICENSE": ("120000", b"../../etc/passwd")}, "NOASSERTION", "LICENSE"),
        ({"LICENSE": MIT + b"x" * (300 * 1024)}, "NOASSERTION", "LICENSE"),
    ],
)
async def test_no_licence_an_unknown_one_and_a_hostile_one(tmp_path, server, files, licence, file):
    server.repo("ann/tools", files)
    async with open_test_env("memory", tmp_path, source_rewrites=(server.rewrite(),)) as env:
        facts = (await checked(env)).facts
    assert (facts.licence, facts.licence_file) == (licence, file)


async def test_a_repository_without_a_commit_is_reachable(env, server):
    server.repo("ann/tools")
    health = await checked(env)
    assert (health.status, health.facts.commit) == (Reach.REACHABLE, None)
    assert "empty" in health.detail


async def test_a_source_that_disappears_is_marked_since_when_and_nothing_is_deleted(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "LICENSE": MIT})
    await published(env)
    before = await checked(env)
    server.faults["/ann/tools"] = 404
    env.clock.advance(DAY_MS)
    gone_at = env.kv.now()
    await checked(env)
    env.clock.advance(DAY_MS)
    health = await checked(env)
    assert (health.status, health.gone_since, health.status_since) == (Reach.GONE, gone_at, gone_at)
    assert health.facts == before.facts and health.reached_at == before.reached_at
    assert not (await get_skill("ann/tools/tools")).withdrawn
    server.faults.clear()
    back = await checked(env)
    assert (back.status, back.gone_since) == (Reach.REACHABLE, None)


async def test_a_host_that_is_down_is_unavailable_and_not_gone(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "LICENSE": MIT})
    before = await checked(env)
    server.faults["/ann/tools"] = 503
    health = await checked(env)
    assert (health.status, health.gone_since) == (Reach.UNAVAILABLE, None)
    assert "github.com" in health.detail
    assert health.facts == before.facts


async def test_a_host_that_is_down_in_between_does_not_change_since_when_it_is_gone(env, server):
    gone_at = env.kv.now()
    await checked(env)
    env.clock.advance(DAY_MS)
    server.faults["/ann/tools"] = 503
    assert (await checked(env)).gone_since == gone_at
    server.faults.clear()
    env.clock.advance(DAY_MS)
    again = await checked(env)
    assert (again.status, again.gone_since, again.status_since) == (Reach.GONE, gone_at, env.kv.now())


async def test_where_a_repository_moved_to_is_told(tmp_path, server):
    host = f"127.0.0.1:{server.port}"
    server.repo("ann/new", {"SKILL.md": skill_md("new")})
    server.faults["/ann/old"] = "/ann/new"
    async with open_test_env("memory", tmp_path, allowed_private_hosts=(f"http://{host}",)) as env:
        health = await checked(env, normalise(f"https://{host}/ann/old"))
        assert (health.status, health.facts.moved_to) == (Reach.REACHABLE, f"https://{host}/ann/new")
        assert (await checked(env, normalise(f"https://{host}/ann/new"))).facts.moved_to is None


async def test_an_unchanged_head_costs_one_question_and_no_fetch(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "LICENSE": MIT})
    first = await checked(env)
    server.requests.clear()
    assert (await checked(env)).facts == first.facts
    assert server.asked("/info/refs") == 1


async def test_without_git_and_with_a_source_that_cannot_look_it_is_unavailable(env, server):
    assert isinstance(env.sources, Watchable)
    for sources in (SourceRouter(UploadSource(env.blobs), None), UploadSource(env.blobs)):
        with active_env(env, sources=sources) as changed:
            health = await checked(changed)
        assert health.status is Reach.UNAVAILABLE and health.detail


async def test_a_repository_that_cannot_be_fetched_is_still_reachable(env, server):
    class Refusing:
        async def head(self, identity):
            return await env.sources.head(identity)

        async def look(self, identity, paths):
            raise SourceGone("it went away")

    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    with active_env(env, sources=Refusing()) as changed:
        health = await checked(changed)
    assert (health.status, health.facts.licence) == (Reach.REACHABLE, None)
    assert "it went away" in health.detail
    assert (await checked(env)).facts.licence == "NONE"


async def test_AC_US3_04_the_store_finds_its_binding_through_the_worker_context(env):
    async def outside() -> None:
        with pytest.raises(NoEnvironment, match="'kv'"):
            await read_health(REPO)

    await asyncio.create_task(outside(), context=Context())
    assert await run_with_worker_env(env, lambda: read_health(REPO)) == (None, 0)
    with pytest.raises(NotFound, match="not been checked yet"):
        await get_health(REPO)


async def test_health_is_listed_by_status(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await checked(env)
    await checked(env, normalise("https://github.com/ann/none"))
    assert [one.repo for one in (await list_health()).items] == [
        "github.com/ann/none",
        "github.com/ann/tools",
    ]
    assert [one.repo for one in (await list_health(Reach.GONE)).items] == ["github.com/ann/none"]


async def test_an_upload_has_nothing_to_check(env):
    with pytest.raises(InvalidInput, match="no repository"):
        await ask_for_check(upload_identity("ann", "x"))


# New commits.


async def test_a_new_commit_starts_a_new_run_of_every_published_skill_once(env, server):
    files = {"a/SKILL.md": skill_md("a"), "b/SKILL.md": skill_md("b")}
    repo = server.repo("ann/tools", files)
    for path in ("a", "b"):
        await published(env, URL, path)
    head = repo.commit({**files, "a/SKILL.md": skill_md("a", "changed")})
    await checked(env)
    for path, version in (("a", "1.0.1"), ("b", "1.0.0")):
        record = await get_submission(submission_id(normalise(URL, path)))
        assert (record.state, record.run, record.commit) == (State.PUBLISHED, 2, head)
        assert (record.history[0].actor, record.history[0].reason) == ("system", NEW_COMMIT)
        assert record.published_version == version
    await checked(env)
    assert (await get_submission(submission_id(normalise(URL, "a")))).run == 2


async def test_two_checks_at_once_start_one_run(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    record = await published(env)
    head = repo.commit({"SKILL.md": skill_md("tools", "changed")})
    runs = await read_runs(REPO)
    assert sorted(await asyncio.gather(*(start_runs(REPO, head, runs) for _ in range(4)))) == [0, 0, 0, 1]
    assert (await get_submission(record.id)).run == 2


async def test_what_is_not_at_rest_and_published_is_left_alone(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    record = await published(env)
    await run_again(record.id, by="admin:eve", reason="once more")
    head = repo.commit({"SKILL.md": skill_md("tools", "changed")})
    assert await start_runs(REPO, head, await read_runs(REPO)) == 0
    assert (await get_submission(record.id)).run == 2


async def test_what_was_handed_in_after_the_look_is_not_put_back_to_the_commit_that_the_look_found(
    env, server
):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    one = await published(env)
    older = repo.commit({"SKILL.md": skill_md("tools", "older")})
    runs = await read_runs(REPO)
    newer = repo.commit({"SKILL.md": skill_md("tools", "newer")})
    await submit_repository(URL)
    await run_until_quiet(env)
    assert await start_runs(REPO, older, runs) == 0
    record = await get_submission(one.id)
    assert (record.state, record.run, record.commit) == (State.PUBLISHED, 2, newer)


async def test_what_was_taken_down_is_not_brought_back_by_a_change_elsewhere(env, server):
    repo = server.repo("ann/tools", {"a/SKILL.md": skill_md("a")})
    record = await published(env, URL, "a")
    await take_down("ann/tools/a", by="admin:eve", reason="complaints")
    repo.commit({"a/SKILL.md": skill_md("a"), "README.md": b"new"})
    await checked(env)
    assert (await get_submission(record.id)).run == 1
    assert (await get_skill("ann/tools/a")).withdrawn


async def test_a_version_that_was_taken_down_stays_down_while_an_older_one_is_live(env, server):
    repo = server.repo("ann/tools", {"a/SKILL.md": skill_md("a")})
    await published(env, URL, "a")
    repo.commit({"a/SKILL.md": skill_md("a", "worse")})
    await checked(env)
    await take_down("ann/tools/a", "1.0.1", by="admin:eve", reason="complaints")
    repo.commit({"a/SKILL.md": skill_md("a", "worse"), "README.md": b"new"})
    await checked(env)
    assert (await get_skill("ann/tools/a")).current_version == "1.0.0"


async def test_a_skill_without_its_submission_hides_no_other(env, server):
    files = {"a/SKILL.md": skill_md("a"), "b/SKILL.md": skill_md("b")}
    repo = server.repo("ann/tools", files)
    lost = await published(env, URL, "a")
    kept = await published(env, URL, "b")
    await env.kv.delete(lost.key)
    head = repo.commit({**files, "x": b"x"})
    assert await start_runs(REPO, head, await read_runs(REPO)) == 1
    assert (await get_submission(kept.id)).run == 2


async def test_a_repository_whose_name_begins_alike_is_another_one(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    server.repo("ann/tools2", {"SKILL.md": skill_md("tools2")})
    await published(env)
    other = await published(env, "https://github.com/ann/tools2")
    assert await start_runs(REPO, "f" * 40, await read_runs(REPO)) == 1
    assert (await get_submission(other.id)).run == 1


# Asking for checks.


async def put_skill(env, repo: str, **changes) -> None:
    place = normalise(f"https://github.com/ann/{repo}")
    record = PublishedSkill(f"ann/{repo}/{repo}", place, **changes)
    await env.kv.put(keys.skill(record.canonical), msgspec.json.encode(record))


async def test_each_repository_is_asked_for_once_a_day(env, server):
    server.repo("ann/tools", {"a/SKILL.md": skill_md("a"), "b/SKILL.md": skill_md("b")})
    for path in ("a", "b"):
        await published(env, URL, path)
    progress = await ask_for_checks(RepoCheckProgress())
    assert progress == RepoCheckProgress(None, (REPO.repo_key,))
    assert (await ask_for_checks(progress)).outstanding == (REPO.repo_key,)
    await run_until_quiet(env)
    assert await ask_for_checks(progress) == RepoCheckProgress()
    env.clock.advance(DAY_MS - 1)
    assert await ask_for_checks(RepoCheckProgress()) == RepoCheckProgress()
    env.clock.advance(1)
    assert (await ask_for_checks(RepoCheckProgress())).outstanding == (REPO.repo_key,)


async def test_an_unavailable_host_is_asked_again_after_an_hour(env, server):
    server.faults["/ann"] = 503
    await put_skill(env, "tools")
    await ask_for_checks(RepoCheckProgress())
    await run_until_quiet(env)
    assert await ask_for_checks(RepoCheckProgress()) == RepoCheckProgress()
    env.clock.advance(3_600_000)
    assert (await ask_for_checks(RepoCheckProgress())).outstanding == (REPO.repo_key,)


async def test_uploads_and_withdrawn_skills_are_not_checked(plain_env):
    await put_skill(plain_env, "down", withdrawn=True)
    place = upload_identity("ann", "x")
    record = PublishedSkill("upload~ann/skills/x", place)
    await plain_env.kv.put(keys.skill(record.canonical), msgspec.json.encode(record))
    assert await ask_for_checks(RepoCheckProgress()) == RepoCheckProgress()


async def test_only_so_many_are_outstanding_and_none_is_passed_over(plain_env):
    """Fresh submissions never wait for more than a few checks."""
    count = 2 * MOST_OUTSTANDING + 3
    for number in range(count):
        await put_skill(plain_env, f"r{number:02}")
    progress = RepoCheckProgress()
    seen: set[str] = set()
    for _ in range(20):
        progress = await ask_for_checks(progress, at_once=7)
        depth = await plain_env.broker.depth()
        assert depth.ready + depth.delayed <= MOST_OUTSTANDING
        assert len(progress.outstanding) <= MOST_OUTSTANDING
        seen.update(progress.outstanding)
        await run_until_quiet(plain_env)
    assert len(seen) == count
    assert len((await list_health()).items) == count


async def test_nothing_is_asked_for_while_all_that_was_is_under_way(plain_env):
    for number in range(MOST_OUTSTANDING + 1):
        await put_skill(plain_env, f"r{number:02}")
    full = await ask_for_checks(RepoCheckProgress())
    assert len(full.outstanding) == MOST_OUTSTANDING
    assert await ask_for_checks(full) == full
    assert (await plain_env.broker.depth()).ready == MOST_OUTSTANDING


async def test_what_had_no_room_is_asked_for_before_what_comes_after_it(plain_env):
    at_once = MOST_OUTSTANDING + 2
    for number in range(2 * MOST_OUTSTANDING):
        await put_skill(plain_env, f"r{number:02}")
    first = await ask_for_checks(RepoCheckProgress(), at_once)
    await run_until_quiet(plain_env)
    second = await ask_for_checks(first, at_once)
    asked = [repo[-3:] for repo in (*first.outstanding, *second.outstanding)]
    assert asked == [f"r{number:02}" for number in range(at_once)]


async def test_a_check_that_failed_by_itself_is_not_asked_for_in_a_loop(plain_env):
    await put_skill(plain_env, "tools")
    await ask_for_check(REPO)
    key = task_key(REPO_CHECK, REPO.repo_key)
    task, _ = await read_task(REPO_CHECK, REPO.repo_key)
    assert task is not None
    failed = msgspec.structs.replace(task, state=TaskState.FAILED, next_attempt_at=None)
    await plain_env.kv.put(key, msgspec.json.encode(failed))
    assert await ask_for_checks(RepoCheckProgress()) == RepoCheckProgress()
    plain_env.clock.advance(DAY_MS)
    assert (await ask_for_checks(RepoCheckProgress())).outstanding == (REPO.repo_key,)


async def test_a_health_record_that_cannot_be_read_is_skipped_and_said(plain_env):
    await put_skill(plain_env, "tools")
    await plain_env.kv.put(keys.repohealth(REPO.repo_key), b"not json")
    assert await ask_for_checks(RepoCheckProgress()) == RepoCheckProgress()
    skipped = plain_env.metrics.records_skipped.labels("ask_for_checks", "malformed")
    assert skipped._value.get() == 1


async def test_the_scheduled_job_keeps_its_place(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await published(env)
    (job,) = [one for one in JOBS if one.name == "repositories"]
    assert await run_job(job, forced=True)
    await run_until_quiet(env)
    assert (await get_health(REPO)).status is Reach.REACHABLE
    assert await run_job(job, forced=True)

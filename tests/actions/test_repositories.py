"""Repositories of published skills: reviewers see what the last check found and ask for another one."""

import pytest

from tests.support.entry_points import EntryPoints
from tests.support.envs import open_test_env
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, NotSignedIn
from vskill_core.identity import normalise
from vskill_platform.actions.principal import ANYBODY, Principal
from vskill_platform.actions.skills.repositories import (
    CHECK_REPOSITORY,
    LIST_REPOSITORIES,
    SHOW_REPOSITORY,
    CheckRepository,
    ListRepositories,
    ShowRepository,
)
from vskill_platform.stages.repo_check import REPO_CHECK
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.repo_health import Observation, Reach, StoredFacts, health_write, renew_health
from vskill_platform.store.tasks import read_task

pytestmark = pytest.mark.anyio

ROB, ANN = Principal("rob", Role.REVIEWER), Principal("ann", Role.AUTHOR)
URL = "https://github.com/acme/tools"
SHOW, CHECK = ShowRepository(repo_url=URL), CheckRepository(repo_url=URL)


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def seen(env, url: str, status: Reach, **facts) -> None:
    identity = normalise(url)
    health = renew_health(None, identity, Observation(status, "", StoredFacts(**facts)), env.kv.now())
    await env.kv.commit([health_write(health, identity, 0)])


async def test_they_are_for_reviewers(env):
    for who, refusal in ((ANYBODY, NotSignedIn), (ANN, NotPermitted)):
        with pytest.raises(refusal):
            await LIST_REPOSITORIES(env, who, ListRepositories())
        with pytest.raises(refusal):
            await SHOW_REPOSITORY(env, who, SHOW)
        with pytest.raises(refusal):
            await CHECK_REPOSITORY(env, who, CHECK)


async def test_what_the_last_check_found_is_listed_by_status_and_shown(env):
    with pytest.raises(NotFound, match="not been checked yet"):
        await SHOW_REPOSITORY(env, ROB, SHOW)
    await seen(env, URL, Reach.REACHABLE, commit="c" * 40, licence="MIT")
    await seen(env, "https://github.com/acme/zgone", Reach.GONE)
    shown = await SHOW_REPOSITORY(env, ROB, SHOW)
    assert (shown.status, shown.facts.licence, shown.facts.archived) == ("reachable", "MIT", None)
    assert shown.reached_at == shown.checked_at and shown.gone_since is None
    found = await LIST_REPOSITORIES(env, ROB, ListRepositories())
    assert [one.url for one in found.repositories] == [URL, "https://github.com/acme/zgone"]
    # The first page holds none that is gone, and is passed over.
    gone = await LIST_REPOSITORIES(env, ROB, ListRepositories(status=Reach.GONE, limit=1))
    assert [one.url for one in gone.repositories] == ["https://github.com/acme/zgone"]


async def test_a_check_is_asked_for_once_and_audited(env):
    asked = await CHECK_REPOSITORY(env, ROB, CHECK)
    assert (asked.repo, asked.run) == ("github.com/acme/tools", 1)
    assert (await read_task(REPO_CHECK, asked.repo))[0] is not None
    (entry,) = (await list_audit()).items
    assert (entry.action, entry.target, entry.by) == ("repository check", URL, "admin:rob")
    with pytest.raises(InvalidInput, match="has no host"):
        await CHECK_REPOSITORY(env, ROB, CheckRepository(repo_url="upload~ann/skills/x"))


async def test_api_and_both_command_lines_leave_the_same_records(tmp_path, monkeypatch):
    async def prepare(_env) -> dict[str, str]:
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.REVIEWER)
    by_json = await doors.by_json("/api/v1/repositories/check", repoUrl=URL)
    assert len(by_json) == 2
    assert by_json == await doors.by_command("repo", "check", URL)
    assert by_json == await doors.by_remote_command("repo", "check", URL)

"""Followed repositories by API, page and command's answer: who may, what is shown, and what is refused."""

from types import SimpleNamespace

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.namespaces import manage
from tests.support.owners import set_owners
from tests.support.people import browser, csrf_in, make_account, signed_in, token_of
from vskill_core.identity import normalise
from vskill_platform.domain.people.namespace import NamespaceRole, Visibility
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.owners import Owner
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

URL = "https://github.com/acme/skills"
FOLLOWS = "/api/v1/follows"


@pytest.fixture
async def world(tmp_path):
    """A hidden namespace that mona maintains, and a repository of two skills of which one is blocked by its text."""
    with git_server(tmp_path / "git") as server:
        repo = server.repo(
            "acme/skills", {"skills/a/SKILL.md": skill_md("a"), "skills/b/SKILL.md": b"no text"}
        )
        rewrites = (server.rewrite(),)
        async with open_test_env("memory", tmp_path, active=False, source_rewrites=rewrites) as env:
            await make_account(env, "mona", Role.AUTHOR)
            await manage(env, "acme", Visibility.TEAM, "user:mona", role=NamespaceRole.MAINTAINER)
            with active_env(env):
                mona = await token_of(env, "mona", *SCOPES_OF[Role.AUTHOR])
            async with browser(create_app(env)) as client:
                headers = {"authorization": f"Bearer {mona}"}
                yield SimpleNamespace(env=env, server=server, repo=repo, client=client, mona=headers)


async def worked(world) -> None:
    with active_env(world.env):
        await run_until_quiet(world.env)


async def test_a_maintainer_follows_changes_and_unfollows(world):
    sent = {"repoUrl": URL, "folders": "skills/a", "reason": "ours"}
    made = await world.client.post(FOLLOWS, json=sent, headers=world.mona)
    assert made.status_code == 201 and made.json()["checkedAt"] is None, made.text
    await worked(world)
    listed = await world.client.get(FOLLOWS, params={"namespace": "acme"}, headers=world.mona)
    (one,) = listed.json()["follows"]
    assert (one["skills"], one["problem"], one["by"]) == (1, "", "user:mona") and "1 new" in one["found"]
    again = await world.client.post(FOLLOWS, json={**sent, "folders": ""}, headers=world.mona)
    assert again.json()["createdAt"] == one["createdAt"]
    await worked(world)
    shown = await world.client.get(f"{FOLLOWS}/show", params={"repoUrl": URL}, headers=world.mona)
    assert shown.json()["skills"] == 2 and shown.json()["folders"] == ""
    gone = {"repoUrl": URL, "reason": "moved"}
    assert (await world.client.post(f"{FOLLOWS}/remove", json=gone, headers=world.mona)).status_code == 204
    missing = await world.client.get(f"{FOLLOWS}/show", params={"repoUrl": URL}, headers=world.mona)
    assert missing.status_code == 404 and "is not followed" in missing.json()["detail"]
    with active_env(world.env):
        audit = {(one.action, one.by) for one in (await list_audit()).items}
    assert {
        ("repository followed", "user:mona"),
        ("submit", "follow:github.com/acme/skills"),
        ("repository unfollowed", "user:mona"),
    } <= audit


@pytest.mark.parametrize(
    ("field", "value"), [("branch", "a..b"), ("branch", "x.lock"), ("branch", "-x y"), ("folders", "a[b]")]
)
async def test_what_no_branch_or_pattern_can_be_is_refused(world, field, value):
    sent = {"repoUrl": URL, "reason": "ours", field: value}
    refused = await world.client.post(FOLLOWS, json=sent, headers=world.mona)
    assert refused.status_code == 400 and field in refused.text


async def test_strangers_learn_nothing_and_a_repository_of_others_cannot_be_followed(world):
    await world.client.post(FOLLOWS, json={"repoUrl": URL, "reason": "ours"}, headers=world.mona)
    async with signed_in(create_app(world.env), world.env, "rob", Role.AUTHOR) as rob:
        known = await rob.get(f"{FOLLOWS}/show?repoUrl={URL}")
        unknown = await rob.get(f"{FOLLOWS}/show?repoUrl={URL}-absent")
        assert known.status_code == unknown.status_code == 403
        assert known.json()["detail"] == unknown.json()["detail"].replace("-absent", "")
        for name in ("acme", "absent"):
            assert (await rob.get(f"{FOLLOWS}?namespace={name}")).status_code == 403
            assert (await rob.get(f"/follows?namespace={name}")).status_code == 403
    theirs = {"repoUrl": "https://github.com/other/skills", "reason": "mine"}
    assert (await world.client.post(FOLLOWS, json=theirs, headers=world.mona)).status_code == 403


async def test_the_pages_follow_show_and_unfollow(world):
    await set_owners(world.env, normalise(URL), Owner("pia", 1, "file"))
    async with signed_in(create_app(world.env), world.env, "mona", Role.AUTHOR) as mona:
        empty = (await mona.get("/follows?namespace=acme")).text
        assert "follows no repository yet" in empty
        assert "/follows?namespace=acme" in (await mona.get("/namespaces/acme")).text
        sent = {"csrf": csrf_in(empty), "repo_url": URL, "reason": "ours", "back": "/follows?namespace=acme"}
        done = await mona.client.post("/follows/add", data=sent)
        assert done.status_code == 303 and done.headers["location"] == "/follows?namespace=acme"
        assert "under way" in (await mona.get("/follows?namespace=acme")).text
        await worked(world)
        world.repo.commit({"skills/c/SKILL.md": skill_md("c")})
        await mona.client.post("/follows/add", data=sent)
        await worked(world)
        assert "1 new, 2 gone" in (await mona.get("/follows?namespace=acme")).text
        one = (await mona.get(f"/follows?repoUrl={URL}")).text
        assert "Gone at the source" in one and "skills/b" in one
        gone = {"csrf": csrf_in(one), "repo_url": URL, "reason": "moved", "confirm": "yes"}
        assert (await mona.client.post("/follows/remove", data=gone)).status_code == 303
        assert "Show it" in (await mona.get("/follows")).text

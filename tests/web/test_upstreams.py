"""Upstreams by API, page and command's answer: who may, what is shown and audited, and what is refused."""

from types import SimpleNamespace

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.people import browser, csrf_in, make_account, signed_in, token_of
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

URL = "https://github.com/vendor/skills"
UPSTREAMS = "/api/v1/upstreams"
WHY = {"reason": "our writers use it"}
ADDED = {"name": "vendor", "kind": "repository", "address": URL, **WHY}


@pytest.fixture
async def world(tmp_path):
    """An installation with an admin and an author, and a repository of two skills."""
    with git_server(tmp_path / "git") as server:
        repo = server.repo(
            "vendor/skills", {"skills/a/SKILL.md": skill_md("a"), "skills/b/SKILL.md": skill_md("b")}
        )
        rewrites = (server.rewrite(),)
        async with open_test_env("memory", tmp_path, active=False, source_rewrites=rewrites) as env:
            made = {}
            for name, role in (("root", Role.ADMIN), ("mona", Role.AUTHOR)):
                await make_account(env, name, role)
                with active_env(env):
                    token = await token_of(env, name, *SCOPES_OF[role])
                made[name] = {"authorization": f"Bearer {token}"}
            async with browser(create_app(env)) as client:
                yield SimpleNamespace(env=env, server=server, repo=repo, client=client, **made)


async def worked(world) -> None:
    with active_env(world.env):
        await run_until_quiet(world.env)


async def post(world, path: str = "", who: str = "root", **sent: object):
    return await world.client.post(f"{UPSTREAMS}{path}", json=sent, headers=getattr(world, who))


async def test_an_admin_adds_changes_pauses_resumes_and_removes_one(world):
    added = await post(world, **ADDED)
    assert added.status_code == 201 and added.json()["namespace"] == "upstream~vendor", added.text
    assert (await post(world, **ADDED)).status_code == 409
    await worked(world)
    shown = (await world.client.get(f"{UPSTREAMS}/vendor", headers=world.root)).json()
    assert (shown["listed"], shown["problem"], shown["intake"]) == (2, "", "on-request") and shown["goodAt"]
    changed = await post(world, "/vendor/change", patterns=["skills/a"], intake="all", **WHY)
    assert (changed.json()["address"], changed.json()["intake"]) == (URL, "all")
    await worked(world)
    shown = (await world.client.get(f"{UPSTREAMS}/vendor", headers=world.root)).json()
    assert shown["listed"] == 1 and shown["found"].startswith("1 listed, 1 asked for")
    assert (await post(world, "/vendor/pause", **WHY)).json()["paused"] is True
    assert (await post(world, "/vendor/sync")).status_code == 409
    assert (await post(world, "/vendor/resume", **WHY)).json()["paused"] is False
    assert (await post(world, "/vendor/remove", **WHY)).status_code == 204
    assert (await world.client.get(UPSTREAMS, headers=world.root)).json() == {"upstreams": []}
    for verb in ("change", "pause", "resume", "remove"):
        assert (await post(world, f"/vendor/{verb}", **WHY)).status_code == 404
    with active_env(world.env):
        audit = {(one.action, one.by) for one in (await list_audit()).items}
    verbs = ("added", "changed", "paused", "resumed", "removed")
    assert {(f"upstream {verb}", "admin:root") for verb in verbs} <= audit
    assert ("submit", "follow:upstream/vendor/skills") in audit


async def test_others_may_not_and_learn_nothing(world):
    await post(world, **ADDED)
    assert (await post(world, who="mona", **{**ADDED, "name": "mine"})).status_code == 403
    for name in ("vendor", "absent"):
        assert (await world.client.get(f"{UPSTREAMS}/{name}", headers=world.mona)).status_code == 403


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Vendor"),
        ("name", "a--b"),
        ("name", "x" * 33),
        ("kind", "ftp"),
        ("intake", "some"),
        ("patterns", ["a[b]"]),
        ("address", "https://upstream/vendor/skills"),
        ("address", f"{URL}/tree/main/skills"),
        ("address", "no address"),
        ("reason", ""),
    ],
)
async def test_what_is_wrong_is_named_with_the_fix(world, field, value):
    refused = await post(world, **{**ADDED, field: value})
    assert refused.status_code == 400 and f'"field":"{field}' in refused.text, refused.text
    assert (await world.client.get(UPSTREAMS, headers=world.root)).json() == {"upstreams": []}


async def test_the_pages_add_show_change_and_say_what_went_wrong_and_when_it_was_well(world):
    async with signed_in(create_app(world.env), world.env, "ruth", Role.ADMIN) as ruth:
        empty = (await ruth.get("/admin/upstreams")).text
        assert "No upstreams yet" in empty and 'href="/admin/upstreams"' in empty
        csrf = {"csrf": csrf_in(empty)}
        added = await ruth.client.post("/admin/upstreams/add", data={**csrf, **ADDED})
        assert added.status_code == 303, added.text
        await worked(world)
        assert URL in (await ruth.get("/admin/upstreams")).text
        world.server.faults["/vendor/skills"] = 503
        one = "/admin/upstream/vendor"
        sent = {**csrf, "address": URL, "patterns": "skills/a  skills/b", "intake": "all", **WHY}
        assert (await ruth.client.post(f"{one}/change", data=sent)).status_code == 303
        await worked(world)
        page = (await ruth.get(one)).text
        assert "cannot be reached" in page and "last read well" in page and "skills/a skills/b" in page
        assert (await ruth.client.post(f"{one}/sync", data=csrf)).status_code == 303
        assert (await ruth.client.post(f"{one}/pause", data={**csrf, **WHY})).status_code == 303
        assert "Paused" in (await ruth.get(one)).text
        assert (await ruth.client.post(f"{one}/resume", data={**csrf, **WHY})).status_code == 303
        gone = {**csrf, **WHY, "confirm": "yes"}
        assert (await ruth.client.post(f"{one}/remove", data=gone)).headers["location"] == "/admin/upstreams"

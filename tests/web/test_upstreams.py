"""Upstreams by API, page and command's answer: who may, what is shown and audited, and what is refused."""

from types import SimpleNamespace

import msgspec
import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.namespaces import manage
from tests.support.people import browser, csrf_in, make_account, signed_in, token_of
from vskill_platform.actions.skills.upstream_entries import ASKED_PER_HOUR
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import NamespaceRole, Visibility
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.domain.skills.upstream import MOST_ENTRIES, UpstreamEntries, UpstreamEntry, UpstreamKind
from vskill_platform.records import decode, iter_entries
from vskill_platform.stages.upstreams import bring_entry
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


@pytest.mark.parametrize("kind", UpstreamKind)
async def test_every_kind_is_made_changed_paused_and_removed_by_page_and_json(world, kind):
    async with signed_in(create_app(world.env), world.env, "ruth", Role.ADMIN) as ruth:
        assert f'value="{kind}"' in (await ruth.get("/admin/upstreams")).text
        await ruth.do("/admin/upstreams/add", **{**ADDED, "kind": kind.value})
        assert (await world.client.get(f"{UPSTREAMS}/vendor", headers=world.root)).json()["kind"] == kind
        for verb in ("change", "pause", "resume"):
            assert (await post(world, f"/vendor/{verb}", **WHY)).status_code == 200
            await ruth.do(f"/admin/upstream/vendor/{verb}", **WHY)
        await ruth.do("/admin/upstream/vendor/remove", **WHY, confirm="yes")
        assert (await post(world, **{**ADDED, "kind": kind.value})).status_code == 201
        assert (await post(world, "/vendor/remove", **WHY)).status_code == 204


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


# Readers.

PLACEHOLDER = "/marketplace/upstream~vendor/skills/a.git/info/refs?service=git-upload-pack"


async def listed(world, who: str = "mona") -> dict[str, dict]:
    answer = await world.client.get("/upstreams/vendor.json", headers=getattr(world, who))
    assert answer.status_code == 200, answer.text
    return {one["name"]: one for one in answer.json()["plugins"]}


async def runs(world) -> int:
    with active_env(world.env):
        return len((await world.env.kv.scan("sub:")).items) + len(
            (await world.env.kv.scan("task:upstream_bring:")).items
        )


@pytest.fixture
async def offering(world):
    """The upstream was read, and nothing of it was asked for. Lists are made anew at every look."""
    await post(world, **ADDED)
    await worked(world)
    return world


async def test_a_clone_of_what_is_not_verified_asks_for_it_and_says_where_it_is(offering):
    """401 first, so that a client sends its token; then 403 as text; and then the bytes that were verified."""
    world = offering
    anonymous = await world.client.get(PLACEHOLDER)
    assert anonymous.status_code == 401 and "Basic" in anonymous.headers["www-authenticate"]
    assert await runs(world) == 0
    first = await world.client.get(PLACEHOLDER, headers=world.mona)
    assert first.status_code == 403 and first.headers["content-type"].startswith("text/plain")
    assert "upstream~vendor/skills/a is not verified yet; requested" in first.text
    assert await runs(world) == 1
    with active_env(world.env):
        # The files are fetched and handed in; the run itself waits.
        await bring(world.env)
    second = await world.client.get(PLACEHOLDER, headers=world.mona)
    assert second.status_code == 403 and "requested, place 1: /submissions/sub_" in second.text, second.text
    await worked(world)
    assert (await world.client.get(PLACEHOLDER, headers=world.mona)).status_code == 200
    files = await world.client.get("/api/v1/skills/upstream~vendor/skills/a/file?path=SKILL.md")
    assert files.content == skill_md("a")


async def bring(env) -> None:
    """Work only the tasks of entries."""
    async for entry in iter_entries("task:upstream_bring:"):
        task = decode(entry, Task)
        await bring_entry(task)


async def test_the_list_of_an_upstream_names_what_can_be_asked_for_and_what_is_verified(offering):
    world = offering
    before = await listed(world)
    assert {name: one["version"] for name, one in before.items()} == {
        "a-vendor": "0.0.0",
        "b-vendor": "0.0.0",
    }
    assert before["a-vendor"]["description"].startswith("Not verified yet. The skill a")
    assert before["a-vendor"]["source"]["url"].endswith("/marketplace/upstream~vendor/skills/a.git")
    assert "a-vendor" not in (await world.client.get("/marketplace.json")).text
    asked = await post(world, "/vendor/ask", who="mona", entry="skills/a")
    assert asked.json()["fullName"] == "upstream~vendor/skills/a" and "requested" in asked.json()["state"]
    await worked(world)
    world.env.clock.advance(60_000)
    after = await listed(world)
    assert after["a-vendor"]["version"] == "1.0.0" and after["b-vendor"]["version"] == "0.0.0"
    assert after["a-vendor"]["source"] == before["a-vendor"]["source"], "the address stays the same"
    clone = await world.client.get("/upstreams/vendor.git/info/refs?service=git-upload-pack")
    assert clone.status_code == 200
    found = (await world.client.get(f"{UPSTREAMS}/vendor/entries")).json()
    states = {one["name"]: (one["verified"], one["asked"]) for one in found["entries"]}
    assert states == {"skills/a": ("1.0.0", True), "skills/b": (None, False)}


async def test_by_name_everybody_gets_the_same_answer_and_only_an_account_asks(offering):
    world, name = offering, "upstream~vendor/skills/b"
    for path in (
        f"/api/v1/skills/{name}",
        f"/skills/{name}",
        f"/clawhub/api/v1/skills/{name.replace('/', '--')}",
    ):
        anonymous = await world.client.get(path)
        assert anonymous.status_code in (401, 404) and await runs(world) == 0, path
        if anonymous.status_code == 404:
            assert "is not verified yet; sign in and ask for it" in anonymous.text, path
    for path in (f"/api/v1/skills/{name}", f"/clawhub/api/v1/skills/{name.replace('/', '--')}"):
        mine = await world.client.get(path, headers=world.mona)
        assert mine.status_code == 404 and "is not verified yet; requested" in mine.text, mine.text
        assert await runs(world) == 1
    other = await world.client.get("/api/v1/skills/upstream~vendor/skills/none", headers=world.mona)
    assert "There is no skill" in other.text and await runs(world) == 1


@pytest.mark.slow
async def test_whoever_is_not_signed_in_makes_no_submission_of_five_thousand_placeholders(offering):
    """By clone, and by name in each protocol."""
    world, names = offering, [f"skills/s{number}" for number in range(MOST_ENTRIES)]
    entries = UpstreamEntries(
        tuple(UpstreamEntry("skills", name.partition("/")[2], "mark") for name in names)
    )
    with active_env(world.env):
        await world.env.kv.put(keys.upstream_entries("vendor"), msgspec.json.encode(entries))
    ways = (
        "/marketplace/upstream~vendor/{}.git/info/refs?service=git-upload-pack",
        "/api/v1/skills/upstream~vendor/{}",
    )
    found = set()
    for number, name in enumerate(names):
        answer = await world.client.get(ways[number % len(ways)].format(name))
        found.add(answer.status_code)
    assert found <= {401, 404, 429} and await runs(world) == 0


async def test_an_account_asks_for_a_bounded_number_an_hour(world):
    many = {f"skills/s{number}/SKILL.md": skill_md(f"s{number}") for number in range(ASKED_PER_HOUR + 2)}
    world.repo.commit(many)
    await post(world, **ADDED)
    await worked(world)
    answers = [
        await post(world, "/vendor/ask", who="mona", entry=f"skills/s{number}")
        for number in range(ASKED_PER_HOUR + 1)
    ]
    assert {one.status_code for one in answers[:-1]} == {200} and answers[-1].status_code == 429
    again = await post(world, "/vendor/ask", who="mona", entry="skills/s0")
    assert again.status_code == 200, "what was asked for already counts nothing"


async def test_a_paused_upstream_takes_no_requests(offering):
    await post(offering, "/vendor/pause", **WHY)
    refused = await post(offering, "/vendor/ask", who="mona", entry="skills/a")
    assert refused.status_code == 409 and "is paused" in refused.text and await runs(offering) == 0


async def test_an_upstream_of_a_hidden_namespace_is_nowhere_for_others(offering):
    await manage(offering.env, "upstream~vendor", Visibility.TEAM, "user:root", role=NamespaceRole.OWNER)
    for path in (f"{UPSTREAMS}/vendor/entries", "/upstreams/vendor.json", "/upstreams/vendor/skills"):
        hidden = await offering.client.get(path, headers=offering.mona)
        absent = await offering.client.get(path.replace("vendor", "absent"), headers=offering.mona)
        assert hidden.status_code == absent.status_code == 404, path
        assert (await offering.client.get(path, headers=offering.root)).status_code == 200, path
    name = "/api/v1/skills/upstream~vendor/skills/a"
    answers = [await offering.client.get(one, headers=offering.mona) for one in (name, f"{name}x")]
    details = [one.json()["detail"] for one in answers]
    assert details[1] == details[0].replace("skills/a", "skills/ax") and await runs(offering) == 0
    assert (await post(offering, "/vendor/ask", who="mona", entry="skills/a")).status_code == 404


async def test_the_page_of_an_upstream_shows_what_it_has_and_asks(offering):
    shown = (await offering.client.get("/upstreams/vendor/skills")).text
    assert "Not verified yet" in shown and "Ask for it" not in shown and "/upstreams/vendor.git" in shown
    async with signed_in(create_app(offering.env), offering.env, "ruth", Role.AUTHOR) as ruth:
        page = (await ruth.get("/upstreams/vendor/skills?q=skill+a")).text
        assert "skills/a" in page and "skills/b" not in page
        sent = {"csrf": csrf_in(page), "entry": "skills/a"}
        done = await ruth.client.post("/upstreams/vendor/ask", data=sent)
        assert done.status_code == 303 and await runs(offering) == 1
        await worked(offering)
        assert "Verified 1.0.0" in (await ruth.get("/upstreams/vendor/skills")).text

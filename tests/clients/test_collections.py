"""Collections: curated in the admin area, every change audited, and never more offered than can be installed."""

import pytest

from tests.clients.test_discovery import block
from tests.support.acting import add_to_collection
from tests.support.envs import active_env
from tests.support.people import signed_in
from tests.support.shelf import open_shelf
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.skills import collections
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

WHO = {"by": "admin:ada", "reason": "for the team"}
PLACE = "/collections/team/marketplace.json"


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path):
    async with open_shelf(tmp_path, request.param) as opened:
        yield opened


async def offered(shelf) -> list[str]:
    answer = await shelf.client.get(PLACE)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["plugins"]]


async def test_it_offers_what_is_in_it_in_its_order_without_what_is_blocked(shelf):
    for name in ("one", "two", "three"):
        await shelf.publish(name)
    with active_env(shelf.env):
        await collections.create_collection("team", title="The team", **WHO)
        await add_to_collection("team", ["three", "acme/tools/one", "three"], **WHO)
    assert await offered(shelf) == ["three", "one"]
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/three")
    assert await offered(shelf) == ["one"]


async def test_every_change_is_audited_and_none_is_written_twice(shelf):
    await shelf.publish("one")
    with active_env(shelf.env):
        await collections.create_collection("team", **WHO)
        await add_to_collection("team", ["one"], **WHO)
        await add_to_collection("team", ["one"], **WHO)
        await collections.remove_skills("team", ["acme/tools/one"], **WHO)
        await collections.delete_collection("team", **WHO)
        found = [one for one in (await list_audit()).items if one.target == "team"]
        # Entries of one millisecond have no order.
        assert sorted(one.action for one in found) == [
            "collection created",
            "collection deleted",
            "collection: skills added",
            "collection: skills removed",
        ]
        assert {(one.by, one.reason) for one in found} == {("admin:ada", "for the team")}
        with pytest.raises(NotFound):
            await collections.get_collection("team", audiences=EVERYTHING)


@pytest.mark.parametrize("name", ["", "Team", "a b", "-a", "a-", "a--b", "x" * 65, "ü"])
async def test_a_name_that_is_no_address_is_refused(shelf, name):
    with active_env(shelf.env), pytest.raises(InvalidInput):
        await collections.create_collection(name, **WHO)


async def test_what_is_unknown_not_in_it_or_without_a_reason_is_refused(shelf):
    await shelf.publish("one")
    with active_env(shelf.env):
        await collections.create_collection("team", **WHO)
        with pytest.raises(InvalidInput, match="already"):
            await collections.create_collection("team", **WHO)
        with pytest.raises(NotFound):
            await add_to_collection("team", ["nothing"], **WHO)
        with pytest.raises(NotFound):
            await collections.remove_skills("team", ["acme/tools/one"], **WHO)
        with pytest.raises(NotFound):
            await add_to_collection("nowhere", ["one"], **WHO)
        with pytest.raises(InvalidInput):
            await add_to_collection("team", ["one"], by="admin:ada", reason=" ")
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/one")
    with active_env(shelf.env), pytest.raises(InvalidInput, match="cannot be installed"):
        await add_to_collection("team", ["acme/tools/one"], **WHO)


async def test_an_admin_curates_it_in_the_browser(shelf):
    skill = await shelf.publish("one")
    app = create_app(shelf.env)
    async with signed_in(app, shelf.env, "ada", Role.ADMIN) as ada:
        area = "/admin/collections"
        told = await ada.do(f"{area}/create", name="team", title="The team", description="", reason="why not")
        assert "team" in told
        assert "1 skill" in await ada.do(
            f"{area}/add", name="team", skills=skill.canonical, reason="reviewed"
        )
        shown = (await ada.get(area)).text
        assert "The team" in shown and skill.canonical in shown and PLACE in shown
        # What its names and descriptions cost of an agent's context.
        characters = len(skill.slug) + len(skill.description)
        assert f"{characters} characters, about {characters // 4} tokens" in shown
        refused = await ada.do(f"{area}/add", name="team", skills="a/b/c", reason="x")
        assert "no skill a/b/c" in refused
        assert skill.canonical in await ada.do(
            f"{area}/remove", name="team", skills=skill.canonical, reason="no longer"
        )
        assert "was deleted" not in await ada.do(f"{area}/delete", name="team", reason="over")
        assert "was deleted" in await ada.do(f"{area}/delete", name="team", reason="over", confirm="yes")


async def test_the_page_about_clients_names_them_all_with_this_address(shelf):
    await shelf.publish("one")
    with active_env(shelf.env):
        await collections.create_collection("team", title="The team", **WHO)
    page = await shelf.client.get("/docs/clients", headers={"accept": "text/html"})
    assert page.status_code == 200
    for command in (
        "npx skills add http://platform.test/acme/tools/one",
        "export CLAWHUB_REGISTRY=http://platform.test/clawhub",
        "npx clawhub install acme--tools--one",
        "/plugin marketplace add http://platform.test/marketplace.json",
        "/plugin marketplace add http://platform.test/collections/team/marketplace.json",
        "codex plugin add one@vskill-platform",
        "copilot plugin install one@vskill-platform",
        "gemini extensions install http://platform.test/marketplace/acme/tools/one.git",
        "connect opencode --owner acme --yes",
        "http://platform.test/mcp",
    ):
        assert command in page.text, command

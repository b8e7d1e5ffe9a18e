"""The pages of namespaces, teams and access: what is seen before something is hidden, and who is offered what."""

import pytest

from tests.support.envs import active_env
from tests.support.people import Person, make_account, signed_in
from tests.support.shelf import Shelf, open_shelf
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.namespaces import read_namespace
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

PLACE = "/namespaces/acme"
WHY = {"reason": "a test"}


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as opened:
        await opened.publish("lint")
        await make_account(opened.env, "bob", Role.AUTHOR)
        yield opened


def person(shelf: Shelf, name: str, role: Role):
    return signed_in(create_app(shelf.env), shelf.env, name, role)


async def own(shelf: Shelf, mia: Person) -> None:
    """By an admin, because nobody signed in as acme."""
    async with person(shelf, "ada", Role.ADMIN) as ada:
        said = await ada.do(f"{PLACE}/members", member=mia.name, role="owner", **WHY)
        assert said == "mia is now owner of acme."


async def visibility_of(shelf: Shelf) -> Visibility | None:
    with active_env(shelf.env):
        return (await read_namespace("acme"))[0].visibility


async def test_an_owner_sees_what_would_disappear_before_the_button(shelf):
    async with person(shelf, "mia", Role.AUTHOR) as mia:
        await own(shelf, mia)
        page = (await mia.get(f"{PLACE}/visibility?to=team")).text
        assert "1 skill would disappear for the public" in page and "acme/tools/lint" in page
        assert "Limit it to members" in page and await visibility_of(shelf) is None
        assert "tick the box" in await mia.do(f"{PLACE}/visibility", to="team", **WHY)
        said = await mia.do(f"{PLACE}/visibility", to="team", confirm="yes", **WHY)
        assert said == "acme is team: only members may read it."
        assert await visibility_of(shelf) is Visibility.TEAM
        wider = (await mia.get(f"{PLACE}/visibility?to=public")).text
        assert "1 skill would appear for the public" in wider and "Ask a reviewer" in wider
        assert f'action="{PLACE}/make-public"' not in wider


async def test_a_reviewer_makes_it_public(shelf):
    async with person(shelf, "mia", Role.AUTHOR) as mia:
        await own(shelf, mia)
        await mia.do(f"{PLACE}/visibility", to="team", confirm="yes", **WHY)
    async with person(shelf, "rob", Role.REVIEWER) as rob:
        assert f'action="{PLACE}/make-public"' in (await rob.get(f"{PLACE}/visibility?to=public")).text
        assert "acme is public" in await rob.do(f"{PLACE}/make-public", confirm="yes", **WHY)
    assert await visibility_of(shelf) is Visibility.PUBLIC


async def test_members_come_and_go(shelf):
    async with person(shelf, "mia", Role.AUTHOR) as mia, person(shelf, "bob", Role.AUTHOR) as bob:
        await own(shelf, mia)
        assert (await bob.get(PLACE)).status_code == 403
        assert (
            await mia.do(f"{PLACE}/members", member="bob", role="reader", **WHY)
            == "bob is now reader of acme."
        )
        shown = (await bob.get(PLACE)).text
        assert "You are reader." in shown and "Add a member" not in shown and "Leave acme" in shown
        assert await bob.do(f"{PLACE}/leave", confirm="yes") == "You left acme."
        assert (await bob.get(PLACE)).status_code == 403
        assert "no account 'nobody'" in await mia.do(
            f"{PLACE}/members", member="nobody", role="reader", **WHY
        )


async def test_a_stranger_sees_the_same_for_every_name(shelf):
    async with person(shelf, "mia", Role.AUTHOR) as mia, person(shelf, "bob", Role.AUTHOR) as bob:
        await own(shelf, mia)
        await mia.do(f"{PLACE}/visibility", to="team", confirm="yes", **WHY)
        there, absent = await bob.get(PLACE), await bob.get("/namespaces/none")
        assert (there.status_code, absent.status_code) == (403, 403)

        def without_names(answer):
            text = answer.text.replace("acme", "NAME").replace("none", "NAME")
            request_id = answer.headers["x-request-id"]
            return text.replace(request_id, "ID")

        assert without_names(there) == without_names(absent)
        assert "acme" not in (await bob.get("/namespaces")).text


async def test_quotas_are_set_by_admins_and_shown_with_their_use(shelf):
    async with person(shelf, "mia", Role.AUTHOR) as mia:
        await own(shelf, mia)
        assert "Nothing is counted" in (await mia.get(PLACE)).text
        await mia.do(f"{PLACE}/visibility", to="internal", confirm="yes", **WHY)
        async with person(shelf, "ada", Role.ADMIN) as ada:
            assert "quotas of acme are set" in await ada.do(f"{PLACE}/quotas", skills="5", **WHY)
        shown = (await mia.get(PLACE)).text
        assert "1 of 5" in shown and "Set the quotas" not in shown


async def test_an_admin_sees_what_would_disappear_before_the_registry_is_internal(shelf):
    async with person(shelf, "ada", Role.ADMIN) as ada:
        assert "would disappear" not in (await ada.get("/admin/access")).text
        shown = (await ada.get("/admin/access?mode=internal&submitters=members")).text
        assert "1 skill would disappear for the public" in shown
        said = await ada.do("/admin/access", mode="internal", submitters="members", confirm="yes", **WHY)
        assert said == "The registry is internal. Who may submit: members."


async def test_an_admin_manages_teams(shelf):
    async with person(shelf, "ada", Role.ADMIN) as ada:
        assert "There is no team yet" in (await ada.get("/admin/teams")).text
        assert "was created" in await ada.do("/admin/teams/create", name="crew", **WHY)
        assert (
            await ada.do("/admin/teams/add", name="crew", accounts="bob\nada", **WHY) == "crew has 2 members."
        )
        assert "no longer in crew" in await ada.do("/admin/teams/remove", name="crew", accounts="ada", **WHY)
        async with person(shelf, "bob", Role.AUTHOR) as bob:
            assert "crew" in (await bob.get("/namespaces")).text
        assert "was deleted" in await ada.do("/admin/teams/delete", name="crew", confirm="yes", **WHY)


async def test_an_admin_is_led_to_every_namespace_also_to_one_without_a_record(shelf):
    async with person(shelf, "ada", Role.ADMIN) as ada:
        assert 'href="/namespaces" title=' in (await ada.get("/admin")).text
        assert 'name="open"' in (await ada.get("/namespaces")).text
        opened = await ada.get("/namespaces?open=acme")
        assert (opened.status_code, opened.headers["location"]) == (303, "/namespaces/acme")
    async with person(shelf, "bob", Role.AUTHOR) as bob:
        assert 'name="open"' not in (await bob.get("/namespaces")).text

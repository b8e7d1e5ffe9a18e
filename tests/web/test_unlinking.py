"""Unlinking an identity: who may, what ends with it, and that it makes and joins nothing afterwards."""

from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import active_env
from tests.support.namespaces import manage
from tests.support.people import browser, csrf_in, make_account, signed_in, token_of
from tests.support.single_sign_on import HTML, House, come_back, leave, open_house
from tests.web.test_scim import MIA_AT, Directory, make_token
from tests.web.test_single_sign_on import reads
from vskill_client.wire.base import NoParameters
from vskill_core.errors import NotFound, NotPermitted, NotSignedIn
from vskill_core.identity import Identity
from vskill_platform.actions.people.account import (
    LIST_OWN_IDENTITIES,
    UNLINK_IDENTITY_OF,
    UNLINK_OWN_IDENTITY,
    UnlinkIdentityOf,
    UnlinkOwnIdentity,
)
from vskill_platform.actions.people.teams import ADD_TO_TEAM, CREATE_TEAM, ChangeTeam, ExplainedTeam
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import NamespaceRole, Visibility
from vskill_platform.store.people.accounts import Role, User, get_user
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import Credential, open_session, read_standings, session_key
from vskill_platform.store.people.github_accounts import account_of_github, find_signed_in
from vskill_platform.store.people.identities import name_identity
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE

pytestmark = pytest.mark.anyio

WHY = "a test"
REASON = {"reason": WHY}


@pytest.fixture
async def house(tmp_path):
    """Mia's account signs in at both issuers, and a private namespace is that of a group at Acme."""
    async with open_house(tmp_path) as opened:
        opened.acme.person["groups"] = ["core"]
        with active_env(opened.env):
            await CREATE_TEAM(opened.env, OPERATOR, ExplainedTeam(name="core", reason=WHY))
            members = ChangeTeam(name="core", accounts=("oidc:acme:core",), reason=WHY)
            await ADD_TO_TEAM(opened.env, OPERATOR, members)
        await manage(opened.env, "canary", Visibility.TEAM, "team:core", role=NamespaceRole.MAINTAINER)
        async with browser(create_app(opened.env)) as client:
            await opened.sign_in(client=client)
            query = opened.other.authorize(await leave(client, "other", "/account"))
            assert (await come_back(client, "other", query)).status_code == 303
        yield opened


async def mia(house: House) -> User:
    user = await house.user("mia-lee")
    assert user is not None
    return user


async def id_at(house: House, issuer: Any) -> str:
    return next(name_identity(one) for one in (await mia(house)).identities if one.issuer == issuer.address)


async def unlink(house: House, issuer: Any, by: str = "mia-lee") -> None:
    wanted = await id_at(house, issuer)
    with active_env(house.env):
        if by == "mia-lee":
            asked = UnlinkOwnIdentity(identity=wanted)
            await UNLINK_OWN_IDENTITY(house.env, principal_for("user:mia-lee"), asked)
        else:
            asked_of = UnlinkIdentityOf(name="mia-lee", identity=wanted, reason=WHY)
            await UNLINK_IDENTITY_OF(house.env, OPERATOR, asked_of)


async def is_in(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/account", headers=HTML)).status_code == 200


async def test_the_sessions_of_that_provider_end_and_its_groups_are_forgotten(house):
    app = create_app(house.env)
    async with browser(app) as by_acme, browser(app) as by_other, browser(app) as by_password:
        await house.sign_in(client=by_acme)
        await house.sign_in(house.other, client=by_other)
        with active_env(house.env):
            session = await open_session(await mia(house), "password")
            shown = Credential(session_key(by_acme.cookies[SESSION_COOKIE]), "mia-lee")
            assert (await read_standings([shown]))[shown] is not None
            assert await reads(house)
        by_password.cookies.set(SESSION_COOKIE, session)
        house.clock.advance(1)
        await unlink(house, house.acme)
        assert [await is_in(one) for one in (by_acme, by_other, by_password)] == [False, True, True]
        with active_env(house.env):
            assert (await read_standings([shown]))[shown] is None, "open streams end as well"
            assert not await reads(house)
            entry = (await list_audit()).items[0]
    assert (entry.action, entry.target, entry.by) == ("identity unlinked", "mia-lee", "user:mia-lee")
    assert entry.details == {"login": "mia-lee", "id": "00u1", "issuer": house.acme.address}
    stored = await house.env.kv.get(keys.user("mia-lee"))
    assert stored is not None and house.acme.address.encode() not in stored.value


async def test_an_unlinked_identity_makes_and_joins_nothing_until_somebody_links_it(house):
    await unlink(house, house.acme)
    answer = await house.sign_in()
    assert answer.status_code == 403 and "was unlinked from its account" in answer.text
    assert await accounts(house) == ["mia-lee"]
    app = create_app(house.env)
    async with signed_in(app, house.env, "ann", Role.AUTHOR) as ann:
        query = house.acme.authorize(await leave(ann.client, "acme", "/account"))
        assert (await come_back(ann.client, "acme", query)).status_code == 303
    async with browser(app) as client:
        await house.sign_in(client=client)
        assert "<h1>ann</h1>" in (await client.get("/account", headers=HTML)).text
    ann_now = await house.user("ann")
    assert ann_now is not None and ann_now.identities[0].linked_at is not None


async def accounts(house: House) -> list[str]:
    found = await house.env.kv.list(keys.user.prefix)
    return [key.removeprefix(keys.user.prefix) for key in found.items]


async def test_a_sign_in_that_is_under_way_does_not_link_it_again(house):
    """It left for the issuer before the identity was unlinked, and comes back afterwards."""
    async with browser(create_app(house.env)) as client:
        query = house.acme.authorize(await leave(client, "acme"))
        await unlink(house, house.acme)
        assert (await come_back(client, "acme", query)).status_code == 403
    assert [one.issuer for one in (await mia(house)).identities] == [house.other.address]


async def test_nobody_unlinks_their_own_last_way_in(house):
    await unlink(house, house.acme)
    with pytest.raises(NotPermitted, match="the last way to sign in as mia-lee") as refused:
        await unlink(house, house.other)
    assert "link another identity first" in str(refused.value.details)
    # A provider that is no longer set up is no way in.
    await unlink_all_but_one_is_gone(house)


async def unlink_all_but_one_is_gone(house: House) -> None:
    async with browser(create_app(house.env)) as client:
        await house.sign_in(house.other, client=client)
        query = house.acme.authorize(await leave(client, "acme", "/account"))
        await come_back(client, "acme", query)
    settings = msgspec.structs.replace(house.env.settings, issuers=house.env.settings.issuers[:1])
    fewer = House(msgspec.structs.replace(house.env, settings=settings), house.acme, house.other)
    with pytest.raises(NotPermitted, match="the last way"):
        await unlink(fewer, house.acme)


async def test_an_admin_unlinks_the_last_one_and_everything_ends(house):
    """An account that nothing signs in as any more is not one for which an admin vouches."""
    async with browser(create_app(house.env)) as client:
        await house.sign_in(house.other, client=client)
        secret = await token_of(house.env, "mia-lee", "read", days=30)
        bearer = {"authorization": f"Bearer {secret}"}
        house.clock.advance(1)
        for issuer in (house.acme, house.other):
            assert (await client.get("/api/v1/account", headers=bearer)).status_code == 200
            await unlink(house, issuer, by="the operator")
        assert not await is_in(client)
        assert (await client.get("/api/v1/account", headers=bearer)).status_code == 401
    assert (await mia(house)).tokens == ()


async def test_others_identities_are_not_found(house):
    await make_account(house.env, "ann", Role.AUTHOR)
    wanted = await id_at(house, house.acme)
    with active_env(house.env), pytest.raises(NotFound) as refused:
        await UNLINK_OWN_IDENTITY(house.env, principal_for("user:ann"), UnlinkOwnIdentity(identity=wanted))
    assert house.acme.address not in str(refused.value)
    async with signed_in(create_app(house.env), house.env, "ann", Role.AUTHOR) as ann:
        secret = await token_of(house.env, "ann", "read", "own")
        ann.client.cookies.clear()
        headers = {"authorization": f"Bearer {secret}"}
        listed = await ann.client.get("/api/v1/account/identities", headers=headers)
        assert listed.json() == {"hasPassword": False, "identities": []}
        path = f"/api/v1/admin/accounts/mia-lee/identities/{wanted}/unlink"
        assert (await ann.client.post(path, json=REASON, headers=headers)).status_code == 403
    assert len((await mia(house)).identities) == 2


async def test_a_token_of_one_namespace_unlinks_nothing(house):
    bound = msgspec.structs.replace(principal_for("user:mia-lee"), namespace="canary")
    asked = UnlinkOwnIdentity(identity=await id_at(house, house.acme))
    with active_env(house.env), pytest.raises(NotPermitted, match="bound to the namespace canary"):
        await UNLINK_OWN_IDENTITY(house.env, bound, asked)
    assert len((await mia(house)).identities) == 2


async def test_the_page_and_the_api_show_and_unlink(house):
    async with browser(create_app(house.env)) as client:
        await house.sign_in(house.other, client=client)
        wanted = await id_at(house, house.acme)
        page = (await client.get("/account", headers=HTML)).text
        assert f'action="/account/identities/{wanted}/unlink"' in page
        secret = await token_of(house.env, "mia-lee", "read", "own")
        form = {"csrf": csrf_in(page)}
        await client.post(f"/account/identities/{wanted}/unlink", data=form, headers=HTML)
        assert len((await mia(house)).identities) == 2, "it must be confirmed"
        form["confirm"] = "yes"
        await client.post(f"/account/identities/{wanted}/unlink", data=form, headers=HTML)
        assert "The identity is unlinked" in (await client.get("/account", headers=HTML)).text
        client.cookies.clear()
        bearer = {"authorization": f"Bearer {secret}"}
        (left,) = (await client.get("/api/v1/account/identities", headers=bearer)).json()["identities"]
        assert left["issuer"] == house.other.address and left["linkedAt"] <= left["verifiedAt"]
        refused = await client.delete(f"/api/v1/account/identities/{left['id']}", headers=bearer)
        assert refused.status_code == 403 and "link another identity first" in refused.text
    async with signed_in(create_app(house.env), house.env, "ada", Role.ADMIN) as ada:
        assert f"/identities/{left['id']}/unlink" in (await ada.get("/admin/accounts")).text
        path = f"/admin/accounts/mia-lee/identities/{left['id']}/unlink"
        assert "unlinked from mia-lee" in await ada.do(path, confirm="yes", **REASON)
    assert (await mia(house)).identities == ()


async def test_whom_a_directory_keeps_only_an_admin_unlinks(house):
    """Who could leave the directory's reach would stay when it says that they have left."""
    async with browser(create_app(house.env)) as client:
        acme = Directory(client, "acme", await make_token(house))
        await acme.make()
        await acme.group("core", "mia-lee")
        with pytest.raises(NotPermitted, match="directory keeps"):
            await unlink(house, house.acme)
        await unlink(house, house.acme, by="the operator")
        assert (await acme.ask("GET", MIA_AT)).status_code == 404
        for prefix in ("scim_user:", "scim_member:"):
            assert (await house.env.kv.list(prefix)).items == ()
        answer = await acme.ask("POST", "/Users", {"userName": "m", "externalId": "00u1", "active": True})
        assert answer.status_code == 400 and "unlinked" in answer.text
    assert await accounts(house) == ["mia-lee"]


async def test_a_directory_with_a_new_token_keeps_those_whom_it_has_not_named_since(house):
    async with browser(create_app(house.env)) as client:
        acme = Directory(client, "acme", await make_token(house))
        await acme.make()
        house.clock.advance(1)
        await make_token(house)
        with pytest.raises(NotPermitted, match="directory keeps"):
            await unlink(house, house.acme)


async def test_a_sign_in_that_ends_after_the_unlinking_opens_no_session(house):
    verified = await mia(house)
    house.clock.advance(1)
    await unlink(house, house.acme)
    house.clock.advance(1)
    with active_env(house.env):
        with pytest.raises(NotSignedIn, match="signed out while"):
            await open_session(verified, "acme")
        assert await open_session(verified, "other")


async def test_what_github_proved_follows_the_identity_to_another_account(house):
    settings = msgspec.structs.replace(house.env.settings, github_client_id="x")
    env, place = (
        msgspec.structs.replace(house.env, settings=settings),
        Identity("github.com", "acme", "tools"),
    )
    await make_account(env, "ann", Role.AUTHOR)
    await make_account(env, "bob", Role.AUTHOR)
    with active_env(env):
        await account_of_github("7", "acme", account="ann")
        assert await find_signed_in(place) == "ann"
        (one,) = (await LIST_OWN_IDENTITIES(env, principal_for("user:ann"), NoParameters())).identities
        assert one.issuer == "github.com"
        asked = UnlinkIdentityOf(name="ann", identity=one.id, reason=WHY)
        await UNLINK_IDENTITY_OF(env, OPERATOR, asked)
        assert await find_signed_in(place) is None
        with pytest.raises(NotPermitted, match="unlinked"):
            await account_of_github("7", "acme")
        await account_of_github("7", "acme", account="bob")
        assert await find_signed_in(place) == "bob"
        assert (await get_user("ann")).unlinked == {"github": env.kv.now()}


async def test_without_the_providers_name_every_session_ends(house):
    settings = msgspec.structs.replace(house.env.settings, issuers=())
    env = msgspec.structs.replace(house.env, settings=settings)
    await unlink(House(env, house.acme, house.other), house.acme, by="the operator")
    assert (await mia(house)).signed_out_at == env.kv.now()


def test_an_account_of_an_earlier_release_has_no_time_of_linking():
    old = b'{"name":"a","role":"author","created_at":1,"updated_at":1,"github":{"id":"7","login":"a","verified_at":1}}'
    user = msgspec.json.decode(old, type=User)
    assert user.linked[0].linked_at is None and user.ended_at("github") == 0

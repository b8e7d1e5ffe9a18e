"""Signing in by OpenID Connect, against small issuers on loopback that can be made to lie: whom we believe, which
account they get, and what a group is worth and for how long. `tests/clients/test_npm_oidc.py` asks a real one."""

import base64
from typing import Any

import msgspec
import pytest
from joserfc.jwk import ECKey
from structlog.testing import capture_logs

from tests.support.acting import create_token
from tests.support.envs import active_env
from tests.support.issuer import CLIENT_ID, CLIENT_SECRET
from tests.support.manual_clock import ManualClock
from tests.support.namespaces import manage
from tests.support.people import browser, csrf_in, make_account, signed_in
from tests.support.single_sign_on import House, come_back, leave, open_house
from vskill_core.errors import InvalidSettings
from vskill_core.identity import Identity
from vskill_platform.actions.people.access import check_issuers
from vskill_platform.actions.people.teams import ADD_TO_TEAM, CREATE_TEAM, ChangeTeam, ExplainedTeam
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Access, NamespaceRole, RegistryMode, Visibility
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.telling.notification import Topic
from vskill_platform.settings import load_settings
from vskill_platform.sign_in.oidc import LOOK_AGAIN_MS, SKEW_S
from vskill_platform.store.people.accounts import LinkedIdentity, Role
from vskill_platform.store.people.owners import find_maintainers
from vskill_platform.store.people.readers import audiences_of_actor
from vskill_platform.store.people.sign_in_rule import DAY_MS, READ_MS, standing_in
from vskill_platform.store.telling.notifications import find_accounts
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.web.pages.people.signin import OAUTH_COOKIE

pytestmark = pytest.mark.anyio

HTML = {"accept": "text/html"}
WHY = "a test"


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as opened:
        yield opened


# Whom we believe.


async def test_signing_in_makes_an_account_of_the_identity(house):
    answer = await house.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
    user = await house.user("mia-lee")
    assert user is not None and user.role is Role.AUTHOR
    assert [(one.issuer, one.id) for one in user.identities] == [(house.acme.address, "00u1")]
    house.acme.person["preferred_username"] = "mia.married"
    assert (await house.sign_in()).status_code == 303
    assert await house.user("mia-married") is None, "the subject is who they are, whatever their name is"


def at(seconds: int) -> int:
    return ManualClock().now() // 1000 + seconds


LIES = {
    "expired": {"exp": at(-SKEW_S - 1)},
    "made in the future": {"iat": at(SKEW_S + 1)},
    "not valid yet": {"nbf": at(SKEW_S + 1)},
    "another audience": {"aud": "somebody-else"},
    "two audiences": {"aud": [CLIENT_ID, "somebody-else"]},
    "given to another": {"azp": "somebody-else"},
    "another issuer": {"iss": "https://issuer.example"},
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "nobody": {"sub": ""},
    "no subject": {"sub": None},
    "no end": {"exp": None},
    "a strange end": {"exp": "soon"},
    "a strange audience": {"aud": {}},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_token_that_is_not_for_us_now_is_refused(house, lie):
    house.acme.lies = LIES[lie]
    answer = await house.sign_in()
    assert answer.status_code == 401 and "not valid; start again" in answer.text


@pytest.mark.parametrize("how", ["none", "secret", "another key", "noise"])
async def test_a_token_that_the_issuer_did_not_sign_with_its_key_is_refused(house, how):
    forged = {
        "none": house.acme.sign_not,
        "secret": house.acme.sign_by_secret,
        "another key": house.acme.sign_with(ECKey.generate_key("P-256")),
        "noise": lambda _claims: "a.b.c",
    }
    house.acme.signs = forged[how]
    assert (await house.sign_in()).status_code == 401


async def test_clocks_may_differ_by_a_minute(house):
    house.acme.lies = {"exp": at(-SKEW_S + 1), "iat": at(SKEW_S), "azp": CLIENT_ID, "aud": [CLIENT_ID, "x"]}
    assert (await house.sign_in()).status_code == 303


async def test_new_keys_are_read_once_a_minute_at_most(house):
    await house.sign_in()
    house.acme.key = ECKey.generate_key("P-256", auto_kid=True)
    assert (await house.sign_in()).status_code == 401, "they were read a moment ago"
    house.clock.advance(LOOK_AGAIN_MS + 1)
    assert (await house.sign_in()).status_code == 303
    read = house.acme.asked.count("/keys")
    house.acme.signs = house.other.sign
    for _ in range(3):
        assert (await house.sign_in()).status_code == 401
    assert house.acme.asked.count("/keys") == read, "strangers' tokens do not make us ask"


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://issuer.example"},
        {"token_endpoint": "file:///etc/passwd"},
        {"jwks_uri": 5},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
async def test_a_discovery_document_that_lies_leads_nowhere(house, document):
    house.acme.document = document
    async with browser(create_app(house.env)) as client:
        page = await client.get("/signin", headers=HTML)
        answer = await client.post("/signin/acme", data={"csrf": csrf_in(page.text)}, headers=HTML)
    assert answer.status_code == 400 and "not set up well" in answer.text
    with active_env(house.env):
        states = {one.name: one.problem for one in await check_issuers(house.env)}
    assert states["acme"] and states["other"] is None


async def test_only_the_issuers_own_host_may_be_a_private_one(house):
    house.acme.document = {"token_endpoint": "http://10.0.0.1:1/token"}
    with capture_logs() as logged:
        answer = await house.sign_in()
    assert answer.status_code == 503 and "Acme cannot be reached at the moment" in answer.text
    (line,) = (one for one in logged if one["event"] == "sign-in refused")
    assert "10.0.0.1 is not a public address" in line["problem"] and "10.0.0.1" not in answer.text


@pytest.mark.parametrize("state", ["", "x"])
async def test_a_state_that_did_not_begin_here_is_refused(house, state):
    async with browser(create_app(house.env)) as client:
        query = house.acme.authorize(await leave(client, "acme"))
        assert (await come_back(client, "acme", {**query, "state": state})).status_code == 401
    assert "/token" not in house.acme.asked


async def test_what_began_at_one_issuer_does_not_end_at_another(house):
    async with browser(create_app(house.env)) as client:
        query = house.acme.authorize(await leave(client, "acme"))
        assert (await come_back(client, "other", query)).status_code == 401
        assert (await come_back(client, "nobody", query)).status_code == 404


async def test_a_code_is_good_for_its_own_browser_only(house):
    """PKCE: somebody who sees the code, and begins a sign-in of their own, gets nothing for it."""
    async with browser(create_app(house.env)) as mia, browser(create_app(house.env)) as eve:
        seen = house.acme.authorize(await leave(mia, "acme"))
        own = house.acme.authorize(await leave(eve, "acme"))
        assert (await come_back(eve, "acme", {**own, "code": seen["code"]})).status_code == 401


async def test_an_issuer_that_is_down_in_the_middle_is_a_503(house):
    async with browser(create_app(house.env)) as client:
        query = house.acme.authorize(await leave(client, "acme"))
        house.acme.broken = True
        assert (await come_back(client, "acme", query)).status_code == 503
        assert (
            await come_back(client, "acme", {"error": "denied", "state": query["state"]})
        ).status_code == 401


# Which account they get.


async def test_the_same_subject_and_address_at_two_issuers_are_two_people(house):
    for issuer in (house.acme, house.other):
        issuer.person |= {"email": "mia@acme.example", "email_verified": True}
        assert (await house.sign_in(issuer)).status_code == 303
    names = [name async for name in _accounts(house)]
    assert len(names) == 2 and "mia-lee" in names and any(one.startswith("mia-lee-") for one in names)


async def _accounts(house: House):
    page = await house.env.kv.scan(keys.user.prefix)
    for item in page.items:
        yield item.key.removeprefix(keys.user.prefix)


@pytest.mark.parametrize("holder", ["account", "team", "namespace"])
async def test_a_name_that_is_taken_is_not_taken_over(house, holder):
    with active_env(house.env):
        if holder == "account":
            await make_account(house.env, "mia-lee", Role.ADMIN)
        elif holder == "team":
            await CREATE_TEAM(house.env, OPERATOR, ExplainedTeam(name="mia-lee", reason=WHY))
        else:
            await manage(house.env, "upload~mia-lee", Visibility.TEAM)
    async with browser(create_app(house.env)) as client:
        assert (await house.sign_in(client=client)).status_code == 303
        page = await client.get("/account", headers=HTML)
    (name,) = [one async for one in _accounts(house) if one != "mia-lee"]
    assert name.startswith("mia-lee-") and f"<h1>{name}</h1>" in page.text and "author" in page.text


@pytest.mark.parametrize("login", ["system", "", "Ünï", "-", "a" * 300, 5, "<b>"])
async def test_any_name_that_an_issuer_sends_becomes_a_valid_one(house, login):
    house.acme.person["preferred_username"] = login
    assert (await house.sign_in()).status_code == 303


async def test_somebody_who_is_signed_in_links_an_identity_to_the_account(house):
    async with signed_in(create_app(house.env), house.env, "ann", Role.AUTHOR) as ann:
        query = house.acme.authorize(await leave(ann.client, "acme", "/account"))
        assert (await come_back(ann.client, "acme", query)).status_code == 303
        ann.client.cookies.delete(SESSION_COOKIE, domain="")
        page = (await ann.client.get("/account", headers=HTML)).text
        assert "How you sign in" in page and ">mia-lee</span>" in page
    assert await house.user("mia-lee") is None
    async with browser(create_app(house.env)) as client:
        await house.sign_in(client=client)
        assert "<h1>ann</h1>" in (await client.get("/account", headers=HTML)).text


@pytest.mark.parametrize("signed", ["", ".", ".00", "by another session"])
async def test_a_journey_that_somebody_else_put_into_the_browser_links_nothing(house, signed):
    """A host beside ours can set our cookies: theirs would link their identity to whoever is signed in here."""
    app = create_app(house.env)
    async with (
        signed_in(app, house.env, "ann", Role.AUTHOR) as ann,
        signed_in(app, house.env, "eve", Role.AUTHOR) as eve,
    ):
        query = house.acme.authorize(await leave(eve.client, "acme", "/account"))
        body, _, mac = eve.client.cookies[OAUTH_COOKIE].strip('"').partition(".")
        journey = msgspec.json.decode(base64.urlsafe_b64decode(body))
        assert journey["account"] == "eve"
        forged = base64.urlsafe_b64encode(msgspec.json.encode(journey | {"account": "ann"})).decode()
        signed = f".{mac}" if signed == "by another session" else signed
        ann.client.cookies.set(OAUTH_COOKIE, f"{forged}{signed}")
        answer = await come_back(ann.client, "acme", query)
        assert answer.status_code == 401 and "did not begin here" in answer.text
        user = await house.user("ann")
        assert user is not None and user.identities == ()


async def test_an_identity_of_another_account_is_not_linked_and_not_switched_to(house):
    await house.sign_in()
    async with signed_in(create_app(house.env), house.env, "ann", Role.AUTHOR) as ann:
        query = house.acme.authorize(await leave(ann.client, "acme", "/account"))
        answer = await come_back(ann.client, "acme", query)
        assert answer.status_code == 403 and "signs in as another account" in answer.text
        # Begun by ann, and ended in a browser that ann has left.
        query = house.other.authorize(await leave(ann.client, "other", "/account"))
        ann.client.cookies.delete(SESSION_COOKIE)
        assert (await come_back(ann.client, "other", query)).status_code == 401


# Whom the issuer's rule lets in.


@pytest.mark.parametrize(
    ("mode", "rule", "person", "status"),
    [
        ("public", {}, {}, 303),
        ("internal", {}, {}, 403),
        ("internal", {"allowed_groups": ("*",)}, {}, 303),
        ("internal", {"allowed_groups": ("skills *",)}, {}, 403),
        ("internal", {"allowed_groups": ("skills *",)}, {"groups": ["skills *"]}, 303),
        ("internal", {"allowed_groups": ("staff",)}, {"groups": ["x", "staff"]}, 303),
        ("internal", {"allowed_groups": ("staff",)}, {"groups": "staff"}, 303),
        ("internal", {"allowed_groups": ("staff",)}, {"groups": ["STAFF", 5]}, 403),
        ("internal", {"allowed_groups": ("staff",)}, {"groups": {"staff": 1}}, 403),
        ("public", {"allowed_groups": ("staff",)}, {}, 403),
        (
            "public",
            {"allowed_domains": ("acme.example",)},
            {"email": "a@ACME.example", "email_verified": True},
            303,
        ),
        ("public", {"allowed_domains": ("acme.example",)}, {"email": "a@acme.example"}, 403),
        (
            "public",
            {"allowed_domains": ("acme.example",)},
            {"email": "a@acme.example@x.y", "email_verified": True},
            403,
        ),
        (
            "public",
            {"allowed_domains": ("acme.example",)},
            {"email": "a@b.acme.example", "email_verified": True},
            403,
        ),
    ],
)
async def test_those_are_let_in_whom_the_rule_names(tmp_path, mode, rule, person, status):
    async with open_house(tmp_path, RegistryMode(mode), **rule) as house:
        house.acme.person |= person
        assert (await house.sign_in()).status_code == status
        assert (await house.user("mia-lee") is None) is (status == 403), "nobody else gets an account"


async def test_claims_may_come_from_the_address_for_more(tmp_path):
    async with open_house(tmp_path, RegistryMode.INTERNAL, allowed_groups=("staff",)) as house:
        house.acme.more = {"groups": ["staff"]}
        assert (await house.sign_in()).status_code == 303
        house.acme.more = {"groups": ["staff"], "sub": "somebody else"}
        assert (await house.sign_in()).status_code == 403


async def test_a_pointer_instead_of_groups_is_a_refusal_that_says_so(tmp_path):
    async with open_house(tmp_path, allowed_groups=("*",)) as house:
        house.acme.person |= {"_claim_names": {"groups": "src1"}}
        answer = await house.sign_in()
        assert answer.status_code == 403 and "pointer instead of your groups" in answer.text


# What a group is worth, and for how long.


@pytest.fixture
async def grouped(tmp_path):
    """A private namespace that is maintained by whoever is in the group `core team` at Acme."""
    rule: dict[str, Any] = {"reviewer_groups": ("reviewers",), "admin_groups": ("admins",)}
    async with open_house(tmp_path, **rule) as house:
        with active_env(house.env):
            await CREATE_TEAM(house.env, OPERATOR, ExplainedTeam(name="core", reason=WHY))
            members = ChangeTeam(name="core", accounts=("oidc:acme:core%20team",), reason=WHY)
            await ADD_TO_TEAM(house.env, OPERATOR, members)
        await manage(house.env, "canary", Visibility.TEAM, "team:core", role=NamespaceRole.MAINTAINER)
        for issuer in (house.acme, house.other):
            issuer.person["groups"] = ["core team"]
        yield house


async def reads(house: House, name: str = "mia-lee") -> bool:
    with active_env(house.env):
        audiences = await audiences_of_actor(f"user:{name}")
    return isinstance(audiences, frozenset) and "ns:canary:team" in audiences


async def test_a_group_of_a_team_reads_until_the_sign_in_without_it(grouped):
    before = await grouped.env.kv.get(keys.team("core"))
    await grouped.sign_in()
    assert await reads(grouped)
    assert await grouped.env.kv.get(keys.team("core")) == before, "a sign-in writes no team"
    grouped.acme.person["groups"] = []
    await grouped.sign_in()
    assert not await reads(grouped)


async def test_a_group_of_the_same_name_at_another_issuer_is_another_group(grouped):
    await grouped.sign_in(grouped.other)
    assert await grouped.user("mia-lee") is not None and not await reads(grouped)


async def test_a_session_ends_after_a_day_and_a_token_reads_for_a_week(grouped):
    async with browser(create_app(grouped.env)) as client:
        await grouped.sign_in(client=client)
        with active_env(grouped.env):
            scopes = [TokenScope.READ, TokenScope.OWN]
            made = await create_token("mia-lee", "x", scopes, by="system", days=30)
        token = {"authorization": f"Bearer {made.secret}"}

        async def seen() -> tuple[int, int, int, int]:
            """By session; reading what is private, writing, and reading what is public, by token."""
            client.cookies.set("other", "x")
            session = (await client.get("/account", headers=HTML)).status_code
            shown = (await client.get("/api/v1/namespaces/canary", headers=token)).status_code
            wrote = await client.post(
                "/api/v1/tokens", json={"name": "y", "scopes": ["read"], "days": 1}, headers=token
            )
            public = await client.get("/api/v1/skills", headers=token)
            assert ("must sign in again" in public.headers.get("warning", "")) is (shown == 401)
            if wrote.status_code == 401:
                assert "sign in again" in wrote.json()["detail"]
            return session, shown, wrote.status_code, public.status_code

        assert await seen() == (200, 200, 201, 200)
        grouped.clock.advance(DAY_MS)
        assert await seen() == (200, 200, 201, 200)
        grouped.clock.advance(1)
        assert await seen() == (303, 200, 401, 200)
        grouped.clock.advance(READ_MS - DAY_MS - 1)
        assert await seen() == (303, 200, 401, 200) and await reads(grouped)
        grouped.clock.advance(1)
        assert await seen() == (303, 401, 401, 200) and not await reads(grouped)
        await grouped.sign_in(client=client)
        assert await seen() == (200, 200, 201, 200)


@pytest.mark.parametrize(
    ("logins", "let_in_by", "reads_for_ever"),
    [((), "", False), (("mia",), "", False), (("mia",), "login mia", True), (("*",), "", True)],
)
async def test_only_a_github_identity_that_its_rule_admits_now_keeps_an_account(
    tmp_path, logins, let_in_by, reads_for_ever
):
    async with open_house(tmp_path, RegistryMode.INTERNAL, allowed_groups=("staff",)) as house:
        house.acme.person["groups"] = ["staff"]
        await house.sign_in()
        user = await house.user("mia-lee")
        assert user is not None
        github = LinkedIdentity("7", "mia", house.env.kv.now(), let_in_by=let_in_by)
        settings = msgspec.structs.replace(house.env.settings, github_allowed_logins=logins)
        linked = msgspec.structs.replace(user, github=github)
        access = Access(mode=RegistryMode.INTERNAL)
        for by_token, lasts_ms in ((False, DAY_MS), (True, READ_MS)):
            for age, is_good in ((lasts_ms, True), (lasts_ms + 1, reads_for_ever)):
                now = github.verified_at + age
                standing = standing_in(settings, access, linked, now, by_token=by_token)
                assert (standing is not None) is is_good
        # Where the issuer's rule names others, only GitHub's admits the account, however fresh the sign-in is.
        others = msgspec.structs.replace(settings.issuers[0], allowed_groups=("leads",))
        settings = msgspec.structs.replace(settings, issuers=(others,))
        standing = standing_in(settings, access, linked, github.verified_at, by_token=True)
        assert (standing is not None) is reads_for_ever


@pytest.mark.parametrize(
    ("group", "page", "status"),
    [("admins", "/admin/settings", 200), ("reviewers", "/admin/review", 200), ("x", "/admin/review", 403)],
)
async def test_a_role_by_group_counts_for_a_day_and_is_never_stored(grouped, group, page, status):
    grouped.acme.person["groups"] = [group]
    async with browser(create_app(grouped.env)) as client:
        await grouped.sign_in(client=client)
        assert (await client.get(page, headers=HTML)).status_code == status
        with active_env(grouped.env):
            assert await find_accounts(Topic.REVIEWS) == ["mia-lee"] * (status == 200)
        user = await grouped.user("mia-lee")
        assert user is not None and user.role is Role.AUTHOR
        # With a password, the account has a session that outlives what the issuer said.
        kept = msgspec.structs.replace(user, password="x")
        await grouped.env.kv.put(keys.user("mia-lee"), msgspec.json.encode(kept))
        for _ in range(3):  # an admin's session ends where it is not used for half a day
            grouped.clock.advance(DAY_MS // 3 + 1)
            assert (await client.get("/account", headers=HTML)).status_code == 200
        assert (await client.get(page, headers=HTML)).status_code == 403


async def test_whoever_is_told_is_found_by_group(grouped):
    await grouped.sign_in()
    place = Identity("github.com", "canary", "tools")
    with active_env(grouped.env):
        assert await find_maintainers(place) == ["mia-lee"]
        grouped.clock.advance(READ_MS + 1)
        assert await find_maintainers(place) == []


@pytest.mark.parametrize("member", ["oidc:nobody:x", "oidc:acme:", "oidc:"])
async def test_a_team_takes_groups_of_known_issuers_only(grouped, member):
    async with signed_in(create_app(grouped.env), grouped.env, "ada", Role.ADMIN) as ada:
        answer = await ada.send("/admin/teams/add", name="core", accounts=member, reason=WHY)
        page = await ada.get(answer.headers["location"])
        assert "is no group of an issuer" in page.text


# Around it.


async def test_signing_out_shows_the_way_to_the_issuers_end(house):
    async with browser(create_app(house.env)) as client:
        await house.sign_in(client=client)
        page = await client.get("/account", headers=HTML)
        answer = await client.post("/signout", data={"csrf": csrf_in(page.text)}, headers=HTML)
        assert f"{house.acme.address}/end?client_id={CLIENT_ID}" in answer.text
        assert "You are signed out" in answer.text and SESSION_COOKIE not in client.cookies


async def test_the_sign_in_page_has_a_button_for_each(house):
    async with browser(create_app(house.env)) as client:
        page = (await client.get("/signin", headers=HTML)).text
    assert "Sign in with Acme" in page and "Sign in with other" in page and CLIENT_SECRET not in page


GOOD = '[acme]\nissuer = "https://acme.example"\nclient_id = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        (GOOD, ""),
        (GOOD + GOOD.replace("acme]", "b]"), "two sections name one issuer"),
        (GOOD.replace("acme]", "github]"), "called github"),
        (GOOD.replace("acme]", "Acme]"), "Acme: "),
        (GOOD.replace("https", "http"), "acme: "),
        (GOOD + 'client_secrets = "x"', "client_secrets"),
        (GOOD.replace("client_id", "id"), "acme: "),
        ("x = 1", "x: "),
        ("[[[", "the file: "),
    ],
)
def test_the_file_is_read_at_the_start_and_refused_by_section(tmp_path, text, said):
    file = tmp_path / "sign-in.toml"
    file.write_text(text)
    given = {"VSKILL_SIGN_IN_FILE": str(file), "VSKILL_PUBLIC_URL": "https://x.example"}
    if not said:
        assert len(load_settings(given).issuers) == bool(text)
        return
    with pytest.raises(InvalidSettings, match="VSKILL_SIGN_IN_FILE") as refused:
        load_settings(given)
    assert said in refused.value.message


def test_no_secret_is_shown(tmp_path):
    file = tmp_path / "sign-in.toml"
    file.write_text(GOOD + 'client_secret = "hush-hush"')
    settings = load_settings({"VSKILL_SIGN_IN_FILE": str(file), "VSKILL_PUBLIC_URL": "https://x.example"})
    assert settings.issuers[0].client_secret == "hush-hush" and "hush-hush" not in repr(settings)

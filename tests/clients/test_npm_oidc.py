"""Signing in at a real issuer, npm's certified oidc-provider, as a browser does it: by its own pages. What no honest
issuer can be made to do is in `tests/web/test_single_sign_on.py`."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.clients.clients import git
from tests.clients.real_issuer import RealIssuer
from tests.support.acting import create_token
from tests.support.envs import active_env
from tests.support.namespaces import manage
from tests.support.people import ADDRESS, browser, csrf_in, led_to, make_account
from tests.support.shelf import Shelf, open_shelf
from tests.support.streams import serving
from vskill_platform.actions.people.access import MAKE_SCIM_TOKEN, ScimIssuer, check_issuers
from vskill_platform.actions.people.teams import ADD_TO_TEAM, CREATE_TEAM, ChangeTeam, ExplainedTeam
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.sign_in.oidc import LOOK_AGAIN_MS, SKEW_S
from vskill_platform.store.people.accounts import Role, read_user
from vskill_platform.store.people.sign_in_rule import READ_MS
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE

pytestmark = [pytest.mark.anyio, pytest.mark.node]

HTML = {"accept": "text/html"}
CANARY = "canaryhouse/tools/quartz"
WHY = "a test"


class ShiftedClock(SystemClock):
    """The time, and what a test adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = 0

    def now(self) -> int:
        return super().now() + self.shift


class Journeys:
    """A browser of one person, at the registry and at the issuer."""

    def __init__(self, shelf: Shelf, issuer: RealIssuer, login: str = "mia") -> None:
        self._shelf = shelf
        self._issuer = issuer
        self._login = login

    async def sign_in(self, **changes: str) -> httpx2.Response:
        """What the registry answers whoever comes back; `changes` are made to what they come back with."""
        async with browser(create_app(self._shelf.env)) as here:
            back = urlsplit(await self.go(here))
            query = dict(httpx2.QueryParams(back.query)) | changes
            answer = await here.get(back.path, params=query, headers=HTML)
            assert (answer.status_code == 303) is (SESSION_COOKIE in here.cookies)
            return answer

    async def go(self, here: httpx2.AsyncClient) -> str:
        """Through the issuer's own pages; where it sends the browser back to."""
        page = await here.get("/signin", headers=HTML)
        begun = {"csrf": csrf_in(page.text)}
        to = led_to(await here.post(f"/signin/{self._issuer.name}", data=begun, headers=HTML))
        async with httpx2.AsyncClient(base_url=self._issuer.address) as there:
            answer = await there.get(to)
            while not answer.headers.get("location", "").startswith(ADDRESS):
                if answer.is_redirect:
                    answer = await there.get(answer.headers["location"])
                    continue
                form = {
                    name: re.search(pattern, answer.text)
                    for name, pattern in (
                        ("to", 'action="([^"]+)"'),
                        ("prompt", 'name="prompt" value="([^"]+)"'),
                    )
                }
                assert form["to"] and form["prompt"], answer.text
                sent = {"prompt": form["prompt"][1], "login": self._login, "password": "any"}
                answer = await there.post(html.unescape(form["to"][1]), data=sent)
            return str(answer.headers["location"])


@pytest.fixture(scope="module")
def issuers(installed, tmp_path_factory) -> Iterator[tuple[RealIssuer, RealIssuer]]:
    folder = tmp_path_factory.mktemp("issuers")
    acme, other = RealIssuer(installed, folder, "acme"), RealIssuer(installed, folder, "other")
    with other.running():
        yield acme, other


@pytest.fixture
async def shelf(tmp_path, issuers) -> AsyncIterator[Shelf]:
    named = tuple(one.configured for one in issuers)
    async with open_shelf(
        tmp_path, clock=ShiftedClock(), issuers=named, public_url=ADDRESS, rate_limits="off"
    ) as opened:
        yield opened


async def accounts_of(shelf: Shelf) -> list[str]:
    page = await shelf.env.kv.scan("user:")
    return [item.key.removeprefix("user:") for item in page.items]


async def test_the_same_person_at_two_issuers_is_two_accounts_and_no_state_of_others_counts(shelf, issuers):
    acme, other = issuers
    with acme.running():
        at_home = Journeys(shelf, acme)
        for wrong in ({"state": "x"}, {"code": "x"}, {"error": "access_denied"}):
            assert (await at_home.sign_in(**wrong)).status_code == 401
        assert await accounts_of(shelf) == []
        for _ in range(2):
            assert (await at_home.sign_in()).status_code == 303
        assert (await Journeys(shelf, other).sign_in()).status_code == 303
        names = await accounts_of(shelf)
        assert len(names) == 2 and names[0] == "mia" and names[1].startswith("mia-")
        with active_env(shelf.env):
            user, _ = await read_user("mia")
            assert user is not None and [one.groups for one in user.identities] == [("core",)]
            assert [one.problem for one in await check_issuers(shelf.env)] == [None, None]


async def test_its_keys_change_and_it_goes_away(shelf, issuers):
    acme, _ = issuers
    clock = shelf.env.clock
    with acme.running():
        assert (await Journeys(shelf, acme).sign_in()).status_code == 303
    acme.write_keys()
    with ExitStack() as acme_stops:
        acme_stops.enter_context(acme.running())
        clock.shift += LOOK_AGAIN_MS + 1
        assert (await Journeys(shelf, acme).sign_in()).status_code == 303
        async with browser(create_app(shelf.env)) as here:
            back = await Journeys(shelf, acme).go(here)
            acme_stops.close()
            shelf.env.kept.forget()
            assert (await here.get(back, headers=HTML)).status_code == 503
    with active_env(shelf.env):
        problems = [one.problem for one in await check_issuers(shelf.env)]
        assert problems[0] is not None and problems[1] is None


async def seen(address: str, folder: Path, token: str) -> dict[str, bool]:
    """Whether each protocol hands the canary out to a token's holder."""
    bearer = {"authorization": f"Bearer {token}"}
    folder.mkdir()
    helper = f"!f() {{ echo username=any; echo password={token}; }}; f"
    repository = f"{address}/marketplace/{CANARY}.git"
    got = await asyncio.to_thread(git_clone, folder, helper, repository)
    async with httpx2.AsyncClient(base_url=address, headers=bearer) as client:
        found = {"git": got}
        paths = {"api": f"/api/v1/skills/{CANARY}", "archive": f"/api/v1/skills/{CANARY}/archive"}
        for name, path in {**paths, "page": f"/skills/{CANARY}"}.items():
            found[name] = (await client.get(path)).status_code == 200
        async with Client(streamable_http_client(f"{address}/mcp", http_client=client)) as tools:
            result = await tools.call_tool("get_skill", {"name": CANARY})
            found["mcp"] = not result.is_error
    return found


def git_clone(folder: Path, helper: str, url: str) -> bool:
    try:
        git(folder, "-c", f"credential.helper={helper}", "clone", "-q", url, "cloned")
    except AssertionError:
        return False
    return any((folder / "cloned").rglob("SKILL.md"))


@pytest.mark.parametrize(
    "person", [{"email": "mia@acme.example", "email_verified": True}, {"preferred_username": "mia"}]
)
async def test_nobody_is_merged_by_an_address_or_gets_a_name_that_is_taken(shelf, issuers, person):
    """A team, an upload namespace and an account have the names that the issuers send."""
    acme, other = issuers
    for issuer in issuers:
        issuer.write_people(mia={"preferred_username": "mia", **person})
    with active_env(shelf.env):
        await CREATE_TEAM(shelf.env, OPERATOR, ExplainedTeam(name="mia", reason=WHY))
    with acme.running():
        for issuer in (acme, other):
            assert (await Journeys(shelf, issuer).sign_in()).status_code == 303
            for holder in ("lee", "kim"):
                issuer.write_people(**{holder: {"preferred_username": holder, **person}})
        await manage(shelf.env, "upload~lee", Visibility.TEAM)
        await make_account(shelf.env, "kim", Role.ADMIN)
        for login in ("lee", "kim"):
            acme.write_people(**{login: {**person, "preferred_username": login}})
            assert (await Journeys(shelf, acme, login).sign_in()).status_code == 303
    acme.write_people(mia={"preferred_username": "mia", "groups": ["core"]})
    other.write_people(mia={"preferred_username": "mia", "groups": ["core"]})
    names = await accounts_of(shelf)
    begins = sorted(name.partition("-")[0] for name in names)
    assert begins == ["kim", "kim", "lee", "mia", "mia"] and "mia" not in names and "lee" not in names


@pytest.mark.parametrize(
    ("shift_s", "status"),
    [(SKEW_S - 5, 303), (-SKEW_S + 5, 303), (3_600 + SKEW_S + 5, 401), (-SKEW_S - 30, 401)],
)
async def test_clocks_may_differ_by_a_minute(shelf, issuers, shift_s, status):
    """The issuer's tokens live for an hour."""
    _, other = issuers
    shelf.env.clock.shift += shift_s * 1000
    assert (await Journeys(shelf, other).sign_in()).status_code == status


async def test_a_code_is_good_once_and_for_its_own_browser(shelf, issuers):
    """PKCE, state and nonce stay in the browser that began: the issuer refuses what another one brings."""
    _, other = issuers
    mia = Journeys(shelf, other)
    app = create_app(shelf.env)
    async with browser(app) as one, browser(app) as another:
        first, second = urlsplit(await mia.go(one)), urlsplit(await mia.go(another))
        code, state = httpx2.QueryParams(first.query)["code"], httpx2.QueryParams(second.query)["state"]
        stolen = await another.get(first.path, params={"code": code, "state": state}, headers=HTML)
        assert stolen.status_code == 401 and SESSION_COOKIE not in another.cookies
        other_state = await another.get(f"{first.path}?{first.query}", headers=HTML)
        assert other_state.status_code == 401 and await accounts_of(shelf) == []
    async with browser(app) as here:
        back = await mia.go(here)
        assert (await here.get(back, headers=HTML)).status_code == 303
        here.cookies.delete(SESSION_COOKIE)
        assert (await here.get(back, headers=HTML)).status_code == 401


async def test_a_token_that_is_signed_by_a_shared_secret_is_refused(tmp_path, installed):
    """The provider does so where the application asks for it. It has no algorithm `none` at all."""
    issuer = RealIssuer(installed, tmp_path, "shared", id_token_signed_response_alg="HS256")
    async with open_shelf(
        tmp_path / "shelf",
        clock=ShiftedClock(),
        issuers=(issuer.configured,),
        public_url=ADDRESS,
        rate_limits="off",
    ) as shelf:
        with issuer.running():
            assert (await Journeys(shelf, issuer).sign_in()).status_code == 401
        assert await accounts_of(shelf) == []


async def test_a_pointer_instead_of_groups_is_no_group_and_all_neither(shelf, issuers):
    _, other = issuers
    pointer = {
        "_claim_names": {"groups": "src1"},
        "_claim_sources": {"src1": {"endpoint": "https://x.example"}},
    }
    other.write_people(mia={"preferred_username": "mia", **pointer})
    try:
        answer = await Journeys(shelf, other).sign_in()
        assert answer.status_code == 403 and "pointer instead of your groups" in answer.text
    finally:
        other.write_people(mia={"preferred_username": "mia", "groups": ["core"]})


async def test_signing_out_everywhere_ends_every_session_and_token(shelf, issuers):
    _, other = issuers
    mia, app = Journeys(shelf, other), create_app(shelf.env)
    async with browser(app) as laptop, browser(app) as phone:
        for client in (laptop, phone):
            assert (await client.get(await mia.go(client), headers=HTML)).status_code == 303
        with active_env(shelf.env):
            token = (await create_token("mia", "x", [TokenScope.READ], by="system", days=30)).secret
        bearer = {"authorization": f"Bearer {token}"}
        page = await laptop.get("/account", headers=HTML)
        await laptop.post("/account/sign-out-all", data={"csrf": csrf_in(page.text)}, headers=HTML)
        for client in (laptop, phone):
            assert (await client.get("/account", headers=HTML)).status_code == 303
        async with browser(app) as program:
            assert (await program.get("/api/v1/account", headers=bearer)).status_code == 401
        assert (await phone.get(await mia.go(phone), headers=HTML)).status_code == 303


async def lock_by_directory(shelf: Shelf, address: str) -> None:
    """What the directory of `acme` sends when somebody leaves."""
    with active_env(shelf.env):
        made = await MAKE_SCIM_TOKEN(shelf.env, OPERATOR, ScimIssuer(issuer="acme", reason=WHY))
    bearer = {"authorization": f"Bearer {made.token}"}
    async with httpx2.AsyncClient(base_url=f"{address}/scim/v2/acme", headers=bearer) as client:
        sent = await client.post("/Users", json={"userName": "mia@acme.example", "externalId": "mia"})
        assert sent.status_code == 201 and sent.json()["id"] == "mia"
        off = {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}
        changed = await client.patch(
            urlsplit(sent.json()["meta"]["location"]).path.removeprefix("/scim/v2/acme"), json=off
        )
        assert changed.status_code == 200 and changed.json()["active"] is False


@pytest.mark.parametrize("how", ["removed", "left", "locked"])
async def test_a_group_that_is_lost_takes_the_private_namespace_along(shelf, issuers, tmp_path, how):
    """At the sign-in without it, without any sign-in after a week, and at once when the directory says so; a token of
    that account writes nothing then."""
    acme, _ = issuers
    env = shelf.env
    with active_env(env):
        await CREATE_TEAM(env, OPERATOR, ExplainedTeam(name="core", reason=WHY))
        await ADD_TO_TEAM(env, OPERATOR, ChangeTeam(name="core", accounts=("oidc:acme:core",), reason=WHY))
    await manage(env, "canaryhouse", Visibility.TEAM, "team:core")
    await shelf.publish("quartz", repo="https://github.com/canaryhouse/tools", audiences=EVERYTHING)
    with acme.running():
        mia = Journeys(shelf, acme)
        assert (await mia.sign_in()).status_code == 303
        with active_env(env):
            scopes = [TokenScope.READ, TokenScope.OWN]
            token = (await create_token("mia", "x", scopes, by="system", days=30)).secret
        async with serving(env) as address:
            before = await seen(address, tmp_path / "before", token)
            assert all(before.values()) and len(before) == 5, before
            if how == "removed":
                acme.write_people(mia={"preferred_username": "mia", "groups": []})
                assert (await mia.sign_in()).status_code == 303
                acme.write_people(mia={"preferred_username": "mia", "groups": ["core"]})
            elif how == "locked":
                await lock_by_directory(shelf, address)
            else:
                env.clock.shift += READ_MS + 1
            after = await seen(address, tmp_path / "after", token)
            assert not any(after.values()), after
            sent = {"name": "y", "scopes": ["read"], "days": 1}
            bearer = {"authorization": f"Bearer {token}"}
            wrote = httpx2.AsyncClient(base_url=address, headers=bearer)
            async with wrote:
                expected = 201 if how == "removed" else 401
                assert (await wrote.post("/api/v1/tokens", json=sent)).status_code == expected

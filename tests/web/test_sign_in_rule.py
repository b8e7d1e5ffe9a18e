"""Whom signing in with GitHub lets in: an internal registry names logins, organisations or teams, or lets nobody in."""

from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.support.acting import create_token, set_password, set_role
from tests.support.envs import active_env, open_product_env
from tests.support.github import CLIENT_ID, CLIENT_SECRET, FakeGitHub, fake_github
from tests.support.namespaces import set_mode
from tests.support.people import ADDRESS, PASSWORD, browser, make_account
from tests.web.test_auth_github import HTML, come_back, leave
from vskill_platform.domain.people.namespace import PUBLIC, RegistryMode
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role, read_user
from vskill_platform.store.people.credentials import Credential, read_standings, session_key
from vskill_platform.store.people.readers import audiences_of_actor
from vskill_platform.store.people.setup import first_admin_link
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

EXCHANGE = "/api/v1/auth/github/exchange-for-vsk-token"
ORGANISATION = "/user/memberships/orgs/acme"
TEAM = "/orgs/acme/teams/platform/memberships/Octo-Cat"


@pytest.fixture
async def github():
    async with fake_github() as opened:
        yield opened


@asynccontextmanager
async def registry(
    github: FakeGitHub,
    mode: str = "internal",
    *,
    logins: tuple[str, ...] = (),
    organisations: tuple[str, ...] = (),
    teams: tuple[str, ...] = (),
):
    settings = Settings(
        store="memory:",
        public_url=ADDRESS,
        github_client_id=CLIENT_ID,
        github_client_secret=CLIENT_SECRET,
        github_url=github.address,
        github_allowed_logins=logins,
        github_allowed_organisations=(*organisations, *teams),
    )
    async with open_product_env(settings) as env:
        await make_account(env, "eve", Role.ADMIN)
        await set_mode(env, RegistryMode(mode))
        with active_env(env):
            yield env


async def sign_in(env: Env, github: FakeGitHub, *, number: int = 583231, login: str = "Octo-Cat") -> int:
    """What the page answers a person who comes back from GitHub."""
    github.user = {"id": number, "login": login}
    async with browser(create_app(env)) as client:
        code, state = await leave(client, github)
        answer = await come_back(client, code=code, state=state)
        assert (answer.status_code == 303) is (SESSION_COOKIE in client.cookies)
        if answer.status_code == 403:
            assert "only those whom this registry" in answer.text
        return int(answer.status_code)


async def test_an_internal_registry_that_names_nobody_lets_nobody_in_by_github(github):
    async with registry(github) as env:
        assert await sign_in(env, github) == 403
        assert (await read_user("octo-cat"))[0] is None, "no account is made"
        github.tokens.add("gho_client")
        async with browser(create_app(env)) as client:
            answer = await client.post(EXCHANGE, json={"githubToken": "gho_client"})
            assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted")
            assert answer.json()["fix"] == "ask an admin of the registry for an account"


async def test_a_public_registry_that_names_nobody_lets_everybody_in(github):
    async with registry(github, "public") as env:
        assert await sign_in(env, github) == 303
        assert github.scope == "" and not any("memberships" in line for line in github.asked)


@pytest.mark.parametrize("mode", ["public", "internal"])
@pytest.mark.parametrize(
    ("named", "memberships", "answer"),
    [
        ({"logins": ("*",)}, {}, 303),
        ({"logins": ("OCTO-cat",)}, {}, 303),
        ({"logins": ("somebody",)}, {}, 403),
        ({"organisations": ("Acme",)}, {ORGANISATION: "active"}, 303),
        ({"organisations": ("acme",)}, {ORGANISATION: "pending"}, 403),
        ({"organisations": ("other", "acme")}, {ORGANISATION: "active"}, 303),
        ({"organisations": ("other",)}, {ORGANISATION: "active"}, 403),
        ({"teams": ("acme/platform",)}, {TEAM: "active"}, 303),
        ({"teams": ("acme/platform",)}, {ORGANISATION: "active"}, 403),
        ({"teams": ("acme/platform",)}, {TEAM: "pending"}, 403),
    ],
)
async def test_those_are_let_in_whom_the_operator_named(github, mode, named, memberships, answer):
    github.memberships = memberships
    async with registry(github, mode, **named) as env:
        assert await sign_in(env, github) == answer
        assert (github.scope == "read:org") is ("logins" not in named)


async def test_a_token_that_may_not_read_memberships_lets_nobody_in(github):
    github.memberships = {ORGANISATION: "active"}
    github.tokens.add("gho_client")
    async with registry(github, organisations=("acme",)) as env, browser(create_app(env)) as client:
        assert (await client.post(EXCHANGE, json={"githubToken": "gho_client"})).status_code == 403


async def test_a_named_login_that_changed_hands_lets_its_new_holder_not_in(github):
    async with registry(github, logins=("ghcorp",)) as env:
        assert await sign_in(env, github, number=1, login="ghcorp") == 303
        assert await sign_in(env, github, number=2, login="ghcorp") == 403
        assert await sign_in(env, github, number=1, login="ghcorp") == 303


async def test_who_left_the_organisation_does_not_sign_in_again(github):
    github.memberships = {ORGANISATION: "active"}
    async with registry(github, organisations=("acme",)) as env:
        assert await sign_in(env, github) == 303
        github.memberships = {}
        assert await sign_in(env, github) == 403


# Accounts that are there already.


async def test_a_registry_that_becomes_internal_does_not_keep_the_strangers_it_let_in(github):
    """Their sessions, tokens, streams and notices end with the change, and begin again with a sign-in under the rule."""
    async with registry(github, "public") as env, browser(create_app(env)) as client:
        code, state = await leave(client, github)
        await come_back(client, code=code, state=state)
        secret = (await create_token("octo-cat", "x", [TokenScope.READ], by="system")).secret
        token = {"authorization": f"Bearer {secret}"}
        credential = Credential(session_key(client.cookies[SESSION_COOKIE]), "octo-cat")

        async def seen() -> tuple[bool, bool, bool, bool]:
            with_token = await client.get("/api/v1/account", headers=token)
            with_session = await client.get("/account", headers=HTML)
            stream = (await read_standings([credential]))[credential]
            told = await audiences_of_actor("user:octo-cat")
            return (
                with_token.status_code == 200,
                with_session.status_code == 200,
                stream is not None,
                PUBLIC in (told if isinstance(told, frozenset) else ()),
            )

        assert await seen() == (True, True, True, True)
        await set_mode(env, RegistryMode.INTERNAL)
        assert await seen() == (False, False, False, False)
        named = msgspec.structs.replace(env.settings, github_allowed_logins=("octo-cat",))
        with active_env(env, settings=named):
            assert not (await read_standings([credential]))[credential], (
                "it has not signed in under the rule yet"
            )
            assert await sign_in(msgspec.structs.replace(env, settings=named), github) == 303
            standing = (await read_standings([credential]))[credential]
            assert standing is not None and standing.role is Role.AUTHOR


@pytest.mark.parametrize("vouch", ["role", "password"])
async def test_an_account_that_an_admin_vouches_for_signs_in_whatever_the_rule(github, vouch):
    async with registry(github, "public") as env:
        assert await sign_in(env, github) == 303
        if vouch == "role":
            await set_role("octo-cat", Role.REVIEWER, by="admin:eve", reason="it reviews")
        else:
            await set_password("octo-cat", PASSWORD, by="admin:eve", reason="it is known")
        await set_mode(env, RegistryMode.INTERNAL)
        assert await sign_in(env, github) == 303


# Where it is said.


async def test_the_pages_say_whom_it_lets_in(github):
    async with registry(github, organisations=("acme",)) as env, browser(create_app(env)) as client:
        page = (await client.get("/signin", headers=HTML)).text
        assert "Only people whom this registry's operator named" in page.replace("&#39;", "'")
        assert "whether you belong to the organisations" in page and "acme" not in page


async def test_the_setup_page_says_whom_it_lets_in(github):
    async with registry(github) as env:
        await env.kv.delete("user:eve")
        link = await first_admin_link(env, ADDRESS)
        async with browser(create_app(env)) as client:
            page = await client.get(str(link).removeprefix(ADDRESS), headers=HTML)
            assert "VSKILL_GITHUB_ALLOWED_ORGANISATIONS" in page.text

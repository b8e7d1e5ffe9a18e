"""Signing in with GitHub, against a small GitHub on loopback: state, PKCE, and what a client's token is worth."""

from urllib.parse import urlencode

import pytest

from tests.support.acting import controls, set_disabled
from tests.support.envs import open_product_env
from tests.support.github import CLIENT_ID, CLIENT_SECRET, fake_github
from tests.support.people import ADDRESS, browser, csrf_in, led_to
from vskill_core.errors import InvalidSettings
from vskill_core.identity import normalise
from vskill_platform.settings import Settings, load_settings
from vskill_platform.store.people.accounts import Role, get_user
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

HTML = {"accept": "text/html"}
EXCHANGE = "/api/v1/auth/github/exchange-for-vsk-token"


@pytest.fixture
async def github():
    async with fake_github() as opened:
        yield opened


@pytest.fixture
async def env(github):
    settings = Settings(
        store="memory:",
        public_url=ADDRESS,
        github_client_id=CLIENT_ID,
        github_client_secret=CLIENT_SECRET,
        github_url=github.address,
    )
    async with open_product_env(settings) as opened:
        yield opened


@pytest.fixture
async def client(env):
    async with browser(create_app(env)) as opened:
        yield opened


async def leave(client, github, wanted="/queue") -> tuple[str, str]:
    """Off to GitHub, where the person says yes; the code and the state to come back with."""
    page = await client.get("/signin", headers=HTML)
    assert "Sign in with GitHub" in page.text
    answer = await client.post(
        "/signin/github", data={"csrf": csrf_in(page.text), "next": wanted}, headers=HTML
    )
    to = led_to(answer)
    assert to.startswith(f"{github.address}/login/oauth/authorize?") and CLIENT_SECRET not in to
    back, code, state = github.authorize(to)
    assert back == f"{ADDRESS}/signin/github/callback"
    return code, state


async def come_back(client, **query):
    return await client.get(f"/signin/github/callback?{urlencode(query)}", headers=HTML)


async def test_signing_in_makes_an_author_who_controls_its_repositories(env, client, github):
    code, state = await leave(client, github)
    answer = await come_back(client, code=code, state=state)
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
    user = await run_with_worker_env(env, lambda: get_user("octo-cat"))
    assert user.role is Role.AUTHOR and user.github is not None and user.github.id == "583231"
    assert (await client.get("/account", headers=HTML)).status_code == 200
    repo = normalise(f"{github.address}/octo-cat/tools")
    assert await run_with_worker_env(env, lambda: controls("octo-cat", repo))


async def test_a_second_time_is_the_same_account_whatever_the_login(env, client, github):
    for login in ("Octo-Cat", "Octopus"):
        github.user["login"] = login
        code, state = await leave(client, github)
        await come_back(client, code=code, state=state)
        client.cookies.delete(SESSION_COOKIE)
    user = await run_with_worker_env(env, lambda: get_user("octo-cat"))
    assert user.github is not None and user.github.login == "Octopus"


@pytest.mark.parametrize("state", ["", "x", "é"])
async def test_a_state_that_did_not_begin_here_is_refused(client, github, state):
    code, _ = await leave(client, github)
    answer = await come_back(client, code=code, state=state)
    assert answer.status_code == 401 and SESSION_COOKIE not in client.cookies
    assert github.codes, "GitHub was not even asked"


async def test_a_state_is_worth_nothing_in_another_browser(env, client, github):
    code, state = await leave(client, github)
    async with browser(create_app(env)) as other:
        assert (await come_back(other, code=code, state=state)).status_code == 401


async def test_a_code_that_was_given_to_another_challenge_is_refused(client, github):
    code, state = await leave(client, github)
    github.codes[code] = "somebody else's challenge"
    assert (await come_back(client, code=code, state=state)).status_code == 401


async def test_a_person_who_says_no_is_told_so_without_githubs_words(client, github):
    _, state = await leave(client, github)
    answer = await come_back(client, error="access_denied", error_description="<b>pay here</b>", state=state)
    assert answer.status_code == 401 and "pay here" not in answer.text


async def test_a_github_that_is_down_is_a_503_and_nobody_is_signed_in(client, github):
    code, state = await leave(client, github)
    github.broken = True
    answer = await come_back(client, code=code, state=state)
    assert answer.status_code == 503 and SESSION_COOKIE not in client.cookies


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"null", b'{"access_token": 5}', b"\xff", b"x" * 300_000])
async def test_whatever_github_answers_nobody_is_let_in_by_it(client, github, raw):
    code, state = await leave(client, github)
    github.raw = raw
    answer = await come_back(client, code=code, state=state)
    assert answer.status_code == 401 and SESSION_COOKIE not in client.cookies


@pytest.mark.parametrize(
    "user",
    [
        {"id": 0, "login": "a"},
        {"id": 1, "login": ""},
        {"id": 1, "login": "../admin"},
        {"id": "1", "login": "a"},
    ],
)
async def test_a_strange_github_user_is_refused(client, github, user):
    code, state = await leave(client, github)
    github.user = user
    assert (await come_back(client, code=code, state=state)).status_code == 401


async def test_open_redirect_the_way_back_stays_here(client, github):
    code, state = await leave(client, github, "https://evil.example")
    assert (await come_back(client, code=code, state=state)).headers["location"] == "/account"


# A client that has a token of GitHub's.


async def test_a_client_exchanges_githubs_token_for_ours(env, client, github):
    github.tokens.add("gho_client")
    answer = await client.post(EXCHANGE, json={"githubToken": "gho_client"})
    found = answer.json()
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    assert found["token"].startswith("vsk_")
    assert (found["scopes"], found["userId"]) == (["read", "submit"], "octo-cat")
    assert found["expiresAt"].endswith("Z")
    headers = {"authorization": f"Bearer {found['token']}"}
    assert (await client.get("/api/v1/account/tenants", headers=headers)).status_code == 200
    assert (await client.delete("/api/v1/auth/sign-out-all", headers=headers)).status_code == 200
    assert (await client.get("/api/v1/account/tenants", headers=headers)).status_code == 401


async def test_a_token_that_github_gave_to_another_app_is_worth_nothing(client, github):
    answer = await client.post(EXCHANGE, json={"githubToken": "gho_of_another_app"})
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")


async def test_a_github_that_is_down_is_a_503_for_clients_too(client, github):
    github.broken = True
    answer = await client.post(EXCHANGE, json={"githubToken": "gho_x"})
    assert answer.status_code == 503 and "retry-after" in answer.headers


async def test_a_disabled_account_gets_no_token(env, client, github):
    github.tokens.add("gho_client")
    await client.post(EXCHANGE, json={"githubToken": "gho_client"})
    await run_with_worker_env(
        env, lambda: set_disabled("octo-cat", disabled=True, by="system", reason="test")
    )
    answer = await client.post(EXCHANGE, json={"githubToken": "gho_client"})
    assert answer.status_code == 403


async def test_exchanges_are_limited_like_sign_ins(client, github):
    answers = [await client.post(EXCHANGE, json={"githubToken": "gho_guess"}) for _ in range(11)]
    assert [one.status_code for one in answers] == [401] * 10 + [429]


async def test_without_an_app_there_is_no_way_by_github():
    async with open_product_env(Settings(store="memory:")) as env, browser(create_app(env)) as client:
        page = await client.get("/signin", headers=HTML)
        assert "GitHub" not in page.text.split("<main")[1].split("</main")[0]
        sent = {"csrf": csrf_in(page.text)}
        assert (await client.post("/signin/github", data=sent, headers=HTML)).status_code == 404
        assert (await client.post(EXCHANGE, json={"githubToken": "x"})).status_code == 404


@pytest.mark.parametrize(
    "given",
    [
        {"VSKILL_GITHUB_CLIENT_ID": "a"},
        {"VSKILL_GITHUB_CLIENT_SECRET": "a"},
        {"VSKILL_GITHUB_CLIENT_ID": "a", "VSKILL_GITHUB_CLIENT_SECRET": "b"},
    ],
)
def test_half_an_app_is_refused_at_the_start(given):
    with pytest.raises(InvalidSettings, match="signing in with GitHub"):
        load_settings(given)

"""The `vskill` command's account: GitHub's token for one of ours, what that is good for, tenants, and signing out. GitHub is
a small one on loopback."""

from typing import Any

import pytest

from tests.clients.test_vskill import REPO, TEXT, Command, holds
from tests.support.envs import skill_files
from tests.support.github import API, CLIENT_ID, CLIENT_SECRET, FakeGitHub, fake_github
from tests.support.shelf import open_shelf

pytestmark = pytest.mark.anyio

EXCHANGE = "/api/v1/auth/github/exchange-for-vsk-token"
TENANTS = "/api/v1/account/tenants"
SIGN_OUT = "/api/v1/auth/sign-out-all"


@pytest.fixture
async def github():
    async with fake_github() as opened:
        opened.tokens.add("gho_given")
        yield opened


@pytest.fixture
async def vskill(tmp_path, github: FakeGitHub):
    app = {
        "public_url": "http://platform.test",
        "github_client_id": CLIENT_ID,
        "github_client_secret": CLIENT_SECRET,
        "github_url": github.address,
    }
    async with open_shelf(tmp_path, **app) as shelf:
        yield Command(shelf)


async def log_in(vskill: Command) -> dict[str, Any]:
    found: dict[str, Any] = await vskill.post(EXCHANGE, {"githubToken": "gho_given"})
    vskill.headers["authorization"] = f"Bearer {found['token']}"
    return found


async def test_the_token_exchange_gives_a_token_that_submits(vskill, github):
    """The client sends what GitHub gave it, reads `token`, and uses it from then on."""
    answer = await vskill.ask("POST", EXCHANGE, {"githubToken": "gho_given"})
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"].startswith("application/json")
    found = answer.json()
    holds(found, token=TEXT, expiresAt=TEXT, scopes=list, userId=TEXT)
    assert found["token"].startswith("vsk_") and found["userId"] == "octo-cat"
    assert github.asked == [f"POST {API}/applications/{CLIENT_ID}/token HTTP/1.1"]
    vskill.headers["authorization"] = f"Bearer {found['token']}"
    vskill.shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    made = await vskill.post("/api/v1/submissions", {"repoUrl": REPO, "skillPath": "skills/lint"}, code=201)
    mine = await vskill.get("/api/v1/submissions?mine=1")
    assert [one["id"] for one in mine["submissions"]] == [made["id"]]


async def test_a_token_that_is_worth_nothing_any_more_does_not_keep_its_owner_out(vskill):
    """The command sends the token that it has with every request, this one included."""
    await log_in(vskill)
    await vskill.ask("DELETE", SIGN_OUT)
    await vskill.ask("GET", TENANTS, code=401)
    await log_in(vskill)
    await vskill.ask("GET", TENANTS)


async def test_the_token_exchange_takes_a_body_in_chunks(vskill):
    found = await vskill.post(EXCHANGE, {"githubToken": "gho_given"}, chunked=True)
    assert found["token"].startswith("vsk_")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"githubToken": "gho_of_another_app"}, 401),
        ({"githubToken": ""}, 400),
        ({"githubToken": 5}, 400),
        ({"githubToken": "x" * 501}, 400),
        ({}, 400),
        ([], 400),
    ],
    ids=["another app's", "empty", "a number", "too long", "none", "no object"],
)
async def test_the_token_exchange_refuses_what_is_no_token_of_ours(vskill, body, code):
    refused = await vskill.post(EXCHANGE, body, code=code)
    assert "token" not in refused


async def test_the_token_exchange_while_github_is_down_says_to_come_back(vskill, github):
    github.broken = True
    answer = await vskill.ask("POST", EXCHANGE, {"githubToken": "gho_given"}, code=503)
    assert int(answer.headers["retry-after"]) > 0


async def test_the_token_exchange_is_limited(vskill):
    for _ in range(10):
        await vskill.post(EXCHANGE, {"githubToken": "gho_guess"}, code=401)
    answer = await vskill.ask("POST", EXCHANGE, {"githubToken": "gho_guess"}, code=429)
    assert int(answer.headers["retry-after"]) > 0


async def test_the_token_exchange_without_github_says_what_is_missing(tmp_path):
    async with open_shelf(tmp_path) as shelf:
        refused = await Command(shelf).post(EXCHANGE, {"githubToken": "gho_given"}, code=404)
    assert "GitHub" in refused["error"]


async def test_tenants_need_a_good_token(vskill):
    await vskill.ask("GET", TENANTS, code=401)
    vskill.headers["authorization"] = "Bearer vsk_nothing"
    await vskill.ask("GET", TENANTS, code=401)
    await log_in(vskill)
    vskill.headers["x-vskill-tenant"] = "octo-cat"
    (tenant,) = (await vskill.get(TENANTS))["tenants"]
    holds(tenant, tenantId=TEXT, slug=TEXT, name=TEXT, role=TEXT)
    assert tenant["slug"] == "octo-cat"


async def test_signing_out_everywhere_makes_the_token_worthless(vskill):
    await vskill.ask("DELETE", SIGN_OUT, code=401)
    await log_in(vskill)
    done = await vskill.ask("DELETE", SIGN_OUT)
    assert done.json() == {"signedOut": True} and done.headers["content-type"].startswith("application/json")
    await vskill.ask("GET", TENANTS, code=401)
    await vskill.ask("DELETE", SIGN_OUT, code=401)

"""A token is understood on every protocol, as `Bearer` and as the password of `Basic`; one that is not good breaks no
public read and lets in nowhere else."""

import base64
import re

import httpx2
import pytest

from tests.support.acting import create_token, revoke_own_token
from tests.support.envs import active_env
from tests.support.shelf import Shelf, open_shelf
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.credentials import list_tokens
from vskill_platform.web.context import BAD_TOKEN_WARNING

pytestmark = pytest.mark.anyio

NAME = "acme/tools/lint"
#: One public read of each protocol.
READS = {
    "page": f"/skills/{NAME}",
    "json": f"/api/v1/skills/{NAME}",
    "search": "/api/v1/skills/search?q=lint",
    "archive": f"/api/v1/skills/{NAME}/archive",
    "git": f"/marketplace/{NAME}.git/info/refs?service=git-upload-pack",
    "marketplace": "/marketplace.json",
    "discovery": f"/{NAME}/.well-known/agent-skills/index.json",
    "artifact": f"/{NAME}/.well-known/agent-skills/1.0.0.md",
    "clawhub": "/clawhub/api/v1/skills/lint",
    "clawhub archive": "/clawhub/api/v1/download?slug=lint",
    "feed": "/feed.xml",
    "health": "/healthz",
}
#: The same reads of what does not exist.
ABSENT = {
    "page": "/skills/acme/tools/none",
    "json": "/api/v1/skills/acme/tools/none",
    "archive": "/api/v1/skills/acme/tools/none/archive",
    "git": "/marketplace/acme/tools/none.git/info/refs?service=git-upload-pack",
    "discovery": "/acme/tools/none/.well-known/agent-skills/index.json",
    "artifact": "/acme/tools/none/.well-known/agent-skills/1.0.0.md",
    "clawhub": "/clawhub/api/v1/skills/none",
    "clawhub archive": "/clawhub/api/v1/download?slug=none",
}
#: Where a client sends its token only when it is asked for it.
CHALLENGED = {"archive", "git", "artifact", "clawhub archive"}
#: Changes that need no account, and one that does.
CHANGES = {
    "/api/v1/submissions": {"repoUrl": "https://github.com/acme/tools", "skillPath": "skills/lint"},
    f"/api/v1/skills/{NAME}/reports": {"reason": "it is not what it says", "category": "other"},
    f"/api/v1/skills/{NAME}/installs": {},
    "/api/v1/tokens": {"name": "more"},
}


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def basic(secret: str, user: str = "x-access-token") -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"}


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as opened:
        await opened.publish("lint")
        with active_env(opened.env):
            await create_user("ann", Role.AUTHOR, by="system", reason="a test")
        yield opened


async def make_token(shelf: Shelf, days: int = 1) -> str:
    with active_env(shelf.env):
        return (await create_token("ann", "test", ["read", "submit", "own"], by="system", days=days)).secret


async def bad_token(shelf: Shelf, kind: str) -> str:
    if kind == "foreign":
        return "vsk_of-another-registry"
    if kind == "expired":
        return await make_token(shelf, days=-1)
    with active_env(shelf.env):
        made = await create_token("ann", "test", ["read"], by="system")
        await revoke_own_token("ann", made.token.id)
        return made.secret


async def uses(shelf: Shelf) -> int:
    """How many of ann's tokens were ever used."""
    with active_env(shelf.env):
        return sum(token.last_used_at is not None for token in await list_tokens("ann"))


async def records(shelf: Shelf) -> dict[str, bytes]:
    return {entry.key: entry.value async for page in iterate_pages(shelf.env.kv, "") for entry in page.items}


def warning_of(answer: httpx2.Response) -> str | None:
    return answer.headers.get("warning")


@pytest.mark.parametrize("form", [bearer, basic], ids=["bearer", "basic"])
async def test_every_protocol_knows_a_token_in_both_forms(shelf, form):
    for count, (protocol, path) in enumerate(READS.items(), start=1):
        answer = await shelf.client.get(path, headers=form(await make_token(shelf)))
        assert answer.status_code == 200, (protocol, answer.text)
        assert warning_of(answer) is None
        assert await uses(shelf) == count, protocol


@pytest.mark.parametrize("user", ["", "ann", "nobody at all", "x:y"])
async def test_the_user_name_of_basic_says_nothing(shelf, user):
    secret = await make_token(shelf)
    headers = basic(secret, user.partition(":")[0])
    found = (await shelf.client.get("/api/v1/account", headers=headers)).json()
    assert found["account"] == "ann"


@pytest.mark.parametrize(
    "value", ["Basic eDp5", "Basic", "Basic %%%", "Basic " + "a" * 5000, "Digest x", "Negotiate vsk_x"]
)
async def test_what_is_none_of_our_tokens_is_for_a_proxy_and_says_nothing(shelf, value):
    headers = {"authorization": value}
    answer = await shelf.client.get(READS["json"], headers=headers)
    assert (answer.status_code, warning_of(answer)) == (200, None)
    assert (await shelf.client.get("/api/v1/account", headers=headers)).status_code == 401


def without_mask(page: str) -> str:
    """A form's secret has another mask in each answer."""
    return re.sub(r'name="csrf" value="[0-9a-f]+"', "", page)


@pytest.mark.parametrize("form", [bearer, basic], ids=["bearer", "basic"])
@pytest.mark.parametrize("kind", ["foreign", "expired", "revoked"])
async def test_a_bad_token_breaks_no_public_read_and_the_answer_warns(shelf, form, kind):
    headers = form(await bad_token(shelf, kind))
    for protocol, path in READS.items():
        plain = await shelf.client.get(path)
        answer = await shelf.client.get(path, headers=headers)
        assert answer.status_code == 200, (protocol, answer.text)
        assert without_mask(answer.text) == without_mask(plain.text)
        assert warning_of(answer) == BAD_TOKEN_WARNING[1].decode()
        assert warning_of(plain) is None
    fetched = await shelf.client.post("/api/v1/skills/check-updates", json={"skills": []}, headers=headers)
    assert fetched.status_code == 200 and warning_of(fetched)


@pytest.mark.parametrize("form", [bearer, basic], ids=["bearer", "basic"])
@pytest.mark.parametrize("kind", ["foreign", "expired", "revoked"])
async def test_a_bad_token_lets_in_nowhere_else_and_nothing_is_written(shelf, form, kind):
    headers = form(await bad_token(shelf, kind))
    before = await records(shelf)
    asked = [await shelf.client.get(path, headers=headers) for path in (*ABSENT.values(), "/api/v1/account")]
    asked += [await shelf.client.post(path, json=body, headers=headers) for path, body in CHANGES.items()]
    for answer in asked:
        assert answer.status_code == 401, answer.url
        assert "not valid, has expired" in answer.text
        assert answer.headers["www-authenticate"].endswith("Bearer")
    assert await records(shelf) == before


async def test_an_anonymous_client_is_asked_for_a_token_where_it_sends_one_only_then(shelf):
    """Everything else is a plain 404, and so is everything for somebody who has signed in."""
    signed_in = bearer(await make_token(shelf))
    for protocol, path in ABSENT.items():
        answer = await shelf.client.get(path)
        if protocol in CHALLENGED:
            assert answer.status_code == 401, protocol
            assert answer.headers["www-authenticate"] == 'Basic realm="skills", Bearer'
            assert "Not found, or sign-in needed" in answer.text
        else:
            assert answer.status_code == 404, protocol
            assert "www-authenticate" not in answer.headers
        assert (await shelf.client.get(path, headers=signed_in)).status_code == 404, protocol


async def test_git_gets_errors_as_text_which_it_shows(shelf):
    answer = await shelf.client.get(ABSENT["git"])
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == (
        "Not found, or sign-in needed: check the name, or send a token that may read it.\n"
    )

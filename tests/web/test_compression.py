"""Answers are compressed where that is useful and tells nobody a secret."""

import httpx2
import pytest

from tests.support.html import Page
from tests.support.people import make_account, session_of
from tests.support.site import BROWSER
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.web.door.compression import accepts_gzip

pytestmark = pytest.mark.anyio

DOCUMENT = "/api/openapi.json"
PLAIN = {"accept-encoding": "identity"}


@pytest.mark.parametrize("path", ["/docs/api", DOCUMENT, "/", "/skills"])
async def test_what_everybody_may_read_is_compressed(client, path):
    packed = await client.get(path, headers=BROWSER)
    plain = await client.get(path, headers={**BROWSER, **PLAIN})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    for answer in (packed, plain):
        assert "accept-encoding" in answer.headers["vary"].lower()


async def test_a_kept_answer_keeps_its_compressed_bytes_and_its_tag(client):
    """The tag of other bytes is another one; both are known when the client asks again."""
    packed = await client.get(DOCUMENT)
    plain = await client.get(DOCUMENT, headers=PLAIN)
    assert packed.content == plain.content
    assert packed.headers["etag"] == f"W/{plain.headers['etag']}"
    for tag in (packed.headers["etag"], plain.headers["etag"]):
        known = await client.get(DOCUMENT, headers={"if-none-match": tag})
        assert (known.status_code, known.headers["etag"]) == (304, tag)


async def test_an_answer_for_a_session_is_not_compressed_and_a_form_never_shows_its_secret_twice(env):
    """BREACH: what an attacker puts into the address stands beside a secret in these."""
    await make_account(env, "ada", Role.AUTHOR)
    transport = httpx2.ASGITransport(create_app(env))
    cookies = {SESSION_COOKIE: await session_of(env, "ada")}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://a.test", cookies=cookies
    ) as signed_in:
        for path in ("/skills?q=guess", "/account", "/api/v1/skills"):
            answer = await signed_in.get(path, headers=BROWSER)
            assert answer.status_code == 200, path
            assert "content-encoding" not in answer.headers, path
    async with httpx2.AsyncClient(transport=transport, base_url="http://a.test") as visitor:
        forms = [await visitor.get("/submit?repo=guess", headers=BROWSER) for _ in range(2)]
        assert [one.headers["content-encoding"] for one in forms] == ["gzip", "gzip"]
        shown = [
            next(i["value"] for i in Page(one.text).all("input") if i.get("name") == "csrf") for one in forms
        ]
        assert len(set(shown)) == len(shown) == 2
        for csrf in shown:
            sent = await visitor.post("/submit/find", data={"csrf": csrf, "repo": ""}, headers=BROWSER)
            assert "cross_site" not in sent.text and sent.status_code != 403
        for csrf in ("", "00" * 64, "zz", shown[0][:-2], shown[0] + "00"):
            sent = await visitor.post("/submit/find", data={"csrf": csrf, "repo": ""}, headers=BROWSER)
            assert sent.status_code == 403, csrf


async def test_small_answers_and_changes_stay_as_they_are(client):
    assert "content-encoding" not in (await client.get("/healthz")).headers
    assert (
        "content-encoding" not in (await client.post("/api/v1/submissions", json={"x": "y" * 5_000})).headers
    )


def test_the_client_says_what_it_takes():
    assert all(accepts_gzip(text) for text in ("gzip", "br, GZIP;q=0.5", "gzip; q=1.0", "deflate,x-gzip"))
    assert not any(accepts_gzip(text) for text in ("", "br", "gzip;q=0", "identity, gzip; q=0.000"))

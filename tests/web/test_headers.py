"""What every answer carries, whatever it answers; how large a body may be; and whom requests are counted for."""

import asyncio

import httpx2
import pytest

from tests.support.envs import skill_files
from tests.support.patience import PATIENCE_S
from tests.support.shelf import open_shelf
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.web.context import security_headers
from vskill_platform.web.door.server import address_of, bind, serve
from vskill_platform.web.routing import MOST_BODY

pytestmark = pytest.mark.anyio

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    "path", ["/healthz", "/api/v1/skills", "/nothing", "/api/v1/skills?x=1", "/metrics", "/docs/api"]
)
async def test_every_answer_has_the_security_headers(shelf, path):
    headers = (await shelf.client.get(path)).headers
    assert headers["content-security-policy"] == CSP
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "strict-origin-when-cross-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "camera=()" in headers["permissions-policy"]
    assert "strict-transport-security" not in headers
    assert headers["x-request-id"]


def test_https_is_insisted_on_only_where_it_is_served():
    names = dict(security_headers(Settings(public_url="https://skills.example.org")))
    assert names[b"strict-transport-security"].startswith(b"max-age=")
    assert b"strict-transport-security" not in dict(security_headers(Settings(public_url="http://x")))


async def test_a_request_id_cannot_inject_a_header(shelf):
    transport = httpx2.ASGITransport(create_app(shelf.env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        request = client.build_request("GET", "/healthz")
        request.headers.raw.append((b"x-request-id", b"a\r\nset-cookie: b=c"))
        answer = await client.send(request)
    assert "set-cookie" not in answer.headers and "\r" not in answer.headers["x-request-id"]


# Pages and documents.


async def test_a_browser_gets_a_page_and_a_program_a_document(shelf):
    page = await shelf.client.get("/nothing", headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert page.headers["x-request-id"] in page.text
    for path, accept in (
        ("/nothing", "*/*"),
        ("/api/v1/nothing", "text/html"),
        ("/.well-known/x", "text/html"),
    ):
        answer = await shelf.client.get(path, headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_what_an_address_says_is_escaped_on_the_error_page(shelf):
    page = await shelf.client.get("/%3Cscript%3Ealert(1)%3C/script%3E", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert "<script>alert" not in page.text


async def test_the_reference_page_lists_every_documented_address(shelf):
    page = await shelf.client.get("/docs/api", headers={"accept": "text/html"})
    assert page.status_code == 200
    paths = (await shelf.client.get("/api/openapi.json")).json()["paths"]
    assert all(path in page.text for path in paths)


# Bodies.


@pytest.mark.parametrize(
    "path", ["/api/v1/submissions", "/api/v1/skills/check-updates", "/api/v1/skills/installs"]
)
async def test_a_body_that_is_too_large_is_a_413_declared_or_in_chunks(shelf, path):
    large = b"x" * (MOST_BODY + 1)
    declared = await shelf.client.post(path, content=large)

    async def chunks():
        for _ in range(20):
            yield b"x" * (MOST_BODY // 10)

    chunked = await shelf.client.post(path, content=chunks())
    for answer in (declared, chunked):
        assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")
        assert f"{MOST_BODY:,}" in answer.json()["error"]


async def test_a_chunked_body_over_a_real_socket_is_read_and_an_endless_one_is_cut_off(shelf):
    settings = Settings(store="memory:", port=0)
    listener, stop = bind(settings), asyncio.Event()
    address = address_of(listener)
    serving = asyncio.create_task(
        serve(create_app(shelf.env), settings, listener, stop, metrics=shelf.env.metrics)
    )

    async def parts(count, part):
        for _ in range(count):
            yield part

    async with httpx2.AsyncClient() as client:
        small = [b'{"skills": [', b'{"name": "x", "currentVersion": "1.0.0"}', b"]}"]

        async def one_by_one():
            for part in small:
                yield part

        answer = await client.post(f"{address}/api/v1/skills/check-updates", content=one_by_one())
        assert (answer.status_code, answer.json()["results"][0]["latest"]) == (200, None)
        try:
            endless = await client.post(
                f"{address}/api/v1/skills/check-updates", content=parts(200, b"x" * 65_536)
            )
            assert endless.status_code == 413
        except httpx2.WriteError:
            pass  # the server has answered and closed before all of it was sent
    stop.set()
    await asyncio.wait_for(serving, PATIENCE_S)


async def test_a_request_without_a_body_is_never_read_for_one(shelf):
    assert (await shelf.client.get("/api/v1/skills")).status_code == 200


# Limits.


async def submit(shelf, headers=None, client=None):
    body = {"repoUrl": "acme/tools", "skillPath": "skills/lint"}
    return await (client or shelf.client).post("/api/v1/submissions", json=body, headers=headers or {})


def from_address(shelf, address):
    transport = httpx2.ASGITransport(shelf.client._transport.app, client=(address, 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://platform.test")


async def test_ten_submissions_an_hour_from_one_address_and_thirty_with_a_token(shelf):
    shelf.sources.put("https://github.com/acme/tools", "skills/lint", skill_files("lint"))
    answers = [await submit(shelf) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [201] + [200] * 9 + [429]
    assert answers[0].headers["ratelimit-policy"] == '"submissions";q=10;w=3600'
    assert answers[0].headers["ratelimit"].startswith('"submissions";r=9;t=')
    refused = answers[-1]
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert (refused.json()["code"], refused.json()["limit"]) == ("rate_limited", 10)
    ada = await shelf.token("ada")
    allowed = [(await submit(shelf, ada)).status_code for _ in range(31)]
    assert allowed == [200] * 30 + [429]
    async with from_address(shelf, "192.0.2.99") as other:
        assert (await submit(shelf, client=other)).status_code == 200


async def test_sixty_installs_an_hour(shelf):
    await shelf.publish("lint")
    path = "/api/v1/skills/acme/tools/lint/installs"
    statuses = [(await shelf.client.post(path, json={"skills": []})).status_code for _ in range(61)]
    assert set(statuses[:60]) == {201} and statuses[60] == 429


async def test_a_company_behind_one_address_may_check_for_updates(shelf):
    """A thousand machines that ask six times an hour; who sends a token may do no less."""
    for headers in (None, await shelf.token("ada")):
        for left in (5_999, 5_998):
            answer = await shelf.client.post(
                "/api/v1/skills/check-updates", json={"skills": []}, headers=headers
            )
            assert answer.status_code == 200
            assert answer.headers["ratelimit-policy"] == '"check-updates";q=6000;w=3600'
            assert answer.headers["ratelimit"].startswith(f'"check-updates";r={left};t=')


async def test_administrators_are_not_counted(shelf):
    shelf.sources.put("https://github.com/acme/tools", "skills/lint", skill_files("lint"))
    eve = await shelf.token("eve", Role.ADMIN)
    assert 429 not in {(await submit(shelf, eve)).status_code for _ in range(35)}


@pytest.mark.parametrize(
    ("address", "exempt"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.1", False)],
)
async def test_this_machine_is_not_counted_in_a_demo(tmp_path, address, exempt):
    async with open_shelf(tmp_path, rate_limits="remote") as shelf, from_address(shelf, address) as client:
        statuses = {(await submit(shelf, client=client)).status_code for _ in range(12)}
    assert (429 not in statuses) is exempt


@pytest.mark.parametrize(
    ("proxies", "forwarded", "same"),
    [
        ((), ["198.51.100.1", "198.51.100.2"], True),
        (("192.0.2.0/24",), ["198.51.100.1", "198.51.100.2"], False),
        (("192.0.2.0/24",), ["1.1.1.1, 198.51.100.1", "2.2.2.2, 198.51.100.1"], True),
        (("192.0.2.0/24",), ["198.51.100.1, 192.0.2.8", "198.51.100.2, 192.0.2.8"], False),
        (("192.0.2.0/24",), ["junk", "other junk"], True),
        (("192.0.2.0/24",), ["2001:db8::1", "2001:db8::2"], True),
        (("192.0.2.0/24",), ["2001:db8:1::1", "2001:db8:2::1"], False),
    ],
)
async def test_who_asks_is_believed_only_from_a_trusted_proxy(tmp_path, proxies, forwarded, same):
    """An address is the connection's; a client cannot make up its own, and one IPv6 network is one client."""
    async with open_shelf(tmp_path, trusted_proxies=proxies) as shelf:
        left = []
        for value in forwarded:
            answer = await submit(shelf, {"x-forwarded-for": value})
            left.append(answer.headers["ratelimit"].partition(";r=")[2].partition(";")[0])
    assert left == (["9", "8"] if same else ["9", "9"])

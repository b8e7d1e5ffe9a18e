"""Signing in and out by real requests: cookies, forms that other sites cannot send, redirects that stay here, sessions
that cannot be planted, tokens that are exactly worth what they say."""

import html

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import open_product_env, open_test_env
from tests.support.people import (
    ADDRESS,
    PASSWORD,
    browser,
    csrf_in,
    make_account,
    session_of,
    signed_in,
    token_of,
)
from vskill_platform.domain.verdicts.policy import Preset, load_policy
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role, find_admins, get_user
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.setup import first_admin_link
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.web.app import create_app
from vskill_platform.web.auth import safe_next
from vskill_platform.web.browser import SESSION_COOKIE, VISITOR_COOKIE, Browser
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

HTML = {"accept": "text/html"}


@pytest.fixture
async def app(env):
    return create_app(env)


@pytest.fixture
async def visitor(app):
    async with browser(app) as client:
        yield client


@pytest.fixture
async def ann(env):
    await make_account(env, "ann", Role.AUTHOR, PASSWORD)
    return "ann"


async def sign_in(client: httpx2.AsyncClient, name="ann", password=PASSWORD, **fields) -> httpx2.Response:
    page = await client.get("/signin", headers=HTML)
    sent = {"csrf": csrf_in(page.text), "name": name, "password": password, **fields}
    return await client.post("/signin", data=sent, headers=HTML)


def cookie(answer: httpx2.Response, name: str) -> str:
    """The whole Set-Cookie line of one cookie."""
    return next(line for line in answer.headers.get_list("set-cookie") if line.startswith(f"{name}="))


# Cookies.


async def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(visitor, ann):
    answer = await sign_in(visitor)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    flags = {part.strip().lower().partition("=")[0] for part in cookie(answer, SESSION_COOKIE).split(";")}
    line = cookie(answer, SESSION_COOKIE).lower()
    assert {"httponly", "samesite", "path", "max-age"} <= flags
    assert "samesite=lax" in line and "path=/" in line and "domain" not in line
    assert "secure" not in flags, "plain http has no use for it"


@pytest.mark.parametrize(
    ("public_url", "address"), [("https://skills.example.org", ADDRESS), ("", "https://a.test")]
)
async def test_behind_https_every_cookie_is_secure(public_url, address):
    async with open_product_env(Settings(store="memory:", public_url=public_url)) as env:
        await make_account(env, "ann", Role.AUTHOR, PASSWORD)
        transport = httpx2.ASGITransport(create_app(env))
        async with httpx2.AsyncClient(transport=transport, base_url=address) as client:
            page = await client.get("/signin", headers=HTML)
            assert "secure" in cookie(page, VISITOR_COOKIE).lower()
            visitor = page.headers["set-cookie"].split("=", 1)[1].split(";")[0]
            sent = {"csrf": csrf_in(page.text), "name": "ann", "password": PASSWORD}
            cookies = {"cookie": f"{VISITOR_COOKIE}={visitor}"}
            answer = await client.post("/signin", data=sent, headers={**HTML, **cookies})
            assert "secure" in cookie(answer, SESSION_COOKIE).lower()


async def test_a_page_without_a_form_sets_no_cookie(visitor):
    answer = await visitor.get("/docs", headers=HTML)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


async def test_an_api_answer_sets_no_cookie(visitor):
    assert "set-cookie" not in (await visitor.get("/api/v1/submissions/stats")).headers


async def test_a_request_without_cookie_and_token_asks_the_store_for_nobody(env):
    kv = CountingKV(env.kv)
    async with browser(create_app(msgspec.structs.replace(env, kv=kv))) as client:
        await client.get("/healthz")
        await client.get("/healthz", headers={"cookie": "other=1"})
    assert kv.total == 0


# Signing in and out.


async def test_signing_in_and_out(visitor, env, ann):
    await sign_in(visitor)
    page = await visitor.get("/account", headers=HTML)
    assert page.status_code == 200 and "ann" in page.text
    assert page.headers["cache-control"] == "no-store"
    session = visitor.cookies[SESSION_COOKIE]
    answer = await visitor.post("/signout", data={"csrf": csrf_in(page.text)}, headers=HTML)
    assert answer.status_code == 303
    assert SESSION_COOKIE not in visitor.cookies
    visitor.cookies.set(SESSION_COOKIE, session)
    assert (await visitor.get("/account", headers=HTML)).status_code == 303, "the session itself is over"
    entries = await run_with_worker_env(env, list_audit)
    assert {"signed in", "signed out"} <= {entry.action for entry in entries.items}


async def test_signing_out_takes_a_post(visitor, env, app, ann):
    async with signed_in(app, env, "ann", Role.AUTHOR) as person:
        assert (await person.get("/signout")).status_code == 405
        assert (await person.get("/account")).status_code == 200


@pytest.mark.parametrize(("name", "password"), [("ann", "wrong wrong wrong"), ("nobody", PASSWORD), ("", "")])
async def test_a_refused_sign_in_says_the_same_whatever_was_wrong(visitor, ann, name, password):
    answer = await sign_in(visitor, name, password)
    assert answer.status_code == 401
    assert "The name or the password is wrong." in answer.text
    assert SESSION_COOKIE not in visitor.cookies
    assert password == "" or password not in answer.text


async def test_too_many_attempts_are_a_429_with_the_time_to_wait(visitor, ann):
    for _ in range(10):
        await sign_in(visitor, "nobody", "x")
    answer = await sign_in(visitor, "nobody", "x")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0


async def test_session_fixation_a_planted_cookie_is_not_taken_over(visitor, env, app, ann):
    planted = "planted-by-somebody-else"
    visitor.cookies.set(SESSION_COOKIE, planted)
    await sign_in(visitor)
    values = [one.value for one in visitor.cookies.jar if one.name == SESSION_COOKIE and one.value != planted]
    assert values
    async with browser(app) as thief:
        thief.cookies.set(SESSION_COOKIE, planted)
        assert (await thief.get("/account", headers=HTML)).status_code == 303


async def test_session_fixation_signing_in_again_ends_the_session_before(app, env, ann):
    async with signed_in(app, env, "ann", Role.AUTHOR) as person:
        before = person.client.cookies[SESSION_COOKIE]
        sent = {"csrf": person.csrf, "name": "ann", "password": PASSWORD}
        answer = await person.client.post("/signin", data=sent, headers=HTML)
        assert before not in cookie(answer, SESSION_COOKIE)
    async with browser(app) as other:
        other.cookies.set(SESSION_COOKIE, before)
        assert (await other.get("/account", headers=HTML)).status_code == 303


# Where it leads.

ELSEWHERE = [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "http:evil.example",
    "javascript:alert(1)",
    "/%0d%0aset-cookie:x=1\r\nx: y",
    "/\tevil",
    "evil.example",
    "",
    "/" + "a" * 3000,
    "/signin",
    "/x\\..\\y",
]


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_open_redirect_nobody_is_sent_elsewhere(wanted):
    assert safe_next(wanted) == "/account"


@pytest.mark.parametrize("wanted", ["/", "/admin", "/skills?q=a b", "/queue?state=x#y", "/skills/a/b/c"])
def test_a_page_of_ours_is_where_one_wanted_to_go(wanted):
    assert safe_next(wanted) == wanted


@pytest.mark.parametrize("wanted", ELSEWHERE)
async def test_open_redirect_by_real_requests(visitor, ann, wanted):
    page = await visitor.get("/signin", params={"next": wanted[:1900]}, headers=HTML)
    answer = await visitor.post(
        "/signin",
        data={"csrf": csrf_in(page.text), "name": "ann", "password": PASSWORD, "next": wanted},
        headers=HTML,
    )
    # What has control characters, or is far too long, is refused as a whole.
    assert answer.headers.get("location", "/account") == "/account"
    assert "x" not in answer.headers


async def test_a_page_that_needs_an_account_comes_back_after_signing_in(visitor, ann):
    answer = await visitor.get("/account?after=abc", headers=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/signin?next=/account%3Fafter%3Dabc"
    page = await visitor.get(answer.headers["location"], headers=HTML)
    assert 'name="next" value="/account?after=abc"' in page.text


async def test_somebody_who_is_signed_in_is_led_on(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        answer = await person.get("/signin?next=/queue")
        assert (answer.status_code, answer.headers["location"]) == (303, "/queue")


# Forms from elsewhere.


async def test_csrf_a_form_without_the_secret_is_refused(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        answer = await person.client.post("/account/sign-out-all", data={"x": "1"}, headers=HTML)
        assert answer.status_code == 403
        assert (await person.get("/account")).status_code == 200


@pytest.mark.parametrize("given", ["", "x", "é", "0" * 64, Browser("another session", None).csrf])
async def test_csrf_another_secret_is_refused(app, env, given):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        answer = await person.client.post("/account/sign-out-all", data={"csrf": given}, headers=HTML)
        assert answer.status_code == 403


async def test_csrf_the_secret_of_one_session_is_worth_nothing_in_another(app, env):
    async with (
        signed_in(app, env, "bob", Role.AUTHOR) as bob,
        signed_in(app, env, "eve", Role.AUTHOR) as eve,
    ):
        answer = await bob.client.post("/signout", data={"csrf": eve.csrf}, headers=HTML)
        assert answer.status_code == 403


async def test_csrf_the_sign_in_form_of_a_visitor_is_bound_to_its_cookie(app, visitor, ann):
    page = await visitor.get("/signin", headers=HTML)
    sent = {"csrf": csrf_in(page.text), "name": "ann", "password": PASSWORD}
    async with browser(app) as other:
        assert (await other.post("/signin", data=sent, headers=HTML)).status_code == 403
    assert (await visitor.post("/signin", data=sent, headers=HTML)).status_code == 303


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
async def test_csrf_what_a_browser_says_comes_from_elsewhere_is_refused_even_with_the_secret(app, env, site):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        headers = {**HTML, "sec-fetch-site": site}
        answer = await person.client.post("/signout", data={"csrf": person.csrf}, headers=headers)
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"sec-fetch-site": "none"}, 303),
        ({"origin": ADDRESS}, 303),
        ({"origin": "null"}, 303),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://platform.test.evil.example"}, 403),
        ({"origin": "http://platform.test:81"}, 403),
        ({}, 303),
    ],
)
async def test_csrf_where_a_form_comes_from(app, env, headers, status):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        answer = await person.client.post("/signout", data={"csrf": person.csrf}, headers={**HTML, **headers})
        assert answer.status_code == status


async def test_csrf_the_public_address_counts_as_ours_behind_a_proxy():
    settings = Settings(store="memory:", public_url="https://skills.example.org")
    async with (
        open_product_env(settings) as env,
        signed_in(create_app(env), env, "bob", Role.AUTHOR) as person,
    ):
        headers = {**HTML, "origin": "https://skills.example.org"}
        answer = await person.client.post("/signout", data={"csrf": person.csrf}, headers=headers)
        assert answer.status_code == 303


async def test_csrf_a_form_in_another_encoding_is_refused(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        headers = {**HTML, "content-type": "text/plain"}
        body = f"csrf={person.csrf}"
        answer = await person.client.post("/signout", content=body, headers=headers)
        assert answer.status_code == 400


async def test_csrf_the_api_takes_a_session_only_with_the_header(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        body = {"name": "script", "scopes": ["read"]}
        refused = await person.client.post("/api/v1/tokens", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "cross_site")
        headers = {"x-csrf-token": person.csrf}
        made = await person.client.post("/api/v1/tokens", json=body, headers=headers)
        assert made.status_code == 201


async def test_a_token_needs_no_secret_because_no_browser_sends_it_by_itself(app, env, visitor):
    await make_account(env, "bob", Role.AUTHOR)
    headers = {"authorization": f"Bearer {await token_of(env, 'bob', 'read', 'own')}"}
    assert (
        await visitor.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers=headers)
    ).status_code == 201


# Tokens.


@pytest.mark.parametrize("token", ["vsk_nothing", "x", "vsk_" + "a" * 9000, ""])
async def test_a_bad_token_is_told_wherever_it_is_sent(visitor, token):
    headers = {"authorization": f"Bearer {token}"}
    refused = await visitor.get("/api/v1/account", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in")
    assert refused.headers["www-authenticate"] == "Bearer" and "warning" not in refused.headers
    for path in ("/api/v1/submissions/stats", "/healthz"):
        answer = await visitor.get(path, headers=headers)
        assert answer.status_code == 200 and "not valid" in answer.headers["warning"]


async def test_tenants_need_a_valid_token(visitor, env):
    assert (await visitor.get("/api/v1/account/tenants")).status_code == 401
    await make_account(env, "bob", Role.AUTHOR)
    headers = {"authorization": f"Bearer {await token_of(env, 'bob', 'read')}"}
    found = (await visitor.get("/api/v1/account/tenants", headers=headers)).json()
    assert found == {
        "tenants": [
            {"tenantId": "bob", "slug": "bob", "name": "bob", "role": "owner", "installationId": None}
        ]
    }


async def test_a_tokens_scopes_limit_its_holder(visitor, env):
    await make_account(env, "ada", Role.ADMIN)
    weak = {"authorization": f"Bearer {await token_of(env, 'ada', 'read')}"}
    strong = {"authorization": f"Bearer {await token_of(env, 'ada', 'read', 'admin')}"}
    assert (await visitor.get("/api/v1/account", headers=weak)).json() == {
        "account": "ada",
        "role": "author",
        "scopes": ["read"],
    }
    assert (await visitor.get("/api/v1/account", headers=strong)).json()["role"] == "admin"
    assert (await visitor.get("/admin/audit", headers=weak)).status_code == 403
    assert (await visitor.get("/admin/audit", headers=strong)).status_code == 200
    submit_only = {"authorization": f"Bearer {await token_of(env, 'ada', 'submit')}"}
    refused = await visitor.post("/api/v1/tokens", json={"name": "ci"}, headers=submit_only)
    assert (refused.status_code, refused.json()["needs"]) == (403, "own")


async def test_tokens_are_made_listed_and_revoked_by_the_api(visitor, env):
    await make_account(env, "bob", Role.AUTHOR)
    headers = {"authorization": f"Bearer {await token_of(env, 'bob', 'read', 'submit', 'own')}"}
    made = await visitor.post(
        "/api/v1/tokens", json={"name": "ci", "scopes": ["submit"], "days": 5}, headers=headers
    )
    assert made.status_code == 201 and made.headers["cache-control"] == "no-store"
    secret, details = made.json()["token"], made.json()["details"]
    listed = (await visitor.get("/api/v1/tokens", headers=headers)).json()["tokens"]
    assert {one["name"] for one in listed} == {"ci", "test"}
    assert secret not in str(listed)
    refused = await visitor.post("/api/v1/tokens", json={"name": "x", "scopes": ["admin"]}, headers=headers)
    assert refused.status_code == 403
    assert (await visitor.delete(f"/api/v1/tokens/{details['id']}", headers=headers)).json()[
        "revoked"
    ] is True
    gone = await visitor.get("/api/v1/account", headers={"authorization": f"Bearer {secret}"})
    assert gone.status_code == 401
    assert (await visitor.delete(f"/api/v1/tokens/{details['id']}", headers=headers)).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x", "scopes": ["root"]}, "scopes"),
        ({"name": "x", "days": 0}, "days"),
    ],
)
async def test_a_token_request_that_is_wrong_names_the_field(visitor, env, body, field):
    await make_account(env, "bob", Role.AUTHOR)
    headers = {"authorization": f"Bearer {await token_of(env, 'bob', 'own')}"}
    answer = await visitor.post("/api/v1/tokens", json=body, headers=headers)
    assert answer.status_code == 400
    assert field in answer.json()["field"]


async def test_signing_out_everywhere_ends_every_session_and_token(app, visitor, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        headers = {"authorization": f"Bearer {await token_of(env, 'bob', 'submit')}"}
        answer = await visitor.delete("/api/v1/auth/sign-out-all", headers=headers)
        assert (answer.status_code, answer.json()) == (200, {"signedOut": True})
        assert (await visitor.get("/api/v1/account", headers=headers)).status_code == 401
        assert (await person.get("/account")).status_code == 303


# One's own account.


async def test_a_token_made_on_the_account_page_is_shown_once(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        answer = await person.send(
            "/account/tokens", name="<b>laptop</b>", scopes=["read", "submit"], days="30"
        )
        assert answer.status_code == 201 and answer.headers["cache-control"] == "no-store"
        secret = answer.text.split("vsk_")[1].split("<")[0]
        assert "&lt;b&gt;laptop" in answer.text and "<b>laptop" not in answer.text
        page = await person.get("/account")
        assert secret not in page.text and "laptop" in page.text
        token_id = page.text.split('name="token_id" value="')[1].split('"')[0]
        assert "revoked" in await person.do("/account/tokens/revoke", token_id=token_id)


async def test_what_is_refused_is_told_on_the_page_before(app, env):
    async with signed_in(app, env, "bob", Role.AUTHOR) as person:
        assert "name" in await person.do("/account/tokens", name="", scopes="read", days="30")
        assert "number" in await person.do("/account/tokens", name="x", scopes="read", days="many")
        assert "no token" in await person.do("/account/tokens/revoke", token_id="none")


async def test_a_new_password_needs_the_old_one_and_ends_other_sessions_and_tokens(app, env, ann):
    other = await session_of(env, "ann")
    token = {"authorization": f"Bearer {await token_of(env, 'ann', 'read')}"}
    async with signed_in(app, env, "ann", Role.AUTHOR) as person:
        new = "eight blue boats at night"
        assert "wrong" in await person.do("/account/password", old="no", password=new, again=new)
        assert "differ" in await person.do("/account/password", old=PASSWORD, password=new, again="x" * 20)
        answer = await person.send("/account/password", old=PASSWORD, password=new, again=new)
        assert answer.headers["location"] == "/account"
        assert (await person.get("/account")).status_code == 200, "one's own browser stays signed in"
    async with browser(app) as client:
        assert (await client.get("/api/v1/account", headers=token)).status_code == 401
        client.cookies.set(SESSION_COOKIE, other)
        assert (await client.get("/account", headers=HTML)).status_code == 303
        client.cookies.clear()
        assert (await sign_in(client, "ann", new)).status_code == 303


async def test_a_message_of_another_browser_is_not_shown(app, env):
    """The text of a message is signed under the session: nobody else can put words on our pages."""
    async with (
        signed_in(app, env, "bob", Role.AUTHOR) as bob,
        signed_in(app, env, "eve", Role.AUTHOR) as eve,
    ):
        answer = await eve.send("/account/tokens/revoke", token_id="send your password to eve")
        planted = answer.headers["set-cookie"].split("vskill_flash=")[1].split(";")[0]
        bob.client.cookies.set("vskill_flash", planted)
        page = await bob.get("/account")
        assert "send your password" not in page.text


# The first admin.


async def test_E11_the_first_start_leads_to_the_first_admin_by_real_requests(env, app, visitor):
    link = await first_admin_link(env, ADDRESS)
    assert link is not None
    page = await visitor.get(link, headers=HTML)
    token = link.split("token=")[1]
    sent = {
        "csrf": csrf_in(page.text),
        "token": token,
        "name": "ada",
        "password": PASSWORD,
        "again": PASSWORD,
    }
    weak = await visitor.post("/setup", data={**sent, "password": "x", "again": "x"}, headers=HTML)
    assert weak.status_code == 400 and "characters" in weak.text
    differs = await visitor.post("/setup", data={**sent, "again": "other"}, headers=HTML)
    assert differs.status_code == 400 and "differ" in differs.text
    bad_name = await visitor.post("/setup", data={**sent, "name": "<script>"}, headers=HTML)
    assert bad_name.status_code == 400 and "<script>" not in bad_name.text.split("<main")[1]
    done = await visitor.post("/setup", data=sent, headers=HTML)
    assert (done.status_code, done.headers["location"]) == (303, "/admin/judges")
    assert (await visitor.get("/admin", headers=HTML)).status_code == 200
    assert (await visitor.get(link, headers=HTML)).status_code == 404
    admins = await run_with_worker_env(env, find_admins)
    assert [user.name for user, _ in admins] == ["ada"]


@pytest.mark.parametrize("chosen", list(Preset))
async def test_setup_asks_who_may_publish_without_a_look(env, visitor, chosen):
    link = await first_admin_link(env, ADDRESS) or ""
    page = await visitor.get(link, headers=HTML)
    assert all(preset.summary in html.unescape(page.text) for preset in Preset)
    sent = {"csrf": csrf_in(page.text), "token": link.split("token=")[1], "name": "ada"}
    sent |= {"password": PASSWORD, "again": PASSWORD}
    unknown = await visitor.post("/setup", data={**sent, "policy": "lax"}, headers=HTML)
    assert unknown.status_code == 400 and "no such preset" in unknown.text
    assert (await visitor.post("/setup", data={**sent, "policy": chosen}, headers=HTML)).status_code == 303
    found = await run_with_worker_env(env, read_policy)
    assert found.policy.digest == load_policy(f"extends: {chosen}\n").digest


async def test_setup_does_not_ask_where_the_operator_has_named_a_file(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("extends: strict\n", "utf-8")
    async with (
        open_test_env("memory", tmp_path, policy=str(file)) as env,
        browser(create_app(env)) as visitor,
    ):
        page = await visitor.get(await first_admin_link(env, ADDRESS) or "", headers=HTML)
    assert page.status_code == 200 and "without a person" not in page.text


@pytest.mark.parametrize(("named", "asks"), [("vskill-platform", True), ("acme", False)])
async def test_setup_asks_for_the_name_that_clients_know_the_registry_by(tmp_path, named, asks):
    async with (
        open_test_env("memory", tmp_path, registry_name=named) as env,
        browser(create_app(env)) as visitor,
    ):
        page = await visitor.get(await first_admin_link(env, ADDRESS) or "", headers=HTML)
    assert page.status_code == 200 and ("VSKILL_REGISTRY_NAME" in page.text) is asks


@pytest.mark.parametrize("token", ["", "x", "%00", "a" * 500])
async def test_setup_without_the_token_is_not_found(env, visitor, token):
    await first_admin_link(env, ADDRESS)
    assert (await visitor.get(f"/setup?token={token}", headers=HTML)).status_code == 404


# Hostile requests.


@pytest.mark.parametrize(
    "cookies",
    [
        "vskill_session=",
        "vskill_session=" + "a" * 5000,
        "vskill_session=\xff\xfe",
        "vskill_session=a; vskill_session=b",
        "vskill_visitor=" + "a" * 5000,
        "vskill_flash=x.y",
        "vskill_flash=.",
        "vskill_oauth=@@@",
        ";;;=;=",
    ],
)
async def test_strange_cookies_are_nobodys(visitor, cookies):
    for path in ("/signin", "/healthz", "/account", "/signin/github/callback"):
        answer = await visitor.get(path, headers={"cookie": cookies.encode("latin-1"), **HTML})
        assert answer.status_code in {200, 303, 401, 404}


async def test_header_injection_a_name_cannot_leave_its_header(visitor, ann):
    answer = await sign_in(visitor, next="/queue?x=%0d%0aSet-Cookie:%20a=b")
    assert "a=b" not in [line.split(";")[0] for line in answer.headers.get_list("set-cookie")]
    assert "\n" not in answer.headers["location"]


async def test_an_oversize_form_is_refused(visitor):
    page = await visitor.get("/signin", headers=HTML)
    sent = {"csrf": csrf_in(page.text), "name": "a", "password": "x" * 2_000_000}
    assert (await visitor.post("/signin", data=sent, headers=HTML)).status_code == 413


async def test_a_stored_password_is_on_no_page(app, env, ann):
    user = await run_with_worker_env(env, lambda: get_user("ann"))
    async with signed_in(app, env, "ada", Role.ADMIN) as ada:
        for path in ("/admin/accounts", "/admin/audit", "/account"):
            text = (await ada.get(path)).text
            assert str(user.password) not in text and "argon2" not in text

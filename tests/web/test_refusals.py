"""What is refused over HTTP stands in the audit: failed sign-ins by every way, tokens that are bad or have ended, rights
and scopes; where it came from, for thirty days; and nothing that is a secret."""

import httpx2
import pytest

from tests.support.envs import active_env, open_test_env
from tests.support.people import PASSWORD, browser, csrf_in, make_account, signed_in, token_of
from vskill_client.wire.login import GRANT
from vskill_core.errors import NotPermitted
from vskill_platform.actions.operation.audit import READ_AUDIT, ReadAudit
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import ADDRESS_MS, AuditFilter, ReadEntry, list_audit
from vskill_platform.store.people.refusals import write_refusals
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

HTML = {"accept": "text/html"}
#: httpx2 calls an application from here.
HERE = "127.0.0.1"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path, rate_limits="off") as opened:
        yield opened


@pytest.fixture
async def visitor(env):
    async with browser(create_app(env)) as client:
        yield client


async def refused(env) -> list[ReadEntry]:
    """What the audit says was refused, the oldest first, once the counts are written."""
    with active_env(env):
        await write_refusals()
        found = await list_audit(wanted=AuditFilter(outcome=AuditOutcome.REFUSED))
    return list(found.items)[::-1]


async def told(env) -> list[tuple[str, str, str, str]]:
    return [(one.by, one.action, one.target, one.reason) for one in await refused(env)]


async def sign_in(client: httpx2.AsyncClient, name: str, password: str) -> httpx2.Response:
    page = await client.get("/signin", headers=HTML)
    sent = {"csrf": csrf_in(page.text), "name": name, "password": password}
    return await client.post("/signin", data=sent, headers=HTML)


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


async def everything(env) -> str:
    pages = iterate_pages(env.kv, "audit")
    return " ".join([one.value.decode() async for page in pages for one in page.items])


async def test_failed_sign_ins_name_accounts_and_no_foreign_text(env, visitor):
    """People type their password into the field of the name."""
    await make_account(env, "ann", Role.AUTHOR, PASSWORD)
    for name in ("ann", " ANN ", PASSWORD, "nobody-here", "<script>alert(1)</script>"):
        await sign_in(visitor, name, "not the right words")
    lines = await refused(env)
    assert [(one.target, one.reason, one.count) for one in lines] == [
        ("ann", "password: wrong", 2),
        ("", "password: no such account", 3),
    ]
    assert {(one.by, one.action, one.address) for one in lines} == {("user:anonymous", "sign-in", HERE)}
    kept = await everything(env)
    assert PASSWORD not in kept and "nobody-here" not in kept and "script" not in kept


async def test_too_many_sign_ins_and_a_disabled_account(env, visitor):
    await make_account(env, "ann", Role.AUTHOR, PASSWORD)
    for _ in range(12):
        await sign_in(visitor, "ann", "wrong")
    (line,) = await refused(env)
    assert (line.target, line.count) == ("ann", 12)


async def test_tokens_that_are_bad_or_have_ended(env, visitor):
    await make_account(env, "ann", Role.AUTHOR)
    ended, revoked = await token_of(env, "ann", "read"), await token_of(env, "ann", "read", "own", days=9)
    env.clock.advance(2 * 86_400_000)
    own = (await visitor.get("/api/v1/tokens", headers=bearer(revoked))).json()["tokens"]
    assert (
        await visitor.delete(f"/api/v1/tokens/{own[0]['id']}", headers=bearer(revoked))
    ).status_code == 200
    unknown = "vsk_" + "x" * 43
    for secret in (ended, revoked, unknown, "not one of ours"):
        await visitor.get("/api/v1/skills", headers=bearer(secret))
        await visitor.post("/api/v1/tokens", json={"name": "x"}, headers=bearer(secret))
    lines = await refused(env)
    assert {(one.target, one.reason, one.count, one.token is not None) for one in lines} == {
        ("ann", "it has expired", 2, True),
        # The record of a revoked one is deleted, and with it whose it was.
        ("", "there is no such token", 6, False),
    }
    kept = await everything(env)
    assert not [secret for secret in (ended, revoked, unknown, "not one of ours") if secret in kept]


async def test_missing_scopes_and_rights_of_accounts_with_token_session_request_and_address(env, visitor):
    await make_account(env, "ann", Role.AUTHOR)
    secret = await token_of(env, "ann", "read")
    sent = {**bearer(secret), "x-request-id": "ask-me-1"}
    assert (await visitor.post("/api/v1/teams/crew", json={"reason": "x"}, headers=sent)).status_code == 403
    app = create_app(env)
    async with signed_in(app, env, "ann", Role.AUTHOR) as ann:
        await ann.send("/admin/teams", name="crew", reason="x")
        assert (await ann.get("/admin/audit")).status_code == 403
    first, *others = await refused(env)
    assert (first.by, first.action, first.target, first.request_id) == (
        *("user:ann", "team.create", "crew", "ask-me-1"),
    )
    assert first.token is not None and first.token.name == "test" and first.address == HERE
    assert "lacks the scope" in first.reason
    assert [(one.by, one.session) for one in others] == [("user:ann", "password")] * len(others)
    assert {one.action for one in others} >= {"audit.list"}


async def test_strangers_are_counted_and_links_to_the_sign_in_are_no_refusal(env, visitor):
    for _ in range(300):
        assert (await visitor.post("/api/v1/admin/queue/pause", json={})).status_code == 401
    assert (await visitor.get("/admin/audit", headers=HTML)).status_code == 303
    assert (await visitor.post("/signout", headers=HTML)).status_code == 403
    assert {(one.action, one.count) for one in await refused(env)} == {("queue.pause", 300), ("/signout", 1)}


async def test_machines_links_and_passwords_that_are_wrong(env, visitor):
    answer = await visitor.post(
        "/api/cli/device/token", json={"grant_type": GRANT, "device_code": "BCDFGHJK.secret-of-mine"}
    )
    assert answer.status_code == 400
    assert (await visitor.get("/setup?token=guess-of-mine", headers=HTML)).status_code == 404
    async with signed_in(create_app(env), env, "ann", Role.AUTHOR) as ann:
        await ann.send("/device", code="BCDF-GHJK")
    assert sorted(await told(env)) == [
        ("user:ann", "sign-in", "", "no such device code"),
        ("user:anonymous", "sign-in", "", "device code: there is none, or it has expired"),
        ("user:anonymous", "sign-in", "", "the link of the first start is not valid"),
    ]
    kept = await everything(env)
    assert "secret-of-mine" not in kept and "guess-of-mine" not in kept and "BCDF" not in kept


async def test_who_lets_a_machine_in_is_audited(env, visitor):
    code = (await visitor.post("/api/cli/device/code", json={"label": "laptop"})).json()
    async with signed_in(create_app(env), env, "ann", Role.AUTHOR) as ann:
        await ann.send("/device/decide", code=code["user_code"], decision="allow", scopes="read")
    with active_env(env):
        latest = (await list_audit()).items[0]
    assert (latest.action, latest.by, latest.target) == ("machine let in", "user:ann", "laptop")
    assert latest.details == {"scopes": "read"} and latest.session == "password"
    assert code["user_code"].replace("-", "") not in await everything(env)


async def test_an_address_is_kept_for_thirty_days_and_shown_to_admins(env, visitor):
    await make_account(env, "ann", Role.AUTHOR, PASSWORD)
    assert (await sign_in(visitor, "ann", PASSWORD)).status_code == 303
    async with signed_in(create_app(env), env, "ada", Role.ADMIN) as ada:
        assert f"from {HERE}" in (await ada.get("/admin/audit?who=ann&what=signed+in")).text
    entries = iterate_pages(env.kv, "audit:")
    assert not [one.key async for page in entries for one in page.items if HERE.encode() in one.value]
    env.clock.advance(ADDRESS_MS)
    with active_env(env):
        assert [one.address for one in (await list_audit()).items if one.action == "signed in"] == [None] * 2


async def test_nobody_but_admins_learns_that_something_was_refused(env, visitor):
    """Neither by the audit nor by what strangers can watch."""
    for role in (Role.AUTHOR, Role.REVIEWER):
        async with signed_in(create_app(env), env, f"some-{role.value}", role) as person:
            for path in ("/api/v1/admin/audit", "/api/v1/admin/audit/after", "/admin/audit"):
                assert (await person.get(path)).status_code == 403
    assert visitor.cookies.get(SESSION_COOKIE) is None
    for path in ("/api/v1/admin/audit", "/api/v1/admin/audit/after"):
        answer = await visitor.get(path)
        assert answer.status_code == 401 and "some-" not in answer.text


async def test_a_refusal_of_an_action_without_a_request_is_audited_too(env):
    with pytest.raises(NotPermitted):
        await run_with_worker_env(env, lambda: READ_AUDIT(env, Principal("bob", Role.AUTHOR), ReadAudit()))
    assert await told(env) == [("user:bob", "audit.list", "", "Only admins may do this.")]

"""Every state change through a token needs a scope, at every door: forms, API, clients' protocols and MCP tools. The
expected scopes are those that the matrix of rights says by hand, for the action that a route names; a route that names
none fails, unless it is listed here with the reason."""

import io
import zipfile
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from tests.actions.test_rights import MATRIX
from tests.support.acting import create_token, set_role
from tests.support.envs import active_env, skill_files
from tests.support.people import make_account, signed_in, token_of
from tests.support.shelf import Shelf, open_shelf
from vskill_core.identity import submission_id
from vskill_platform.actions.people.account import WHO_AM_I
from vskill_platform.actions.principal import Right
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.people.token import SCOPES
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_upload
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditEntry, AuditFilter, list_audit
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.clients.mcp_tools import TOOLS
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
#: What a token adds nothing to: an anonymous request may do the same, or something else lets in.
NEEDS_NONE = {
    "POST /scim/v2/{issuer}/{resource}": "a directory has a token of its own",
    "PUT /scim/v2/{issuer}/{resource}/{id}": "a directory has a token of its own",
    "PATCH /scim/v2/{issuer}/{resource}/{id}": "a directory has a token of its own",
    "DELETE /scim/v2/{issuer}/{resource}/{id}": "a directory has a token of its own",
    "POST /api/v1/skills/installs": "counts, and keeps nothing about who asks",
    "POST /api/v1/skills/{owner}/{repo}/{slug}/installs": "the same",
    "POST /api/v1/skills/{name}/installs": "the same",
    "POST /api/v1/skills/check-updates": "reads",
    "POST /marketplace/{owner}/{repo}/{name}/git-upload-pack": "reads, and counts",
    "POST /marketplace.git/git-upload-pack": "reads",
    "POST /internal/marketplace.git/git-upload-pack": "reads",
    "POST /{owner}/git-upload-pack": "reads",
    "POST /collections/{collection}/git-upload-pack": "reads",
    "POST /upstreams/{upstream}/git-upload-pack": "reads",
    "POST /clawhub/api/cli/telemetry/install": "does nothing",
    "POST /api/v1/external-scans/{digest}/{provider}": "the signature lets in",
    "POST /api/v1/auth/github/exchange-for-vsk-token": "GitHub's word lets in",
    "POST /api/v1/follows/pushes/{hook_id}": "the forge's signature lets in",
    "POST /api/v1/publishers/exchange": "the word of the job's forge lets in",
    "POST /signin": "the password lets in",
    "POST /signin/{provider}": "leads to the provider",
    "POST /signout": "ends the session of the cookie",
    "POST /setup": "the one-time link lets in",
    "POST /api/cli/device/code": "only makes a code",
    "POST /api/cli/device/token": "somebody's word lets in",
    "POST /mcp": "each tool is listed below",
}
NEEDS_OF_TOOLS = {
    "search_skills": None,
    "get_skill": None,
    "get_security_report": None,
    "submit_skill": "submit",
}
#: What a token with one scope may be used for.
COVERS = {
    "read": {"read"},
    "submit": {"read", "submit"},
    "own": {"read", "own"},
    "review": {"read", "review"},
    "admin": {"read", "submit", "own", "review", "admin"},
}


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


CHANGING = {name_of(one): one for one in ENDPOINTS if one.method != "GET"}
#: The scope that each state change needs: the one that the matrix of rights says of its action.
NEEDS = {name: MATRIX[one.action.name].scope for name, one in CHANGING.items() if one.action is not None}


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as opened:
        yield opened


async def bearer(shelf: Shelf, *scopes: str, account: str = "ada", role: Role = Role.ADMIN) -> dict[str, str]:
    await make_account(shelf.env, account, role)
    return {"authorization": f"Bearer {await token_of(shelf.env, account, *scopes)}"}


async def records(shelf: Shelf) -> dict[str, bytes]:
    """Every record but the audit's: what is refused stands there."""
    pages = iterate_pages(shelf.env.kv, "")
    return {
        one.key: one.value async for page in pages for one in page.items if not one.key.startswith("audit")
    }


async def entries_by_token(shelf: Shelf) -> list[AuditEntry]:
    with active_env(shelf.env):
        wanted = AuditFilter(outcome=AuditOutcome.DONE)
        return [one for one in (await list_audit(wanted=wanted)).items if one.token is not None]


def test_every_state_change_is_listed_with_its_scope():
    assert set(CHANGING) - set(NEEDS) == set(NEEDS_NONE)
    assert {name: one.token_scope for name, one in CHANGING.items() if one.token_scope} == NEEDS
    reads = {name for name, one in CHANGING.items() if one.action is not None and one.action.method == "GET"}
    assert not reads, "these change something, and name an action that only reads"
    assert {name: tool.action and tool.action.scope for name, tool in TOOLS.items()} == NEEDS_OF_TOOLS
    assert set(COVERS) == set(SCOPES)


def test_what_reviewers_and_admins_do_needs_the_scope_of_that_role():
    expected = {Right.REVIEWER: "review", Right.ADMIN: "admin"}
    needed = {name: one.action.right for name, one in CHANGING.items() if one.action}
    assert set(expected) < set(needed.values())
    for name, right in needed.items():
        assert CHANGING[name].token_scope == expected.get(right, CHANGING[name].token_scope), name


@pytest.mark.parametrize(
    "declared",
    [{}, {"action": WHO_AM_I, "no_scope": "both"}],
    ids=["none", "both"],
)
def test_a_route_that_changes_something_cannot_be_declared_without_its_scope(declared):
    async def view(_request: Any) -> Any: ...

    with pytest.raises(TypeError, match="scope"):
        Endpoint(method="POST", path="/x", view=view, **declared)


def address_of(path: str) -> str:
    return "/".join("x" if part.startswith("{") else part for part in path.split("/"))


async def test_a_token_is_refused_wherever_it_lacks_the_scope_and_nothing_is_written(shelf):
    """Every listed route with every scope, held by an admin, so that nothing but the scope can refuse."""
    for held in SCOPES:
        headers = {**await bearer(shelf, held), "accept": "application/json"}
        assert (await shelf.client.get("/healthz", headers=headers)).status_code == 200
        before = await records(shelf)
        for name, needed in NEEDS.items():
            if needed in COVERS[held]:
                continue
            method, _, path = name.partition(" ")
            answer = await shelf.client.request(method, address_of(path), headers=headers)
            in_text = answer.headers["content-type"].startswith("text/plain")
            code = answer.headers["x-error-code"] if in_text else answer.json()["code"]
            assert (answer.status_code, code) == (403, "not_permitted"), (held, name)
            assert f"'{needed}'" in answer.text, (held, name)
            if not in_text:
                assert answer.json()["needs"] == needed and answer.json()["fix"]
        assert await records(shelf) == before


@pytest.mark.parametrize("name", sorted(NEEDS))
async def test_a_token_with_the_scope_is_let_in(shelf, name):
    """What it asks for may still be missing or wrong; it is not refused for who asks."""
    needed = NEEDS[name]
    method, _, path = name.partition(" ")
    for held, covered in COVERS.items():
        if needed in covered:
            headers = {**await bearer(shelf, held), "accept": "application/json"}
            answer = await shelf.client.request(method, address_of(path), headers=headers)
            assert answer.status_code not in {401, 403}, (held, answer.text)


# With real bodies, on real objects.


async def waiting(shelf: Shelf, slug: str = "tidy") -> str:
    """A submission of ada's that nobody has looked at yet."""
    with active_env(shelf.env):
        done = await submit_upload(skill_files(slug), namespace="ada", slug=slug, by=SubmittedBy("ada"))
    assert done.submission is not None
    return done.submission.id


def archive(slug: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for file in skill_files(slug):
            opened.writestr(file.path, file.data)
    return made.getvalue()


Ask = Callable[[Shelf, dict[str, str]], Awaitable[httpx2.Response]]
#: Makes what the request is about, and gives the function that sends it.
Prepare = Callable[[Shelf], Awaitable[Ask]]


def sends(method: str, path: str, **options: Any) -> Ask:
    async def ask(shelf: Shelf, headers: dict[str, str]) -> httpx2.Response:
        return await shelf.client.request(method, path, headers=headers, **options)

    return ask


async def cancel_form(shelf: Shelf) -> Ask:
    form = {"confirm": "yes", "reason": "not needed"}
    return sends("POST", f"/submissions/{await waiting(shelf)}/cancel", data=form)


async def cancel_call(shelf: Shelf) -> Ask:
    return sends("POST", f"/api/v1/submissions/{await waiting(shelf)}/cancel", json={"reason": "not needed"})


async def resubmit_form(shelf: Shelf) -> Ask:
    skill = await shelf.publish("lint", submitter="ada")
    shelf.sources.put(REPO, "skills/lint", skill_files("lint", "Changed."))
    return sends("POST", f"/submissions/{submission_id(skill.identity)}/resubmit", data={"x": "1"})


async def upload_form(_shelf: Shelf) -> Ask:
    files = {"archive": ("tidy.zip", archive("tidy"))}
    return sends("POST", "/submit/upload", data={"name": "tidy"}, files=files)


async def send_form(shelf: Shelf) -> Ask:
    shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    return sends("POST", "/submit/send", data={"repo": REPO, "path": "skills/lint"})


async def submit_call(shelf: Shelf) -> Ask:
    shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    return sends("POST", "/api/v1/submissions", json={"repoUrl": REPO, "skillPath": "skills/lint"})


async def report_form(shelf: Shelf) -> Ask:
    skill = await shelf.publish("lint")
    form = {"category": "spam", "reason": "It is an advertisement."}
    return sends("POST", f"/skills/{skill.canonical}/report", data=form)


async def report_call(shelf: Shelf) -> Ask:
    skill = await shelf.publish("lint")
    return sends("POST", f"/api/v1/skills/{skill.canonical}/reports", json={"reason": "It is spam."})


async def submit_tool(shelf: Shelf) -> Ask:
    shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    return sends("POST", "/mcp", json=tool_call("submit_skill", repo_url=REPO, skill_path="skills/lint"))


async def sign_out_call(_shelf: Shelf) -> Ask:
    return sends("DELETE", "/api/v1/auth/sign-out-all")


async def make_token_call(_shelf: Shelf) -> Ask:
    return sends("POST", "/api/v1/tokens", json={"name": "another", "scopes": ["own"]})


async def revoke_token_call(shelf: Shelf) -> Ask:
    with active_env(shelf.env):
        made = await create_token("ada", "old", ["read"], by="system")
    return sends("DELETE", f"/api/v1/tokens/{made.token.id}")


async def block_form(_shelf: Shelf) -> Ask:
    form = {"kind": "name", "target": "evil", "ahead": "1", "reason": "malware", "confirm": "yes"}
    return sends("POST", "/admin/blocklist/add", data=form)


async def pause_form(_shelf: Shelf) -> Ask:
    return sends("POST", "/admin/queue/pause", data={"minutes": "5", "reason": "a test", "confirm": "yes"})


async def role_form(shelf: Shelf) -> Ask:
    await make_account(shelf.env, "bob", Role.AUTHOR)
    return sends("POST", "/admin/accounts/bob/role", data={"role": "reviewer", "reason": "asked"})


def tool_call(tool: str, **arguments: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


REAL: dict[str, tuple[str, str, Prepare]] = {
    "cancel, form": ("submit", "cancel", cancel_form),
    "cancel, API": ("submit", "cancel", cancel_call),
    "resubmit, form": ("submit", "submit", resubmit_form),
    "upload, form": ("submit", "submit", upload_form),
    "submit, form": ("submit", "submit", send_form),
    "submit, API": ("submit", "submit", submit_call),
    "submit, MCP": ("submit", "submit", submit_tool),
    "report, form": ("submit", "report filed", report_form),
    "report, API": ("submit", "report filed", report_call),
    "sign out everywhere, API": ("submit", "signed out everywhere", sign_out_call),
    "make a token, API": ("own", "token created", make_token_call),
    "revoke a token, API": ("own", "token revoked", revoke_token_call),
    "block, form": ("review", "block", block_form),
    "pause, form": ("admin", "pause", pause_form),
    "change a role, form": ("admin", "account role", role_form),
}
AGENT = {"accept": "application/json, text/event-stream", "host": "platform.test"}


def is_refused(answer: httpx2.Response, scope: str) -> bool:
    """By status; an agent gets the reason as the result of its tool."""
    if "jsonrpc" in answer.text:
        return bool(answer.json()["result"]["isError"]) and f"'{scope}'" in answer.text
    return answer.status_code == 403 and answer.json()["needs"] == scope


@pytest.mark.parametrize("name", sorted(REAL))
async def test_a_real_request_is_refused_without_the_scope_and_done_and_audited_with_it(shelf, name):
    needed, action, prepare = REAL[name]
    await make_account(shelf.env, "ada", Role.ADMIN)
    ask = await prepare(shelf)
    for held in SCOPES:
        if needed not in COVERS[held]:
            headers = {**await bearer(shelf, held), **AGENT}
            await shelf.client.get("/healthz", headers=headers)
            before = await records(shelf)
            assert is_refused(await ask(shelf, headers), needed), held
            assert await records(shelf) == before
    with active_env(shelf.env):
        made = await create_token("ada", "laptop", [needed], by="system")
    answer = await ask(shelf, {"authorization": f"Bearer {made.secret}", **AGENT})
    assert answer.status_code < 400 and not is_refused(answer, needed), answer.text
    (entry,) = await entries_by_token(shelf)
    assert (entry.action, entry.token) == (action, made.token.acting)
    assert entry.by.endswith(":ada")
    assert made.secret not in str(await records(shelf))


async def test_a_tool_that_reads_takes_any_token(shelf):
    await shelf.publish("lint")
    headers = {**await bearer(shelf, "submit"), **AGENT}
    answer = await shelf.client.post("/mcp", json=tool_call("search_skills", query="lint"), headers=headers)
    assert not answer.json()["result"]["isError"]


async def test_only_the_request_with_the_token_is_named_by_it(shelf):
    """Neither what came before nor what follows, by a command or a session, is."""
    ask = await cancel_call(shelf)
    await ask(shelf, await bearer(shelf, "submit"))
    await bearer(shelf, "read")
    async with signed_in(create_app(shelf.env), shelf.env, "ada", Role.ADMIN) as person:
        made = await person.send("/account/tokens", name="more", scopes="read", days="1")
        assert made.status_code == 201
    assert [one.action for one in await entries_by_token(shelf)] == ["cancel"]


async def test_an_admin_token_ends_with_a_demotion_and_others_go_on(shelf):
    await make_account(shelf.env, "root-one", Role.ADMIN)
    strong, plain = await bearer(shelf, "admin"), await bearer(shelf, "submit")
    assert (await shelf.client.get("/api/v1/webhooks", headers=strong)).status_code == 200
    with active_env(shelf.env):
        await set_role("ada", Role.AUTHOR, by="system", reason="left the team")
        await set_role("ada", Role.ADMIN, by="system", reason="came back")
    assert (await shelf.client.get("/api/v1/webhooks", headers=strong)).status_code == 401
    assert (await shelf.client.get("/api/v1/account", headers=plain)).json()["scopes"] == ["read", "submit"]


async def test_an_author_makes_no_token_with_more_than_an_authors_scopes(shelf):
    headers = await bearer(shelf, "own", account="bob", role=Role.AUTHOR)
    body = {"name": "more", "scopes": ["admin"]}
    assert (await shelf.client.post("/api/v1/tokens", json=body, headers=headers)).status_code == 403
    async with signed_in(create_app(shelf.env), shelf.env, "bob", Role.AUTHOR) as person:
        told = await person.do("/account/tokens", name="more", scopes="admin", days="1")
    assert "cannot have the scope 'admin'" in told


async def test_a_review_token_has_a_reviewers_rights_at_most(shelf):
    headers = {**await bearer(shelf, "review"), "accept": "text/html"}
    assert (await shelf.client.get("/admin/review", headers=headers)).status_code == 200
    assert (await shelf.client.get("/admin/audit", headers=headers)).status_code == 403


async def test_the_audit_shows_the_token_on_its_page(shelf):
    ask = await cancel_call(shelf)
    await ask(shelf, await bearer(shelf, "submit"))
    (entry,) = await entries_by_token(shelf)
    assert entry.token is not None
    headers = {**await bearer(shelf, "admin"), "accept": "text/html"}
    page = (await shelf.client.get("/admin/audit", headers=headers)).text
    assert f"(token test, {entry.token.id})" in page

"""E10: every route is walked with every kind of person, by real requests, and lets in exactly whom it declares."""

import enum

import httpx2
import pytest

from tests.support.acting import sign_out_everywhere
from tests.support.envs import open_product_env
from tests.support.people import ADDRESS, browser, make_account, session_of, signed_in, token_of
from tests.support.walking import name_of, walk
from vskill_platform.actions.people.namespace_policy import MAKE_PUBLIC
from vskill_platform.actions.principal import ANYBODY, Principal, Right
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.web.pages.admin_areas import AREAS, areas_for
from vskill_platform.web.routing import Endpoint
from vskill_platform.worker_context import run_with_worker_env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Guard(enum.StrEnum):
    """Who may use a route, as far as no object matters; the widest first."""

    PUBLIC = "public"
    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMIN = "admin"


NAMES = {Guard.AUTHOR: "ann", Guard.REVIEWER: "rob", Guard.ADMIN: "ada"}
#: What a route that lets nobody in answers with.
REFUSED = {"not_signed_in", "not_permitted"}

#: Everything that anybody may change, and why that is safe.
OPEN_WRITES = {
    ("POST", "/api/v1/submissions"): "anybody may submit; it is counted by address",
    ("POST", "/api/v1/submissions/bulk"): "the same",
    ("POST", "/api/v1/submissions/discover"): "looks only; it is counted by address",
    ("POST", "/submit/find"): "the same as a form",
    ("POST", "/submit/send"): "submitting as a form",
    ("POST", "/submissions/{submission_id}/resubmit"): "submitting again as a form",
    (
        "POST",
        "/skills/{owner}/{repo}/{slug}/kind",
    ): "submitting again as a form; only a maintainer names a kind",
    ("POST", "/skills/{owner}/{repo}/{slug}/report"): "anybody may report; it is counted by address",
    ("POST", "/api/v1/skills/{owner}/{repo}/{slug}/reports"): "the same",
    ("POST", "/api/v1/skills/{name}/reports"): "the same",
    ("POST", "/submissions/{submission_id}/report"): "the same of what waits by a rule",
    ("POST", "/api/v1/submissions/{submission_id}/report"): "the same",
    ("POST", "/api/v1/skills/installs"): "counts, by address",
    ("POST", "/api/v1/skills/{name}/installs"): "counts, by address",
    ("POST", "/api/v1/skills/{owner}/{repo}/{slug}/installs"): "counts, by address",
    ("POST", "/api/v1/skills/check-updates"): "reads only",
    ("POST", "/api/v1/auth/github/exchange-for-vsk-token"): "GitHub's word lets in",
    ("POST", "/api/v1/external-scans/{digest}/{provider}"): "the signature lets in",
    ("POST", "/marketplace/{owner}/{repo}/{name}/git-upload-pack"): "reads only",
    ("POST", "/marketplace.git/git-upload-pack"): "reads only",
    ("POST", "/internal/marketplace.git/git-upload-pack"): "reads only",
    ("POST", "/{owner}/git-upload-pack"): "reads only",
    ("POST", "/collections/{collection}/git-upload-pack"): "reads only",
    (
        "POST",
        "/upstreams/{upstream}/git-upload-pack",
    ): "reads only; a clone asks for a skill as its account may",
    ("POST", "/clawhub/api/cli/telemetry/install"): "does nothing",
    ("POST", "/mcp"): "reads; submitting is counted by address",
    ("POST", "/scim/v2/{issuer}/{resource}"): "the directory's token lets in",
    ("PUT", "/scim/v2/{issuer}/{resource}/{id}"): "the same",
    ("PATCH", "/scim/v2/{issuer}/{resource}/{id}"): "the same",
    ("DELETE", "/scim/v2/{issuer}/{resource}/{id}"): "the same",
    ("POST", "/signin"): "the password lets in",
    ("POST", "/signin/{provider}"): "only leads to the provider",
    ("POST", "/signout"): "ends one's own session",
    ("POST", "/setup"): "the one-time token lets in",
    ("POST", "/api/cli/device/code"): "makes a code, which somebody must type; counted by address",
    ("POST", "/api/cli/device/token"): "the machine's secret lets in",
    ("POST", "/api/v1/follows/pushes/{hook_id}"): "the forge's signature lets in",
    ("POST", "/api/v1/publishers/exchange"): "the word of the job's forge lets in; counted by address",
}
#: What reviewers may use of the admin area; the rest is for admins.
REVIEWERS = (
    "/admin",
    "/admin/review",
    "/admin/skills",
    "/admin/reports",
    "/admin/blocklist",
    "/admin/suppressions",
    "/admin/rules",
    "/admin/bulk",
)


GUARDS = {
    Right.ANYONE: Guard.PUBLIC,
    Right.READER: Guard.PUBLIC,
    # Of a namespace that nobody here belongs to.
    Right.MEMBER: Guard.REVIEWER,
    Right.REVIEWER: Guard.REVIEWER,
    Right.OWN_REVIEWER: Guard.REVIEWER,
    Right.ADMIN: Guard.ADMIN,
}
RANKS = {guard: rank for rank, guard in enumerate(Guard)}


def guard_of(endpoint: Endpoint) -> Guard:
    """Who may use a route, as far as no object matters."""
    return Guard.PUBLIC if endpoint.action is None else GUARDS.get(endpoint.action.right, Guard.AUTHOR)


def address_of(endpoint: Endpoint) -> str:
    path = endpoint.path
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + "x" + rest.partition("}")[2]
    return path


@pytest.fixture
async def env():
    async with open_product_env(Settings(store="memory:", rate_limits="off")) as opened:
        yield opened


@pytest.fixture
async def app(env):
    for guard, name in NAMES.items():
        await make_account(env, name, Role(guard.value))
    return create_app(env)


async def code_of(client: httpx2.AsyncClient, endpoint: Endpoint) -> tuple[int, str]:
    headers = {"accept": "application/json"}
    answer = await client.request(endpoint.method, address_of(endpoint), headers=headers)
    is_problem = answer.headers.get("content-type", "").startswith("application/problem")
    told = answer.headers.get("x-error-code", "")
    return answer.status_code, answer.json()["code"] if is_problem else told


async def lets_in(client: httpx2.AsyncClient, endpoint: Endpoint) -> bool:
    status, code = await code_of(client, endpoint)
    to_sign_in = status == 303 and guard_of(endpoint) is not Guard.PUBLIC and endpoint.method == "GET"
    return code not in REFUSED and not to_sign_in


WALKED = [one for one in ENDPOINTS if not one.is_stream]


async def test_E10_anybody_is_let_in_only_where_it_is_public(app):
    async def check(endpoint: Endpoint) -> None:
        async with browser(app) as client:
            status, code = await code_of(client, endpoint)
        if guard_of(endpoint) is Guard.PUBLIC:
            assert code != "not_permitted"
            # What an archive's address does not find may be hidden, so the client is asked for a token. A directory's
            # token is none of an account.
            has_own = endpoint.challenges or endpoint.path.startswith("/scim/")
            asks = endpoint.method == "GET" and code == "not_signed_in" and not has_own
            assert not asks, "a public address asks to sign in"
        elif endpoint.method == "GET" and endpoint.media == "text/html":
            assert status == 303
        else:
            assert (status, code) == (401, "not_signed_in")

    await walk(WALKED, check)


@pytest.mark.parametrize("role", list(NAMES))
async def test_E10_a_session_is_let_in_up_to_its_role(app, env, role):
    async def check(endpoint: Endpoint) -> None:
        async with browser(app) as client:
            client.cookies.set(SESSION_COOKIE, await session_of(env, NAMES[role]))
            assert await lets_in(client, endpoint) is (RANKS[role] >= RANKS[guard_of(endpoint)])

    # A directory's token is none of an account.
    await walk([one for one in WALKED if not one.path.startswith("/scim/")], check)


async def test_E10_a_token_without_the_admin_scope_is_an_authors_whoever_holds_it(app, env):
    async def check(endpoint: Endpoint) -> None:
        await make_account(env, "tom", Role.ADMIN)
        token = await token_of(env, "tom", "read")
        headers = {"authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers) as client:
            allowed = guard_of(endpoint) is Guard.AUTHOR and endpoint.token_scope in {None, "read"}
            assert await lets_in(client, endpoint) is allowed
        await run_with_worker_env(env, lambda: sign_out_everywhere("tom"))

    await walk([one for one in WALKED if guard_of(one) is not Guard.PUBLIC], check)


def test_E10_what_anybody_may_change_is_a_short_list_with_reasons():
    found = {
        (one.method, one.path) for one in ENDPOINTS if one.method != "GET" and guard_of(one) is Guard.PUBLIC
    }
    unknown = found - set(OPEN_WRITES)
    assert not unknown


def test_E10_the_admin_area_is_for_reviewers_and_admins_only():
    area = [one for one in ENDPOINTS if one.path == "/admin" or one.path.startswith("/admin/")]
    assert len(area) > 40
    for one in area:
        place = "/".join(one.path.split("/")[:3])
        assert guard_of(one) is (Guard.REVIEWER if place in REVIEWERS else Guard.ADMIN), name_of(one)


def test_the_admin_area_offers_what_one_may_use_and_nothing_else():
    declared = {one.path: one.action for one in ENDPOINTS if one.method == "GET"}
    # The page of namespaces is everybody's; it is an area for those to whom it shows all of them.
    areas = [one for found in AREAS.values() for one in found]
    assert {one.address: one.action for one in areas if one.action} == {"/namespaces": MAKE_PUBLIC}
    assert all(declared[one.address] for one in areas)
    groups = {role: areas_for(ENDPOINTS, Principal("x", role)) for role in Role}
    offered = {role: [one.address for found in groups[role].values() for one in found] for role in Role}
    assert groups[Role.AUTHOR] == {} == areas_for(ENDPOINTS, ANYBODY)
    assert sorted(offered[Role.REVIEWER]) == sorted({*REVIEWERS, "/namespaces"})
    assert offered[Role.ADMIN] == [one.address for one in areas]


def test_every_form_is_checked_for_its_sender():
    """A POST of a page must be declared by `form`, which is what has it checked."""
    for one in ENDPOINTS:
        if one.method != "GET" and one.media == "text/html":
            assert one.is_form, name_of(one)


async def test_no_route_that_changes_something_trusts_a_cookie_alone(app, env):
    """Whatever a signed-in browser is made to send by another site is refused before the view runs."""

    async def check(endpoint: Endpoint) -> None:
        async with signed_in(app, env, NAMES[Guard.ADMIN], Role.ADMIN) as ada:
            assert await code_of(ada.client, endpoint) == (403, "cross_site")

    await walk([one for one in ENDPOINTS if one.method != "GET" and not one.is_form], check)


def test_a_stream_is_public_and_filters_what_it_tells():
    assert {guard_of(one) for one in ENDPOINTS if one.is_stream} == {Guard.PUBLIC}

"""What one may not read answers as what does not exist: the same status, headers and body, after the same reads, on every
address that names a skill. The addresses come from the table of routes."""

from collections import Counter
from collections.abc import Iterable

import httpx2
import msgspec
import pytest

from tests.support.acting import create_token
from tests.support.envs import active_env
from tests.support.namespaces import manage, set_mode
from tests.support.probe import Probe
from tests.support.shelf import ListedRepositories, Shelf, open_shelf
from vskill_platform.domain.people.namespace import RegistryMode, Visibility
from vskill_platform.store.external_scans import ExternalReport, ExternalStatus, report_write
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
MINE = frozenset({"public", "ns:acme", "ns:acme:internal", "ns:acme:team"})
HIDDEN, ABSENT = "secret", "absent"
NOBODY: dict[str, str] = {}
#: Parts of a path, and parameters that a route needs.
PARTS = {"owner": "acme", "repo": "tools", "version": "1.0.0", "number": "1.0.0", "path": "SKILL.md"}
QUERIES = {
    "/versions/diff": "from=1.0.0&to=1.0.1",
    "/versions/compare": "from=1.0.0&to=1.0.1",
    "/info/refs": "service=git-upload-pack",
    "/clawhub/api/v1/skills/{slug}/file": "path=SKILL.md",
    "/clawhub/api/v1/resolve": "slug={slug}&hash=0",
    "/clawhub/api/v1/download": "slug={slug}",
}
#: Words by which an address names a skill.
NAMED = ("{slug}", "/skills/{name}", "/marketplace/{owner}/{repo}/{name}", "resolve", "v1/download")
#: Headers that differ from one answer to the next.
OWN_HEADERS = {"x-request-id", "ratelimit", "content-length"}
#: Of a route that has them, forms that another test sends.
BODIES = {
    "reports": {"reason": "it is not what it says", "category": "other"},
    "installs": {},
}


def addresses(endpoint: Endpoint, slug: str) -> Iterable[str]:
    """How this route names the skill: by its full name, or by each short form where it takes one."""
    query = next((text for part, text in QUERIES.items() if part in endpoint.path), "")
    short = [slug, f"acme%2F{slug}"] if endpoint.path.startswith("/api/v1/skills/{name}") else [slug]
    for name in [f"{slug}.git"] if endpoint.path.startswith("/marketplace/") else short:
        path = endpoint.path
        for part, value in {**PARTS, "slug": slug, "name": name, "file": "1.0.0.md"}.items():
            path = path.replace(f"{{{part}}}", value).replace(f"{{{part}:path}}", value)
        yield f"{path}?{query.replace('{slug}', slug)}" if query else path


def reads_of(slug: str) -> dict[str, str]:
    return {
        f"{one.path} {number}": address
        for one in ENDPOINTS
        # What is in a collection is read by the collection's readers.
        if one.method == "GET" and any(word in one.path for word in NAMED) and "{collection}" not in one.path
        for number, address in enumerate(addresses(one, slug))
    }


def scopes_of(owner: str) -> list[str]:
    """Documents of an owner, a repository and one skill."""
    return [
        f"/{owner}/marketplace.json",
        f"/{owner}/.well-known/agent-skills/index.json",
        f"/{owner}/tools/.well-known/agent-skills/index.json",
        f"/{owner}/.well-known/skills/index.json",
        f"/{owner}/.well-known/skills/secret/SKILL.md",
    ]


class World(msgspec.Struct, frozen=True):
    """A registry with a hidden skill, and the headers of those who ask."""

    shelf: Shelf
    probe: Probe
    ann: dict[str, str]
    bob: dict[str, str]
    foreign: dict[str, str]

    async def ask(
        self, path: str, headers: dict[str, str], method: str = "GET", **options
    ) -> tuple[httpx2.Response, Counter[str]]:
        self.probe.start()
        answer = await self.shelf.client.request(method, path, headers=headers, **options)
        return answer, self.probe.cost


@pytest.fixture
async def world(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as opened:
        probe = Probe(opened.env.kv, opened.env.blobs)
        sources = ListedRepositories(probe.blobs)
        env = msgspec.structs.replace(opened.env, kv=probe.kv, blobs=probe.blobs, sources=sources)
        transport = httpx2.ASGITransport(create_app(env), client=("192.0.2.7", 1234))
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            shelf = Shelf(env, client, sources)
            await manage(env, "acme", Visibility.TEAM, "user:ann")
            await manage(env, "inner", Visibility.INTERNAL)
            for version in ("1.0.0", "1.0.1"):
                await shelf.publish("secret", version, version=version, submitter="ann", audiences=MINE)
            await shelf.publish("lint", submitter="ann", audiences=MINE)
            inner = frozenset({"public", "ns:inner"})
            await shelf.publish(
                "inside", repo="https://github.com/inner/tools", submitter="ann", audiences=inner
            )
            await shelf.publish("lint", repo="https://github.com/other/pub")
            made = {}
            with active_env(env):
                for name in ("ann", "bob"):
                    await create_user(name, Role.AUTHOR, by="system", reason="a test")
                    secret = (await create_token(name, "test", ["read", "submit", "own"], by="system")).secret
                    made[name] = {"authorization": f"Bearer {secret}"}
            for headers in made.values():
                # The first use of a token is noted, and the first requests of a process read what it keeps.
                await client.get("/api/v1/account", headers=headers)
                await client.get("/marketplace.json", headers=headers)
            yield World(shelf, probe, made["ann"], made["bob"], {"authorization": "Bearer vsk_foreign"})


def facts(answer: httpx2.Response, slug: str) -> tuple[int, dict[str, str], str]:
    """All that a client sees, with the request's own name and id taken out."""
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    text = answer.text.replace(slug, "NAME").replace(answer.headers["x-request-id"], "ID")
    return answer.status_code, headers, text


def test_the_addresses_of_every_protocol_are_asked():
    found = " ".join(reads_of(HIDDEN))
    for part in ("/api/v1/skills/{name}/archive", "info/refs", "badge", "attestation", "diff", "/clawhub/"):
        assert part in found
    assert len(reads_of(HIDDEN)) >= 40


@pytest.mark.parametrize("who", ["nobody", "bob", "foreign"])
async def test_a_hidden_skill_answers_as_an_absent_one_after_the_same_reads(world, who):
    headers = {"nobody": {}, "bob": world.bob, "foreign": world.foreign}[who]
    absent = reads_of(ABSENT)
    for route, address in reads_of(HIDDEN).items():
        hidden, cost = await world.ask(address, headers)
        other, other_cost = await world.ask(absent[route], headers)
        assert hidden.status_code in ({404} if who == "bob" else {401} if who == "foreign" else {401, 404}), (
            route
        )
        assert facts(hidden, HIDDEN) == facts(other, ABSENT), route
        assert cost == other_cost, route


async def test_a_member_reads_it_everywhere(world):
    for route, address in reads_of(HIDDEN).items():
        answer, _ = await world.ask(address, world.ann)
        if route.startswith("/.well-known/skills/"):
            # The index of the whole registry, which names nothing that only members may read.
            assert answer.status_code == 404
        elif "/-/{part}" in route:
            # It is no plugin, and says so to those who may read it.
            assert answer.status_code == 404 and "has no part" in answer.text
        else:
            assert answer.status_code in {200, 302}, (route, answer.text)


@pytest.mark.parametrize("who", ["nobody", "bob", "foreign"])
async def test_the_documents_of_a_hidden_namespace_answer_as_those_of_an_absent_one(world, who):
    headers = {"nobody": {}, "bob": world.bob, "foreign": world.foreign}[who]
    for hidden_path, absent_path in zip(scopes_of("acme"), scopes_of("none"), strict=True):
        hidden, cost = await world.ask(hidden_path, headers)
        other, other_cost = await world.ask(absent_path, headers)
        assert hidden.status_code == (401 if who == "foreign" else 404)
        assert facts(hidden, "acme") == facts(other, "none")
        assert cost == other_cost, hidden_path
    for path in scopes_of("acme"):
        answer, _ = await world.ask(path, world.ann)
        assert answer.status_code == 200, path


@pytest.mark.parametrize("name", ["acme/tools/{}", "{}", "acme/{}"])
async def test_what_changes_something_finds_no_hidden_skill_either(world, name):
    for verb, body in (("reports", BODIES["reports"]), ("installs", {})):
        answers = []
        for slug in (HIDDEN, ABSENT):
            path = f"/api/v1/skills/{name.format(slug).replace('/', '%2F')}/{verb}"
            answer, cost = await world.ask(path, world.bob, "POST", json=body)
            answers.append((facts(answer, slug), cost))
        assert answers[0] == answers[1] and answers[0][0][0] == 404, verb
    for verb in ("delete", "versions/1.0.0/yank"):
        costs = []
        for slug in (HIDDEN, ABSENT):
            path = f"/api/v1/skills/acme/tools/{slug}/{verb}"
            answer, cost = await world.ask(path, world.bob, "POST", json={"reason": "not mine"})
            costs.append((facts(answer, slug), cost))
        assert costs[0] == costs[1] and costs[0][0][0] == 404, verb


async def test_updates_of_a_hidden_skill_are_those_of_an_unknown_one(world):
    for headers in (NOBODY, world.bob, world.foreign):
        body = {"skills": [{"name": f"acme/tools/{slug}"} for slug in (HIDDEN, ABSENT)]}
        answer, _ = await world.ask("/api/v1/skills/check-updates", headers, "POST", json=body)
        first, second = answer.json()["results"]
        assert str(first).replace(HIDDEN, ABSENT) == str(second)


def agent_calls(slug: str) -> list[dict[str, object]]:
    """What an agent asks about one skill."""
    full = f"acme/tools/{slug}"
    calls: list[tuple[str, dict[str, object]]] = [
        ("tools/call", {"name": tool, "arguments": {"name": name}})
        for tool in ("get_skill", "get_security_report")
        for name in (full, slug)
    ]
    calls.append(("resources/read", {"uri": f"skill://{full}"}))
    return [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in calls]


async def test_an_agent_is_told_of_a_hidden_skill_as_of_an_absent_one(world):
    accept = {"accept": "application/json, text/event-stream"}
    for hidden_call, absent_call in zip(agent_calls(HIDDEN), agent_calls(ABSENT), strict=True):
        for headers in (NOBODY, world.bob, world.foreign):
            hidden, cost = await world.ask("/mcp", {**headers, **accept}, "POST", json=hidden_call)
            absent, absent_cost = await world.ask("/mcp", {**headers, **accept}, "POST", json=absent_call)
            assert hidden.status_code == 200 and "There is no skill" in hidden.text
            assert facts(hidden, HIDDEN) == facts(absent, ABSENT)
            assert cost == absent_cost
        member, _ = await world.ask("/mcp", {**world.ann, **accept}, "POST", json=hidden_call)
        assert "There is no skill" not in member.text and "secret" in member.text


async def test_git_fetches_a_hidden_skill_as_an_absent_one(world):
    want = b"0032want " + b"0" * 40 + b"\n00000009done\n"
    for headers, status in ((NOBODY, 401), (world.bob, 404), (world.foreign, 401), (world.ann, 200)):
        answers = []
        for slug in (HIDDEN, ABSENT):
            path = f"/marketplace/acme/tools/{slug}.git/git-upload-pack"
            answer, cost = await world.ask(path, headers, "POST", content=want)
            answers.append((facts(answer, slug), cost))
        assert answers[0][0][0] == status
        if headers is not world.ann:
            assert answers[0] == answers[1]


async def test_reports_about_hidden_content_are_those_of_unknown_content(world):
    """By the digest alone; whoever may read a skill that holds it reads them."""
    report = ExternalReport("acme-scan", ExternalStatus.COMPLETE, 1, 2, problem="a word of the analyser")
    with active_env(world.shelf.env):
        digest = (await get_skill("acme/tools/secret")).current_digest
        assert digest is not None
        await world.shelf.env.kv.commit([report_write(digest, report)])
    for suffix in ("", "/acme-scan"):
        member, _ = await world.ask(f"/api/v1/external-scans/{digest}{suffix}", world.ann)
        assert "a word of the analyser" in member.text
        for headers in (NOBODY, world.bob, world.foreign):
            hidden, cost = await world.ask(f"/api/v1/external-scans/{digest}{suffix}", headers)
            absent, absent_cost = await world.ask(f"/api/v1/external-scans/{'0' * 64}{suffix}", headers)
            assert facts(hidden, digest) == facts(absent, "0" * 64)
            assert cost == absent_cost


# Names.


async def test_a_hidden_skill_takes_no_name_from_a_public_one(world):
    """The short name means the public skill, and the list calls it by its slug; to a member it means the hidden skill,
    which had it first, and the public one has a qualified name."""
    for headers in (NOBODY, world.bob, world.foreign):
        answer, _ = await world.ask("/api/v1/skills/lint", headers)
        assert answer.json()["skill"]["name"] == "other/pub/lint"
        listed, _ = await world.ask("/marketplace.json", headers)
        assert [one["name"] for one in listed.json()["plugins"] if "lint" in one["name"]] == ["lint"]
        card, _ = await world.ask("/clawhub/api/v1/skills/lint", headers)
        assert card.json()["skill"]["slug"] == "lint"
    member, _ = await world.ask("/api/v1/skills/lint", world.ann)
    assert member.json()["skill"]["name"] == "acme/tools/lint"
    for name in ("lint-other", "other/pub/lint"):
        public, _ = await world.ask(f"/api/v1/skills/{name}", world.ann)
        assert public.json()["skill"]["name"] == "other/pub/lint", name
    for name in ("lint-other", "other--pub--lint"):
        card, _ = await world.ask(f"/clawhub/api/v1/skills/{name}", world.ann)
        assert card.json()["owner"]["handle"] == "other", name
    unknown, _ = await world.ask("/api/v1/skills/lint-other", NOBODY)
    assert unknown.status_code == 404


async def test_a_page_of_names_ends_with_one_that_the_reader_may_read(world):
    """Nor does its cursor name another."""
    at = ""
    seen = []
    while True:
        answer, _ = await world.ask(f"/clawhub/api/v1/skills?prefix=l&limit=1&cursor={at}", world.bob)
        seen += [one["slug"] for one in answer.json()["items"]]
        at = answer.json()["nextCursor"]
        assert "acme" not in answer.text
        if at is None:
            break
    assert seen == ["lint"]


# Documents of the whole registry.


DOCUMENTS = (
    "/marketplace.json",
    "/.well-known/agent-skills/index.json",
    "/.well-known/skills/index.json",
    "/sitemap.xml",
    "/feed.xml",
)


async def test_documents_of_the_registry_have_a_public_and_an_internal_form(world):
    """Whoever is a member of a hidden namespace finds it in that namespace's own documents only."""
    for path in DOCUMENTS:
        public, _ = await world.ask(path, {})
        assert "other/pub/lint" in public.text or "lint" in public.text
        assert "inside" not in public.text and "secret" not in public.text
        bob, _ = await world.ask(path, world.bob)
        ann, _ = await world.ask(path, world.ann)
        assert "inside" in bob.text and "secret" not in bob.text
        assert ann.content == bob.content, path
        again, _ = await world.ask(path, {})
        assert again.content == public.content, path


async def test_a_token_of_one_namespace_reads_no_other(world):
    with active_env(world.shelf.env):
        made = await create_token("ann", "other", ["read"], by="system", namespace="other")
        mine = await create_token("ann", "mine", ["read"], by="system", namespace="acme")
    address = "/api/v1/skills/acme/tools/secret"
    other, _ = await world.ask(address, {"authorization": f"Bearer {made.secret}"})
    own, _ = await world.ask(address, {"authorization": f"Bearer {mine.secret}"})
    assert (other.status_code, own.status_code) == (404, 200)
    internal, _ = await world.ask("/marketplace.json", {"authorization": f"Bearer {made.secret}"})
    assert "inside" not in internal.text and "lint" in internal.text


# Caches.


async def test_answers_vary_by_who_asks_and_only_public_ones_may_be_kept_by_others(world):
    for path in (*DOCUMENTS, "/api/v1/skills", "/api/v1/skills/other/pub/lint", "/skills"):
        for headers, cache in (({}, "public"), (world.ann, "private")):
            answer, _ = await world.ask(path, headers)
            assert answer.status_code == 200
            assert {"authorization", "cookie"} <= set(answer.headers["vary"].lower().split(", "))
            if path != "/skills":
                assert answer.headers["cache-control"].startswith(cache), path
    own, _ = await world.ask("/api/v1/skills/acme/tools/secret/file?version=1.0.0", world.ann)
    assert own.headers["cache-control"] == "private, no-cache"
    assert "vary" not in (await world.ask("/healthz", {}))[0].headers


async def test_a_tag_of_a_hidden_answer_tells_nobody_anything(world):
    for route, address in reads_of(HIDDEN).items():
        answer, _ = await world.ask(address, world.ann)
        tag = answer.headers.get("etag")
        if tag is None:
            continue
        known, _ = await world.ask(address, {**world.ann, "if-none-match": tag})
        assert known.status_code == 304, route
        stranger, _ = await world.ask(address, {**world.bob, "if-none-match": tag})
        assert stranger.status_code == 404, route


async def test_what_a_member_was_given_is_not_kept_for_others(world):
    """Each of them asks first once."""
    for path in ("/api/v1/skills", "/api/v1/skills/search?q=secret", "/api/v1/skills/facets", *DOCUMENTS):
        before, _ = await world.ask(path, world.bob)
        member, _ = await world.ask(path, world.ann)
        nobody, _ = await world.ask(path, {})
        after, _ = await world.ask(path, world.bob)
        assert before.content == after.content
        for answer in (before, nobody, after):
            assert "acme" not in answer.text, path
        assert member.status_code == 200


async def test_a_change_of_visibility_is_obeyed_by_the_next_request(world):
    path = "/api/v1/skills/acme/tools/secret"
    assert (await world.ask(path, {}))[0].status_code == 404
    await manage(world.shelf.env, "acme", Visibility.PUBLIC, "user:ann")
    assert (await world.ask(path, {}))[0].status_code == 200
    assert "secret" in (await world.ask("/marketplace.json", {}))[0].text
    await manage(world.shelf.env, "acme", Visibility.INTERNAL, "user:ann")
    assert (await world.ask(path, {}))[0].status_code == 404
    assert "secret" not in (await world.ask("/marketplace.json", {}))[0].text
    assert (await world.ask(path, world.bob))[0].status_code == 200


# A registry that lets in accounts only.

#: What stays open, and why.
OPEN = {
    "GET /static/{digest}/{name:path}",
    # The same picture by the name that browsers ask for.
    "GET /favicon.ico",
    "GET /healthz",
    "GET /readyz",
    # It asks for the operator's token or for this machine by itself: a scraper has no account.
    "GET /metrics",
    "GET /.well-known/vskill-keys.json",
    "GET /.well-known/vskill-keys.pem",
    # The client, with which people sign in.
    "GET /client/{file}",
    # A directory has a token of its own.
    "GET /scim/v2/{issuer}/{resource}",
    "GET /scim/v2/{issuer}/{resource}/{id}",
    "POST /scim/v2/{issuer}/{resource}",
    "PUT /scim/v2/{issuer}/{resource}/{id}",
    "PATCH /scim/v2/{issuer}/{resource}/{id}",
    "DELETE /scim/v2/{issuer}/{resource}/{id}",
    "GET /signin",
    "POST /signin",
    # A machine without a browser asks to be signed in.
    "POST /api/cli/device/code",
    "POST /api/cli/device/token",
    # A forge tells of a push by a signed delivery.
    "POST /api/v1/follows/pushes/{hook_id}",
    # So does a CI job, by its forge's word.
    "POST /api/v1/publishers/exchange",
    "POST /signin/{provider}",
    "GET /signin/{provider}/callback",
    "POST /signout",
    "GET /setup",
    "POST /setup",
    "POST /api/v1/auth/github/exchange-for-vsk-token",
    "POST /api/v1/external-scans/{digest}/{provider}",
}


def test_what_stays_open_in_an_internal_registry_is_listed_here():
    assert {f"{one.method} {one.path}" for one in ENDPOINTS if one.stays_open} == OPEN


async def test_metrics_of_an_internal_registry_are_for_no_stranger(world):
    """Not for one on this machine either: whatever comes from here without a token is let in nowhere else."""
    env = world.shelf.env
    settings = msgspec.structs.replace(env.settings, metrics_token="of-the-scraper")
    await set_mode(env, RegistryMode.INTERNAL)
    for peer in ("192.0.2.7", "127.0.0.1"):
        for one, token, status in (
            (env.settings, None, 401),
            (settings, None, 401),
            (settings, "wrong", 401),
            (settings, "of-the-scraper", 200),
        ):
            app = create_app(msgspec.structs.replace(env, settings=one))
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            transport = httpx2.ASGITransport(app, client=(peer, 1))
            async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
                answer = await client.get("/metrics", headers=headers)
            assert (answer.status_code, "vskill_queue" in answer.text) == (status, status == 200), (
                peer,
                token,
            )


def example_of(path: str) -> str:
    parts = ("x" if part.startswith("{") else part for part in path.split("/"))
    return "/".join(parts)


async def test_an_internal_registry_answers_strangers_alike_everywhere_else(world):
    await set_mode(world.shelf.env, RegistryMode.INTERNAL)
    unknown = ("/no/such/address/at/all", "/api/v1/none")
    asked = [(one.method, example_of(one.path), one.media) for one in ENDPOINTS if not one.stays_open]
    asked += [
        ("GET", path, "") for path in (*unknown, *reads_of(HIDDEN).values(), *reads_of(ABSENT).values())
    ]
    for method, path, media in asked:
        answer, _ = await world.ask(path, {}, method)
        if answer.status_code == 303:
            assert answer.headers["location"].startswith("/signin?next="), path
            continue
        assert answer.status_code == 401, (method, path, media)
        assert answer.headers["www-authenticate"] == 'Basic realm="skills", Bearer'
    for path in ("/healthz", "/readyz", "/signin", "/.well-known/vskill-keys.json"):
        assert (await world.ask(path, {}))[0].status_code == 200
    listed, _ = await world.ask("/marketplace.json", world.bob)
    assert "lint" in listed.text and "inside" in listed.text and "secret" not in listed.text
    assert listed.headers["cache-control"] == "private, no-cache"
    assert (await world.ask(unknown[1], world.bob))[0].status_code == 404

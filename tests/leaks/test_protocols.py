"""What is no plain route: streams, the tools of MCP, answers that are kept, and a secret that stops being one. Each is
asked as an outsider, who learns nothing, and as a member, who learns it: a test that saw nothing at all could not fail."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product

import httpx2
import msgspec
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.leaks.requests import Asked, paths_for
from tests.leaks.test_routes import ask, leaks_in, without_names, written
from tests.leaks.world import (
    COLLECTION,
    HIDDEN_NAME,
    HIDDEN_OWNER,
    HIDDEN_PLUGIN,
    HIDDEN_REPO,
    PUBLIC_REPO,
    WORD,
    Asker,
    Facts,
    LeakWorld,
    open_leak_world,
    publish,
    put_namespace,
)
from tests.support.envs import active_env
from tests.support.git_packs import clone_texts, fetch_pack
from tests.support.patience import PATIENCE_S
from tests.support.streams import serving
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.skills.catalogue import Filter
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

STREAMS = [endpoint for endpoint in ENDPOINTS if endpoint.is_stream]
SECRET_REPO = f"https://github.com/{HIDDEN_OWNER}/{HIDDEN_REPO}"
#: Addresses of lists and documents that hold what the reader may read, each with what a member finds in it.
LISTS = (
    "/skills",
    "/api/v1/skills",
    f"/api/v1/skills/search?q={HIDDEN_NAME}",
    "/api/v1/submissions",
    "/queue",
    f"/{HIDDEN_OWNER}/marketplace.json",
    f"/api/v1/skills/{HIDDEN_OWNER}/{HIDDEN_REPO}/{HIDDEN_NAME}",
)
DOCUMENTS = (
    "/marketplace.json",
    "/.well-known/agent-skills/index.json",
    "/sitemap.xml",
    f"/collections/{COLLECTION}/marketplace.json",
)


@pytest.fixture(scope="module")
async def world(tmp_path_factory) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path_factory.mktemp("protocols")) as opened:
        yield opened


# Streams.


def headers_of(asker: Asker) -> dict[str, str]:
    cookies = "; ".join(f"{name}={value}" for name, value in asker.cookies.items())
    return {**asker.headers, **({"cookie": cookies} if cookies else {})}


async def hear(world: LeakWorld, asker: Asker, endpoint: Endpoint, facts: Facts, number: int) -> str:
    """What a stream sends while a secret and then a public skill are published, until the public one was told."""
    public = f"told-{number}"
    (path, *_) = paths_for(endpoint, facts)
    heard = ""
    async with (
        serving(world.env) as address,
        httpx2.AsyncClient(timeout=httpx2.Timeout(PATIENCE_S)) as client,
        client.stream("GET", f"{address}{path}", headers=headers_of(asker)) as response,
    ):
        if response.status_code != 200:
            return (await response.aread()).decode()
        chunks = response.aiter_text()
        heard += await anext(chunks)
        with active_env(world.env):
            await publish(world, SECRET_REPO, f"secret-{number}", f"Again {WORD}.", "1.0.0")
            await publish(world, PUBLIC_REPO, public, "For everybody.", "1.0.0")
        if "submission_id" in endpoint.path:
            return heard
        async with asyncio.timeout(PATIENCE_S):
            while public not in heard:
                heard += await anext(chunks)
    return heard


@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
@pytest.mark.parametrize("endpoint", STREAMS, ids=lambda endpoint: endpoint.path)
async def test_no_stream_tells_a_secret(world, endpoint, asker):
    number = STREAMS.index(endpoint) * 10 + len(asker) % 10
    heard = await hear(world, world.askers[asker], endpoint, world.visible, number)
    assert not leaks_in(world, Asked("GET", endpoint.path), heard), heard[:2000]
    assert f"secret-{number}" not in heard


async def test_a_member_hears_of_it(world):
    endpoint = next(one for one in STREAMS if one.path == "/api/v1/skills/stream")
    heard = await hear(world, world.askers["mia by token"], endpoint, world.visible, 99)
    assert "secret-99" in heard


async def test_the_stream_of_a_hidden_submission_is_that_of_none(world):
    endpoint = next(one for one in STREAMS if "submission_id" in one.path)
    async with serving(world.env) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        for asker in ("anonymous", "zoe by token"):
            headers = headers_of(world.askers[asker])
            texts = []
            for facts in (world.hidden, world.absent):
                (path,) = paths_for(endpoint, facts)
                async with client.stream("GET", f"{address}{path}", headers=headers) as response:
                    begun = "" if response.status_code == 200 else (await response.aread()).decode()
                    begun = begun.replace(response.headers["x-request-id"], "(id)")
                    texts.append((response.status_code, without_names(begun, facts)))
            assert texts[0] == texts[1]


# MCP.


def arguments_for(schema: dict[str, object], facts: Facts) -> dict[str, str]:
    """By the tool's own schema; an argument that no table here knows is an error."""
    known = {
        "query": WORD,
        "name": facts.canonical,
        "version": "1.0.0",
        "repo_url": facts.repo_url,
        "skill_path": f"skills/{facts.slug}",
        "path": "SKILL.md",
    }
    properties = schema["properties"]
    assert isinstance(properties, dict)
    # A filter would leave out what must not be told; `test_facets` asks with each.
    left_out = ("limit", "cursor", *Filter.__struct_fields__)
    names = [name for name in properties if name not in left_out]
    assert set(names) <= set(known), names
    return {name: known[name] for name in names}


async def told(client: Client, name: str, arguments: dict[str, str]) -> str:
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return f"error {error}"
    return msgspec.json.encode(result.model_dump(mode="json")).decode()


async def test_no_tool_and_no_resource_tells_a_secret(world):
    """Nor a part of a plugin."""
    pairs = ((world.hidden, world.absent), (world.hidden_plugin, world.absent_plugin))
    async with serving(world.env) as address:
        for asker in ("anonymous", "zoe by token"):
            http = httpx2.AsyncClient(headers=headers_of(world.askers[asker]))
            async with http, Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client:
                for (there, nowhere), tool in product(pairs, (await client.list_tools()).tools):
                    hidden = arguments_for(tool.input_schema, there)
                    absent = arguments_for(tool.input_schema, nowhere)
                    first = await told(client, tool.name, hidden)
                    asked = Asked("POST", tool.name, hidden)
                    assert not leaks_in(world, asked, first), (tool.name, first[:2000])
                    second = await told(client, tool.name, absent)
                    assert without_names(first, there) == without_names(second, nowhere), tool.name
                methods = ("skills/list", "skills/get", "resources/directory/read")
                for pair, part, (number, method) in product(pairs, (False, True), enumerate(methods)):
                    body = {"jsonrpc": "2.0", "id": number, "method": method}
                    texts = []
                    for facts in pair:
                        file = f"/-/{facts.part}" if part else ""
                        file += "/SKILL.md" if method == "skills/get" else ""
                        params = {"uri": f"skill://{facts.canonical}{file}"} if number else {}
                        accept = {"accept": "application/json, text/event-stream"}
                        asked_at = f"{address}/mcp"
                        answer = await http.post(asked_at, json={**body, "params": params}, headers=accept)
                        texts.append(without_names(answer.text, facts))
                        if not number:
                            assert not leaks_in(world, Asked("POST", method), answer.text)
                    assert texts[0] == texts[1], method
                listed = (await client.list_resources()).model_dump_json()
                assert not leaks_in(world, Asked("POST", "resources"), listed)
                for facts, part in product((one for pair in pairs for one in pair), (False, True)):
                    inside = f"/-/{facts.part}" if part else ""
                    with pytest.raises(MCPError):
                        await client.read_resource(f"skill://{facts.canonical}{inside}/SKILL.md")


# Answers that are kept.


@pytest.mark.parametrize("address", LISTS)
async def test_a_member_finds_what_an_outsider_does_not_whoever_asked_first(world, address):
    """A member's answer is never given to an outsider again, whatever tag they send along."""
    asked = Asked(
        "GET",
        address.partition("?")[0],
        dict([address.partition("?")[2].split("=")]) if "?" in address else {},
    )
    member = await ask(world, world.askers["mia by token"], asked)
    assert member.status_code == 200
    assert WORD in member.text or HIDDEN_NAME in member.text
    assert {"private", "no-store"} & set(member.headers["cache-control"].replace(",", " ").split())
    for asker in ("anonymous", "zoe by token", "zoe by session"):
        who = world.askers[asker]
        tagged = msgspec.structs.replace(
            who, headers={**who.headers, "if-none-match": member.headers.get("etag", '"x"')}
        )
        for one in (who, tagged):
            outsider = await ask(world, one, asked)
            assert outsider.status_code != 304
            assert not leaks_in(world, asked, written(outsider)), asker
            assert {"authorization", "cookie"} <= _varies(outsider)
    assert {"authorization", "cookie"} <= _varies(member)
    assert written(await ask(world, world.askers["mia by token"], asked)) == written(member)


def _varies(answer: httpx2.Response) -> set[str]:
    return {part.strip().lower() for part in answer.headers.get("vary", "").split(",")}


@pytest.mark.parametrize("address", DOCUMENTS)
async def test_documents_about_the_registry_hold_no_private_namespace_for_anybody(world, address):
    for asker in ("mia by token", "anonymous", "zoe by token"):
        asked = Asked("GET", address)
        answer = await ask(world, world.askers[asker], asked)
        assert answer.status_code == 200, answer.text[:500]
        assert not leaks_in(world, asked, written(answer)), asker


async def test_no_git_marketplace_holds_a_private_namespace_but_its_own(world):
    """For whoever asks, and for a member in the list of the namespace alone. A list is compressed, so it is unpacked."""
    for asker in ("mia by token", "anonymous", "zoe by token"):
        headers = headers_of(world.askers[asker])
        for path in ("marketplace", "internal/marketplace", f"collections/{COLLECTION}"):
            found = await clone_texts(world.client, f"/{path}.git", headers=headers)
            assert found.status == (401 if asker == "anonymous" and "internal" in path else 200), path
            assert not leaks_in(world, Asked("GET", f"/{path}.git"), "\n".join(found.texts)), (asker, path)
    own = f"/{HIDDEN_OWNER}.git"
    member = await clone_texts(world.client, own, headers=headers_of(world.askers["mia by token"]))
    assert {HIDDEN_NAME, HIDDEN_PLUGIN} <= set(member.plugins)
    for asker, status in (("anonymous", 401), ("zoe by token", 404)):
        headers = headers_of(world.askers[asker])
        hidden = await clone_texts(world.client, own, headers=headers)
        absent = await clone_texts(world.client, f"/{world.absent.owner}.git", headers=headers)
        assert hidden.status == absent.status == status
        assert without_names(hidden.texts[0], world.hidden) == without_names(absent.texts[0], world.absent)
        wanted = await fetch_pack(world.client, own, member.commit, headers=headers)
        assert b"PACK" not in wanted and not leaks_in(world, Asked("POST", own), wanted.decode())


async def test_no_repository_of_a_private_skill_or_plugin_is_told_from_none(world):
    """What is in them, the member gets."""
    pairs = ((world.hidden, world.absent), (world.hidden_plugin, world.absent_plugin))
    for there, nowhere in pairs:
        hidden, absent = (f"/marketplace/{one.canonical}.git" for one in (there, nowhere))
        member = await clone_texts(world.client, hidden, headers=headers_of(world.askers["mia by token"]))
        assert any(WORD in text for text in member.texts)
        for asker in ("anonymous", "zoe by token"):
            headers = headers_of(world.askers[asker])
            first = await clone_texts(world.client, hidden, headers=headers)
            second = await clone_texts(world.client, absent, headers=headers)
            assert first.status == second.status and not first.commit
            assert without_names(first.texts[0], there) == without_names(second.texts[0], nowhere)
            wanted = await fetch_pack(world.client, hidden, member.commit, headers=headers)
            assert b"PACK" not in wanted and not leaks_in(world, Asked("POST", hidden), wanted.decode())


async def test_a_short_name_that_two_skills_have_is_the_readable_one(world):
    for asker in ("anonymous", "zoe by token"):
        asked = Asked("GET", "/api/v1/skills/shared")
        answer = await ask(world, world.askers[asker], asked)
        assert answer.status_code == 200
        assert "openhouse" in answer.text
        assert not leaks_in(world, asked, written(answer))


# A secret that is one no more, and again.


async def test_every_answer_after_a_flip_obeys_it(tmp_path):
    async with open_leak_world(tmp_path) as world:
        asked = [Asked("GET", path.partition("?")[0]) for path in LISTS if "?" not in path]
        for visibility, shown in (
            (Visibility.PUBLIC, True),
            (Visibility.TEAM, False),
            (Visibility.INTERNAL, False),
            (Visibility.PUBLIC, True),
        ):
            with active_env(world.env):
                await put_namespace(visibility)
            for one in asked:
                text = written(await ask(world, world.askers["anonymous"], one))
                assert bool(leaks_in(world, Asked("GET", "/"), text) and "404" not in text[:3]) is shown, (
                    visibility,
                    one.path,
                )

"""The MCP server, asked by the real Python client over streamable HTTP, on a real server process."""

import base64
import json

import httpx2
import pytest

from tests.clients.registry import Registry, running, skill_md
from tests.support.envs import skill_files
from tests.support.shelf import open_shelf

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FILES = {
    "SKILL.md": skill_md("tidy", "Tidies up."),
    "assets/logo.png": bytes(range(256)),
    "run.sh": b"#!/bin/sh\n",
}
NAME = "upload~tests/skills/tidy"
TOOLS = {"search_skills", "get_skill", "get_security_report", "submit_skill"}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("tidy", FILES)
    return registry


@pytest.fixture
def stopped(tmp_path):
    """The address of a registry that has answered, and does not any more."""
    with running(tmp_path) as registry:
        assert registry.get("/mcp").status_code == 405
    return registry.url


@pytest.fixture(params=["legacy", "auto"])
async def client(request, published):
    # Imported here: its hundreds of models cost every test process a second, and one of them needs it.
    from mcp.client import Client  # noqa: PLC0415

    async with Client(f"{published.url}/mcp", mode=request.param) as opened:
        yield opened


async def test_lists_the_tools_with_their_arguments(client):
    tools = {one.name: one for one in (await client.list_tools()).tools}
    assert set(tools) == TOOLS
    assert tools["get_skill"].input_schema["required"] == ["name"]
    assert all(one.description for one in tools.values())
    assert tools["submit_skill"].annotations.read_only_hint is False


@pytest.mark.shows("sdk", "find")
async def test_searches_reads_and_reports(client):
    found = (await client.call_tool("search_skills", {"query": "tidy"})).structured_content
    assert [one["name"] for one in found["results"]] == [NAME]
    fits = {"licence": found["results"][0]["licence"], "category": found["results"][0]["category"]}
    assert (await client.call_tool("search_skills", fits)).structured_content["results"] == found["results"]
    for narrow in ({"query": "tidy", "provenance": "verified"}, {"without": "secrets,scripts"}):
        none = (await client.call_tool("search_skills", narrow)).structured_content
        assert none["results"] == []
    skill = (await client.call_tool("get_skill", {"name": NAME})).structured_content
    assert skill["content"] == FILES["SKILL.md"].decode() and skill["version"] == "1.0.0"
    assert {one["path"] for one in skill["files"]} == set(FILES)
    assert any("npx skills add" in line for line in skill["install"]["skills"])
    report = await client.call_tool("get_security_report", {"name": "tidy"})
    assert report.structured_content["overallVerdict"] == "PASS"
    assert json.loads(report.content[0].text) == report.structured_content


async def test_a_report_names_what_the_author_should_correct(client, published):
    published.publish("shouting", {"SKILL.md": b"---\nname: SHOUTING\ndescription: Shouts.\n---\n"})
    report = await client.call_tool("get_security_report", {"name": "shouting"})
    (note,) = report.structured_content["notes"]
    assert (note["code"], note["line"]) == ("name-invalid", 2) and "name: shouting" in note["fix"]


@pytest.mark.shows("sdk", "add", "install")
async def test_skills_are_resources_with_every_file(client):
    listed = (await client.list_resources()).resources
    uri = next(one.uri for one in listed if one.name == NAME)
    text = (await client.read_resource(uri)).contents[0]
    assert text.text == FILES["SKILL.md"].decode() and text.mime_type == "text/markdown"
    folder = uri.removesuffix("/SKILL.md")
    assert (await client.read_resource(folder)).contents[0].text == text.text
    picture = (await client.read_resource(f"{folder}/assets/logo.png")).contents[0]
    assert base64.b64decode(picture.blob) == FILES["assets/logo.png"]


@pytest.mark.shows("sdk", "wrong name")
async def test_what_is_wrong_is_said_to_the_agent(client):
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - as above

    missing = await client.call_tool("get_skill", {"name": "a/b/c"})
    assert missing.is_error and "a/b/c" in missing.content[0].text
    unknown = await client.call_tool("search_skills", {"without": "sleep"})
    assert unknown.is_error and "without" in unknown.content[0].text
    wrong = await client.call_tool("search_skills", {"limit": 1000})
    assert wrong.is_error and "not valid" in wrong.content[0].text
    refused = await client.call_tool("submit_skill", {"repo_url": "ftp://x"})
    assert refused.is_error and refused.content[0].text
    with pytest.raises(MCPError):
        await client.read_resource("skill://a/b/c")
    with pytest.raises(MCPError):
        await client.call_tool("no_such_tool", {})


@pytest.mark.shows("sdk", "update")
async def test_a_new_version_is_read_at_once(request, client, published):
    slug = f"grows-{request.node.callspec.params['client']}"
    for body in ("old", "new"):
        canonical = published.publish(slug, {"SKILL.md": skill_md(slug, body)})
        (text,) = (await client.read_resource(f"skill://{canonical}/SKILL.md")).contents
        assert text.text == skill_md(slug, body).decode()


@pytest.mark.shows("sdk", "down")
async def test_nothing_is_read_while_the_registry_is_down(stopped):
    from mcp.client import Client  # noqa: PLC0415 - as above

    with pytest.raises(ExceptionGroup):
        async with Client(f"{stopped}/mcp") as opened:
            await opened.list_tools()


@pytest.mark.shows("sdk", "revoked")
async def test_a_blocked_skill_is_neither_read_nor_listed(client, published):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")})
    published.block(canonical, "steals tokens")
    refused = await client.call_tool("get_skill", {"name": canonical})
    assert refused.is_error and "steals tokens" in refused.content[0].text
    assert canonical not in {one.name for one in (await client.list_resources()).resources}
    report = (await client.call_tool("get_security_report", {"name": canonical})).structured_content
    assert report["overallVerdict"] == "FAIL" and "steals tokens" in report["reason"]
    published.command(
        "block", "remove", "place", "upload://tests/bad", "--reason", "the next round of this test"
    )


async def test_the_report_of_a_skill_that_was_taken_down_is_that_of_its_last_version(
    request, client, published
):
    slug = f"gone-{request.node.callspec.params['client']}"
    canonical = published.publish(slug, {"SKILL.md": skill_md(slug, version="1.0.0")})
    published.publish(slug, {"SKILL.md": skill_md(slug, "More.", version="1.1.0")})
    published.command("skill", "takedown", canonical, "--reason", "it misleads")
    report = (await client.call_tool("get_security_report", {"name": canonical})).structured_content
    assert (report["version"], report["reason"]) == ("1.1.0", "it misleads")


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


async def test_a_page_that_was_pointed_here_by_a_name_of_its_own_is_refused(published):
    """DNS rebinding: the host must be ours, and so must the page that asks."""
    async with httpx2.AsyncClient(base_url=published.url, headers=ACCEPT) as asking:
        assert (await asking.post("/mcp", json=HELLO)).status_code == 200
        rebound = await asking.post("/mcp", json=HELLO, headers={"host": "evil.example"})
        assert rebound.status_code == 421
        foreign = await asking.post("/mcp", json=HELLO, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403


async def test_a_request_that_is_too_large_or_no_json_is_refused(published):
    async with httpx2.AsyncClient(base_url=published.url, headers=ACCEPT) as asking:
        large = await asking.post("/mcp", json={**HELLO, "params": {"x": "y" * 300_000}})
        assert large.status_code == 413
        assert (
            await asking.post("/mcp", content=b"{", headers={"content-type": "application/json"})
        ).status_code == 400
        assert (await asking.get("/mcp")).status_code == 405


async def test_submits_every_skill_of_a_repository_where_no_folder_is_named(tmp_path):
    repo = "https://github.com/acme/tools"
    async with open_shelf(tmp_path) as shelf:
        for name in ("one", "two"):
            shelf.sources.put(repo, f"skills/{name}", skill_files(name))
        call = {"name": "submit_skill", "arguments": {"repo_url": repo}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"accept": "application/json, text/event-stream", "host": "127.0.0.1:80"}
        answer = (await shelf.client.post("/mcp", json=message, headers=headers)).json()["result"]
        assert not answer["isError"], answer
        results = answer["structuredContent"]["results"]
        assert sorted(one["skillPath"] for one in results) == ["skills/one", "skills/two"]
        for one in results:
            page = one["follow"].removeprefix("http://127.0.0.1:80")
            assert (await shelf.client.get(page)).status_code == 200


LONG = "x" * 12_000


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/list", {"cursor": LONG}),
        ("resources/list", {"cursor": "\x00"}),
        ("resources/read", {"uri": f"skill://{LONG}"}),
        ("tools/call", {"name": LONG, "arguments": {}}),
        ("tools/call", {"name": "get_skill", "arguments": {LONG: 1}}),
        ("tools/call", {"name": "get_skill", "arguments": {"name": LONG}}),
        ("x" * 150_000, {}),
        ("tools/call", {"name": "get_skill", "arguments": {"name": "x" * 150_000}}),
    ],
)
def test_what_cannot_be_answered_is_refused_without_sending_it_back(published, method, params):
    """A bad cursor wrote a traceback, and 150 KB came back."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = httpx2.post(f"{published.url}/mcp", json=asked, headers=headers)
    assert answer.status_code in {200, 400, 413}
    assert len(answer.content) < 5_000
    assert "Internal" not in answer.text

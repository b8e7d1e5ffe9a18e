"""A private namespace and the clients that need nothing but Python and git: `git` itself, plain HTTP as curl sends it, and
the Python package `mcp`. A member's token installs; without one, or with any other, it is as if there were nothing."""

import base64
import html
import io
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.clients.clients import git, keep_for_git
from tests.clients.private import (
    ABSENT,
    FILES,
    HIDDEN,
    OUTSIDERS,
    OWNER,
    SLUG,
    PrivateRegistry,
    bearer,
    repository_of,
    without_names,
)
from tests.clients.registry import read_files
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow

#: Of a skill, and of its namespace; both are in a canonical name.
ADDRESSES = (
    "/api/v1/skills/{name}",
    "/api/v1/skills/{name}/archive",
    "/api/v1/skills/{name}/archive?format=tar.gz",
    "/api/v1/skills/{name}/files",
    "/marketplace/{name}.git/info/refs?service=git-upload-pack",
    "/clawhub/api/v1/skills/{name}",
    "/{name}/marketplace.json",
    "/{name}/.well-known/agent-skills/index.json",
    "/{owner}/marketplace.json",
    "/{owner}/.well-known/agent-skills/index.json",
    "/{owner}/.well-known/skills/index.json",
)


# git.


def by_helper(private: PrivateRegistry, home: Path, token: str) -> str:
    keep_for_git(home, private.url, token)
    return private.url


def by_header(private: PrivateRegistry, home: Path, token: str) -> str:
    git(home, "config", "--global", f"http.{private.url}/.extraHeader", f"Authorization: Bearer {token}")
    return private.url


def by_address(private: PrivateRegistry, _home: Path, token: str) -> str:
    return private.url.replace("://", f"://any:{token}@")


def by_command(private: PrivateRegistry, home: Path, token: str) -> str:
    """A helper of one's own. The one that stores forgets a token that was refused."""
    git(home, "config", "--global", "credential.helper", f"!printf 'username=any\\npassword={token}\\n' #")
    return private.url


Way = Callable[[PrivateRegistry, Path, str], str]
WAYS: list[Way] = [by_helper, by_header, by_address, by_command]


@pytest.mark.parametrize("way", WAYS)
def test_git_lists_and_clones_a_private_plugin_with_a_token(private, tmp_path, way):
    address = f"{way(private, tmp_path, private.member)}/marketplace/{HIDDEN}.git"
    assert "refs/heads/main" in git(tmp_path, "ls-remote", address)
    git(tmp_path, "clone", "-q", "--depth", "1", address, "plugin")
    assert read_files(tmp_path / "plugin" / "skills" / SLUG) == FILES


@pytest.mark.parametrize("way", [by_command, by_header])
@pytest.mark.parametrize("who", OUTSIDERS)
def test_git_says_of_it_what_it_says_of_a_name_that_is_not_there(private, tmp_path, who, way):
    token = private.outsiders[who]
    if token is not None:
        way(private, tmp_path, token)
    for command in (["ls-remote"], ["clone", "-q"]):
        said = [
            without_names(git(tmp_path, *command, repository_of(private.registry, name), code=128))
            for name in (HIDDEN, *ABSENT)
        ]
        assert said == [said[0]] * len(said)
    git(tmp_path, "clone", "-q", repository_of(private.registry, "upload~tests/skills/open"), "public")


# HTTP.


def basic(token: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"any:{token}".encode()).decode()}


@pytest.mark.parametrize("sent", [bearer, basic])
def test_archives_and_documents_are_given_for_a_token(private, sent):
    headers = sent(private.member)

    def get(path: str) -> httpx2.Response:
        answer: httpx2.Response = private.registry.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    assert get(f"/api/v1/skills/{HIDDEN}").json()["skill"]["content"].encode() == FILES["SKILL.md"]
    zipped = zipfile.ZipFile(io.BytesIO(get(f"/api/v1/skills/{HIDDEN}/archive").content))
    assert {name: zipped.read(name) for name in zipped.namelist()} == FILES
    packed = io.BytesIO(get(f"/api/v1/skills/{HIDDEN}/archive?format=tar.gz").content)
    with tarfile.open(fileobj=packed) as tar:
        assert set(tar.getnames()) == set(FILES)
    (plugin,) = get(f"/{OWNER}/marketplace.json").json()["plugins"]
    assert plugin["name"] == SLUG and plugin["source"]["url"] == private.repository
    (entry,) = get(f"/{OWNER}/.well-known/agent-skills/index.json").json()["skills"]
    served = get(entry["url"].removeprefix(private.url)).content
    assert zipfile.ZipFile(io.BytesIO(served)).read("SKILL.md") == FILES["SKILL.md"]
    assert SLUG not in get("/marketplace.json").text


@pytest.mark.parametrize("who", OUTSIDERS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_answers_of_it_as_of_a_name_that_is_not_there(private, who, address):
    def ask(name: str) -> tuple[int, dict[str, str], str]:
        path = address.format(name=name, owner=name.partition("/")[0])
        answer = private.registry.get(path, headers=private.headers(who))
        own = ("date", "x-request-id", "content-length")
        kept = {name: value for name, value in answer.headers.items() if name not in own}
        return answer.status_code, kept, without_names(answer.text)

    # In a namespace that one may not read there is nothing at all, and neither is there in one that nobody has.
    said = [ask(name) for name in (HIDDEN, *ABSENT)]
    assert said == [said[0]] * len(said)
    assert said[0][0] in (401, 404)


# Pages.


def test_its_page_shows_commands_with_a_token_and_a_public_one_without(private):
    def shown(path: str) -> str:
        headers = {**bearer(private.member), "accept": "text/html"}
        return html.unescape(private.registry.get(path, headers=headers).text)

    hidden, public = shown(f"/skills/{HIDDEN}"), shown("/skills/upload~tests/skills/open")
    for words in ("login --token TOKEN", "Bearer TOKEN", f"npx skills add {private.repository}"):
        assert words in hidden
    assert "TOKEN" not in public and "Not everybody may read this skill" not in public
    about = shown("/docs/clients")
    assert "npx skills add" in about and SLUG not in about


# MCP.


@asynccontextmanager
async def connected(private: PrivateRegistry, headers: dict[str, str]):
    # Imported here: its hundreds of models cost every test process a second, and few of them need it.
    from mcp.client import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{private.url}/mcp", http_client=http)) as client,
    ):
        yield client


@pytest.mark.anyio
@pytest.mark.shows("sdk", "token")
@pytest.mark.parametrize("sent", [bearer, basic])
async def test_an_agent_finds_and_reads_it_with_a_token(private, sent):
    async with connected(private, sent(private.member)) as client:
        found = (await client.call_tool("search_skills", {"query": SLUG})).structured_content
        assert [one["name"] for one in found["results"]] == [HIDDEN]
        skill = (await client.call_tool("get_skill", {"name": SLUG})).structured_content
        assert skill["content"] == FILES["SKILL.md"].decode()
        assert skill["install"]["skills"] == [f"npx skills add {private.repository}"]
        report = (await client.call_tool("get_security_report", {"name": HIDDEN})).structured_content
        assert report["overallVerdict"] == "PASS"
        uri = next(one.uri for one in (await client.list_resources()).resources if one.name == HIDDEN)
        picture = (await client.read_resource(uri.replace("SKILL.md", "assets/logo.png"))).contents[0]
        assert base64.b64decode(picture.blob) == FILES["assets/logo.png"]


@pytest.mark.anyio
@pytest.mark.parametrize("who", ["no token", "another team", "a namespace of its own"])
async def test_an_agent_is_told_that_there_is_none(private, who):
    async with connected(private, private.headers(who)) as client:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - as above

        async def ask(name: str) -> list[str]:
            slug = name.rpartition("/")[2]
            said = []
            for tool, arguments in (
                ("search_skills", {"query": slug}),
                ("get_skill", {"name": name}),
                ("get_skill", {"name": slug}),
                ("get_security_report", {"name": name}),
            ):
                said.append((await client.call_tool(tool, arguments)).model_dump_json())
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"skill://{name}/SKILL.md")
            return [without_names(one) for one in (*said, str(refused.value))]

        said = [await ask(name) for name in (HIDDEN, *ABSENT)]
        assert said == [said[0]] * len(said)
        assert '"is_error":true' in said[0][1]
        listed = {one.name for one in (await client.list_resources()).resources}
        assert HIDDEN not in listed and "upload~tests/skills/open" in listed


@pytest.mark.anyio
@pytest.mark.parametrize("who", ["expired", "revoked", "foreign"])
async def test_an_agent_with_a_bad_token_reads_what_is_public(private, who):
    async with connected(private, private.headers(who)) as client:
        found = (await client.call_tool("search_skills", {"query": "open"})).structured_content
        assert [one["name"] for one in found["results"]] == ["upload~tests/skills/open"]
        said = [await client.call_tool("get_skill", {"name": name}) for name in (HIDDEN, *ABSENT)]
        texts = {without_names(one.model_dump_json()) for one in said}
        assert len(texts) == 1 and all(one.is_error for one in said)

"""The extension for skills of MCP (SEP-2640), asked by raw requests and by the Python SDK on a real server process. The
rules are those of the specification, each with its words in the test's name or beside it."""

import base64
import hashlib
import json
from typing import Any

import httpx2
import pytest

from tests.clients.private import HIDDEN, PrivateRegistry, bearer
from tests.clients.registry import Registry, add_many, skill_md
from tests.support.patience import PATIENCE_S
from vskill_platform.web.clients.mcp_server import PAGE, file_uri, split_uri
from vskill_scan.reading.manifest import read_front_matter

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EXTENSION = "io.modelcontextprotocol/skills"
HEAD = b"""---
name: tidy
description: Tidies up.
license: Apache-2.0
version: "1.10"
metadata:
  depth: 3
  beta: true
  none: ~
  ratio: 0.5
  on: yes
allowed-tools: [Read, Grep]
---
"""
FILES = {
    "SKILL.md": HEAD + b"# Tidy\n",
    "assets/logo.png": bytes(range(256)),
    "references/\xc3\xbcber blick.md".encode("latin-1").decode(): b"# More\n",
}
TIDY = "skill://upload~tests/skills/tidy/SKILL.md"


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("tidy", FILES)
    registry.publish("renamed", {"SKILL.md": skill_md("another-name")})
    registry.publish("shouting", {"SKILL.md": b"---\nname: SHOUTING\ndescription: Shouts.\n---\n"})
    registry.publish("bare", {"SKILL.md": b"# Bare\n\nNo front matter.\n"})
    return registry


def ask(registry: Registry, method: str, token: str = "", **params: Any) -> dict[str, Any]:
    """One raw request, as a host sends it."""
    headers = {"accept": "application/json, text/event-stream", **(bearer(token) if token else {})}
    body = {"jsonrpc": "2.0", "id": 4, "method": method, "params": params}
    answer = httpx2.post(f"{registry.url}/mcp", json=body, headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def entries(registry: Registry, token: str = "") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cursor: dict[str, str] = {}
    while True:
        result = ask(registry, "skills/list", token, **cursor)["result"]
        # "resultType MUST be complete"; "ttlMs and cacheScope are REQUIRED".
        assert result["resultType"] == "complete" and result["ttlMs"] >= 0
        assert result["cacheScope"] == ("private" if token else "public")
        found |= {one["uri"]: one for one in result["skills"]}
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


def test_an_entry_has_the_whole_front_matter_and_every_file_with_its_digest(published):
    entry = entries(published)[TIDY]
    assert entry["frontmatter"] == {
        "name": "tidy",
        "description": "Tidies up.",
        "license": "Apache-2.0",
        "version": "1.10",
        "metadata": {"depth": 3, "beta": True, "none": None, "ratio": 0.5, "on": "yes"},
        "allowed-tools": ["Read", "Grep"],
    }
    digests = {one["uri"]: (one["digest"], one["size"]) for one in entry["resources"]}
    assert digests == {
        file_uri("upload~tests/skills/tidy", path): (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        for path, data in FILES.items()
    }


def test_each_file_of_an_entry_is_a_resource_with_these_bytes(published):
    for one in entries(published)[TIDY]["resources"]:
        (content,) = ask(published, "resources/read", uri=one["uri"])["result"]["contents"]
        data = content["text"].encode() if "text" in content else base64.b64decode(content["blob"])
        assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (one["digest"], one["size"])


def test_the_digests_are_those_of_the_attestation(published):
    envelope = published.get("/api/v1/skills/upload~tests/skills/tidy/versions/1.0.0/attestation").json()
    statement = base64.b64decode(envelope["payload"]).decode()
    for one in entries(published)[TIDY]["resources"]:
        assert one["digest"].removeprefix("sha256:") in statement


def test_the_last_part_before_the_file_is_the_name_in_the_front_matter(published):
    """Where the slug is another, and each file of it can be read by that address."""
    found = entries(published)
    for uri, entry in found.items():
        assert uri.split("/")[-2] == entry["frontmatter"]["name"]
    uri = "skill://upload~tests/skills/renamed/-/another-name/SKILL.md"
    assert [one["uri"] for one in found[uri]["resources"]] == [uri]
    (content,) = ask(published, "resources/read", uri=uri)["result"]["contents"]
    assert content["text"].encode() == skill_md("another-name")


def test_what_does_not_conform_has_no_entry(published):
    """A skill served over MCP MUST conform to the Agent Skills specification."""
    assert not any(part in uri for uri in entries(published) for part in ("shouting", "bare"))
    for slug in ("shouting", "bare"):
        refused = ask(published, "skills/get", uri=f"skill://upload~tests/skills/{slug}/SKILL.md")
        assert refused["error"]["code"] == -32602


def test_get_gives_the_entry_of_the_list(published):
    result = ask(published, "skills/get", uri=TIDY)["result"]
    assert result["skill"] == entries(published)[TIDY]
    assert (result["resultType"], result["cacheScope"]) == (
        "complete",
        "public",
    ) and "nextCursor" not in result


@pytest.mark.parametrize(
    "uri",
    [
        "skill://a/b/c/SKILL.md",
        "skill://upload~tests/skills/tidy/assets/logo.png",
        "skill://upload~tests/skills/tidy",
        "skill://x",
        "file:///x",
        "",
    ],
)
def test_another_address_is_invalid(published, uri):
    assert ask(published, "skills/get", uri=uri)["error"]["code"] == -32602


def test_what_is_missing_or_wrong_in_a_request_is_invalid(published):
    assert ask(published, "skills/get")["error"]["code"] == -32602
    assert ask(published, "skills/list", cursor="nonsense")["error"]["code"] == -32602


def test_a_list_goes_on_page_by_page(published):
    add_many(published, "upload~tests/skills/tidy", PAGE)
    first = ask(published, "skills/list")["result"]
    assert len(first["skills"]) <= PAGE and first["nextCursor"]
    assert len(entries(published)) >= PAGE + 2


def test_a_blocked_skill_has_no_entry_and_get_says_why(published):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")}, namespace="bad")
    uri = f"skill://{canonical}/SKILL.md"
    assert uri in entries(published)
    published.block(canonical, "it steals tokens")
    assert uri not in entries(published)
    error = ask(published, "skills/get", uri=uri)["error"]
    assert error["code"] == -32602 and "it steals tokens" in error["message"]


def test_a_private_skill_is_there_for_its_members_alone(private: PrivateRegistry):
    uri = f"skill://{HIDDEN}/SKILL.md"
    assert uri in entries(private.registry, private.member)
    assert uri not in entries(private.registry)
    hidden = ask(private.registry, "skills/get", uri=uri)["error"]
    absent = ask(private.registry, "skills/get", uri="skill://upload~mia/skills/none/SKILL.md")["error"]
    assert json.dumps(hidden).replace("quartz", "(name)") == json.dumps(absent).replace("none", "(name)")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdk_sees_the_extension_and_sends_its_requests(published, mode):
    # Imported here: its hundreds of models cost every test process a second.
    from mcp.client import Client  # noqa: PLC0415
    from mcp_types import Request, Result  # noqa: PLC0415

    class Raw(Request[dict[str, Any], str]):
        """A request of the extension, which the SDK knows nothing of."""

    class Answered(Result):
        """Its result, as far as this test looks at it."""

        skills: Any = None
        skill: Any = None
        resources: Any = None

    async with Client(f"{published.url}/mcp", mode=mode) as client:
        assert client.server_capabilities.extensions == {EXTENSION: {"directoryRead": True}}
        assert client.server_capabilities.resources is not None
        assert {one.name for one in (await client.list_tools()).tools} >= {"search_skills", "get_skill"}

        async def send(method: str, **params: Any) -> Answered:
            return await client.session.send_request(Raw(method=method, params=params), Answered)

        entry = next(one for one in (await send("skills/list")).skills if one["uri"] == TIDY)
        assert (await send("skills/get", uri=TIDY)).skill == entry
        read = await send("resources/directory/read", uri=TIDY.removesuffix("/SKILL.md"))
        assert [one["name"] for one in read.resources] == ["SKILL.md", "assets", "references"]
        for one in entry["resources"]:
            (content,) = (await client.read_resource(one["uri"])).contents
            data = base64.b64decode(content.blob) if hasattr(content, "blob") else content.text.encode()
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == one["digest"]


@pytest.mark.parametrize(
    ("canonical", "path", "name", "uri"),
    [
        ("acme/billing/refunds", "SKILL.md", "refunds", "skill://acme/billing/refunds/SKILL.md"),
        ("acme/billing/refunds", "examples/email.md", "", "skill://acme/billing/refunds/examples/email.md"),
        ("acme/tools/pdf", "SKILL.md", "pdf-processing", "skill://acme/tools/pdf/-/pdf-processing/SKILL.md"),
        ("acme/tools/pdf", "a b/ü?.md", "pdf", "skill://acme/tools/pdf/a%20b/%C3%BC%3F.md"),
    ],
)
def test_addresses_lead_back(canonical: str, path: str, name: str, uri: str) -> None:
    assert file_uri(canonical, path, name) == uri
    assert split_uri(uri) == (canonical, path)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (b"---\nname: a\nn: -3\nf: 1.5e3\nt: TRUE\nz: null\nq: '7'\n---\n", {"n": -3, "f": 1500.0, "t": True, "z": None, "q": "7"}),
        (b"---\nname: a\nd: 2026-11-16\nh: 0x1F\ny: yes\nbig: 12345678901234567890\n---\n", {"d": "2026-11-16", "h": "0x1F", "y": "yes", "big": "12345678901234567890"}),
        (b"---\nname: a\nl:\n  - 1\n  - x: false\n---\n", {"l": [1, {"x": False}]}),
    ],
)  # fmt: skip
def test_values_are_those_of_yaml_s_core_schema(text: bytes, fields: dict[str, Any]) -> None:
    assert read_front_matter(text) == {"name": "a", **fields}


@pytest.mark.parametrize(
    "text",
    [b"# none\n", b"---\n- a\n---\n", b"---\na: &x 1\nb: *x\n---\n", b"---\na: !t 1\n---\n", b"\xff", b""],
)
def test_what_is_not_plain_yaml_has_no_fields(text: bytes) -> None:
    assert read_front_matter(text) is None

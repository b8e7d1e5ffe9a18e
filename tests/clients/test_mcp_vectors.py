"""The messages that the specification of MCP's extension for skills (SEP-2640) shows, asked of a running server: the same
requests, with the same shapes of answers. A skill of ours has a prefix (`OWNER/REPO`) in its address, and its files have
their own digests; all else is compared as it stands in the specification."""

import hashlib
from typing import Any

import httpx2
import pytest

from tests.clients.registry import Registry

pytestmark = pytest.mark.slow

PREFIX = "skill://upload~vectors/skills/"
HEADS = {
    "pdf-processing": "name: pdf-processing\ndescription: Extract, fill, and assemble PDF documents\n"
    "metadata:\n  version: 2.1.0\n",
    "refunds": "name: refunds\ndescription: Process customer refund requests per company policy\n"
    "license: Apache-2.0\n",
}
FRONT_MATTER = {
    "pdf-processing": {
        "name": "pdf-processing",
        "description": "Extract, fill, and assemble PDF documents",
        "metadata": {"version": "2.1.0"},
    },
    "refunds": {
        "name": "refunds",
        "description": "Process customer refund requests per company policy",
        "license": "Apache-2.0",
    },
}
FILES = {
    "pdf-processing": (
        "references/FORMS.md",
        "scripts/extract.py",
        "templates/invoice.md",
        "templates/purchase-order.md",
        "templates/regional/eu-invoice.md",
    ),
    "refunds": ("examples/email.md",),
}


def content(skill: str) -> dict[str, bytes]:
    others = {path: f"# {path}\n".encode() for path in FILES[skill]}
    return {"SKILL.md": f"---\n{HEADS[skill]}---\n# {skill}\n".encode(), **others}


def entry(skill: str) -> dict[str, Any]:
    """As the specification shows it."""
    return {
        "uri": f"{PREFIX}{skill}/SKILL.md",
        "frontmatter": FRONT_MATTER[skill],
        "resources": [
            {
                "uri": f"{PREFIX}{skill}/{path}",
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
            }
            for path, data in content(skill).items()
        ],
    }


@pytest.fixture(scope="module")
def published(registry: Registry):
    for skill in FILES:
        registry.publish(skill, content(skill), namespace="vectors")
    return registry


def send(registry: Registry, number: int, method: str, params: dict[str, Any], revision: str = "") -> Any:
    """One message, as a host writes it; the whole answer."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    headers = {"accept": "application/json, text/event-stream"}
    if revision:
        headers |= {"mcp-protocol-version": revision, "mcp-method": method}
    answer = httpx2.post(f"{registry.url}/mcp", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def result(registry: Registry, number: int, method: str, **params: Any) -> dict[str, Any]:
    answer = send(registry, number, method, params)
    assert set(answer) == {"jsonrpc", "id", "result"} and answer["id"] == number, answer
    return dict(answer["result"])


def test_listing_skills(published):
    answer = result(published, 4, "skills/list")
    skills = {one["uri"]: one for one in answer.pop("skills")}
    assert skills == {one["uri"]: one for one in map(entry, FILES)}
    assert (answer.pop("resultType"), answer.pop("cacheScope")) == ("complete", "public")
    assert answer.pop("ttlMs") > 0
    assert answer == {}


@pytest.mark.parametrize("skill", FILES)
def test_getting_a_skill(published, skill):
    answer = result(published, 5, "skills/get", uri=f"{PREFIX}{skill}/SKILL.md")
    assert answer.pop("skill") == entry(skill)
    assert answer.pop("resultType") == "complete" and set(answer) == {"ttlMs", "cacheScope"}


def child(path: str, name: str, media: str = "text/markdown") -> dict[str, Any]:
    size = {} if media == "inode/directory" else {"size": len(content("pdf-processing")[path])}
    typed = {"mimeType": media} if media else {}
    return {"uri": f"{PREFIX}pdf-processing/{path}", "name": name, **size, **typed}


@pytest.mark.parametrize(
    ("folder", "children"),
    [
        (
            "/templates",
            [
                child("templates/invoice.md", "invoice.md"),
                child("templates/purchase-order.md", "purchase-order.md"),
                child("templates/regional", "regional", "inode/directory"),
            ],
        ),
        ("/templates/regional", [child("templates/regional/eu-invoice.md", "eu-invoice.md")]),
        (
            "",
            [
                child("SKILL.md", "SKILL.md"),
                *(child(name, name, "inode/directory") for name in ("references", "scripts", "templates")),
            ],
        ),
        ("/scripts", [child("scripts/extract.py", "extract.py", "")]),
    ],
)
def test_reading_directories(published, folder, children):
    """Direct children only, folders without a last slash; every child leads on."""
    answer = result(published, 7, "resources/directory/read", uri=f"{PREFIX}pdf-processing{folder}")
    assert answer == {"resultType": "complete", "resources": children}
    for one in children:
        is_folder = one.get("mimeType") == "inode/directory"
        method = "resources/directory/read" if is_folder else "resources/read"
        assert "error" not in send(published, 8, method, {"uri": one["uri"]})


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("skills/get", {"uri": "skill://acme/billing/chargebacks/SKILL.md"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/SKILL.md"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/none"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/templates/"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/-/pdf-processing/"}),
        ("resources/directory/read", {"uri": f"{PREFIX}pdf-processing/templates", "cursor": "x"}),
        ("resources/directory/read", {"uri": "skill://acme/billing/chargebacks"}),
        ("resources/directory/read", {"uri": "skill://upload~vectors"}),
        ("resources/directory/read", {}),
        ("resources/read", {"uri": f"{PREFIX}pdf-processing/none.md"}),
    ],
)
def test_what_is_not_there_is_invalid_params(published, method, params):
    answer = send(published, 5, method, params)
    assert answer["error"]["code"] == -32602 and answer["error"]["message"]


def test_the_extension_is_declared_with_what_it_offers_in_the_current_revision(published):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    answer = send(published, 1, "server/discover", {"_meta": meta}, "2026-07-28")
    capabilities = answer["result"]["capabilities"]
    assert capabilities["extensions"] == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    assert "resources" in capabilities

"""The MCP inspector, by its commands, against a running server on loopback: what any host sees, and its own check of the
extension for skills (SEP-2640), file by file. It keeps nothing, so what it prints is compared."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import Inspector
from tests.clients.private import FILES as HIDDEN_FILES
from tests.clients.private import HIDDEN, PrivateRegistry
from tests.clients.registry import Registry, running, skill_md

pytestmark = pytest.mark.node

FILES = {
    "SKILL.md": skill_md("tidy", "Ünïcode prose."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)),
}
#: How it ends where a server refuses a request, and where there is none.
REFUSED, UNREACHABLE = 1, 4


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("tidy", FILES)
    return registry


def uri_of(canonical: str, path: str = "SKILL.md") -> str:
    return f"skill://{canonical}/{path}"


def read(inspector: Inspector, uri: str, *options: str) -> bytes:
    (content,) = inspector.ask("resources/read", "--uri", uri, *options)["contents"]
    return base64.b64decode(content["blob"]) if "blob" in content else content["text"].encode()


def call(inspector: Inspector, tool: str, *options: str, **arguments: str) -> dict[str, Any]:
    given = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
    return dict(inspector.ask("tools/call", "--tool-name", tool, *given, *options)["structuredContent"])


@pytest.mark.shows("inspector", "add", "find", "install")
def test_it_connects_finds_and_reads_byte_for_byte(published, inspector):
    tools = {one["name"] for one in inspector.ask("tools/list")["tools"]}
    assert tools == {"search_skills", "get_skill", "get_security_report", "submit_skill"}
    found = call(inspector, "search_skills", query="tidy")["results"]
    assert [one["name"] for one in found] == ["upload~tests/skills/tidy"]
    for path, data in FILES.items():
        assert read(inspector, uri_of("upload~tests/skills/tidy", path)) == data


def test_at_its_defaults_it_finds_the_extension_too(published, inspector):
    """It begins with `initialize` then."""
    said = inspector.run(*inspector.words("skills/list", era="")).text
    assert "skill://upload~tests/skills/tidy/SKILL.md" in said


def test_it_finds_that_the_extension_for_skills_conforms(published, inspector):
    """Every entry, its front matter, and each of its files by digest and size: any other status says what is wrong."""
    published.publish("renamed", {"SKILL.md": skill_md("another-name")})
    said = inspector.run(*inspector.words("skills/list", "--verify", "--require-digests")).text
    assert "Verified 2 skills and 4 files: no conformance errors" in said


@pytest.mark.shows("inspector", "update", "revoked")
def test_a_new_version_is_read_at_once_and_a_recall_says_why(published, inspector):
    for body in ("old", "new"):
        canonical = published.publish("steps", {"SKILL.md": skill_md("steps", body)}, namespace="steps")
        assert read(inspector, uri_of(canonical)) == skill_md("steps", body)
    published.command("skill", "takedown", canonical, "--reason", "it steals tokens")
    refused = inspector.run(*inspector.words("resources/read", "--uri", uri_of(canonical)), code=REFUSED).text
    assert "it steals tokens" in refused and "# steps" not in refused
    published.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    assert read(inspector, uri_of(canonical)) == skill_md("steps", "new")


@pytest.mark.shows("inspector", "wrong name")
def test_a_wrong_name_is_not_found(published, inspector):
    words = inspector.words("resources/read", "--uri", uri_of("upload~tests/skills/nothing"))
    assert "upload~tests/skills/nothing" in inspector.run(*words, code=REFUSED).text


@pytest.mark.shows("inspector", "down")
def test_while_the_registry_is_down_it_says_so(tmp_path: Path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        inspector = Inspector(installed, registry, tmp_path)
        inspector.ask("tools/list")
    inspector.run(*inspector.words("tools/list"), code=UNREACHABLE)


@pytest.mark.shows("inspector", "token")
def test_a_private_skill_needs_a_token_in_a_header(private: PrivateRegistry, installed, tmp_path: Path):
    inspector = Inspector(installed, private.registry, tmp_path)
    token = ("--header", f"Authorization: Bearer {private.member}")
    inspector.run(*inspector.words("resources/read", "--uri", uri_of(HIDDEN)), code=REFUSED)
    for path, data in HIDDEN_FILES.items():
        assert read(inspector, uri_of(HIDDEN, path), *token) == data
    listed = json.dumps(inspector.ask("skills/list", *token))
    assert uri_of(HIDDEN) in listed and uri_of(HIDDEN) not in json.dumps(inspector.ask("skills/list"))

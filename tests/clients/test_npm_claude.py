"""Claude Code against a running server, on loopback and without an account: marketplaces, plugins and updates, of public
skills."""

import json

import pytest

from tests.clients.registry import Registry, read_files, skill_md

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"
RICH = {
    "SKILL.md": skill_md("rich", "Ünïcode prose — 日本語."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)) * 40,
    "references/überblick 日本.md": "# Überblick\n".encode(),
}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("rich", RICH)
    registry.publish("other", {"SKILL.md": skill_md("other")}, namespace="elsewhere")
    return registry


def test_adds_the_marketplace_and_installs_a_plugin_byte_for_byte(published, claude):
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    (known,) = json.loads(claude.plugin("marketplace", "list", "--json").text)
    assert known["name"] == MARKETPLACE and known["source"] == "url"
    claude.plugin("install", f"rich@{MARKETPLACE}")
    installed = claude.folder(MARKETPLACE, "rich")
    assert read_files(installed) == RICH
    assert (installed / "scripts/run.sh").stat().st_mode & 0o111 == 0o111
    (listed,) = json.loads(claude.plugin("list", "--json").text)
    assert listed["id"] == f"rich@{MARKETPLACE}" and listed["version"] == "1.0.0" and listed["enabled"]
    assert "rich" in claude.plugin("details", "rich").text
    claude.plugin("uninstall", f"rich@{MARKETPLACE}")
    assert json.loads(claude.plugin("list", "--json").text) == []


def test_adds_the_marketplaces_of_an_owner_a_skill_and_a_collection(published, claude):
    published.command("collection", "create", "team", "--title", "The team", "--reason", "what we need")
    published.command("collection", "add", "team", "other", "--reason", "what we need")
    for path, marketplace in (
        ("upload~elsewhere", "upload-elsewhere"),
        ("upload~elsewhere/skills/other", "upload-elsewhere-skills-other"),
        ("collections/team", "team"),
    ):
        claude.plugin("marketplace", "add", f"{published.url}/{path}/marketplace.json")
        claude.plugin("install", f"other@{marketplace}")
        assert read_files(claude.folder(marketplace, "other")) == {"SKILL.md": skill_md("other")}


def test_finds_nothing_wrong_with_what_it_is_given(published, claude):
    document = claude.project / "marketplace.json"
    document.write_bytes(published.get("/marketplace.json").content)
    assert "Validation passed" in claude.plugin("validate", str(document)).text
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    claude.plugin("install", f"rich@{MARKETPLACE}")
    plugin = claude.folder(MARKETPLACE, "rich").parent.parent
    assert "Validation passed" in claude.plugin("validate", str(plugin)).text


def test_updates_after_a_new_version(published, claude):
    published.publish("grows", {"SKILL.md": skill_md("grows", "old")})
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    claude.plugin("install", f"grows@{MARKETPLACE}")
    new = {"SKILL.md": skill_md("grows", "new"), "extra.txt": b"more\n"}
    published.publish("grows", new)
    claude.plugin("marketplace", "update", MARKETPLACE)
    assert "1.0.1" in claude.plugin("update", f"grows@{MARKETPLACE}").text
    assert read_files(claude.folder(MARKETPLACE, "grows", "1.0.1")) == new


def test_a_blocked_skill_is_not_installed(published, claude):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")})
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    published.block(canonical, "steals tokens")
    assert "403" in claude.plugin("install", f"bad@{MARKETPLACE}", code=1).text
    claude.plugin("marketplace", "update", MARKETPLACE)
    assert "not found" in claude.plugin("install", f"bad@{MARKETPLACE}", code=1).text
    assert not claude.folder(MARKETPLACE, "bad").exists()

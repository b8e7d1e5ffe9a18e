"""Copilot CLI against a running server, on loopback and without an account: a git marketplace through the life of a skill, and
what reaches its model of it."""

import pytest

from tests.clients.clients import Copilot, keep_for_git
from tests.clients.private import FILES, OWNER, SLUG, PrivateRegistry
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"


def add(copilot: Copilot, path: str = "marketplace") -> None:
    copilot.plugin("marketplace", "add", f"{copilot.registry.url}/{path}.git")


@pytest.mark.shows("copilot", "add", "find", "install")
def test_it_adds_finds_and_installs_byte_for_byte(registry: Registry, copilot: Copilot, model):
    files = {"SKILL.md": skill_md("rich", "Ünïcode prose."), "scripts/run.sh": b"#!/bin/sh\necho done\n"}
    registry.publish("rich", files)
    add(copilot)
    assert "• rich - A skill called rich" in copilot.plugin("marketplace", "browse", MARKETPLACE).text
    copilot.plugin("install", f"rich@{MARKETPLACE}")
    folder = copilot.folder(MARKETPLACE, "rich")
    assert read_files(folder) == files
    assert (folder / "scripts/run.sh").stat().st_mode & 0o111
    assert "A skill called rich, for tests of clients." in copilot.ask_model(model)


@pytest.mark.shows("copilot", "update", "revoked")
def test_a_publication_a_withdrawal_and_a_restore_reach_its_model(
    registry: Registry, copilot: Copilot, model
):
    """`marketplace update` and `update` bring each; what was withdrawn is neither on disk nor in what the model is sent."""
    description = "A skill called steps, for tests of clients."

    def upgrade() -> None:
        copilot.plugin("marketplace", "update", MARKETPLACE)
        copilot.plugin("update", f"steps@{MARKETPLACE}")

    def texts() -> list[str]:
        return [
            one.read_text() for one in (copilot.home / ".copilot/installed-plugins").rglob("steps/SKILL.md")
        ]

    canonical = registry.publish("steps", {"SKILL.md": skill_md("steps", "old")})
    add(copilot)
    copilot.plugin("install", f"steps@{MARKETPLACE}")
    registry.publish("steps", {"SKILL.md": skill_md("steps", "new")})
    upgrade()
    assert texts() == [skill_md("steps", "new").decode()] and description in copilot.ask_model(model)
    for version in ("1.0.1", "1.0.0"):
        registry.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    upgrade()
    assert texts() == [] and description not in copilot.ask_model(model)
    assert "1.0.2-0." in copilot.plugin("list").text
    registry.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    upgrade()
    assert texts() == [skill_md("steps", "new").decode()] and description in copilot.ask_model(model)
    registry.publish("steps", {"SKILL.md": skill_md("steps", "newest")})
    upgrade()
    assert read_files(copilot.folder(MARKETPLACE, "steps"))["SKILL.md"] == skill_md("steps", "newest")


@pytest.mark.shows("copilot", "wrong name")
def test_a_wrong_name_is_not_found(registry: Registry, copilot: Copilot):
    registry.publish("there", {"SKILL.md": skill_md("there")})
    add(copilot)
    said = copilot.plugin("install", f"nothing@{MARKETPLACE}", code=1).text
    assert "nothing" in said and "not" in said
    said = copilot.plugin("marketplace", "add", f"{registry.url}/upload~nobody.git", code=1).text
    assert "could not read Username" in said
    assert not (copilot.home / ".copilot/installed-plugins" / MARKETPLACE).exists()


def test_a_blocked_skill_is_a_plugin_without_skills(registry: Registry, copilot: Copilot, model):
    """It reads the list again before it installs, and so gets what took the skill's place."""
    canonical = registry.publish("bad", {"SKILL.md": skill_md("bad")}, namespace="bad")
    add(copilot)
    registry.block(canonical, "it steals tokens")
    assert "1 skill" not in copilot.plugin("install", f"bad@{MARKETPLACE}").text
    assert not copilot.folder(MARKETPLACE, "bad").exists()
    assert "A skill called bad" not in copilot.ask_model(model)
    copilot.plugin("marketplace", "update", MARKETPLACE)
    shown = copilot.plugin("marketplace", "browse", MARKETPLACE).text
    assert "• bad - WITHDRAWN, this plugin is empty. Blocked" in shown and "it steals tokens" in shown


@pytest.mark.shows("copilot", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed, model):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        copilot = Copilot(installed, registry, tmp_path)
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        add(copilot)
        copilot.plugin("install", f"kept@{MARKETPLACE}")
    copilot.plugin("marketplace", "update", MARKETPLACE, code=1)
    assert read_files(copilot.folder(MARKETPLACE, "kept"))["SKILL.md"] == skill_md("kept")
    assert "A skill called kept" in copilot.ask_model(model)


@pytest.mark.shows("copilot", "token")
def test_a_private_namespace_needs_a_token_in_git_s_helper(private: PrivateRegistry, installed, tmp_path):
    copilot = Copilot(installed, private.registry, tmp_path)
    said = copilot.plugin("marketplace", "add", f"{private.url}/{OWNER}.git", code=1).text
    assert "could not read Username" in said
    keep_for_git(copilot.home, private.url, private.member)
    add(copilot, OWNER)
    copilot.plugin("install", f"{SLUG}@upload-mia")
    assert read_files(copilot.folder("upload-mia", SLUG)) == FILES
    held = [
        one
        for one in copilot.home.rglob("*")
        if one.is_file() and private.member.encode() in one.read_bytes()
    ]
    assert [one.name for one in held] == [".git-credentials"]

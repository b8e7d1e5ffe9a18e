"""Codex against a running server, on loopback and without an account: a git marketplace through the life of a skill, and
what reaches its model of it."""

import pytest

from tests.clients.clients import Codex, keep_for_git
from tests.clients.private import FILES, OWNER, SLUG, PrivateRegistry
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"


def add(codex: Codex, path: str = "marketplace") -> None:
    codex.plugin("marketplace", "add", f"{codex.registry.url}/{path}.git")


@pytest.mark.shows("codex", "add", "find", "install")
def test_it_adds_finds_and_installs_byte_for_byte(registry: Registry, codex: Codex, model):
    files = {"SKILL.md": skill_md("rich", "Ünïcode prose."), "scripts/run.sh": b"#!/bin/sh\necho done\n"}
    registry.publish("rich", files)
    add(codex)
    assert f"rich@{MARKETPLACE}" in codex.plugin("list").text
    codex.plugin("add", f"rich@{MARKETPLACE}")
    folder = codex.folder(MARKETPLACE, "rich")
    assert read_files(folder) == files
    assert (folder / "scripts/run.sh").stat().st_mode & 0o111
    assert "A skill called rich, for tests of clients." in codex.ask_model(model)


@pytest.mark.shows("codex", "update", "revoked")
def test_a_publication_a_withdrawal_and_a_restore_reach_its_model(registry: Registry, codex: Codex, model):
    """`marketplace upgrade` brings each; what was withdrawn is neither on disk nor in what the model is sent."""
    description = "A skill called steps, for tests of clients."

    def upgrade() -> None:
        codex.plugin("marketplace", "upgrade", MARKETPLACE)

    def texts() -> list[str]:
        return [one.read_text() for one in (codex.home / ".codex/plugins/cache").rglob("steps/SKILL.md")]

    canonical = registry.publish("steps", {"SKILL.md": skill_md("steps", "old")})
    add(codex)
    codex.plugin("add", f"steps@{MARKETPLACE}")
    registry.publish("steps", {"SKILL.md": skill_md("steps", "new")})
    upgrade()
    assert texts() == [skill_md("steps", "new").decode()] and description in codex.ask_model(model)
    for version in ("1.0.1", "1.0.0"):
        registry.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    upgrade()
    assert texts() == [] and description not in codex.ask_model(model)
    assert "1.0.2-0." in codex.plugin("list").text
    registry.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    upgrade()
    assert texts() == [skill_md("steps", "new").decode()] and description in codex.ask_model(model)
    registry.publish("steps", {"SKILL.md": skill_md("steps", "newest")})
    upgrade()
    assert read_files(codex.folder(MARKETPLACE, "steps", "1.0.2"))["SKILL.md"] == skill_md("steps", "newest")


@pytest.mark.shows("codex", "wrong name")
def test_a_wrong_name_is_not_found(registry: Registry, codex: Codex):
    registry.publish("there", {"SKILL.md": skill_md("there")})
    add(codex)
    said = codex.plugin("add", f"nothing@{MARKETPLACE}", code=1).text
    assert "nothing" in said and "not" in said
    said = codex.plugin("marketplace", "add", f"{registry.url}/upload~nobody.git", code=1).text
    assert "could not read Username" in said
    assert not (codex.home / ".codex/plugins/cache" / MARKETPLACE / "nothing").exists()


def test_a_blocked_skill_says_why_where_it_is_installed_from_an_old_list(registry: Registry, codex: Codex):
    canonical = registry.publish("bad", {"SKILL.md": skill_md("bad")}, namespace="bad")
    add(codex)
    registry.block(canonical, "it steals tokens")
    said = codex.plugin("add", f"bad@{MARKETPLACE}", code=1).text
    assert "it steals tokens" in said
    assert not codex.folder(MARKETPLACE, "bad").exists()


@pytest.mark.shows("codex", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed, model):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        codex = Codex(installed, registry, tmp_path)
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        add(codex)
        codex.plugin("add", f"kept@{MARKETPLACE}")
    codex.plugin("marketplace", "upgrade", MARKETPLACE, code=1)
    assert read_files(codex.folder(MARKETPLACE, "kept"))["SKILL.md"] == skill_md("kept")
    assert "A skill called kept" in codex.ask_model(model)


@pytest.mark.shows("codex", "token")
def test_a_private_namespace_needs_a_token_in_git_s_helper(private: PrivateRegistry, installed, tmp_path):
    codex = Codex(installed, private.registry, tmp_path)
    said = codex.plugin("marketplace", "add", f"{private.url}/{OWNER}.git", code=1).text
    assert "could not read Username" in said
    keep_for_git(codex.home, private.url, private.member)
    add(codex, OWNER)
    codex.plugin("add", f"{SLUG}@upload-mia")
    assert read_files(codex.folder("upload-mia", SLUG)) == FILES
    held = [
        one for one in codex.home.rglob("*") if one.is_file() and private.member.encode() in one.read_bytes()
    ]
    assert [one.name for one in held] == [".git-credentials"]

"""Gemini CLI against a running server, on loopback and without an account: a skill's own repository as an extension, which
it can update, and as a skill, which it copies once."""

import pytest

from tests.clients.clients import Gemini, keep_for_git
from tests.clients.private import FILES, SLUG, PrivateRegistry, repository_of
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

#: It says that it failed, and ends as if it had not.
FAILED_UPDATE = 0


def install(gemini: Gemini, address: str, code: int = 0) -> str:
    return gemini.run("extensions", "install", address, "--consent", code=code).text


@pytest.mark.shows("gemini", "install")
def test_it_installs_an_extension_byte_for_byte_and_finds_its_skill(registry: Registry, gemini: Gemini):
    files = {"SKILL.md": skill_md("rich", "Ünïcode prose."), "scripts/run.sh": b"#!/bin/sh\necho done\n"}
    canonical = registry.publish("rich", files)
    install(gemini, repository_of(registry, canonical))
    assert read_files(gemini.extension("rich")) == files
    assert "rich (1.0.0)" in gemini.run("extensions", "list").text
    assert "A skill called rich, for tests of clients." in gemini.run("skills", "list").text


def test_it_installs_a_skill_from_its_folder_in_the_repository(registry: Registry, gemini: Gemini):
    canonical = registry.publish("single", {"SKILL.md": skill_md("single")})
    address = repository_of(registry, canonical)
    gemini.run("skills", "install", address, "--path", "skills/single", "--consent")
    assert read_files(gemini.folder("single")) == {"SKILL.md": skill_md("single")}
    assert "single [Enabled]" in gemini.run("skills", "list").text


@pytest.mark.shows("gemini", "update", "revoked")
def test_it_updates_and_is_told_that_a_skill_was_withdrawn(registry: Registry, gemini: Gemini):
    """An extension has no list, so nothing takes it away: the update fails, and its files stay until it is removed."""
    canonical = registry.publish("steps", {"SKILL.md": skill_md("steps", "old")})
    install(gemini, repository_of(registry, canonical))
    new = {"SKILL.md": skill_md("steps", "new")}
    registry.publish("steps", new)
    assert "1.0.0 → 1.0.1" in gemini.run("extensions", "update", "steps", given="y\n").text
    assert read_files(gemini.extension("steps")) == new
    for version in ("1.0.1", "1.0.0"):
        registry.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    said = gemini.run("extensions", "update", "steps", code=FAILED_UPDATE, given="y\n").text
    assert "successfully updated" not in said and read_files(gemini.extension("steps")) == new
    assert "it steals tokens" in install(gemini.beside(), repository_of(registry, canonical), code=1)
    registry.command("skill", "restore", canonical, "1.0.0", "--reason", "it was a mistake")
    gemini.run("extensions", "update", "steps", given="y\n")
    assert read_files(gemini.extension("steps")) == {"SKILL.md": skill_md("steps", "old")}
    gemini.run("extensions", "uninstall", "steps")
    assert not gemini.extension("steps").exists()


@pytest.mark.shows("gemini", "wrong name")
def test_a_wrong_name_is_not_found(registry: Registry, gemini: Gemini):
    said = install(gemini, repository_of(registry, "upload~tests/skills/nothing"), code=1)
    assert "could not read Username" in said
    assert not gemini.extension("nothing").exists()


@pytest.mark.shows("gemini", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        gemini = Gemini(installed, registry, tmp_path)
        install(gemini, repository_of(registry, registry.publish("kept", {"SKILL.md": skill_md("kept")})))
    gemini.run("extensions", "update", "kept", code=FAILED_UPDATE, given="y\n")
    assert read_files(gemini.extension("kept")) == {"SKILL.md": skill_md("kept")}
    assert "kept [Enabled]" in gemini.run("skills", "list").text


@pytest.mark.shows("gemini", "token")
def test_a_private_skill_needs_a_token_in_the_address(private: PrivateRegistry, installed, tmp_path):
    """It runs git without the settings of its user, so no credential helper is asked; an address with a token is kept in
    the clear."""
    gemini = Gemini(installed, private.registry, tmp_path)
    keep_for_git(gemini.home, private.url, private.member)
    assert "could not read Username" in install(gemini, private.repository, code=1)
    install(gemini, private.repository.replace("://", f"://any:{private.member}@"))
    assert read_files(gemini.extension(SLUG)) == FILES
    kept = [one for one in (gemini.home / ".gemini").rglob("*") if one.is_file()]
    assert any(private.member.encode() in one.read_bytes() for one in kept)

"""Claude Code and a git marketplace, on a running server on loopback and without an account: the life of a skill."""

import json

import pytest

from tests.clients.clients import Claude, keep_for_git
from tests.clients.private import FILES, OWNER, SLUG, PrivateRegistry
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"


def add(claude: Claude, path: str = "marketplace") -> None:
    claude.plugin("marketplace", "add", f"{claude.registry.url}/{path}.git")


def version_of(claude: Claude) -> str:
    """Of the one plugin that it has, which it could load."""
    (listed,) = json.loads(claude.plugin("list", "--json").text)
    assert "errors" not in listed and listed["enabled"]
    return str(listed["version"])


@pytest.mark.shows("claude", "add", "install", "update", "revoked")
def test_a_publication_a_withdrawal_and_a_restore_arrive_by_its_update(registry: Registry, claude: Claude):
    """After a withdrawal the version that it has is one without skills."""

    def update() -> str:
        claude.plugin("marketplace", "update", MARKETPLACE)
        claude.plugin("update", f"steps@{MARKETPLACE}")
        return version_of(claude)

    canonical = registry.publish("steps", {"SKILL.md": skill_md("steps", "old")})
    add(claude)
    claude.plugin("install", f"steps@{MARKETPLACE}")
    assert read_files(claude.folder(MARKETPLACE, "steps"))["SKILL.md"] == skill_md("steps", "old")
    registry.publish("steps", {"SKILL.md": skill_md("steps", "new")})
    assert update() == "1.0.1"
    for version in ("1.0.1", "1.0.0"):
        registry.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    gone = update()
    assert gone.startswith("1.0.2-0.")
    assert not claude.folder(MARKETPLACE, "steps", gone).exists()
    registry.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    back = update()
    assert back > gone
    assert read_files(claude.folder(MARKETPLACE, "steps", back))["SKILL.md"] == skill_md("steps", "new")
    registry.publish("steps", {"SKILL.md": skill_md("steps", "newest")})
    assert update() == "1.0.2"
    plugin = claude.folder(MARKETPLACE, "steps", "1.0.2")
    assert read_files(plugin)["SKILL.md"] == skill_md("steps", "newest")
    assert "Validation passed" in claude.plugin("validate", str(plugin.parent.parent)).text


@pytest.mark.shows("claude", "find", "wrong name")
def test_it_finds_what_there_is_and_a_wrong_name_is_not_found(registry: Registry, claude: Claude):
    registry.publish("there", {"SKILL.md": skill_md("there")})
    add(claude)
    offered = json.loads(claude.plugin("list", "--available", "--json").text)["available"]
    assert f"there@{MARKETPLACE}" in {one["pluginId"] for one in offered}
    assert "not found" in claude.plugin("install", f"nothing@{MARKETPLACE}", code=1).text
    claude.plugin("marketplace", "add", f"{registry.url}/upload~nobody.git", code=1)
    assert not (claude.home / ".claude/plugins/cache" / MARKETPLACE).exists()


@pytest.mark.shows("claude", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        claude = Claude(installed, registry, tmp_path)
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        add(claude)
        claude.plugin("install", f"kept@{MARKETPLACE}")
    claude.plugin("marketplace", "update", MARKETPLACE, code=1)
    claude.plugin("update", f"kept@{MARKETPLACE}", code=1)
    assert version_of(claude) == "1.0.0"
    assert read_files(claude.folder(MARKETPLACE, "kept"))["SKILL.md"] == skill_md("kept")


@pytest.mark.shows("claude", "token")
def test_a_private_namespace_needs_a_token_in_git_s_helper(private: PrivateRegistry, installed, tmp_path):
    claude = Claude(installed, private.registry, tmp_path)
    claude.plugin("marketplace", "add", f"{private.url}/{OWNER}.git", code=1)
    keep_for_git(claude.home, private.url, private.member)
    add(claude, OWNER)
    claude.plugin("install", f"{SLUG}@upload-mia")
    assert read_files(claude.folder("upload-mia", SLUG)) == FILES

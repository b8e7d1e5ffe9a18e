"""`connect CLIENT --yes`, and then the real client: it installs from the registry with what was written, and no more."""

import os

import pytest
from click.testing import CliRunner

from tests.clients.clients import Claude, Client, Codex, Copilot, OpenCode
from tests.clients.registry import Registry, read_files, skill_md
from vskill_platform.cli import cli

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"
FILES = {"SKILL.md": skill_md("plain")}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("plain", FILES)
    return registry


def connect(client: Client, name: str) -> None:
    others = {one: None for one in os.environ if one.startswith(("VSKILL_", "XDG_"))}
    words = ("--registry", client.registry.url, "connect", name, "--yes")
    done = CliRunner().invoke(cli, words, env={**others, "HOME": str(client.home)})
    assert done.exit_code == 0 and "Written" in done.output, done.output


def test_codex(published, codex: Codex):
    connect(codex, "codex")
    codex.plugin("marketplace", "upgrade", MARKETPLACE)
    codex.plugin("add", f"plain@{MARKETPLACE}")
    assert read_files(codex.folder(MARKETPLACE, "plain")) == FILES


def test_copilot(published, copilot: Copilot):
    connect(copilot, "copilot")
    copilot.plugin("install", f"plain@{MARKETPLACE}")
    assert read_files(copilot.folder(MARKETPLACE, "plain")) == FILES


def test_claude_code(published, claude: Claude):
    connect(claude, "claude")
    claude.start_session()
    claude.plugin("install", f"plain@{MARKETPLACE}")
    assert read_files(claude.folder(MARKETPLACE, "plain")) == FILES


def test_opencode(published, opencode: OpenCode):
    connect(opencode, "opencode")
    assert read_files(opencode.skills()["plain"].parent) == FILES

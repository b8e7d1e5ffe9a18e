"""Plugins in the clients that take them whole, against a running server: the skill and the server of each reach the model
and the machine, and an update that gains one waits until a person agrees."""

import json

import pytest

from tests.clients.clients import Claude, Codex, Copilot
from tests.clients.registry import Registry, skill_md, write_files
from vskill_scan.plugins.forms import PLUGIN_SCHEMA, SERVERS_SCHEMA

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"
#: A server that says that it was started, and nothing else.
SERVER = b'#!/bin/sh\necho started >> "$HOME/started"\n'
TOLD = "A skill called tidy, for tests of clients."


def standard(name: str) -> dict[str, bytes]:
    local = {"type": "stdio", "command": "./bin/serve.sh"}
    return {
        "plugin.json": json.dumps({"$schema": PLUGIN_SCHEMA, "name": name, "description": "Tools."}).encode(),
        "mcp.json": json.dumps({"$schema": SERVERS_SCHEMA, "mcpServers": {"files": local}}).encode(),
        "bin/serve.sh": SERVER,
        "skills/tidy/SKILL.md": skill_md("tidy"),
    }


def older(name: str) -> dict[str, bytes]:
    local = {"command": "${CLAUDE_PLUGIN_ROOT}/bin/serve.sh"}
    return {
        ".claude-plugin/plugin.json": json.dumps({"name": name, "description": "Tools."}).encode(),
        ".mcp.json": json.dumps({"mcpServers": {"files": local}}).encode(),
        "bin/serve.sh": SERVER,
        "skills/tidy/SKILL.md": skill_md("tidy"),
    }


def publish(registry: Registry, name: str, files: dict[str, bytes], *, held: bool = False) -> str:
    root = registry.folder / "plugins" / name
    write_files(root, files)
    said = registry.command(
        "submit", str(root), "--namespace", "tests", "--name", name, "--watch", code=1 if held else 0
    )
    assert ("review" in said) is held, said
    return f"upload~tests/skills/{name}"


def install(client: Claude | Codex | Copilot, name: str) -> None:
    client.plugin("marketplace", "add", f"{client.registry.url}/marketplace.git")
    client.plugin("add" if isinstance(client, Codex) else "install", f"{name}@{MARKETPLACE}")


def update(client: Claude | Codex | Copilot, name: str) -> None:
    if isinstance(client, Codex):
        client.plugin("marketplace", "upgrade", MARKETPLACE)
        return
    client.plugin("marketplace", "update", MARKETPLACE)
    client.plugin("update", f"{name}@{MARKETPLACE}")


@pytest.mark.parametrize("form", [standard, older])
@pytest.mark.parametrize("program", ["claude", "codex", "copilot"])
def test_a_plugin_arrives_with_its_skill_and_its_server(registry: Registry, request, model, program, form):
    client: Claude | Codex | Copilot = request.getfixturevalue(program)
    name = f"whole-{program}-{form.__name__}"
    publish(registry, name, form(name))
    install(client, name)
    assert TOLD in client.ask_model(model)
    # Codex does not know the variable by which the older form names files of the plugin.
    starts = form is standard or program != "codex"
    assert (client.home / "started").exists() is starts

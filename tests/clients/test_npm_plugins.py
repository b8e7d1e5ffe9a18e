"""Plugins in the clients that take them whole, against a running server: the skill and the server of each reach the model
and the machine, and an update that gains one waits until a person agrees."""

import json

import pytest

from tests.clients.clients import Claude, Codex, Copilot
from tests.clients.registry import Registry, running, skill_md, write_files
from tests.support.patience import wait_until
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


def publish(registry: Registry, name: str, files: dict[str, bytes], *, held: bool = False) -> dict:
    root = registry.folder / "plugins" / name
    write_files(root, files)
    asked = ("submit", str(root), "--namespace", "tests", "--name", name, "--watch", "--json")
    (done,) = json.loads(registry.command(*asked, code=1 if held else 0))
    assert (done["submission"]["state"] == "NEEDS_REVIEW") is held, done
    return dict(done["submission"])


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
    assert (client.home / "started").read_text().startswith("started")


@pytest.mark.parametrize("program", [Claude, Codex, Copilot])
def test_an_update_that_gains_a_server_arrives_only_when_a_person_agreed(installed, tmp_path, program):
    """By the laxest of the policies that come with the registry."""
    (tmp_path / "server").mkdir()
    policy = tmp_path / "open.yaml"
    policy.write_text("extends: open")
    with running(tmp_path / "server", VSKILL_POLICY=str(policy)) as registry:
        client: Claude | Codex | Copilot = program(installed, registry, tmp_path)
        files = {
            path: data for path, data in standard("gains").items() if path.startswith(("plugin", "skills"))
        }
        publish(registry, "gains", files)
        install(client, "gains")
        held = publish(registry, "gains", standard("gains"), held=True)

        def servers() -> list[str]:
            found = client.home.glob(".c*/**/gains/**/bin/serve.sh")
            return [one.read_text() for one in found if one.is_file()]

        update(client, "gains")
        assert servers() == []
        looked_at = ("--run", str(held["run"]), "--digest", held["digest"])
        registry.command("review", "approve", held["id"], *looked_at, "--reason", "I know this server")
        wait_until(
            lambda: (
                registry.get("/api/v1/skills/upload~tests/skills/gains").json()["skill"]["currentVersion"]
                != "1.0.0"
            ),
            "it is not published",
        )
        update(client, "gains")
        assert servers() == [SERVER.decode()]

"""Plugins in real clients, against a running server. Those that take them whole: the skill and the server of each reach the
model and the machine, and an update that gains something waits until a person agrees. All others: they get the skills,
and are told of the rest."""

import json
from functools import partial

import pytest

from tests.clients.clients import (
    Claude,
    Clawhub,
    Codex,
    Copilot,
    Gemini,
    Inspector,
    OpenCode,
    Skills,
)
from tests.clients.registry import Registry, read_files, running, skill_md, write_files
from tests.support.patience import wait_until
from tests.support.plugins import LOCAL, REMOTE, hooks, manifest, servers
from tests.support.plugins import older as older_manifest

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"
#: A server that says that it was started, and nothing else.
SERVER = b'#!/bin/sh\necho started >> "$HOME/started"\n'
TOLD = "A skill called tidy, for tests of clients."


SKILL = {"skills/tidy/SKILL.md": skill_md("tidy")}


def standard(name: str) -> dict[str, bytes]:
    return {
        "plugin.json": manifest(name),
        "mcp.json": servers(files=LOCAL),
        "bin/serve.sh": SERVER,
        **SKILL,
    }


def older(name: str) -> dict[str, bytes]:
    local = {"command": "${CLAUDE_PLUGIN_ROOT}/bin/serve.sh"}
    return {
        ".claude-plugin/plugin.json": older_manifest(name),
        ".mcp.json": json.dumps({"mcpServers": {"files": local}}).encode(),
        "bin/serve.sh": SERVER,
        **SKILL,
    }


TOOLBOX = {**standard("toolbox"), "hooks/hooks.json": hooks()}


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
def test_an_update_that_gains_something_arrives_only_when_a_person_agreed(installed, tmp_path, program):
    """A program, a server elsewhere and a hook, one after the other, by the laxest of the policies that come with the
    registry."""
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

        def version() -> str:
            shown = registry.get("/api/v1/skills/upload~tests/skills/gains").json()
            return str(shown["skill"]["currentVersion"])

        def is_newer(before: str) -> bool:
            return version() != before

        def has(word: bytes) -> bool:
            found = client.home.glob(".c*/**/gains/**/*")
            return any(word in one.read_bytes() for one in found if one.is_file())

        for gained, word in (
            (standard("gains"), SERVER),
            ({"mcp.json": servers(files=LOCAL, docs=REMOTE)}, REMOTE["url"].encode()),
            ({"hooks/hooks.json": hooks(command="true that")}, b"true that"),
        ):
            files |= gained
            before, held = version(), publish(registry, "gains", files, held=True)
            update(client, "gains")
            assert version() == before and not has(word)
            looked_at = ("--run", str(held["run"]), "--digest", held["digest"])
            registry.command("review", "approve", held["id"], *looked_at, "--reason", "I know it")
            wait_until(partial(is_newer, before), "it is not published")
            update(client, "gains")
            assert has(word)


REST = "1 server and 1 hook"


@pytest.fixture(scope="module")
def toolbox(registry: Registry) -> str:
    publish(registry, "toolbox", TOOLBOX)
    return "upload~tests/skills/toolbox"


def check_told(files: dict[str, bytes]) -> None:
    """Every file of the plugin arrived, with one that names its skill and tells of the rest."""
    made = files.pop("SKILL.md").decode()
    assert files == TOOLBOX
    assert "- `skills/tidy/SKILL.md`: A skill called tidy" in made
    assert f"It also has {REST}." in made and f"has {REST}, which only clients of plugins use" in made


def test_skills_gets_its_skills_and_is_told_of_the_rest(toolbox, skills: Skills):
    assert REST in skills.add(toolbox, "--list").text
    skills.add(toolbox)
    check_told(read_files(skills.folder("toolbox")))


def test_clawhub_gets_its_skills_and_is_told_of_the_rest(toolbox, clawhub: Clawhub):
    assert REST in clawhub.ask("inspect", "toolbox").text
    clawhub.ask("install", "toolbox")
    check_told(read_files(clawhub.folder("toolbox"), (".clawhub/",)))


def test_opencode_gets_its_skills_and_is_told_of_the_rest(toolbox, opencode: OpenCode):
    """It finds the skill inside too."""
    address = f"{opencode.registry.url}/{toolbox}/.well-known/skills/"
    opencode.configure(skills={"urls": [address]})
    found = opencode.skills()
    assert set(found) == {"toolbox", "tidy"}
    assert found["tidy"] == found["toolbox"].parent / "skills/tidy/SKILL.md"
    check_told(read_files(found["toolbox"].parent))


def test_gemini_gets_its_skills_and_is_told_of_the_rest(toolbox, gemini: Gemini):
    """As an extension: it starts none of the servers and hooks that it does not know."""
    address = f"{gemini.registry.url}/marketplace/{toolbox}.git"
    said = gemini.run("extensions", "install", address, "--consent").text
    assert TOLD in gemini.run("skills", "list").text
    place = gemini.home / ".gemini/extensions/toolbox"
    assert REST in json.loads((place / "gemini-extension.json").read_text())["description"]
    assert "mcp" not in said.lower(), said


def test_hosts_of_mcp_get_its_skills_and_are_told_of_the_rest(toolbox, inspector: Inspector):
    listed = {one["uri"]: one for one in inspector.ask("skills/list")["skills"]}
    assert REST in listed[f"skill://{toolbox}/SKILL.md"]["frontmatter"]["description"]
    inside = f"skill://{toolbox}/-/tidy/SKILL.md"
    assert [one["uri"] for one in listed[inside]["resources"]] == [inside]
    (content,) = inspector.ask("resources/read", "--uri", inside)["contents"]
    assert content["text"].encode() == TOOLBOX["skills/tidy/SKILL.md"]
    found = inspector.run(*inspector.words("skills/list", "--verify", "--require-digests")).text
    assert "no conformance errors" in found

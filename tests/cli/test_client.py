"""`vskill-client` does at a registry what `vskill-platform --registry` does, and never makes one of its own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.envs import run_until_quiet, submit_skill
from vskill_client.main import cli as client
from vskill_core.content import SkillFile
from vskill_platform.cli import cli as platform
from vskill_platform.intake.submit import submit_upload

NAME = "upload~ann/skills/tidy"


@pytest.fixture
def project(tmp_path, monkeypatch, home):
    """An empty folder that a person works in, on a machine without a registry."""
    monkeypatch.delenv("VSKILL_DATA_DIR")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(params=[(client, "vskill-client"), (platform, "vskill-platform")], ids=["client", "platform"])
def signed_in(request, registry, project):
    """Commands of one executable after `login` to a registry with one skill, and the executable's name."""
    command, name = request.param

    async def publish(env) -> None:
        await submit_skill("tidy", namespace="ann")
        await run_until_quiet(env)

    def call(*words: object, code: int = 0, typed: str = "") -> Result:
        done = CliRunner().invoke(command, [str(one) for one in words], input=typed, prog_name=name)
        assert done.exit_code == code, done.output
        return done

    registry["do"](publish)
    assert f"Try: {name} search WORDS" in call("login", registry["address"], typed=registry["token"]).stdout
    return call, name


def test_a_skill_is_found_installed_locked_and_verified(signed_in, project):
    call, _ = signed_in
    assert NAME in call("search", "tidy").stdout
    assert f"Installed {NAME} 1.0.0" in call("install", "tidy").stdout
    folder = Path(".claude/skills")
    assert json.loads(call("verify", folder / "tidy", "--json").stdout)["status"] == "live"
    Path("lock.json").write_text(call("lock", "tidy").stdout)
    assert "holds the 1 skills" in call("verify", folder, "--lock", "lock.json").stdout
    assert not Path("data").exists()


def test_a_description_is_printed_without_its_markdown(signed_in, registry):
    call, _ = signed_in
    text = b"---\nname: marked\ndescription: Reads **all** of `it`.\n---\n# Marked\n"

    async def publish(env) -> None:
        await submit_upload((SkillFile("SKILL.md", "100644", text),), namespace="ann", slug="marked")
        await run_until_quiet(env)

    registry["do"](publish)
    assert "Reads all of it." in call("search", "marked").stdout


def test_a_folder_is_submitted_and_followed(signed_in, project, skill):
    call, _ = signed_in
    (skill / "SKILL.md").write_text("---\nname: neat\ndescription: Tidies a folder.\n---\n# Neat\n")
    (done,) = json.loads(call("submit", skill, "--json").stdout)
    assert (done["outcome"], done["submission"]["skillName"]) == ("created", "neat")
    assert "accepted, waiting for a worker" in call("status", done["submission"]["id"]).stdout
    assert "accepted, waiting for a worker" in call("status").stdout
    assert call("whoami").stdout.startswith("ann ")


def test_an_upload_without_a_name_is_called_as_its_folder(signed_in, skill):
    call, _ = signed_in
    (skill / "SKILL.md").write_text("# Neat\n\nTidies a folder.\n")
    folder = skill.rename(skill.with_name("neatly"))
    (done,) = json.loads(call("submit", folder, "--json").stdout)
    assert done["submission"]["skillName"] == "neatly"


@pytest.mark.parametrize(
    "words",
    [
        "search tidy",
        "install tidy",
        "lock tidy",
        "submit https://github.com/acme/tools",
        "status",
        "whoami",
        "scan .",
        "connect codex --yes",
        "verify . --skill tidy",
    ],
)
def test_without_a_registry_every_command_says_what_to_do_and_makes_nothing(project, home, words):
    said = CliRunner().invoke(client, words.split())
    assert said.exit_code == 1
    assert "sign in to one with 'vskill-client login URL', or name one with --registry URL" in said.stderr
    assert list(project.iterdir()) == [] and not home.exists()

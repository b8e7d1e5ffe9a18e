"""`connect` and `git-credential` against a running server: what is shown, written and taken back, and git with the
helper."""

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.clients.clients import git
from tests.clients.private import OWNER, PrivateRegistry
from tests.clients.registry import Registry, skill_md
from vskill_platform.cli import cli

pytestmark = pytest.mark.slow

#: What somebody has in their settings already, by client.
SETTINGS = {
    "claude": (".claude/settings.json", '{\n  // mine\n  "model": "opus", /* { */\n}\n'),
    "copilot": (".copilot/settings.json", '{"extraKnownMarketplaces": {"theirs": {"source": {}}}}'),
    "codex": (".codex/config.toml", '# mine\nmodel = "x"\n\n[marketplaces.theirs]\nsource = "y"'),
    "opencode": (".config/opencode/opencode.jsonc", '{"skills": {"urls": ["https://theirs/"]}} // end\n'),
}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("plain", {"SKILL.md": skill_md("plain")})
    return registry


def run(home: Path, *arguments: str, given: str = "", code: int = 0) -> Result:
    """A command of somebody with this home."""
    others = {name: None for name in os.environ if name.startswith(("VSKILL_", "XDG_"))}
    done = CliRunner().invoke(cli, arguments, env={**others, "HOME": str(home)}, input=given)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("client", SETTINGS)
@pytest.mark.parametrize("has_settings", [True, False])
def test_it_shows_writes_and_takes_back_the_very_bytes(published, tmp_path, client, has_settings):
    name, text = SETTINGS[client]
    path = tmp_path / name
    if has_settings:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    elif client == "opencode":
        path = path.with_suffix(".json")
    shown = run(tmp_path, "--registry", published.url, "connect", client).output
    assert str(path) in shown and published.url in shown and "add --yes" in shown
    assert path.exists() is has_settings and (not has_settings or path.read_text() == text)
    run(tmp_path, "--registry", published.url, "connect", client, "--yes")
    written = path.read_text()
    assert published.url in written
    if has_settings:
        assert all(word in written for word in ("mine" if "mine" in text else "theirs",))
    again = run(tmp_path, "--registry", published.url, "connect", client, "--yes").output
    assert path.read_text() == written and "Written" not in again
    run(tmp_path, "connect", client, "--undo")
    assert path.exists() is has_settings and (not has_settings or path.read_text() == text)


def test_what_somebody_added_since_stays(published, tmp_path):
    run(tmp_path, "--registry", published.url, "connect", "codex", "--yes")
    path = tmp_path / ".codex/config.toml"
    path.write_text(path.read_text() + '\n[plugins."a@b"]\nenabled = true\n')
    assert "what changed since stays" in run(tmp_path, "connect", "codex", "--undo").output
    assert path.read_text() == '\n[plugins."a@b"]\nenabled = true\n'


@pytest.mark.parametrize("others", [{}, {"a": {"source": {}}}, {"z": {"source": {}}}])
@pytest.mark.parametrize("client", ["claude", "copilot"])
def test_of_what_the_client_wrote_anew_only_our_entry_goes(published, tmp_path, client, others):
    run(tmp_path, "--registry", published.url, "connect", client, "--yes")
    path = tmp_path / f".{client}/settings.json"
    known = {**json.loads(path.read_text())["extraKnownMarketplaces"], **others}
    written = {"extraKnownMarketplaces": dict(sorted(known.items())), "enabledPlugins": {"x@y": True}}
    path.write_text(json.dumps(written, indent=2))
    assert "the entry is removed" in run(tmp_path, "connect", client, "--undo").output
    assert json.loads(path.read_text()) == {**written, "extraKnownMarketplaces": others}


def test_an_entry_that_somebody_changed_is_named_and_left(published, tmp_path):
    run(tmp_path, "--registry", published.url, "connect", "claude", "--yes")
    path = tmp_path / ".claude/settings.json"
    changed = path.read_text().replace(published.url, "https://elsewhere.example.org")
    path.write_text(changed)
    assert "remove this by hand" in run(tmp_path, "connect", "claude", "--undo", code=1).output
    assert path.read_text() == changed
    path.write_text("{}")
    assert "gone already" in run(tmp_path, "connect", "claude", "--undo").output


@pytest.mark.node
@pytest.mark.parametrize("name", ["claude", "copilot"])
def test_it_is_taken_back_after_the_client_installed_a_plugin(published, request, name):
    client = request.getfixturevalue(name)
    run(client.home, "--registry", published.url, "connect", name, "--yes")
    if name == "claude":
        client.start_session()
    client.plugin("install", "plain@vskill-platform")
    assert "the entry is removed" in run(client.home, "connect", name, "--undo").output
    left = json.loads((client.home / f".{name}/settings.json").read_text())
    assert left["extraKnownMarketplaces"] == {} and left["enabledPlugins"]


def test_the_helper_of_git_stays_while_another_client_uses_it(private: PrivateRegistry, tmp_path):
    run(tmp_path, "login", private.url, given=f"{private.member}\n")
    for client in ("claude", "codex"):
        run(tmp_path, "--registry", private.url, "connect", client, "--owner", OWNER, "--yes")
    config = tmp_path / ".gitconfig"
    helper = config.read_text()
    assert "codex uses it" in run(tmp_path, "connect", "claude", "--undo").output
    assert config.read_text() == helper and "git-credential" in helper
    run(tmp_path, "connect", "codex", "--undo")
    assert not config.exists()


def test_opencode_is_not_pointed_at_what_needs_a_token(private: PrivateRegistry, tmp_path):
    run(tmp_path, "login", private.url, given=f"{private.member}\n")
    owner = ("connect", "opencode", "--owner", OWNER, "--yes")
    said = run(tmp_path, "--registry", private.url, *owner, code=1).output
    assert "OpenCode sends none" in said and not (tmp_path / ".config/opencode").exists()


def test_another_marketplace_of_that_name_is_not_overwritten(published, tmp_path):
    (tmp_path / ".claude").mkdir()
    path = tmp_path / ".claude/settings.json"
    path.write_text('{"extraKnownMarketplaces": {"vskill-platform": {"source": {}}}}')
    said = run(tmp_path, "--registry", published.url, "connect", "claude", "--yes", code=1).output
    assert "remove that entry first" in said and published.url not in path.read_text()


@pytest.mark.parametrize("client", ["gemini", "skills", "clawhub", "vskill"])
def test_clients_without_settings_are_told_what_to_type(published, tmp_path, client):
    shown = run(tmp_path, "--registry", published.url, "connect", client, "--yes").output
    assert published.url in shown and "Written" not in shown


def test_an_owner_and_a_collection_have_lists_of_their_own(published, tmp_path):
    shown = run(tmp_path, "--registry", published.url, "connect", "codex", "--owner", "upload~tests").output
    assert f"{published.url}/upload~tests.git" in shown and "[marketplaces.upload-tests]" in shown
    wrong = run(tmp_path, "--registry", published.url, "connect", "codex", "--owner", "nobody", code=1)
    assert "cannot be read" in wrong.output
    run(tmp_path, "connect", "codex", code=1)
    both = ("--owner", "a", "--collection", "b")
    run(tmp_path, "--registry", published.url, "connect", "codex", *both, code=2)


def test_git_clones_a_private_list_with_the_token_of_login(private: PrivateRegistry, tmp_path):
    """No file but that of `login` holds the token."""
    run(tmp_path, "login", private.url, given=f"{private.member}\n")
    said = run(tmp_path, "--registry", private.url, "connect", "codex", "--owner", OWNER, "--yes").output
    assert "git-credential" in said and private.member not in said
    config = tmp_path / ".gitconfig"
    program = f"{sys.executable} -m vskill_platform"
    config.write_text(config.read_text().replace("vskill-platform git", f"{program} git"))
    git(tmp_path, "clone", "-q", f"{private.url}/{OWNER}.git", "list")
    held = [
        one for one in tmp_path.rglob("*") if one.is_file() and private.member.encode() in one.read_bytes()
    ]
    assert [one.name for one in held] == ["registries.json"]


def test_the_helper_tells_only_what_is_kept_for_that_registry(private: PrivateRegistry, tmp_path):
    run(tmp_path, "login", private.url, given=f"{private.member}\n")
    protocol, _, host = private.url.partition("://")
    asked = f"protocol={protocol}\nhost={host}\n\n"
    assert run(tmp_path, "git-credential", "get", given=asked).output == (
        f"username=any\npassword={private.member}\n"
    )
    for other in (f"protocol=https\nhost={host}\n\n", "protocol=http\nhost=127.0.0.1:1\n\n", "\n"):
        assert run(tmp_path, "git-credential", "get", given=other).output == ""
    for operation in ("store", "erase"):
        assert run(tmp_path, "git-credential", operation, given=asked).output == ""

"""Signing in to a registry elsewhere: the token is checked, kept for nobody else's eyes, and used by later commands."""

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest
import re2
from click.testing import CliRunner

from tests.support.pseudo_terminal import at_terminal
from vskill_platform.cli import cli
from vskill_platform.store.people.device_codes import answer_code

PROGRAM = shutil.which("vskill-platform", path=str(Path(sys.executable).parent)) or ""


def run(*arguments: str, code: int = 0, **options):
    result = CliRunner().invoke(cli, arguments, prog_name="vskill-platform", **options)
    assert result.exit_code == code, result.output
    return result


def test_login_keeps_a_token_that_works_where_nobody_else_can_read_it(registry, home):
    address = registry["address"]
    said = run("login", address, input=registry["token"] + "\n")
    assert f"Signed in to {address} as ann" in said.output
    assert registry["token"] not in said.output
    path = home / "registries.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {address: registry["token"]}
    assert json.loads(run("--registry", address, "whoami", "--json").stdout) == {
        "account": "ann",
        "role": "author",
        "scopes": ["read", "submit"],
    }
    assert "is forgotten" in run("logout", address).output
    assert json.loads(path.read_text()) == {}
    assert run("--registry", address, "whoami", code=1).stderr == (
        f"Error: You are not signed in at this registry; run 'vskill-platform login {address}', "
        "or set VSKILL_PLATFORM_TOKEN.\n"
    )


def test_login_at_a_terminal_shows_a_code_and_waits_until_somebody_has_typed_it(registry, home):
    address = registry["address"]
    with at_terminal([PROGRAM, "login", address]) as terminal:
        (code,) = re2.findall(r"type the code ([A-Z]{4}-[A-Z]{4})", terminal.read_until("type the code "))
        registry["do"](lambda _: answer_code(code, "ann", ("read", "submit")))
        shown = terminal.read_rest()
    assert f"Signed in to {address} as ann with the scopes read, submit." in shown
    assert "vsk_" not in shown
    (token,) = json.loads((home / "registries.json").read_text()).values()
    assert token.startswith("vsk_") and token != registry["token"]


def test_a_refusal_says_what_to_do_on_a_command_line(registry, home, monkeypatch):
    address = registry["address"]
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", "vsk_wrong")
    said = run("--registry", address, "whoami", code=1).stderr
    assert said.startswith(
        "Error: The token is not valid, has expired, was revoked, or its owner must sign in again; run 'vskill-platform login "
    )
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["token"])
    assert run("--registry", address, "watch", "add", "--namespace", "acme", code=1).stderr == (
        "Error: This token lacks the scope 'own'; use one that has it, from your account page.\n"
    )


def test_a_token_that_is_not_good_is_not_kept(registry, home):
    said = run("login", registry["address"], input="vsk_wrong\n", code=1)
    assert "not valid" in said.stderr
    assert not home.exists()


@pytest.mark.parametrize("typed", ["", "two words\n", "vsk_\N{SNOWMAN}\n"])
def test_what_cannot_be_a_token_is_said_before_anybody_is_asked(home, typed):
    said = run("login", "https://skills.example.org", input=typed, code=1).stderr
    assert "This is not a token; give the one that https://skills.example.org/account shows" in said


def test_an_option_of_the_executable_behind_a_command_says_where_it_goes(home):
    for option in ("--registry", "--as"):
        said = run("skill", "show", "tidy", option, "x", code=2).stderr
        assert f"{option} goes before the command's name." in said
    assert "No such option '--other'" in run("search", "x", "--other", code=2).stderr


def test_a_search_of_this_machines_own_store_names_the_registries_that_were_meant(registry, home):
    run("login", registry["address"], input=registry["token"] + "\n")
    for words in (("search", "tidy"), ("install", "tidy")):
        said = run(*words, code=0 if words[0] == "search" else 1)
        assert f"use --registry {registry['address']}." in said.stderr
    assert "--registry" not in run("--registry", registry["address"], "search", "tidy").stderr


def test_a_program_names_registry_and_token_in_its_environment(registry, home, monkeypatch):
    monkeypatch.setenv("VSKILL_PLATFORM_REGISTRY", registry["address"])
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["token"])
    assert run("whoami").output.startswith("ann (author)")


def test_without_a_registry_a_command_acts_on_this_machine(home, data_dir):
    assert "operator of this machine" in run("whoami").output
    assert "There is no account 'nobody'" in run("--as", "nobody", "whoami", code=1).stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://skills.example.org", "use https"),
        ("ftp://skills.example.org", "is not the address of a registry"),
        ("https://user@skills.example.org", "is not the address of a registry"),
        ("skills.example.org", "is not the address of a registry"),
    ],
)
def test_an_address_that_would_give_the_token_away_or_is_none_is_refused(home, address, words):
    assert words in run("login", address, input="vsk_x\n", code=1).stderr
    assert words in run("--registry", address, "whoami", code=1).stderr


def test_a_registry_elsewhere_knows_its_caller_by_the_token(home):
    said = run("--registry", "https://skills.example.org", "--as", "ann", "whoami", code=1)
    assert "knows you by your token" in said.stderr


def test_a_command_of_the_servers_machine_never_acts_elsewhere_than_the_command_line_says(home, monkeypatch):
    """It used to act on the machine's own store, whatever registry was named."""
    said = run("--registry", "https://skills.example.org", "keys", "rotate", code=1).stderr
    assert "--registry: This command works only on the server's machine; leave out --registry" in said
    assert (
        "--as: Only the operator can run this command" in run("--as", "ann", "skill", "export", code=1).stderr
    )
    monkeypatch.setenv("VSKILL_PLATFORM_REGISTRY", "https://skills.example.org")
    assert "VSKILL_PLATFORM_REGISTRY" in run("skill", "export", code=1).stderr


@pytest.fixture
def elsewhere(home, tmp_path, monkeypatch):
    """A folder without a registry, whose environment names none."""
    monkeypatch.delenv("VSKILL_DATA_DIR")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [("search", "tidy"), ("status",), ("skill", "list"), ("skill", "export"), ("whoami",), ("keys", "list")],
    ids=" ".join,
)
def test_where_there_is_no_registry_a_command_says_what_to_do_and_makes_none(elsewhere, words):
    said = run(*words, code=1).stderr
    assert "There is no registry in this folder (data/vskill.db)" in said
    for way in ("vskill-platform login URL", "--registry URL", "vskill-platform serve"):
        assert way in said
    assert list(elsewhere.iterdir()) == []


def test_completing_a_name_makes_no_registry(elsewhere):
    asked = {
        "_VSKILL_PLATFORM_COMPLETE": "bash_complete",
        "COMP_WORDS": "vskill-platform status ",
        "COMP_CWORD": "2",
    }
    assert run(env=asked).output.strip() == ""
    assert list(elsewhere.iterdir()) == []


def test_login_sets_the_registry_of_commands_that_name_none(registry, elsewhere):
    address = registry["address"]
    said = run("login", address, input=registry["token"] + "\n").output
    assert f"Commands without --registry act on {address} from now on." in said
    assert run("whoami").output.startswith("ann (author)")
    assert "There is no registry in this folder" in run("--as", "ann", "whoami", code=1).stderr
    assert list(elsewhere.iterdir()) == []
    run("logout", address)
    assert "There is no registry in this folder" in run("whoami", code=1).stderr


def test_the_registry_of_the_last_login_counts(elsewhere, registry, home):
    """Of those that one is still signed in to."""
    folder = home / "registries.json"
    home.mkdir(parents=True)
    folder.write_text(
        json.dumps({registry["address"]: registry["token"], "https://other.example.org": "vsk_x"})
    )
    run("login", registry["address"], input=registry["token"] + "\n")
    assert run("whoami").output.startswith("ann (author)")


def test_a_registry_of_ones_own_comes_before_the_one_that_one_signed_in_to(registry, home, data_dir):
    said = run("login", registry["address"], input=registry["token"] + "\n").output
    assert f"--registry {registry['address']} search" in said
    assert "operator of this machine" in run("whoami").output

"""What an operator types for accounts and tokens; E11: a password is asked for or made, and never there by default."""

import json

from click.testing import CliRunner

from tests.support.people import PASSWORD
from vskill_platform.cli import cli


def test_an_admin_is_made_with_a_generated_password_that_is_shown_once(run):
    done = run("admin", "create", "ada", "--generate").stdout
    assert "as admin" in done
    password = done.split("shown only once: ")[1].strip()
    assert len(password) >= 12
    listed = run("admin", "list").stdout
    assert "ada" in listed and password not in listed and "argon2" not in listed
    found = json.loads(run("admin", "list", "--json").stdout)
    assert [(one["name"], one["role"]) for one in found["items"]] == [("ada", "admin")]
    assert "argon2" not in json.dumps(found)


def test_a_password_is_asked_for_twice_and_not_shown(data_dir):
    typed = f"{PASSWORD}\n{PASSWORD}\n"
    done = CliRunner().invoke(cli, ["admin", "create", "ada"], input=typed)
    assert done.exit_code == 0, done.output
    assert PASSWORD not in done.output


def test_a_weak_password_is_refused_with_the_fix(data_dir):
    done = CliRunner().invoke(cli, ["admin", "create", "ada"], input="short\nshort\n")
    assert done.exit_code == 1
    assert "12 to 200 characters" in done.stderr


def test_accounts_are_changed_and_every_change_is_audited(run):
    run("admin", "create", "ada", "--generate")
    run("admin", "create", "rob", "--role", "author", "--generate", "--reason", "joined")
    assert run("admin", "role", "rob", "reviewer").stdout == "rob is now reviewer.\n"
    assert "locked out" in run("admin", "disable", "rob", "--reason", "on leave").stdout
    assert "locked out" in run("admin", "list").stdout
    run("admin", "enable", "rob")
    assert "shown only once" in run("admin", "password", "rob", "--generate").stdout
    assert json.loads(run("admin", "password", "rob", "--generate", "--json").stdout)["password"]
    audit = run("audit", "list").stdout
    for action in (
        "account created",
        "account role",
        "account disabled",
        "account enabled",
        "account password",
    ):
        assert action in audit


def test_what_cannot_be_done_is_one_clear_line(run):
    run("admin", "create", "ada", "--generate")
    assert "only admin" in run("admin", "disable", "ada", code=1).stderr
    assert "already" in run("admin", "create", "ada", "--generate", code=1).stderr
    assert "no account" in run("admin", "role", "nobody", "author", code=1).stderr
    assert "a-z" in run("admin", "create", "Ada Lovelace", "--generate", code=1).stderr


def test_a_token_is_shown_once_listed_and_revoked(run):
    run("admin", "create", "ada", "--generate")
    made = json.loads(run("token", "create", "ada", "--name", "ci", "--scope", "read", "--json").stdout)
    assert made["token"].startswith("vsk_")
    assert "shown only once: vsk_" in run("token", "create", "ada", "--name", "laptop").stdout
    listed = run("token", "list").stdout
    assert "ci" in listed and "laptop" in listed and "vsk_" not in listed
    assert len(json.loads(run("token", "list", "--account", "ada", "--json").stdout)["tokens"]) == 2
    token_id = made["details"]["id"]
    assert "revoked" in run("token", "revoke", "ada", token_id).stdout
    assert "no token" in run("token", "revoke", "ada", token_id, code=1).stderr


def test_a_token_for_nobody_is_refused(run):
    assert "no account" in run("token", "create", "nobody", "--name", "x", code=1).stderr
    run("token", "create", "ada", "--name", "x", "--scope", "root", code=2)


def test_an_account_manages_its_own_tokens(run):
    run("admin", "create", "ada", "--generate")
    made = json.loads(run("--as", "ada", "account", "create-token", "--name", "ci", "--json").stdout)
    assert "ci" in run("--as", "ada", "account", "tokens").stdout
    run("--as", "ada", "account", "revoke-token", made["details"]["id"])
    assert "0 tokens" in run("--as", "ada", "account", "tokens").stdout
    assert "--as ACCOUNT" in run("account", "tokens", code=1).stderr

"""What people type about namespaces, teams and access: a change is told before it is confirmed."""

import pytest

from tests.cli.test_owner_commands import work

OWN = "upload~local"
WHY = ("--reason", "a test")


@pytest.fixture
def tidy(run, skill):
    """A published upload of the account `local`."""
    run("submit", skill)
    work()
    return "upload~local/skills/tidy"


def test_a_visibility_is_previewed_and_asked_for(run, tidy):
    """Without an answer nothing is changed."""
    asked = run("namespace", "visibility", OWN, "team", *WHY, code=1).output
    assert "1 skill (0 of them in collections) and 1 submission would disappear for the public." in asked
    assert tidy in asked and "Change who may read it?" in asked
    assert "unmanaged" in run("namespace", "preview", OWN, "team").stdout
    done = run("namespace", "visibility", OWN, "team", "--yes", *WHY).stdout
    assert f"{OWN}: team" in done and "skills: 1 of any number" in done
    assert "1 namespaces" in run("namespace", "list").stdout
    back = run("namespace", "make-public", OWN, *WHY, code=1).output
    assert "would appear for the public" in back
    run("namespace", "make-public", OWN, "--yes", *WHY)
    assert f"{OWN}: public" in run("namespace", "show", OWN).stdout


def test_members_teams_quotas_and_narrower_skills(run, tidy):
    run("admin", "create", "mia", "--role", "author", "--generate")
    run("team", "create", "crew", *WHY)
    assert run("team", "add", "crew", "mia", *WHY).stdout == "crew: mia\n"
    run("admin", "create", "bob", "--role", "author", "--generate")
    assert run("team", "add", "crew", "mia, bob", *WHY).stdout == "crew: bob, mia\n"
    assert run("team", "remove", "crew", "bob,", *WHY).stdout == "crew: mia\n"
    assert "team:crew" in run("namespace", "add", OWN, "team:crew", "author", *WHY).stdout
    assert f"It is a member of {OWN}." in run("team", "show", "crew").stdout
    assert "remove it there first" in run("team", "delete", "crew", *WHY, code=1).output
    run("namespace", "visibility", OWN, "internal", "--yes", *WHY)
    assert "skills: 1 of 5" in run("namespace", "quotas", OWN, "--skills", "5", *WHY).stdout
    narrowed = run("skill", "narrow", tidy, "team", *WHY).stdout
    assert narrowed == f"{tidy}: team; its namespace is internal.\n"
    assert "as its namespace" in run("skill", "widen", tidy, *WHY).stdout
    assert "author" in run("--as", "mia", "namespace", "list").stdout


def test_the_registry_is_previewed_before_it_is_internal(run, tidy):
    assert "The registry is public" in run("access", "show").stdout
    asked = run("access", "change", "--mode", "internal", *WHY, code=1).output
    assert "1 skill " in asked and "would disappear for the public" in asked
    done = run("access", "change", "--mode", "internal", "--submitters", "members", "--yes", *WHY).stdout
    said = "The registry is internal. Who may submit: members. Namespaces that review themselves: allowed.\n"
    assert done == said
    assert tidy in run("access", "preview", "public").stdout

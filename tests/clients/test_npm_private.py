"""A private namespace and the npm packages `clawhub` and `skills`. With a member's token they install from it; without
one, or with any other, it is as if there were nothing."""

import re

import pytest

from tests.clients.clients import Said, keep_for_git
from tests.clients.private import (
    ABSENT,
    FILES,
    HIDDEN,
    OWNER,
    SLUG,
    PrivateRegistry,
    create_token,
    revoke_token,
    without_names,
)
from tests.clients.registry import Registry, read_files, skill_md

pytestmark = pytest.mark.node

NOTES = (".clawhub/",)
#: What `skills` prints while it waits, as often as it has to.
_SPINNER = re.compile(r"[◒◐◓◑]  [^◒◐◓◑│◇■]*")
#: The folder that it clones into.
_FOLDER = re.compile(r"/skills-\w+")


@pytest.fixture
def registry(private: PrivateRegistry) -> Registry:
    """What the clients are pointed at."""
    return private.registry


def without_asked(said: Said) -> tuple[int, str]:
    """How it ended and what it said, without the name that it was asked for, the time that it took and its folder."""
    return said.code, without_names(_FOLDER.sub("/(folder)", _SPINNER.sub("", said.text)))


# clawhub.


def flat(canonical: str) -> str:
    return canonical.replace("/", "--")


@pytest.mark.shows("clawhub", "token")
def test_clawhub_finds_inspects_installs_and_updates_with_a_token(private, clawhub):
    clawhub.ask("login", "--token", private.member)
    assert f"{SLUG} v1.0.0" in clawhub.ask("search", SLUG).text
    assert "scripts/run.sh" in clawhub.ask("inspect", SLUG, "--files").text
    for name in (SLUG, flat(HIDDEN)):
        clawhub.ask("install", name)
        assert read_files(clawhub.folder(name), NOTES) == FILES
    private.registry.publish("grows", {"SKILL.md": skill_md("grows", "old")}, namespace="mia")
    clawhub.ask("install", "grows")
    private.registry.publish("grows", {"SKILL.md": skill_md("grows", "new")}, namespace="mia")
    assert "Updated grows -> v1.0.1" in clawhub.ask("update", "grows").text


@pytest.mark.parametrize("who", ["no token", "another team", "revoked"])
def test_clawhub_says_of_it_what_it_says_of_a_name_that_is_not_there(private, clawhub, who):
    token, token_id = private.outsiders[who], ""
    if who == "revoked":
        # It keeps no token that is refused, so this one is revoked afterwards.
        assert "not valid" in clawhub.ask("login", "--token", token, code=1).text
        token, token_id = create_token(private.registry)
    if token is not None:
        clawhub.ask("login", "--token", token)
    if token_id:
        revoke_token(private.registry, token, token_id)
    for command, wanted in (("inspect", flat), ("install", flat), ("install", short)):
        said = [without_asked(clawhub.ask(command, wanted(name), code=1)) for name in (HIDDEN, *ABSENT)]
        assert said == [said[0]] * len(said)
    assert clawhub.ask("search", SLUG).text == clawhub.ask("search", "zircon").text
    clawhub.ask("install", "open")


def short(canonical: str) -> str:
    return canonical.rpartition("/")[2]


# skills: it sends a token only through git.


@pytest.mark.shows("skills", "token")
def test_skills_installs_and_updates_from_the_git_address_with_a_token(private, skills):
    private.registry.publish("moves", {"SKILL.md": skill_md("moves", "old")}, namespace="mia")
    keep_for_git(skills.home, private.url, private.member)
    skills.add(f"marketplace/{HIDDEN}.git")
    assert read_files(skills.folder(SLUG)) == FILES
    skills.add(f"marketplace/{OWNER}/skills/moves.git")
    new = {"SKILL.md": skill_md("moves", "new")}
    private.registry.publish("moves", new, namespace="mia")
    assert "Updated moves" in skills.run("update", "-p", "-y").text
    assert any(read_files(one) == new for one in skills.project.rglob("moves") if one.is_dir())


def test_skills_sends_no_token_of_an_address_without_git(private, skills):
    """It leaves the user's part of an address out of its requests, and so finds nothing."""
    address = private.url.replace("://", f"://any:{private.member}@")
    said = skills.run("add", f"{address}/{HIDDEN}", "--agent", "claude-code", "-y", code=1).text
    assert f"No skills found for the scoped path '/{HIDDEN}'" in said


@pytest.mark.parametrize(
    ("who", "scope"),
    [
        ("no token", "{name}"),
        ("no token", "marketplace/{name}.git"),
        ("another team", "marketplace/{name}.git"),
        ("expired", "marketplace/{name}.git"),
    ],
)
def test_skills_says_of_it_what_it_says_of_a_name_that_is_not_there(private, skills, who, scope):
    said = []
    for name in (HIDDEN, *ABSENT):
        token = private.outsiders[who]
        if token is not None:
            keep_for_git(skills.home, private.url, token)
        said.append(without_asked(skills.add(scope.format(name=name), code=1)))
    assert said == [said[0]] * len(said)
    skills.add(scope.format(name="upload~tests/skills/open"))

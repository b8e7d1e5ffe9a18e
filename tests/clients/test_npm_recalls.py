"""A recall as each npm client sees it, against a running server on loopback: what it says, and what is left on disk. And
what a recall is not: a publication, however many there are, takes nothing from those who have a skill."""

import json

import pytest

from tests.clients.clients import Claude
from tests.clients.registry import Registry, add_many, read_files, skill_md

pytestmark = pytest.mark.node

MARKETPLACE = "vskill-platform"
#: More than any document ever ended at.
MANY = 210


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("good", {"SKILL.md": skill_md("good")})
    return registry


def plugin_of(claude: Claude, name: str) -> dict[str, object]:
    listed = json.loads(claude.plugin("list", "--json").text)
    (found,) = [one for one in listed if one["id"] == f"{name}@{MARKETPLACE}"]
    return dict(found)


def test_claude_code_says_that_a_blocked_plugin_is_gone_and_does_not_load_it(published, claude):
    """Its files stay in the cache, and are not used: it loads what its marketplace names."""
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")}, namespace="bad")
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    for name in ("good", "bad"):
        claude.plugin("install", f"{name}@{MARKETPLACE}")
    published.block(canonical, "steals tokens")
    claude.plugin("marketplace", "update", MARKETPLACE)
    assert plugin_of(claude, "bad")["errors"] == [f"Plugin bad not found in marketplace {MARKETPLACE}"]
    assert "errors" not in plugin_of(claude, "good")
    shown = claude.plugin("list").text
    assert "failed to load" in shown.partition(f"bad@{MARKETPLACE}")[2].partition("@")[0]
    refused = claude.plugin("update", f"bad@{MARKETPLACE}", code=1).text
    assert 'Plugin "bad" not found' in refused
    assert claude.folder(MARKETPLACE, "bad").exists()


def test_claude_code_sees_it_too_where_an_owner_has_nothing_else(published, claude):
    """The owner's marketplace is empty then, and not missing: a client keeps what it knows of a missing one."""
    canonical = published.publish("lonely", {"SKILL.md": skill_md("lonely")}, namespace="lonely")
    claude.plugin("marketplace", "add", f"{published.url}/upload~lonely/marketplace.json")
    claude.plugin("install", "lonely@upload-lonely")
    published.block(canonical, "steals tokens")
    claude.plugin("marketplace", "update", "upload-lonely")
    (listed,) = json.loads(claude.plugin("list", "--json").text)
    assert listed["errors"] == ["Plugin lonely not found in marketplace upload-lonely"]


@pytest.mark.shows("skills", "revoked")
@pytest.mark.parametrize("scope", ["upload~{0}", "upload~{0}/skills/{0}"], ids=["owner", "skill"])
def test_skills_says_that_a_blocked_skill_was_deleted_and_offers_no_other(published, skills, scope, request):
    """It asks before it deletes, and without a terminal it does not: the files stay."""
    name = f"stolen-{request.node.callspec.id}"
    canonical = published.publish(name, {"SKILL.md": skill_md(name)}, namespace=name)
    skills.add(scope.format(name))
    published.block(canonical, "steals tokens")
    said = skills.run("update", "-p", "-y").text
    assert "appear to have been deleted upstream" in said and f"• {name}" in said
    assert "new skill(s) available" not in said and "good" not in said
    assert skills.folder(name).joinpath("SKILL.md").exists()


@pytest.mark.shows("clawhub", "revoked")
def test_clawhub_says_that_a_blocked_skill_is_malicious_and_updates_the_others(published, clawhub):
    canonical = published.publish("worse", {"SKILL.md": skill_md("worse")}, namespace="worse")
    clawhub.ask("install", "worse")
    clawhub.ask("install", "good")
    published.block(canonical, "steals tokens")
    said = clawhub.ask("update", "--all").text
    assert "worse: blocked as malicious" in said and "good up to date" in said
    assert clawhub.folder("worse").joinpath("SKILL.md").exists()


def test_a_version_that_was_taken_down_is_replaced_by_the_one_before(published, claude, skills, clawhub):
    """By each client's own update, which says so; nothing of it is left where the client keeps its skills."""
    texts = [{"SKILL.md": skill_md("steps", body)} for body in ("old", "new")]
    for files in texts:
        canonical = published.publish("steps", files)
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    claude.plugin("install", f"steps@{MARKETPLACE}")
    skills.add(canonical)
    clawhub.ask("install", "steps")
    published.command("skill", "takedown", canonical, "1.0.1", "--reason", "it misleads")
    claude.plugin("marketplace", "update", MARKETPLACE)
    # An older version has a higher number in lists; the client shows that one.
    assert "updated from 1.0.1 to 1.0.2-0." in claude.plugin("update", f"steps@{MARKETPLACE}").text
    assert "Updated steps" in skills.run("update", "-p", "-y").text
    assert "Updated steps -> v1.0.0" in clawhub.ask("update", "steps").text
    number = str(plugin_of(claude, "steps")["version"])
    assert read_files(claude.folder(MARKETPLACE, "steps", number)) == texts[0]
    for folder in (skills.folder("steps"), clawhub.folder("steps")):
        assert read_files(folder, (".clawhub/",)) == texts[0]


def test_a_withdrawal_takes_nothing_from_skills_and_clawhub_and_a_restore_is_an_update(
    published, skills, clawhub
):
    """Neither removes a skill by itself; each says that it is gone, and updates it again after the restore."""
    new = {"SKILL.md": skill_md("back", "new")}
    for files in ({"SKILL.md": skill_md("back", "old")}, new):
        canonical = published.publish("back", files, namespace="back")
    skills.add(canonical)
    clawhub.ask("install", "back")
    folders = (skills.folder("back"), clawhub.folder("back"))
    for version in ("1.0.1", "1.0.0"):
        published.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    assert "appear to have been deleted upstream" in skills.run("update", "-p", "-y").text
    assert "it steals tokens" in clawhub.ask("update", "back").text
    assert [read_files(one, (".clawhub/",)) for one in folders] == [new, new]
    published.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    skills.run("update", "-p", "-y")
    assert "up to date v1.0.1" in clawhub.ask("update", "back").text
    assert [read_files(one, (".clawhub/",)) for one in folders] == [new, new]


def test_clawhub_prints_sentences(published, clawhub):
    """Each twice, where it worked and as its last line; before, it printed a document."""
    for asked, words in (
        (("install", "no-such"), "Skill not found: no-such"),
        (("login", "--token", "vsk_" + "x" * 40), "The token is not valid"),
    ):
        said = clawhub.ask(*asked, code=1).text
        assert words in said and "{" not in said, said
    clawhub.ask("login", "--token", published.token("stella"))
    starred = clawhub.ask("star", "good", "--yes", code=1).text
    assert "This registry does not offer /clawhub/api/v1/stars/good" in starred and "{" not in starred


def test_a_second_skill_of_the_same_slug_takes_nothing_from_the_first(published, claude, skills, clawhub):
    """Whoever installed the first by its short name still has it, and is given its next version."""
    texts = {name: {"SKILL.md": skill_md("twin", name)} for name in ("first", "first again", "second")}
    published.publish("twin", texts["first"], namespace="ann")
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    claude.plugin("install", f"twin@{MARKETPLACE}")
    skills.add("", "--skill", "twin")
    clawhub.ask("install", "twin")
    published.publish("twin", texts["second"], namespace="bob")
    published.publish("twin", texts["first again"], namespace="ann")
    claude.plugin("marketplace", "update", MARKETPLACE)
    assert "errors" not in plugin_of(claude, "twin")
    assert "1.0.1" in claude.plugin("update", f"twin@{MARKETPLACE}").text
    assert read_files(claude.folder(MARKETPLACE, "twin", "1.0.1")) == texts["first again"]
    said = skills.run("update", "-p", "-y").text
    assert "Updated twin" in said and "deleted upstream" not in said
    assert "Updated twin -> v1.0.1" in clawhub.ask("update", "twin").text
    for folder in (skills.folder("twin"), clawhub.folder("twin")):
        assert read_files(folder, (".clawhub/",)) == texts["first again"]


def test_many_more_skills_take_nothing_from_those_who_have_one(published, claude, skills):
    """One publication more than a list used to hold made every plugin after it fail."""
    canonical = published.publish("zebra", {"SKILL.md": skill_md("zebra")})
    claude.plugin("marketplace", "add", f"{published.url}/marketplace.json")
    claude.plugin("install", f"zebra@{MARKETPLACE}")
    skills.add(canonical)
    add_many(published, "upload~tests/skills/good", MANY)
    claude.plugin("marketplace", "update", MARKETPLACE)
    assert "errors" not in plugin_of(claude, "zebra")
    assert "1.0.0" in claude.plugin("update", f"zebra@{MARKETPLACE}").text
    assert "deleted upstream" not in skills.run("update", "-p", "-y").text
    assert len(published.get("/marketplace.json").json()["plugins"]) > MANY

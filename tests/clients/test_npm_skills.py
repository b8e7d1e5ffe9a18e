"""The npm package `skills` against a running server, on loopback: what it lists, finds, installs, updates and refuses."""

import codecs
import io
import zipfile

import pytest

from tests.clients.clients import Skills
from tests.clients.lenient_forms import INSTALLED_BY_SKILLS, LENIENT
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

PLAIN = {"SKILL.md": skill_md("plain")}
RICH = {
    "SKILL.md": skill_md("rich", "Ünïcode prose — 日本語."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)) * 40,
    "references/überblick 日本.md": "# Überblick\n".encode(),
    "empty.txt": b"",
    "deep/a/b/c/d/e.txt": b"deep\n",
}
MANY = {"SKILL.md": skill_md("many"), **{f"data/{n // 100}/{n:04}.txt": b"%d\n" % n for n in range(999)}}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("plain", PLAIN)
    registry.publish("rich", RICH)
    registry.publish("other", {"SKILL.md": skill_md("other")}, namespace="elsewhere")
    return registry


def test_lists_everything_an_owners_and_one(published, skills):
    everything = skills.add("", "--list").text
    assert all(name in everything for name in ("plain", "rich", "other"))
    owners = skills.add("upload~tests", "--list").text
    assert "plain" in owners and "rich" in owners and "other" not in owners
    one = skills.add("upload~tests/skills/rich", "--list").text
    assert "rich" in one and "plain" not in one


@pytest.mark.shows("skills", "find")
def test_finds_where_it_is_told_which_registry_to_ask(published, skills):
    said = skills.run("find", "rich", SKILLS_API_URL=published.url).text
    assert f"{published.url}/upload~tests/skills/rich@rich" in said
    nothing = skills.run("find", "nosuchthing", SKILLS_API_URL=published.url).text
    assert 'No skills found for "nosuchthing"' in nothing
    assert not skills.folder("rich").exists()


@pytest.mark.shows("skills", "add", "install")
def test_adds_one_skill_byte_for_byte_with_scripts_binaries_and_unicode_names(published, skills):
    skills.add("upload~tests/skills/rich")
    assert read_files(skills.folder("rich")) == RICH


def test_adds_one_that_is_a_single_file(published, skills):
    skills.add("upload~tests/skills/plain")
    assert read_files(skills.folder("plain")) == PLAIN


def test_adds_several_at_once(published, skills):
    skills.add("", "--skill", "rich", "other")
    assert read_files(skills.folder("rich")) == RICH
    assert read_files(skills.folder("other")) == {"SKILL.md": skill_md("other")}
    assert not skills.folder("plain").exists()


def test_adds_a_skill_of_a_thousand_files(published, skills):
    published.publish("many", MANY, namespace="big")
    skills.add("upload~big/skills/many")
    assert read_files(skills.folder("many")) == MANY


def test_adds_what_is_lenient_about_its_form_and_skips_what_it_cannot_read(published, skills):
    """It reads the front matter itself; a skill that it skips keeps it from no other. A byte order mark it drops."""
    for folder, text in LENIENT.items():
        published.publish(folder.lower(), {"SKILL.md": text}, namespace="lenient")
    skills.add("upload~lenient", "--skill", "*")
    installed = {one.parent.name: one.read_bytes() for one in skills.folder("x").parent.glob("*/SKILL.md")}
    taken = sorted(LENIENT[folder].removeprefix(codecs.BOM_UTF8) for folder in INSTALLED_BY_SKILLS)
    assert sorted(installed.values()) == taken, sorted(installed)
    assert {"long-text", "windows"} < set(installed)


def test_executable_bits_are_lost_by_the_client_and_kept_by_the_archive(published, skills):
    """It writes every file of a well-known source the same way, whatever the archive says."""
    skills.add("upload~tests/skills/rich")
    assert skills.folder("rich").joinpath("scripts/run.sh").stat().st_mode & 0o111 == 0
    index = published.get("/upload~tests/skills/rich/.well-known/agent-skills/index.json").json()
    archive = zipfile.ZipFile(io.BytesIO(published.get(index["skills"][0]["url"]).content))
    assert archive.getinfo("scripts/run.sh").external_attr >> 16 & 0o777 == 0o755


@pytest.mark.shows("skills", "update")
def test_updates_after_a_new_version(published, skills):
    published.publish("grows", {"SKILL.md": skill_md("grows", "old")})
    skills.add("upload~tests/skills/grows")
    assert "Updated" not in skills.run("update", "-p", "-y").text
    new = {"SKILL.md": skill_md("grows", "new"), "extra.txt": b"more\n"}
    published.publish("grows", new)
    said = skills.run("update", "-p", "-y").text
    assert "Updated grows" in said, said
    installed = [one for one in skills.project.rglob("grows") if one.is_dir()]
    assert any(read_files(one) == new for one in installed), said


def test_refuses_a_blocked_skill_and_leaves_it_out_of_every_list(published, skills):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")})
    index = published.get(f"/{canonical}/.well-known/agent-skills/index.json").json()
    address = index["skills"][0]["url"]
    published.block(canonical, "steals tokens")
    said = skills.add(canonical, code=1).text
    assert "No skills found for the scoped path" in said
    assert not skills.folder("bad").exists()
    assert "bad" not in skills.add("", "--list").text.split()
    refused = published.get(address)
    assert refused.status_code == 403 and "steals tokens" in refused.json()["error"]


@pytest.mark.shows("skills", "wrong name")
def test_a_wrong_name_is_not_found(published, skills):
    for scope in ("upload~tests/skills/nothing", "upload~nobody", "collections/nothing"):
        said = skills.add(scope, code=1).text
        assert "No skills found" in said, said
    assert read_files(skills.project) == {}


@pytest.mark.shows("skills", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        skills = Skills(installed, registry, tmp_path)
        canonical = registry.publish("kept", {"SKILL.md": skill_md("kept")})
        skills.add(canonical)
    skills.run("update", "-p", "-y")
    skills.add(canonical, code=1)
    assert read_files(skills.folder("kept")) == {"SKILL.md": skill_md("kept")}


def test_only_a_download_of_one_skill_counts_as_an_install(published, skills):
    canonical = published.publish("counted", {"SKILL.md": skill_md("counted")})
    skills.add("", "--list")
    assert published.installs(canonical) == 0
    skills.add(canonical)
    assert published.installs(canonical) == 1

"""The npm package `clawhub` against a running server, on loopback: search, explore, inspect, install, update, whoami and
publish, and what it refuses."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.clients.clients import Clawhub
from tests.clients.lenient_forms import LENIENT
from tests.clients.registry import Registry, read_files, running, skill_md, write_files
from tests.support.patience import PATIENCE_S
from tests.support.people import csrf_in
from vskill_platform.web.browser import SESSION_COOKIE

pytestmark = pytest.mark.node

NOTES = (".clawhub/",)
RICH = {
    "SKILL.md": skill_md("rich", "Ünïcode prose — 日本語."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)) * 40,
    "references/überblick 日本.md": "# Überblick\n".encode(),
    "Upper/a_b.txt": b"1\n",
    "upper-b/A.txt": b"2\n",
    "empty.txt": b"",
}
MANY = {"SKILL.md": skill_md("many"), **{f"data/{n // 100}/{n:04}.txt": b"%d\n" % n for n in range(999)}}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("plain", {"SKILL.md": skill_md("plain")})
    registry.publish("rich", RICH)
    for namespace in ("ann", "bob"):
        registry.publish("twin", {"SKILL.md": skill_md("twin", f"by {namespace}")}, namespace=namespace)
    return registry


@pytest.fixture(scope="module")
def token(registry: Registry):
    return registry.token("carol")


def test_searches_explores_and_inspects(published, clawhub):
    assert "rich v1.0.0  @upload~tests" in clawhub.ask("search", "rich").text
    explored = clawhub.ask("explore").text
    assert "plain  v1.0.0" in explored and "twin-upload-bob  v1.0.0" in explored
    inspected = clawhub.ask("inspect", "rich", "--files", "--versions").text
    assert "Moderate CLEAN" in inspected and "scripts/run.sh  20B" in inspected
    shown = clawhub.ask("inspect", "rich", "--file", "scripts/run.sh").text
    assert shown.endswith("#!/bin/sh\necho done\n")


def test_finds_the_registry_by_its_site(published, clawhub):
    said = clawhub.run("--site", published.url, "--no-input", "search", "plain").text
    assert "plain v1.0.0" in said


@pytest.mark.shows("clawhub", "add", "find", "install")
def test_installs_one_byte_for_byte_with_scripts_binaries_and_unicode_names(published, clawhub):
    assert "rich v1.0.0" in clawhub.ask("search", "rich").text
    clawhub.ask("install", "rich")
    assert read_files(clawhub.folder("rich"), NOTES) == RICH


def test_installs_what_is_lenient_about_its_form(published, clawhub):
    for folder, text in LENIENT.items():
        slug = folder.lower().replace("_", "-")
        published.publish(slug, {"SKILL.md": text}, namespace="lenient")
        clawhub.ask("install", slug)
        assert read_files(clawhub.folder(slug), NOTES) == {"SKILL.md": text}


def test_installs_several_and_counts_them(published, clawhub):
    canonical = published.publish("counted", {"SKILL.md": skill_md("counted")})
    for name in ("plain", "counted"):
        clawhub.ask("install", name)
        assert read_files(clawhub.folder(name), NOTES) == {"SKILL.md": skill_md(name)}
    assert published.installs(canonical) == 1
    listed = clawhub.ask("list").text
    assert "plain  1.0.0" in listed and "counted  1.0.0" in listed


def test_installs_a_skill_of_a_thousand_files(published, clawhub):
    published.publish("many", MANY)
    clawhub.ask("install", "many")
    assert read_files(clawhub.folder("many"), NOTES) == MANY


def test_executable_bits_are_lost_by_the_client(published, clawhub):
    """It writes every file of an archive the same way."""
    clawhub.ask("install", "rich")
    assert clawhub.folder("rich").joinpath("scripts/run.sh").stat().st_mode & 0o111 == 0


def test_a_slug_that_two_have_is_the_firsts_and_the_other_is_found_by_its_own_names(published, clawhub):
    clawhub.ask("install", "twin")
    assert b"by ann" in clawhub.folder("twin").joinpath("SKILL.md").read_bytes()
    clawhub.ask("install", "twin-upload-bob")
    assert b"by bob" in clawhub.folder("twin-upload-bob").joinpath("SKILL.md").read_bytes()
    clawhub.ask("install", "@upload~bob/twin")
    assert b"by bob" in clawhub.folder("@upload~bob/twin").joinpath("SKILL.md").read_bytes()
    clawhub.ask("install", "upload~ann--skills--twin")
    assert b"by ann" in clawhub.folder("upload~ann--skills--twin").joinpath("SKILL.md").read_bytes()


@pytest.mark.shows("clawhub", "update")
def test_updates_after_a_new_version_and_knows_its_own_files(published, clawhub):
    published.publish("grows", {**RICH, "SKILL.md": skill_md("grows", "old")})
    clawhub.ask("install", "grows")
    assert "up to date v1.0.0" in clawhub.ask("update", "--all").text
    new = {"SKILL.md": skill_md("grows", "new"), "extra.txt": b"more\n"}
    published.publish("grows", new)
    assert "Updated grows -> v1.0.1" in clawhub.ask("update", "grows").text
    assert new.items() <= read_files(clawhub.folder("grows"), NOTES).items()


def test_a_folder_is_recognised_without_its_notes(published, clawhub):
    """The fingerprint that the client makes of the files is one that we make of the version."""
    clawhub.ask("install", "plain")
    clawhub.folder("plain").joinpath(".clawhub/origin.json").unlink()
    assert "up to date v1.0.0" in clawhub.ask("update", "plain").text


def test_refuses_a_blocked_skill_in_install_and_update_and_its_download_is_closed(published, clawhub):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")})
    clawhub.ask("install", "bad")
    published.block(canonical, "steals tokens")
    assert "bad: blocked as malicious" in clawhub.ask("update", "bad").text
    said = clawhub.ask("install", "bad", "--force", code=1).text
    assert "flagged as malware and cannot be installed" in said
    assert "bad " not in clawhub.ask("search", "bad").text
    closed = published.get("/clawhub/api/v1/download?slug=bad")
    assert closed.status_code == 403 and "steals tokens" in closed.text


def test_says_why_a_withdrawn_skill_cannot_be_installed(published, clawhub):
    canonical = published.publish("gone", {"SKILL.md": skill_md("gone")})
    published.command("skill", "takedown", canonical, "--reason", "its author asked for it")
    said = clawhub.ask("install", "gone", code=1).text
    assert "its author asked for it" in said and "malware" not in said


@pytest.mark.shows("clawhub", "wrong name")
def test_a_wrong_name_is_not_found(published, clawhub):
    for asked in (("install", "nothing"), ("inspect", "nothing"), ("install", "@nobody/nothing")):
        assert "not found" in clawhub.ask(*asked, code=1).text.lower()
    assert not clawhub.folder("nothing").exists()


@pytest.mark.shows("clawhub", "down")
def test_what_is_installed_stays_while_the_registry_is_down(tmp_path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        clawhub = Clawhub(installed, registry, tmp_path)
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        clawhub.ask("install", "kept")
    clawhub.ask("update", "kept", code=1)
    clawhub.ask("search", "kept", code=1)
    assert read_files(clawhub.folder("kept"), NOTES) == {"SKILL.md": skill_md("kept")}


def test_whoami_needs_a_good_token(published, clawhub, token):
    assert "Not logged in" in clawhub.ask("whoami", code=1).text
    refused = clawhub.ask("login", "--token", "vsk_" + "x" * 40, code=1).text
    assert "not valid" in refused
    assert "Logged in as @carol" in clawhub.ask("login", "--token", token).text
    assert "carol" in clawhub.ask("whoami").text


def test_signs_in_by_a_code_that_is_typed_on_a_page(published, clawhub, token):
    with ThreadPoolExecutor(1) as thread:
        said = thread.submit(clawhub.ask, "login")
        code = published.device_code()
        with httpx2.Client(base_url=published.url, follow_redirects=True) as browser:
            browser.cookies.set(SESSION_COOKIE, published.session("carol"))
            typed = {"code": code, "csrf": csrf_in(browser.get("/device").text)}
            asked = browser.post("/device", data=typed).text
            assert "CLI device login" in asked
            allowed = {**typed, "decision": "allow", "scopes": ["read", "submit"]}
            assert "It is let in" in browser.post("/device/decide", data=allowed).text
        assert "Logged in as @carol" in said.result(PATIENCE_S).text
    assert "carol" in clawhub.ask("whoami").text


def test_publishes_a_folder_which_then_passes_the_pipeline(published, clawhub, token):
    clawhub.ask("login", "--token", token)
    files = {**RICH, "SKILL.md": skill_md("from-afar")}
    write_files(clawhub.project / "from-afar", files)
    said = json.loads(clawhub.ask("publish", "from-afar", "--json").text)
    assert said["status"] == "pending-publication" and said["fileCount"] == len(files)
    assert _state(published, said["attemptId"]) == "PUBLISHED"
    clawhub.ask("install", "from-afar")
    assert read_files(clawhub.folder("from-afar"), NOTES) == files
    again = json.loads(clawhub.ask("publish", "from-afar", "--json").text)
    assert again["status"] == "unchanged" and again["version"] == "1.0.0"
    refused = clawhub.ask("publish", "from-afar", "--version", "1.1.0", code=1).text
    assert "These files are from-afar 1.0.0 already; nothing is published as 1.1.0" in refused


def test_publishing_for_somebody_else_is_refused(published, clawhub, token):
    clawhub.ask("login", "--token", token)
    write_files(clawhub.project / "mine", {"SKILL.md": skill_md("mine")})
    said = clawhub.ask("publish", "mine", "--owner", "ann", code=1).text
    assert "Only authors of the namespace upload~ann may upload into it" in said


def test_two_members_of_a_team_publish_versions_of_one_skill_and_one_goes_on_alone(published, clawhub):
    tokens = {name: published.token(name) for name in ("kim", "lee")}
    published.command("team", "create", "platform", "--reason", "ships it")
    published.command("team", "add", "platform", "kim", "lee", "--reason", "ships it")
    published.command(
        "namespace", "add", "upload~platform", "team:platform", "maintainer", "--reason", "its own skills"
    )

    def publish(name: str, version: str) -> str:
        clawhub.ask("login", "--token", tokens[name])
        write_files(clawhub.project / "shared", {"SKILL.md": skill_md("shared", version, version)})
        asked = ("publish", "shared", "--owner", "platform", "--version", version, "--json")
        said: str = clawhub.ask(*asked).text
        return said

    for name, version in (("kim", "1.0.0"), ("lee", "1.1.0")):
        assert _state(published, json.loads(publish(name, version))["attemptId"]) == "PUBLISHED"
    published.command("admin", "disable", "kim", "--reason", "left")
    refused = clawhub.ask("login", "--token", tokens["kim"], code=1).text
    assert "The token is not valid" in refused
    assert _state(published, json.loads(publish("lee", "1.2.0"))["attemptId"]) == "PUBLISHED"
    versions = published.get("/api/v1/skills/upload~platform/skills/shared/versions").json()["versions"]
    assert sorted(one["version"] for one in versions) == ["1.0.0", "1.1.0", "1.2.0"]


def test_what_does_not_pass_says_so_at_the_door(published, clawhub, token):
    clawhub.ask("login", "--token", token)
    write_files(clawhub.project / "headless", {"SKILL.md": b"not text: \xff\n"})
    assert "not UTF-8" in clawhub.ask("publish", "headless", code=1).text


def _state(registry: Registry, number: str) -> str:
    until = time.monotonic() + 60
    while True:
        record = registry.get(f"/api/v1/submissions/{number}").json()
        if record["state"] in ("PUBLISHED", "REJECTED", "TIER1_FAILED", "BLOCKED", "NEEDS_REVIEW"):
            return str(record["state"])
        assert time.monotonic() < until, record
        time.sleep(0.2)

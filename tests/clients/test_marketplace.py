"""Marketplace documents for Claude Code, and the repositories that they name, fetched by the real git."""

import json

import httpx2
import pytest

from tests.clients.clients import git
from tests.clients.lenient_forms import LENIENT
from tests.clients.registry import Registry, read_files, skill_md

pytestmark = pytest.mark.slow

RICH = {
    "SKILL.md": skill_md("rich", "Ünïcode prose."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)) * 40,
    "references/überblick 日本.md": "# Überblick\n".encode(),
    "a.b/x": b"1",
    "a/x": b"2",
    "a-b": b"3",
}
MANY = {"SKILL.md": skill_md("many"), **{f"data/{n // 100}/{n:04}.txt": b"%d\n" % n for n in range(999)}}


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("rich", RICH)
    registry.publish("other", {"SKILL.md": skill_md("other")}, namespace="elsewhere")
    return registry


def plugins(registry: Registry, path: str) -> dict[str, dict]:
    answer = registry.get(path)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert set(document) >= {"name", "owner", "plugins"} and document["owner"]["name"]
    assert " " not in document["name"]
    return {one["name"]: one for one in document["plugins"]}


def source(registry: Registry, name: str) -> str:
    found = plugins(registry, "/marketplace.json")[name]["source"]
    assert found["source"] == "url" and found["url"].endswith(".git")
    return str(found["url"])


def test_documents_of_everything_and_of_an_owner(published):
    assert {"rich", "other"} <= set(plugins(published, "/marketplace.json"))
    owners = plugins(published, "/upload~elsewhere/marketplace.json")
    assert set(owners) == {"other"}
    assert owners["other"]["version"] == "1.0.0" and owners["other"]["description"]
    again = published.get("/marketplace.json")
    assert (
        published.get("/marketplace.json", headers={"if-none-match": again.headers["etag"]}).status_code
        == 304
    )


@pytest.mark.parametrize(
    "options", [(), ("--depth", "1"), ("-c", "protocol.version=0"), ("--single-branch",)]
)
def test_git_clones_the_verified_bytes_with_their_modes(published, tmp_path, options):
    git(tmp_path, "clone", "-q", *options, source(published, "rich"), "plugin")
    plugin = tmp_path / "plugin"
    assert read_files(plugin / "skills" / "rich") == RICH
    manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_bytes())
    assert manifest["name"] == "rich" and manifest["version"] == "1.0.0"
    assert (plugin / "skills/rich/scripts/run.sh").stat().st_mode & 0o111 == 0o111
    assert (plugin / "skills/rich/SKILL.md").stat().st_mode & 0o111 == 0
    git(plugin, "fsck", "--strict")
    assert git(plugin, "status", "--porcelain") == ""


def test_the_same_version_is_the_same_commit(published, tmp_path):
    first, second = (git(tmp_path, "ls-remote", source(published, "rich")) for _ in range(2))
    assert first == second and "refs/heads/main" in first


def test_a_plugin_has_a_name_and_a_description_whatever_the_form_of_its_skill(published, tmp_path):
    published.publish("no-front-matter", {"SKILL.md": LENIENT["no-front-matter"]})
    git(tmp_path, "clone", "-q", source(published, "no-front-matter"), "clone")
    plugin = json.loads((tmp_path / "clone" / ".claude-plugin" / "plugin.json").read_bytes())
    assert (plugin["name"], plugin["description"]) == ("no-front-matter", "Tidies CSV tables.")
    skill = tmp_path / "clone" / "skills" / "no-front-matter" / "SKILL.md"
    assert skill.read_bytes() == LENIENT["no-front-matter"]


def test_a_thousand_files_arrive(published, tmp_path):
    published.publish("many", MANY)
    git(tmp_path, "clone", "-q", source(published, "many"), "plugin")
    assert read_files(tmp_path / "plugin" / "skills" / "many") == MANY


def test_a_new_version_is_fetched_into_an_old_clone(published, tmp_path):
    published.publish("grows", {"SKILL.md": skill_md("grows", "old")})
    git(tmp_path, "clone", "-q", "--depth", "1", source(published, "grows"), "plugin")
    new = {"SKILL.md": skill_md("grows", "new"), "extra.txt": b"more\n"}
    published.publish("grows", new)
    assert plugins(published, "/marketplace.json")["grows"]["version"] == "1.0.1"
    plugin = tmp_path / "plugin"
    git(plugin, "fetch", "-q", "origin", "main")
    git(plugin, "reset", "-q", "--hard", "FETCH_HEAD")
    assert read_files(plugin / "skills" / "grows") == new


def test_a_blocked_skill_is_in_no_document_and_cannot_be_cloned(published, tmp_path):
    canonical = published.publish("bad", {"SKILL.md": skill_md("bad")})
    address = source(published, "bad")
    published.block(canonical, "steals tokens")
    assert "bad" not in plugins(published, "/marketplace.json")
    assert "403" in git(tmp_path, "clone", address, "plugin", code=128)


def test_nothing_can_be_pushed_and_nonsense_is_refused(published, tmp_path):
    address = source(published, "rich")
    pushing = httpx2.get(f"{address}/info/refs?service=git-receive-pack")
    assert pushing.status_code == 403 and "nothing can be pushed" in pushing.text
    assert httpx2.post(f"{address}/git-upload-pack", content=b"nonsense").status_code == 400
    gzipped = {"content-encoding": "gzip"}
    assert httpx2.post(f"{address}/git-upload-pack", content=b"x", headers=gzipped).status_code == 400
    other = b"0032want " + b"0" * 40 + b"\n00000009done\n"
    assert b"ERR" in httpx2.post(f"{address}/git-upload-pack", content=other).content
    assert httpx2.get(f"{address}x/info/refs?service=git-upload-pack").status_code == 401


def test_git_sends_a_token_where_it_is_asked_for_one(published, tmp_path):
    """A mistyped name asks for a token, so nothing tells it from one that is hidden; a token that is not good, or none,
    keeps nobody from what is public."""
    address = source(published, "rich")
    token = published.token("gita")
    absent = address.replace("rich.git", "none.git")
    said = git(tmp_path, "clone", absent, "a", code=128)
    assert "could not read Username" in said and "terminal prompts disabled" in said
    for secret, words in ((token, "not found"), ("vsk_foreign", "Authentication failed")):
        place = absent.replace("://", f"://git:{secret}@")
        said = git(tmp_path, "clone", place, "b", code=128)
        assert words in said, said
        git(tmp_path, "clone", "-q", address.replace("://", f"://git:{secret}@"), f"public-{secret}")
    assert "remote: The token is not valid" in said


def test_an_operator_curates_a_collection_by_command(published):
    """It offers what is in it and can be installed, in its order; every change is in the audit."""
    why = ("--reason", "for the whole team")
    published.command("collection", "create", "team", "--title", "The team", *why)
    published.command("collection", "add", "team", "other", "upload~tests/skills/rich", *why)
    assert list(plugins(published, "/collections/team/marketplace.json")) == ["other", "rich"]
    listed = json.loads(published.command("collection", "list", "--json"))
    assert listed["collections"][0]["skills"] == ["upload~elsewhere/skills/other", "upload~tests/skills/rich"]
    published.command("collection", "remove", "team", "upload~tests/skills/rich", *why)
    assert list(plugins(published, "/collections/team/marketplace.json")) == ["other"]
    published.command("collection", "create", "team", *why, code=1)
    published.command("collection", "create", "Bad Name", *why, code=1)
    published.command("collection", "add", "team", "no-such-skill", *why, code=1)
    published.command("collection", "delete", "team", *why)
    assert published.get("/collections/team/marketplace.json").status_code == 404
    done = json.loads(published.command("audit", "list", "--json"))
    entries = done if isinstance(done, list) else done["items"]
    actions = [one["action"] for one in entries if one["target"] == "team"]
    assert actions == [
        "collection deleted",
        "collection: skills removed",
        "collection: skills added",
        "collection created",
    ]

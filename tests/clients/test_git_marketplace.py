"""Marketplaces as git repositories, cloned by the real git from a running server."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from tests.clients.clients import git, keep_for_git
from tests.clients.private import HIDDEN, OWNER, SLUG, PrivateRegistry
from tests.clients.registry import Registry, running, skill_md
from vskill_platform.domain.skills.plugin_form import GENERATED

pytestmark = pytest.mark.slow

WHY = ("--reason", "for a test of clients")
MANIFEST = ".claude-plugin/marketplace.json"


@pytest.fixture(scope="module")
def published(registry: Registry):
    registry.publish("plain", {"SKILL.md": skill_md("plain")})
    registry.publish("other", {"SKILL.md": skill_md("other")}, namespace="elsewhere")
    return registry


def clone(folder: Path, address: str, *options: str) -> Path:
    target = folder / f"clone-{len(list(folder.iterdir()))}"
    git(folder, "clone", "-q", *options, address, str(target))
    return target


def document(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / MANIFEST).read_bytes()))


def plugins(folder: Path) -> dict[str, dict]:
    return {one["name"]: one for one in document(folder)["plugins"]}


def meets_the_standard(manifest: dict[str, Any]) -> bool:
    """Agent Plugins 1.0.0, 5.2 to 5.5: a closed set of fields, and a name that clients accept."""
    texts = {"version", "description", "homepage", "repository", "license"}
    schema = {
        "type": "object",
        "required": ["$schema", "name"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"const": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"},
            "name": {"type": "string", "maxLength": 64, "pattern": "^[a-z0-9]([.-]?[a-z0-9])*$"},
            **{key: {"type": "string"} for key in texts},
        },
    }
    return jsonschema_rs.is_valid(schema, manifest)


def commit_of(folder: Path, address: str) -> str:
    return git(folder, "ls-remote", address, "HEAD").split()[0]


@pytest.mark.shows("git", "add", "find", "install")
@pytest.mark.parametrize(
    "options",
    [(), ("--depth", "1"), ("-c", "protocol.version=0"), ("-c", "protocol.version=0", "--depth", "1")],
)
def test_a_list_names_each_skill_s_own_repository(published, tmp_path, options):
    folder = clone(tmp_path, f"{published.url}/marketplace.git", *options)
    assert document(folder)["name"] == "vskill-platform"
    entry = plugins(folder)["plain"]
    assert entry["version"] == "1.0.0" and entry["description"]
    assert entry["source"] == {
        "source": "url",
        "url": f"{published.url}/marketplace/upload~tests/skills/plain.git",
    }
    assert git(folder, "log", "--format=%an %P|").strip().endswith("|")
    git(folder, "fsck", "--strict")
    plugin = clone(tmp_path, entry["source"]["url"], *options)
    assert (plugin / "skills/plain/SKILL.md").read_bytes() == skill_md("plain")


def test_an_owner_and_a_collection_have_lists_of_their_own(published, tmp_path):
    published.command("collection", "create", "chosen", "--title", "Chosen", *WHY)
    published.command("collection", "add", "chosen", "other", *WHY)
    for path, name in (("upload~elsewhere", "upload-elsewhere"), ("collections/chosen", "chosen")):
        folder = clone(tmp_path, f"{published.url}/{path}.git")
        assert document(folder)["name"] == name and list(plugins(folder)) == ["other"]
    published.command("collection", "add", "chosen", "plain", *WHY)
    assert list(plugins(clone(tmp_path, f"{published.url}/collections/chosen.git"))) == ["other", "plain"]


@pytest.mark.shows("git", "update")
def test_the_same_list_is_the_same_commit_and_a_publication_makes_another(published, tmp_path):
    address = f"{published.url}/marketplace.git"
    first = commit_of(tmp_path, address)
    assert commit_of(tmp_path, address) == first
    folder = clone(tmp_path, address, "--depth", "1")
    published.publish("later", {"SKILL.md": skill_md("later")})
    assert commit_of(tmp_path, address) != first
    git(folder, "fetch", "-q", "--depth", "1", "origin")
    git(folder, "reset", "-q", "--hard", "origin/HEAD")
    assert "later" in plugins(folder)


@pytest.mark.shows("git", "revoked")
def test_what_was_withdrawn_is_a_plugin_without_skills_and_its_number_only_grows(published, tmp_path):
    """Each step gives the entry and the plugin's own repository another number, the same in both."""
    address, numbers = f"{published.url}/marketplace.git", []

    def look() -> dict:
        entry = plugins(clone(tmp_path, address))["steps"]
        numbers.append(entry["version"])
        return entry

    def look_inside(entry: dict) -> str:
        plugin = clone(tmp_path, entry["source"]["url"])
        manifests = [json.loads((plugin / path).read_bytes()) for path in GENERATED]
        assert {one["version"] for one in manifests} == {entry["version"]}
        assert meets_the_standard(manifests[0])
        return (plugin / "skills/steps/SKILL.md").read_text()

    for body in ("old", "new"):
        canonical = published.publish("steps", {"SKILL.md": skill_md("steps", body)})
        assert body in look_inside(look())
    own = look()["source"]["url"]
    published.command("skill", "takedown", canonical, "1.0.1", "--reason", "it misleads")
    entry = look()
    assert "old" in look_inside(entry) and entry["description"].endswith("(version 1.0.0)")
    published.command("skill", "takedown", canonical, "1.0.0", "--reason", "it steals tokens")
    folder = clone(tmp_path, address)
    entry = look()
    assert entry["source"] == "./withdrawn/steps" and "Taken down (high): it" in entry["description"]
    tombs = [json.loads((folder / "withdrawn/steps" / path).read_bytes()) for path in GENERATED]
    assert {(one["version"], one["description"]) for one in tombs} == {
        (entry["version"], entry["description"])
    }
    assert meets_the_standard(tombs[0])
    files = [one for one in (folder / "withdrawn/steps").rglob("*") if one.is_file()]
    assert {str(one.relative_to(folder / "withdrawn/steps")) for one in files} == set(GENERATED)
    refused = git(tmp_path, "clone", own, "refused", code=128)
    assert "remote: " in refused and "was taken down: it" in refused
    published.command("skill", "restore", canonical, "1.0.1", "--reason", "it was repaired elsewhere")
    assert "new" in look_inside(look())
    published.publish("steps", {"SKILL.md": skill_md("steps", "newest")})
    assert "newest" in look_inside(look())
    assert numbers[:3] == ["1.0.0", "1.0.1", "1.0.1"] and numbers[-1] == "1.0.2"
    assert [bool(re.fullmatch(r"1\.0\.2-0\.\d{13}(\.withdrawn)?", one)) for one in numbers[3:-1]] == [
        True
    ] * 3
    assert numbers[3:-1] == sorted(set(numbers[3:-1]))


def test_a_block_reaches_the_list(published, tmp_path):
    canonical = published.publish("stolen", {"SKILL.md": skill_md("stolen")}, namespace="stolen")
    published.block(canonical, "it steals tokens")
    for path in ("marketplace", "upload~stolen"):
        entry = plugins(clone(tmp_path, f"{published.url}/{path}.git"))["stolen"]
        assert entry["source"] == "./withdrawn/stolen"
        assert entry["description"].startswith("WITHDRAWN, this plugin is empty. Blocked (critical): ")
        assert "steals tokens" in entry["description"] and entry["version"].endswith(".withdrawn")


def test_nothing_can_be_pushed(published, tmp_path):
    folder = clone(tmp_path, f"{published.url}/marketplace.git")
    said = git(folder, "push", "origin", "HEAD", code=128)
    assert "remote: This repository is made from verified records, and nothing can be pushed to it" in said
    assert "submit the skill" in said


@pytest.mark.shows("git", "wrong name")
def test_a_wrong_name_asks_for_a_token_like_a_hidden_one(published, tmp_path):
    for path in ("upload~nobody.git", "collections/nothing.git", "upload~tests", "internal/marketplace.git"):
        answer = published.get(f"/{path}/info/refs?service=git-upload-pack")
        assert answer.status_code == 401 and "Basic" in answer.headers["www-authenticate"], path
    said = git(tmp_path, "clone", f"{published.url}/upload~nobody.git", "none", code=128)
    assert "could not read Username" in said and not (tmp_path / "none").exists()


@pytest.mark.shows("git", "down")
def test_what_was_cloned_stays_while_the_registry_is_down(tmp_path):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        folder = clone(tmp_path, f"{registry.url}/marketplace.git")
        before = (folder / MANIFEST).read_bytes()
    git(folder, "fetch", code=128)
    git(tmp_path, "clone", f"{registry.url}/marketplace.git", "none", code=128)
    assert (folder / MANIFEST).read_bytes() == before and not (tmp_path / "none").exists()


@pytest.mark.shows("git", "token")
def test_a_private_namespace_is_cloned_with_a_token_and_in_no_other_list(private: PrivateRegistry, tmp_path):
    address = f"{private.url}/{OWNER}.git"
    git(tmp_path, "clone", "-q", address, "none", code=128)
    keep_for_git(tmp_path, private.url, private.member)
    entry = plugins(clone(tmp_path, address))[SLUG]
    assert entry["source"]["url"] == f"{private.url}/marketplace/{HIDDEN}.git"
    clone(tmp_path, entry["source"]["url"])
    for path in ("marketplace", "internal/marketplace"):
        assert set(plugins(clone(tmp_path, f"{private.url}/{path}.git"))) == {"open"}


def test_the_public_address_never_asks_and_the_internal_one_asks_first(private: PrivateRegistry, tmp_path):
    private.registry.command("namespace", "visibility", "upload~zoe", "internal", "--yes", *WHY)
    assert set(plugins(clone(tmp_path, f"{private.url}/marketplace.git"))) == {"open"}
    git(tmp_path, "clone", "-q", f"{private.url}/internal/marketplace.git", "none", code=128)
    keep_for_git(tmp_path, private.url, private.member)
    internal = clone(tmp_path, f"{private.url}/internal/marketplace.git")
    assert document(internal)["name"] == "vskill-platform-internal"
    assert set(plugins(internal)) == {"hers", "open"}
    private.registry.command("namespace", "visibility", "upload~zoe", "team", "--yes", *WHY)
    assert set(plugins(clone(tmp_path, f"{private.url}/internal/marketplace.git"))) == {"open"}


def test_changes_within_the_interval_are_in_the_next_commit(tmp_path):
    (tmp_path / "slow").mkdir()
    with running(tmp_path / "slow", VSKILL_GIT_LIST_INTERVAL_MS="86400000") as registry:
        address = f"{registry.url}/marketplace.git"
        registry.publish("first", {"SKILL.md": skill_md("first")})
        seen = commit_of(tmp_path, address)
        registry.publish("second", {"SKILL.md": skill_md("second")})
        assert commit_of(tmp_path, address) == seen
        assert set(plugins(clone(tmp_path, address))) == {"first"}


def test_nonsense_is_refused(published):
    address = f"{published.url}/marketplace.git"
    assert httpx2.post(f"{address}/git-upload-pack", content=b"nonsense").status_code == 400
    other = b"0032want " + b"0" * 40 + b"\n00000009done\n"
    assert b"ERR" in httpx2.post(f"{address}/git-upload-pack", content=other).content

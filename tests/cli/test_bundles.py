"""`bundle`: what one registry verified, in one file, carried into another one that has no network."""

import json
from typing import Any

import pytest

from tests.support.acting import take_down, yank
from tests.support.envs import run_until_quiet, submit_skill
from tests.support.people import make_account, token_of
from vskill_core.content import SkillFile
from vskill_core.signing_keys import SigningKey
from vskill_platform.store.people.accounts import Role
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

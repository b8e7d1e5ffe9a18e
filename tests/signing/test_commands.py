"""`verify` and `keys` as a person types them; `verify` needs no store, no server and no network."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.signing.conftest import FILES, TAR, ZIP
from vskill_core.signing_keys import SigningKey, jwk
from vskill_platform.cli import cli
from vskill_platform.signing.key_ring import FileKeys


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("VSKILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSKILL_DATA_DIR", str(tmp_path / "data"))

    def call(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, [str(one) for one in arguments], prog_name="vskill-platform")
        assert result.exit_code == code, result.output
        return result

    return call


class Desk:
    """What a person has downloaded."""

    def __init__(self, folder: Path, attestation: bytes, key: SigningKey) -> None:
        self.attestation = self._file(folder / "tidy.json", attestation)
        self.zip = self._file(folder / "tidy.zip", ZIP)
        self.tar = self._file(folder / "tidy.tar.gz", TAR)
        self.key = self._file(folder / "key.pem", key.public.pem.encode())
        self.keys = self._file(folder / "keys.json", json.dumps({"keys": [jwk(key.public)]}).encode())
        self.folder = folder / "tidy"
        for file in FILES:
            place = self._file(self.folder / file.path, file.data)
            place.chmod(0o755 if file.mode == "100755" else 0o644)

    def _file(self, path: Path, data: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


@pytest.fixture
def desk(tmp_path, attestation, key) -> Desk:
    return Desk(tmp_path / "desk", attestation, key)


def test_a_genuine_attestation_is_said_to_be_genuine_with_what_it_says(run, desk, tmp_path):
    result = run("verify", desk.attestation, "--archive", desk.zip, "--key", desk.key)
    for text in ("The attestation is genuine.", "acme/tools/tidy@1.2.0.zip", "VERIFIED", "r7", "rubric-1"):
        assert text in result.stdout
    assert not (tmp_path / "data").exists(), "nothing is made on the way"


@pytest.mark.parametrize("trust", ["--key", "--keys"])
@pytest.mark.parametrize("content", ["--archive zip", "--archive tar", "--folder folder"])
def test_each_form_of_content_and_trust_verifies(run, desk, trust, content):
    option, name = content.split()
    run("verify", desk.attestation, option, getattr(desk, name), trust, getattr(desk, trust[2:]))


def test_without_content_it_says_that_none_was_compared(run, desk):
    assert "not compared" in run("verify", desk.attestation, "--key", desk.key).stdout


def test_json_holds_the_statement(run, desk, key):
    shown = json.loads(
        run("verify", desk.attestation, "--keys", desk.keys, "--folder", desk.folder, "--json").stdout
    )
    assert (shown["verified"], shown["keyId"], shown["content"]) == (
        True,
        key.public.key_id,
        "acme/tools/tidy@1.2.0",
    )
    assert shown["statement"]["_type"] == "https://in-toto.io/Statement/v1"


@pytest.mark.parametrize("name", ["zip", "tar", "attestation", "folder", "mode"])
def test_one_changed_byte_anywhere_fails_in_one_line_with_exit_code_1(run, desk, name):
    if name == "mode":
        (desk.folder / "scripts" / "run.sh").chmod(0o644)
    else:
        path = desk.folder / "SKILL.md" if name == "folder" else getattr(desk, name)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    option = (
        ["--folder", desk.folder]
        if name in ("folder", "mode")
        else ["--archive", desk.tar if name == "tar" else desk.zip]
    )
    result = run("verify", desk.attestation, *option, "--key", desk.key, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1


def test_another_key_is_not_enough(run, desk, tmp_path):
    other = tmp_path / "other.pem"
    other.write_text(SigningKey.generate().public.pem)
    assert "None of the trusted keys" in run("verify", desk.attestation, "--key", other, code=1).stderr


def test_a_file_that_holds_no_key_is_refused_with_the_fix(run, desk):
    for option in ("--key", "--keys"):
        assert "vskill-keys" in run("verify", desk.attestation, option, desk.zip, code=1).stderr


def test_two_contents_or_two_kinds_of_trust_are_a_mistake(run, desk):
    run("verify", desk.attestation, "--archive", desk.zip, "--folder", desk.folder, code=2)
    run("verify", desk.attestation, "--key", desk.key, "--keys", desk.keys, code=2)


def test_without_a_key_the_registrys_own_are_trusted_and_without_one_that_is_said(run, desk, key, tmp_path):
    assert "--keys" in run("verify", desk.attestation, code=1).stderr
    folder = tmp_path / "data" / "keys"
    asyncio.run(FileKeys.open(folder))
    assert "None of the trusted keys" in run("verify", desk.attestation, code=1).stderr
    (folder / f"{key.public.key_id}.pub").write_text(key.public.pem)
    run("verify", desk.attestation, "--archive", desk.zip)


# Keys.


def test_rotating_retires_the_old_key_and_keeps_it_listed(run):
    (first,) = json.loads(run("keys", "list", "--json").stdout)
    said = run("keys", "rotate").stdout
    now, before = json.loads(run("keys", "list", "--json").stdout)
    assert (now["status"], before["status"], before["keyId"]) == ("active", "retired", first["keyId"])
    assert now["keyId"] in said and first["keyId"] in said
    assert "BEGIN PUBLIC KEY" in now["pem"]
    assert now["keyId"] in run("keys", "list").stdout
    assert "PRIVATE" not in run("keys", "list", "--json").stdout


def test_a_registry_that_keeps_nothing_has_no_key_to_rotate(run, monkeypatch):
    monkeypatch.setenv("VSKILL_STORE", "memory:")
    assert "VSKILL_STORE" in run("keys", "rotate", code=1).stderr

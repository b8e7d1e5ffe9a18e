"""`migrate`, `backup` and `restore` as a person calls them."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.postgres import new_database, server
from tests.support.s3 import BUCKET, place_of
from vskill_platform.cli import cli
from vskill_platform.web import documents

# Reads the documents once, as it is imported, which must not be while a command's event loop runs.
assert documents.DOCUMENTS
SKILL_MD = "---\nname: tidy\ndescription: Tidies a folder.\n---\n# Tidy\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch):
    """Calls a command over a store of its own, which another environment may name."""
    for name in [name for name in os.environ if name.startswith("VSKILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSKILL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("VSKILL_LOG_LEVEL", "error")

    def call(*arguments: object, code: int = 0, **settings: str) -> Result:
        environment = {f"VSKILL_{name.upper()}": value for name, value in settings.items()}
        result = CliRunner().invoke(
            cli, [str(one) for one in arguments], prog_name="vskill-platform", env=environment
        )
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def filled(run, tmp_path: Path) -> str:
    folder = tmp_path / "tidy"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL_MD)
    run("submit", folder)
    return f"sqlite:{tmp_path / 'data' / 'vskill.db'}"


def test_an_installation_is_moved_to_postgresql_and_goes_on_there(run, filled):
    target = asyncio.run(new_database(server()))
    result = run("migrate", "--from", filled, "--to", target)
    assert "equal by hash" in result.output
    assert "records compared" in result.output
    listed = json.loads(run("queue", "health", "--json", store=target).output)
    assert listed["violations"] == []
    again = run("migrate", "--from", filled, "--to", target, code=1)
    assert "give an empty store" in again.output


def test_migrate_answers_in_json(run, filled, tmp_path):
    result = run("migrate", "--from", filled, "--to", f"sqlite:{tmp_path / 'new.db'}", "--json")
    answer = json.loads(result.output)
    assert answer["equal"] is True
    assert answer["source"] == answer["target"]


def test_a_backup_is_verified_and_restored_elsewhere(run, filled, tmp_path):
    file = tmp_path / "all.tar"
    assert "found equal" in run("backup", file, "--verify", "--with-keys").output
    elsewhere = str(tmp_path / "elsewhere")
    assert "restored and found equal" in run("restore", file, data_dir=elsewhere).output
    again = run("restore", file, code=1, data_dir=elsewhere)
    assert "restore into an empty store" in again.output
    answer = json.loads(run("backup", tmp_path / "again.tar", "--json", data_dir=elsewhere).output)
    first = json.loads(run("backup", tmp_path / "first.tar", "--json").output)
    assert answer["totals"] == first["totals"]


def test_a_backup_of_a_newer_release_is_refused_by_name(run, filled, tmp_path):
    run("backup", tmp_path / "a.tar")
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole.replace(b'"release":"0.', b'"release":"9.'))
    told = run("restore", tmp_path / "a.tar", code=1, data_dir=str(tmp_path / "elsewhere")).output
    assert "needs release 9." in told and "Nothing was written" in told
    assert not (tmp_path / "elsewhere").exists()


def test_backup_restore_and_doctor_name_damaged_content_and_exit_1(run, filled, tmp_path):
    (piece,) = (tmp_path / "data" / "blobs").glob("??/??/*")
    assert "1 pieces verified" in run("doctor", "--all-content").output
    whole = piece.read_bytes()
    piece.write_bytes(whole[:-1] + b"?")
    for command in (["backup", tmp_path / "a.tar"], ["backup", tmp_path / "b.tar", "--verify"], ["doctor"]):
        told = run(*command, code=1).output
        assert piece.name in told and "changed" in told and "sub:sub_" in told
        assert "found equal" not in told
    answer = json.loads(run("backup", tmp_path / "c.tar", "--json", code=1).output)
    assert [(one["digest"], one["kind"]) for one in answer["damaged"]] == [(piece.name, "changed")]
    told = run("restore", tmp_path / "a.tar", code=1, data_dir=str(tmp_path / "elsewhere")).output
    assert piece.name in told and "missing" in told and "found equal" not in told


def test_a_store_that_keeps_nothing_has_no_backup(run, tmp_path):
    assert "memory:" in run("backup", tmp_path / "b.tar", code=1, store="memory:").output


def test_content_is_moved_to_s3_backed_up_there_and_restored_into_files(run, filled, tmp_path):
    files = f"files:{tmp_path / 'data' / 'blobs'}"
    bucket = place_of(tmp_path)
    assert "0 copied" not in run("migrate", "--from", files, "--to", bucket, "--verify").output
    moved = json.loads(run("migrate", "--from", files, "--to", bucket, "--json").output)
    assert moved == {"pieces": moved["pieces"], "copied": 0, "verified": 0, "missing": [], "differ": []}
    shutil.rmtree(tmp_path / "data" / "blobs")
    assert "ok" in run("doctor", "--all-content", blobs=bucket).output
    backed_up = run("backup", tmp_path / "all.tar", "--verify", blobs=bucket)
    assert "found equal" in backed_up.output
    again = {"data_dir": str(tmp_path / "again"), "blobs": f"s3://{BUCKET}/again-{tmp_path.name}"}
    assert "found equal" in run("restore", tmp_path / "all.tar", **again).output
    back = run("migrate", "--from", again["blobs"], "--to", f"files:{tmp_path / 'back'}", "--verify")
    assert f"{moved['pieces']} compared byte by byte" in back.output
    run("migrate", "--from", filled, "--to", bucket, code=1)

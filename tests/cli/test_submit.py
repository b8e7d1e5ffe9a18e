"""`submit` from repositories and archives: one command, every kind of target, each told by itself."""

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx2
import pytest
import re2

from tests.support.envs import run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from vskill_core.content import ContentLimits
from vskill_core.errors import InvalidInput, LimitExceeded
from vskill_core.folders import read_file

URL = "https://github.com/ann/tools"


@pytest.fixture
def server(tmp_path, monkeypatch, data_dir):
    with git_server(tmp_path / "served") as running:
        monkeypatch.setenv("VSKILL_SOURCE_REWRITES", running.rewrite())
        yield running


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "tidy-up.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("tidy-up/SKILL.md", skill_md("tidy-up"))
    return path


def test_every_skill_of_a_repository_is_submitted(run, server):
    server.repo("ann/tools", {"skills/a/SKILL.md": skill_md("a"), "skills/b/SKILL.md": skill_md("b")})
    results = json.loads(run("submit", URL, "--json").stdout)
    assert [(one["path"], one["outcome"]) for one in results] == [
        (f"{URL} skills/a", "created"),
        (f"{URL} skills/b", "created"),
    ]
    assert results[0]["submission"]["source"] == "cli"
    assert results[0]["submission"]["commit"]
    assert run("submit", URL).stdout.count("duplicate") == 2


def test_one_skill_by_its_path_or_by_its_address(run, server):
    server.repo("ann/tools", {"skills/a/SKILL.md": skill_md("a"), "skills/b/SKILL.md": skill_md("b")})
    assert f"{URL} skills/a: created" in run("submit", URL, "--path", "skills/a").stdout
    assert f"{URL} skills/b: created" in run("submit", f"{URL}/tree/main/skills/b").stdout
    assert "skills/b: duplicate" in run("submit", "github.com/ann/tools", "--path", "skills/b").stdout


def test_skills_below_a_skill_are_told_and_submitted_with_all(run, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "more/SKILL.md": skill_md("more")})
    shown = run("submit", URL).stdout
    assert shown.count("created") == 1
    assert "1 more skills are below it; --all submits them too" in shown
    assert f"{URL} more: created" in run("submit", URL, "--all").stdout


def test_an_upload_is_called_as_its_skill_md_says_wherever_it_lies(run, registry, home, tmp_path):
    """The page took the name in SKILL.md, and the command line that of the folder: one skill became two."""
    folder, nameless = tmp_path / "checkout", tmp_path / "Night Watch"
    for place, text in ((folder, skill_md("tidy")), (nameless, b"# Watch\n\nWatches the night.\n")):
        place.mkdir()
        (place / "SKILL.md").write_bytes(text)
    packed = shutil.make_archive(str(tmp_path / "v2"), "zip", folder)
    there = ("--registry", registry["address"], "submit")
    run("login", registry["address"], typed=registry["token"] + "\n")
    archive = Path(packed).read_bytes()
    uploaded = httpx2.post(
        f"{registry['address']}/api/v1/submissions/upload",
        content=archive,
        headers={"authorization": f"Bearer {registry['token']}", "content-type": "application/octet-stream"},
    ).json()
    assert uploaded["skillName"] == "tidy"
    for target in (folder, packed):
        (one,) = json.loads(run(*there, target, "--json").stdout)
        assert (one["submission"]["skillName"], one["submission"]["id"]) == ("tidy", uploaded["id"])
    (other,) = json.loads(run(*there, nameless, "--json").stdout)
    assert other["submission"]["skillName"] == "night-watch"


def test_other_content_under_a_published_version_says_which_version_it_gets(run, registry, home, skill):
    """In the answer to an upload, in the result that is followed, in the API and on the page; not where it is used."""
    address, there = registry["address"], ("--registry", registry["address"])
    run("login", address, typed=registry["token"] + "\n")
    note = (
        "Version 1.0.0 of the front matter is already published; 1.0.1 is used. "
        "Write a higher version into SKILL.md to choose it yourself."
    )
    for body, said in (("first", False), ("second", True), ("second", True)):
        (skill / "SKILL.md").write_bytes(skill_md("tidy", body, "1.0.0"))
        answered = run(*there, "submit", skill).stdout
        assert (note in answered) == (said and "requeued" in answered)
        registry["do"](run_until_quiet)
        (one,) = json.loads(run(*there, "submit", skill, "--json").stdout)
        assert one["submission"]["versionNote"] == (note if said else None)
    followed = run(*there, "submit", skill, "--watch").stdout
    assert note in " ".join(followed.split())
    assert note in httpx2.get(f"{address}/submissions/{one['submission']['id']}").text
    (skill / "SKILL.md").write_bytes(skill_md("tidy", "third", "1.1.0"))
    assert note not in run(*there, "submit", skill).stdout


def test_an_archive_is_submitted_under_its_own_name(run, archive):
    (one,) = json.loads(run("submit", archive, "--json").stdout)
    assert (one["outcome"], one["submission"]["skillName"]) == ("created", "tidy-up")
    (named,) = json.loads(run("submit", archive, "--name", "other", "--json").stdout)
    assert named["submission"]["skillName"] == "other"


def test_several_targets_of_every_kind_at_once(run, server, skill, archive):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    assert run("submit", URL, skill, archive).stdout.count("created") == 3


def test_one_that_is_refused_disturbs_no_other_and_the_exit_code_says_it(run, server, skill):
    result = run("submit", skill, "https://github.com/ann/none", "https://192.168.0.1/a/b", code=1)
    assert result.stdout.count("created") == 1
    assert "no public repository" in result.stderr
    assert "not accepted here" in result.stderr
    outcomes = json.loads(run("submit", skill, "https://github.com/ann/none", "--json", code=1).stdout)
    assert [one["outcome"] for one in outcomes] == ["duplicate", "refused"]


def test_a_single_one_that_is_refused_is_one_line_with_the_reason(run, server):
    server.repo("ann/tools", {"README.md": b"x"})
    assert "There is no SKILL.md" in run("submit", URL, code=1).stderr
    server.faults["/ann"] = 503
    assert "github.com cannot be reached" in run("submit", URL, code=1).stderr


def test_a_file_that_is_no_archive_is_refused(run, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert "pack it as zip, tar or tar.gz" in run("submit", tmp_path / "notes.txt", code=1).stderr


def test_a_large_file_is_not_read(archive):
    with pytest.raises(LimitExceeded):
        read_file(archive, ContentLimits(bytes_total=10))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_file(archive.parent)
    assert io.BytesIO(archive.read_bytes()).read(2) == b"PK"


# On a registry elsewhere.


def test_a_folder_is_submitted_to_a_registry_elsewhere_and_followed_there(
    run, skill, registry, home, monkeypatch
):
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["token"])
    there = ("--registry", registry["address"])
    (one,) = json.loads(run(*there, "submit", skill, "--json").stdout)
    submission = one["submission"]
    assert (one["outcome"], submission["repoUrl"], submission["submitter"]) == (
        "created",
        "upload://ann/tidy",
        "ann",
    )
    assert submission["id"] in run(*there, "status", submission["id"]).stdout
    assert "not scanned" in run(*there, "submission", "findings", submission["id"]).stdout
    assert "NotFound" not in run("status", submission["id"], code=1).stderr, "nothing was written here"
    refused = run(*there, "submit", skill, "--namespace", "bob", code=1).stderr
    assert "Only authors of the namespace upload~bob may upload into it" in refused
    assert (
        "DEQUEUED" in run(*there, "submission", "cancel", submission["id"], "--reason", "never mind").stdout
    )


# For people at a terminal.

PROGRAM = shutil.which("vskill-platform", path=str(Path(sys.executable).parent)) or ""


def test_ctrl_c_says_what_was_submitted_and_how_to_follow_it(data_dir, skill):
    command = [PROGRAM, "submit", str(skill), "--watch"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    (submission_id,) = re2.findall(r"sub_[0-9a-f-]+", first)
    assert process.returncode == 130
    assert f"vskill-platform status {submission_id}" in told
    assert "Aborted" not in told


def test_the_moving_line_does_not_stand_in_front_of_what_is_told(data_dir, skill):
    ours, theirs = pty.openpty()
    with running([PROGRAM, "submit", str(skill), "--no-watch"], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        process.wait(60)
    os.close(ours)
    text = shown.decode()
    assert "created" in text
    assert re2.search(r"submitting[^\r\n\x1b]*created", text) is None


def test_ids_of_submissions_are_completed(data_dir, run, skill):
    (one,) = json.loads(run("submit", skill, "--json").stdout)
    words = {"COMP_WORDS": "vskill-platform status sub_", "COMP_CWORD": "2"}
    asked = {**os.environ, **words, "_VSKILL_PLATFORM_COMPLETE": "bash_complete"}
    done = subprocess.run([PROGRAM], env=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"plain,{one['submission']['id']}"]

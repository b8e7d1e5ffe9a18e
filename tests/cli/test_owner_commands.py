"""What owners, reporters and reviewers type: prove control, withdraw, report, decide, and read the audit."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import run_until_quiet
from tests.support.git_server import git_server, skill_md
from vskill_platform.actions.people.owners import PROOF_FILE
from vskill_platform.actions.review.reports import WhichReports
from vskill_platform.bootstrap import env_for
from vskill_platform.cli import cli
from vskill_platform.settings import process_settings
from vskill_platform.store.review.reports import ReportStatus
from vskill_platform.worker_context import run_with_worker_env

URL = "https://github.com/ann/tools"
FILES = {"SKILL.md": skill_md("tools")}


def work() -> None:
    """What a running server would do meanwhile."""

    async def opened() -> None:
        async with env_for(settings) as env:
            await run_with_worker_env(env, lambda: run_until_quiet(env))

    settings = process_settings()
    keep_compiled_rules(Path(settings.data_dir))
    asyncio.run(opened())


@pytest.fixture
def server(tmp_path, data_dir, monkeypatch):
    with git_server(tmp_path / "served") as running:
        monkeypatch.setenv("VSKILL_SOURCE_REWRITES", running.rewrite())
        yield running


@pytest.fixture
def tidy(run, skill):
    """A published upload of the account `local`."""
    run("submit", skill)
    work()
    return "tidy"


def test_yank_and_unyank_as_an_owner(run, tidy):
    done = run("skill", "yank", tidy, "1.0.0", "--reason", "broken").stdout
    assert done == "upload~local/skills/tidy: no version is live (1.0.0 yanked)\n"
    shown = run("skill", "show", "upload~local/skills/tidy").stdout
    assert "yanked" in shown and "broken" in shown
    assert "1.0.0 live" in run("skill", "unyank", tidy, "1.0.0", "--reason", "mended").stdout
    found = json.loads(run("skill", "show", tidy, "--json").stdout)
    assert (found["currentVersion"], found["versions"][0]["status"]) == ("1.0.0", "live")


def test_a_skill_is_listed_with_its_files_and_its_report(run, tidy):
    listed = run("skill", "list", "--owner", "local").stdout
    assert listed.startswith("1 skill\n") and "upload~local/skills/tidy" in listed
    assert run("skill", "list", "--owner", "nobody").stdout.startswith("0 skills\n")
    files = run("skill", "files", tidy).stdout
    assert files.startswith("upload~local/skills/tidy 1.0.0\n") and "SKILL.md" in files
    told = run("skill", "security", tidy).stdout
    assert told.startswith(
        "upload~local/skills/tidy 1.0.0: PASS. No known attack found by our rules (version "
    )
    assert "not read by a judge" in " ".join(told.split())
    exported = json.loads(run("skill", "export").stdout)
    assert (exported["slug"], exported["currentVersion"]) == ("upload~local/skills/tidy", "1.0.0")


def test_a_stranger_is_told_how_to_claim_it(run, server):
    server.repo("ann/tools", FILES)
    run("submit", URL)
    work()
    run("admin", "create", "eve", "--role", "author", "--generate")
    refused = run("--as", "eve", "skill", "yank", "tools", "1.0.0", "--reason", "mine", code=1).stderr
    assert f"Only a maintainer of {URL}" in refused and "owner claim" in refused


def test_claim_check_list_and_transfer(run, server):
    repo = server.repo("ann/tools", FILES)
    for name in ("ann", "bob"):
        run("admin", "create", name, "--role", "author", "--generate")
    assert "add --as ACCOUNT" in run("owner", "claim", URL, code=1).stderr
    text = run("--as", "ann", "owner", "claim", URL).stdout
    token = text.splitlines()[1].strip()
    assert PROOF_FILE in text and f"vskill-platform --as ann owner check {URL}" in text
    assert "There is no file" in run("--as", "ann", "owner", "check", URL, code=1).stderr
    assert f"Claimed, not proved yet: {URL}" in run("--as", "ann", "owner", "list").stdout
    repo.commit({**FILES, PROOF_FILE: token})
    assert run("--as", "ann", "owner", "check", URL).stdout == f"{URL} is controlled by ann.\n"
    (one,) = json.loads(run("owner", "list", "--json").stdout)["repositories"]
    assert [owner["account"] for owner in one["owners"]] == ["ann"]
    assert URL in run("owner", "list").stdout
    moved = run("--as", "ann", "owner", "transfer", URL, "bob", "--reason", "moved on").stdout
    assert moved == f"{URL} is controlled by bob.\n"
    assert json.loads(run("owner", "list", "--account", "ann", "--json").stdout)["repositories"] == []
    started = json.loads(run("--as", "ann", "owner", "claim", URL, "--json").stdout)
    assert started["path"] == PROOF_FILE
    assert json.loads(run("--as", "bob", "owner", "check", URL, "--json").stdout)["repo"]


def test_takedown_restore_and_delete(run, tidy):
    assert "taken_down" in run("skill", "takedown", tidy, "--reason", "complaints").stdout
    assert "1.0.0 live" in run("skill", "restore", tidy, "1.0.0", "--reason", "sorry").stdout
    assert "Aborted" in run("skill", "delete", tidy, "--reason", "gone", code=1).stderr
    assert "1.0.0 yanked" in run("skill", "delete", tidy, "--reason", "gone", "--yes").stdout


def test_reports_are_filed_listed_and_decided(run, tidy):
    filed = json.loads(run("report", "file", tidy, "--reason", "reads keys", "--json").stdout)
    number = filed["id"]
    assert filed["new"]
    assert "still open" in run("report", "file", tidy, "--reason", "really").stdout
    assert number in run("report", "list").stdout
    assert "dismissed" in run("report", "dismiss", number, "--reason", "it does not").stdout
    assert "already dismissed" in run("report", "dismiss", number, "--reason", "no", code=1).stderr
    again = run("report", "file", tidy, "1.0.0", "--category", "malware", "--reason", "look").stdout
    second = again.split()[1]
    done = run("report", "uphold", second, "--block", "version", "--reason", "true").stdout
    assert "upheld; blocked: digest " in done
    assert json.loads(run("report", "list", "--json").stdout)["reports"] == []
    assert len(json.loads(run("report", "list", "--status", "all", "--json").stdout)["reports"]) == 2
    assert "taken_down" in run("skill", "show", tidy).stdout
    assert "stays withdrawn" in run("skill", "restore", tidy, "--reason", "please", code=1).stderr


@pytest.mark.parametrize("target", ["place", "name"])
def test_upholding_blocks_a_place_or_a_name(run, tidy, target):
    number = run("report", "file", tidy, "--reason", "spam").stdout.split()[1]
    done = run("report", "uphold", number, "--block", target, "--reason", "true").stdout
    assert f"blocked: {target}" in done
    assert "there is nothing" not in done


def test_upholding_without_a_live_version_asks_for_another_target(run, tidy):
    number = run("report", "file", tidy, "--reason", "spam").stdout.split()[1]
    run("skill", "takedown", tidy, "--reason", "complaints")
    refused = run("report", "uphold", number, "--block", "version", "--reason", "true", code=1).stderr
    assert "block the place" in refused
    assert "was upheld." in run("report", "uphold", number, "--reason", "true").stdout


def test_a_block_that_hits_nothing_fails_and_says_so(run, tidy):
    refused = run("block", "add", "name", "tydi", "--reason", "malware", code=1).stderr
    assert "No skill has the name tydi; set `ahead`" in refused
    assert 'entries": []' in run("block", "list", "--json").stdout


def test_the_audit_tells_it_all_latest_first(run, tidy):
    run("skill", "takedown", tidy, "--reason", "complaints")
    run("block", "add", "name", "evil", "--ahead", "--reason", "malware")
    run("block", "remove", "name", "evil", "--reason", "a mistake")
    page = json.loads(run("audit", "list", "--limit", "2", "--json").stdout)
    assert [(one["action"], one["reason"]) for one in page["items"]] == [
        ("unblock", "a mistake"),
        ("block", "malware"),
    ]
    assert "Older ones" in run("audit", "list", "--limit", "2").stdout
    older = json.loads(run("audit", "list", "--before", page["before"], "--json").stdout)
    assert [one["action"] for one in older["items"]] == ["take down", "submit"]
    assert "cursor" in run("audit", "list", "--before", "x", code=1).stderr


def test_repositories_are_checked_and_shown(run, server):
    server.repo("ann/tools", FILES)
    assert "not been checked yet" in run("repo", "health", URL, code=1).stderr
    assert "Asked for check 1" in run("repo", "check", URL).stdout
    work()
    shown = run("repo", "health", URL).stdout
    assert "reachable since" in shown and "unknown: git does not tell" in shown
    found = json.loads(run("repo", "health", URL, "--json").stdout)
    assert (found["status"], found["facts"]["archived"], found["facts"]["licence"]) == (
        "reachable",
        None,
        "NONE",
    )
    assert URL in run("repo", "list", "--status", "reachable").stdout
    assert json.loads(run("repo", "list", "--status", "gone", "--json").stdout)["repositories"] == []


def test_choices_are_those_of_the_stores():
    assert set(WhichReports) == {*(one.value for one in ReportStatus), "all"}
    assert {"skill", "owner", "report", "audit", "repo"} <= set(cli.commands)


def test_an_export_has_a_line_for_each_published_skill(run, tidy):
    (line,) = run("skill", "export").stdout.splitlines()
    found = json.loads(line)
    assert (found["slug"], found["name"], found["currentVersion"]) == (
        "upload~local/skills/tidy",
        "tidy",
        "1.0.0",
    )
    assert found["updatedAt"].endswith("Z") and found["currentDigest"]
    run("skill", "yank", tidy, "1.0.0", "--reason", "broken")
    assert run("skill", "export").stdout == ""

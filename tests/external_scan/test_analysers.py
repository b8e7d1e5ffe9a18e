"""Real analysers on real files: what they find is reported under the skill's own paths, and nothing in the skill can
switch them off."""

import pytest

from tests.external_scan.conftest import BAD_PYTHON, GOOD_PYTHON, NONE, both, published, real, script
from tests.support.envs import open_test_env, run_until_quiet
from vskill_core.content import SkillFile
from vskill_core.findings import Severity, Verdict
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.external_scan.bandit import Bandit
from vskill_platform.external_scan.contract import MOST_FINDINGS, Unreadable, clean, summed_up
from vskill_platform.external_scan.dispatch import installed_analysers, request_scans
from vskill_platform.external_scan.layout import kind_of, layout_of
from vskill_platform.external_scan.semgrep import Semgrep
from vskill_platform.store.external_scans import (
    ExternalFinding,
    ExternalReport,
    ExternalStatus,
    get_external_scan,
    list_external_scans,
    read_external_task,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Files by which an author could try to be left out.
EVASIONS = (
    script(".semgrepignore", b"*\n"),
    script(".bandit", b"[bandit]\nexclude = /\nskips = B602\n"),
    script("pyproject.toml", b'[tool.bandit]\nskips = ["B602"]\n'),
)


async def test_both_find_what_is_there_and_the_report_names_the_skills_own_path(tmp_path):
    """Also in a folder that analysers leave out by habit, beside files that tell them to look away."""
    async with open_test_env("sqlite", tmp_path, **both()) as env:
        assert await installed_analysers() == ("bandit", "semgrep")
        digest = await published(env, "bad", script("tests/node_modules/run it.py", BAD_PYTHON), *EVASIONS)
        tasks = await request_scans(digest)
        assert [task.id for task in tasks] == [f"{digest}:bandit", f"{digest}:semgrep"]
        await run_until_quiet(env)
        bandit, semgrep = await list_external_scans(digest)
        assert await request_scans(digest) == ()
    for report in (bandit, semgrep):
        assert (report.status, report.verdict, report.files) == (ExternalStatus.COMPLETE, Verdict.CONCERNS, 1)
        assert report.version[0].isdigit()
        assert report.findings[0].severity is Severity.HIGH
        assert (report.findings[0].file, report.findings[0].line) == ("tests/node_modules/run it.py", 3)
    assert "B602" in {finding.rule_id for finding in bandit.findings}
    assert "python-shell-of-arguments" in {finding.rule_id for finding in semgrep.findings}
    assert list((tmp_path / "analyses").iterdir()) == []


async def test_clean_code_passes_both_and_prose_is_not_called_clean(tmp_path):
    async with open_test_env("sqlite", tmp_path, **both()) as env:
        digest = await published(
            env, "good", SkillFile("bin/double", "100755", b"#!/usr/bin/env python3\n" + GOOD_PYTHON)
        )
        prose = await published(env, "prose")
        await request_scans(digest)
        await request_scans(prose)
        await run_until_quiet(env)
        for report in await list_external_scans(digest):
            assert (report.status, report.verdict, report.findings) == (
                ExternalStatus.COMPLETE,
                Verdict.PASS,
                (),
            )
        for report in await list_external_scans(prose):
            assert (report.status, report.verdict, report.files) == (ExternalStatus.COMPLETE, None, 0)
            assert "nothing in it" in report.problem


async def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_not_called_clean(tmp_path):
    async with open_test_env("memory", tmp_path, **{**NONE, "bandit_command": real("bandit")}) as env:
        digest = await published(env, "old", script("a.py", b'print "two"\n'), script("b.py", GOOD_PYTHON))
        await request_scans(digest)
        await run_until_quiet(env)
        report = await get_external_scan(digest, "bandit")
    assert report is not None
    assert (report.status, report.verdict, report.unread) == (ExternalStatus.INCOMPLETE, None, ("a.py",))


async def test_an_analyser_that_is_not_installed_is_a_named_degraded_mode_and_comes_back(tmp_path):
    """B17: asked for here, done elsewhere, where it is missing; once it is there, it is asked again."""
    async with open_test_env("sqlite", tmp_path, **{**NONE, "bandit_command": real("bandit")}) as env:
        digest = await published(env, "demo", script("a.py", BAD_PYTHON))
        await request_scans(digest)
    async with open_test_env("sqlite", tmp_path, **{**NONE, "bandit_command": "no-such-program"}) as env:
        assert await installed_analysers() == ()
        assert await request_scans(digest) == ()
        await run_until_quiet(env)
        report = await get_external_scan(digest, "bandit")
        task = await read_external_task(digest, "bandit")
    assert report is not None and task is not None
    assert (report.status, report.verdict, task.state) == (ExternalStatus.UNAVAILABLE, None, TaskState.DONE)
    async with open_test_env("sqlite", tmp_path, **{**NONE, "bandit_command": real("bandit")}) as env:
        assert len(await request_scans(digest)) == 1
        await run_until_quiet(env)
        report = await get_external_scan(digest, "bandit")
    assert report is not None and report.status is ExternalStatus.COMPLETE


@pytest.mark.parametrize(
    ("path", "data", "kind"),
    [
        ("a.PY", b"", ".py"),
        ("run.mjs", b"", ".js"),
        ("run", b"#!/bin/bash -e\n", ".sh"),
        ("run", b"#!/usr/bin/env -S python3.11 -u\n", ".py"),
        ("run", b"#!/usr/bin/env A=b node\n", ".js"),
        ("run", b"#! \n", ""),
        ("run", b"#!/usr/bin/env\n", ""),
        ("notes.md", b"#!/bin/sh\n", ".sh"),
        ("notes.md", b"# Notes\n", ""),
    ],
)
def test_a_file_is_what_its_ending_or_its_first_line_says(path, data, kind):
    assert kind_of(script(path, data)) == kind


def test_no_name_of_a_stranger_reaches_an_analyser():
    files = [script("--config=evil.py", b"1"), script("a/../../b.py", b"2"), script("x.md", b"3")]
    layout = layout_of(files, frozenset({".py"}))
    assert list(layout.files) == ["f0001.py", "f0002.py"]
    assert layout.path_of("/some/where/f0002.py") == "a/../../b.py"
    assert layout.path_of("unknown.py") == ""


@pytest.mark.parametrize("analyser", [Bandit("/x"), Semgrep("/x")])
@pytest.mark.parametrize(
    "out", [b"", b"{}", b"garbage", b"[" * 100_000, b'{"results": 1, "errors": []}', b"\xff\xfe"]
)
def test_output_that_is_no_report_is_unreadable(analyser, out):
    with pytest.raises(Unreadable):
        analyser.parse(out, b"broken\x1b[31m", 0)


@pytest.mark.parametrize(
    ("out", "code"),
    [
        (b'{"results": [], "errors": []}', 2),
        (b'{"results": [], "errors": [{"level": "error", "message": "bad rule"}]}', 2),
        (b'{"results": [], "errors": [{"level": "error", "message": "bad rule"}]}', 0),
    ],
)
def test_an_analyser_that_says_that_it_failed_is_believed(out, code):
    with pytest.raises(Unreadable):
        Semgrep("/x").parse(out, b"", code)
    with pytest.raises(Unreadable, match="code 2"):
        Bandit("/x").parse(b'{"results": [], "errors": []}', b"", 2)


def test_a_severity_that_nobody_knows_is_not_made_small():
    row = b'{"filename": "f0001.py", "test_id": "B1", "issue_severity": "SEVERE"}'
    (finding,) = Bandit("/x").parse(b'{"results": [' + row + b'], "errors": []}', b"", 0).findings
    assert finding.severity is Severity.HIGH


def test_all_findings_are_counted_the_worst_are_kept_and_text_is_bounded():
    findings = [ExternalFinding("r", Severity.LOW, f"f{n}") for n in range(500)]
    findings.append(ExternalFinding("r", Severity.CRITICAL, "z"))
    report = summed_up(ExternalReport("x", ExternalStatus.COMPLETE, 1, 2), findings)
    assert (report.counts, report.critical, report.verdict) == ({"low": 500, "critical": 1}, 1, Verdict.FAIL)
    assert len(report.findings) == MOST_FINDINGS and report.findings[0].file == "z"
    assert clean("a\x00\n\x1b[31mb" + "c" * 9_000)[:8] == "a [31mbc" and len(clean("c" * 9_000)) == 500


@pytest.mark.parametrize(
    "status", [ExternalStatus.ERROR, ExternalStatus.TIMED_OUT, ExternalStatus.UNAVAILABLE]
)
def test_what_was_not_looked_at_has_no_verdict(status):
    assert summed_up(ExternalReport("x", status, 1, 2), []).verdict is None
    found = [ExternalFinding("r", Severity.CRITICAL)]
    assert summed_up(ExternalReport("x", ExternalStatus.INCOMPLETE, 1, 2), found).verdict is Verdict.FAIL

"""The scan as a whole: what it sees, what it says about what it could not see, and how much it says."""

import gc
import io
import tarfile
import threading
import zipfile
from collections.abc import Collection

import pytest

from tests.support.compiled_rules import bundled_engine
from tests.support.scanners import InlineScanner
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.findings import ScanStatus, Severity, StaticReport, Verdict
from vskill_scan.engine import MOST_FINDINGS, Engine
from vskill_scan.hits import EXCERPT
from vskill_scan.limits import Limits
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.ruleset import Ruleset, read_rules

RULES = b"""\
family: download-and-run
rules:
  - {id: XX-001, version: 1, title: Evil, severity: high, kind: malice, why: Because., remedy: Do not.,
     match: {re: 'evil'}, examples: {match: [a, b], near_miss: [c], benign: [d]}}
  - {id: XX-002, version: 1, title: Known, severity: critical, kind: malice, certain: true, why: w, remedy: r,
     match: {re: 'indicator-77'}, examples: {match: [a, b], near_miss: [c], benign: [d]}}
"""
RULESET = Ruleset(read_rules("x.yaml", RULES))
SKILL_MD = SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: Tidies.\n---\n# Tidy\n")


def scan(*files: SkillFile, limits: Limits | None = None, known_bad: Collection[str] = ()) -> StaticReport:
    return Engine(RULESET, read_manifest, known_bad, limits or Limits()).scan([SKILL_MD, *files])


def text(path: str, content: str) -> SkillFile:
    return SkillFile(path, "100644", content.encode())


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def tarred(**members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def found(report: StaticReport) -> list[tuple[str, str, int, int]]:
    return [(one.rule_id, one.file, one.line, one.column) for one in report.findings]


def test_a_finding_has_its_place_its_excerpt_and_what_to_do():
    report = scan(text("docs/a.md", "fine\n\nsome evil here\n"))
    (finding,) = report.findings
    assert (finding.file, finding.line, finding.column) == ("docs/a.md", 3, 6)
    assert finding.excerpt == "some evil here"
    assert finding.why == "Evil. Because."
    assert finding.remedy == "Do not."
    assert (report.verdict, report.score) == (Verdict.PASS, 85)
    assert report.ruleset == RULESET.version


#: Two ways to the same finding; of each, one pattern is looked for later.
TOGETHER = """\
family: download-and-run
rules:
  - {id: XX-003, version: 1, title: Both, severity: high, kind: malice, why: Because., remedy: Do not.,
     match: {any: [{all: [{re: 'often'%s}, {re: 'seldom'}], within: file}, {all: [{re: 'rare'}, {re: 'often'%s}]}]},
     examples: {match: [a, b], near_miss: [c], benign: [d]}}
"""


def test_what_is_looked_for_later_is_found_in_the_same_places_in_the_same_order():
    files = [
        SKILL_MD,
        text("a.md", "often\n\nnothing else\n"),
        text("b.md", "often and often\n\nseldom\n\nrare, often\n"),
        text("c.md", "rare\n\noften\n"),
        text("d.md", "rare\n\nseldom, often\n"),
    ]
    reports = [
        Engine(Ruleset(read_rules("x.yaml", (TOGETHER % (later, later)).encode())), read_manifest).scan(files)
        for later in ("", ", later: true")
    ]
    at_once, later = map(found, reports)
    assert at_once == [("XX-003", "b.md", 1, 1), ("XX-003", "b.md", 5, 7), ("XX-003", "d.md", 3, 9)]
    assert later == at_once


def test_excerpts_are_cut_and_on_one_line():
    (finding,) = scan(text("a.md", "x" * 500 + " evil " + "y" * 500)).findings
    assert len(finding.excerpt) <= EXCERPT
    assert "evil" in finding.excerpt


def test_one_finding_per_rule_and_line_and_no_more_than_twenty_per_file():
    report = scan(text("a.md", "evil evil\n\n" * 50), text("b.md", "evil\n"))
    ours = [one for one in report.findings if one.file == "a.md"]
    assert len(ours) == MOST_FINDINGS == 20
    assert ours[-1].why.endswith("The same stands at 30 more places in this file.")
    assert len(report.findings) == 21


def test_a_certain_rule_is_marked_so():
    (finding,) = scan(text("a.sh", "echo indicator-77")).findings
    assert (finding.certain, finding.severity) == (True, Severity.CRITICAL)


def test_known_content_is_certain_whatever_it_says():
    report = scan(known_bad=[digest_of_files([SKILL_MD])])
    assert [(one.rule_id, one.certain) for one in report.findings] == [("KB-001", True)]


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_archives_are_opened_and_their_members_named(pack):
    data = pack(**{"in/a.md": b"\nevil", "b.txt": b"fine"})
    name = "x.zip" if pack is zipped else "x.tar.gz"
    report = scan(SkillFile(name, "100644", data))
    assert report.status is ScanStatus.COMPLETE
    assert found(report) == [("XX-001", f"{name}!in/a.md", 2, 1)]


def test_archives_in_archives_are_opened_to_a_depth():
    two = zipped(**{"b.zip": zipped(**{"c.md": b"evil"})})
    assert found(scan(SkillFile("a.zip", "100644", two))) == [("XX-001", "a.zip!b.zip!c.md", 1, 1)]
    report = scan(SkillFile("z.zip", "100644", zipped(**{"a.zip": two})))
    assert report.status is ScanStatus.INCOMPLETE
    assert "too deep" in report.problem


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("bomb.zip", zipped(a=b"0" * 15_000_000), "much larger than the archive"),
        ("bomb.tgz", tarred(a=b"0" * 30_000_000), "much larger than the archive"),
        ("many.zip", zipped(**{f"f{n}": b"" for n in range(600)}), "more than 500 members"),
        ("many.tgz", tarred(**{f"f{n}": b"" for n in range(600)}), "more than 500 members"),
        ("broken.zip", b"PK\x03\x04 and then nothing", "cannot be opened as an archive"),
        ("broken.tar.gz", b"\x1f\x8b and then nothing", "cannot be opened as an archive"),
    ],
)
def test_an_archive_that_cannot_be_read_is_never_clean(name, data, said):
    report = scan(SkillFile(name, "100644", data))
    assert report.status is ScanStatus.INCOMPLETE
    assert said in report.problem
    assert name in report.problem


def test_an_encrypted_archive_is_never_clean():
    data = bytearray(zipped(a=b"evil"))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    report = scan(SkillFile("x.zip", "100644", bytes(data)))
    assert (report.status, "encrypted" in report.problem) == (ScanStatus.INCOMPLETE, True)


def test_a_document_that_happens_to_be_a_zip_is_left_alone():
    assert scan(SkillFile("a.docx", "100644", zipped(**{"a.md": b"evil"}))).findings == ()


def test_a_program_inside_an_archive_is_reported():
    report = scan(SkillFile("x.zip", "100644", zipped(**{"bin/tool": b"\x7fELF\x02\x01\x01"})))
    assert [(one.rule_id, one.file) for one in report.findings] == [("ST-004", "x.zip!bin/tool")]


def test_a_skill_over_its_bytes_is_incomplete():
    files = [SkillFile(f"{n}.bin", "100644", b"x" * 60) for n in range(3)]
    report = scan(*files, limits=Limits(skill_bytes=200))
    assert report.status is ScanStatus.INCOMPLETE
    assert "2.bin" in report.problem
    assert report.coverage.files_scanned < report.coverage.files_total


def test_a_budget_that_is_used_up_is_timed_out():
    report = scan(text("a.md", "x"), limits=Limits(steps=0))
    assert report.status is ScanStatus.TIMED_OUT
    assert "the scan needs more than 0 steps" in report.problem


def test_time_on_the_wall_is_not_counted():
    """A scan that took long without using the processor was starved, which is not the skill's fault."""
    assert scan(text("a.md", "x"), limits=Limits(wall_s=0)).status is ScanStatus.COMPLETE


def test_an_error_of_its_own_is_a_report():
    def broken(data: bytes) -> None:
        raise ZeroDivisionError(len(data))

    report = Engine(RULESET, broken).scan([SKILL_MD])
    assert (report.status, "ZeroDivisionError" in report.problem) == (ScanStatus.ERROR, True)


def test_the_same_files_give_the_same_report():
    files = [text(f"{n}.md", "evil\nindicator-77\n") for n in range(5)]
    first, second = (scan(*files) for _ in range(2))
    assert first.findings == second.findings


@pytest.mark.parametrize("unit", ["![a](http://", "send https://a ", "never tell the user "])
def test_a_file_full_of_what_rules_look_for_is_read_to_its_end(unit):
    """100 KB of the words that most patterns begin with: within the budget of processor time, and never given up."""
    engine = bundled_engine()
    report = engine.scan([SKILL_MD, text("a.md", unit * (100_000 // len(unit)))])
    assert (report.status, report.problem) == (ScanStatus.COMPLETE, "")


def test_the_engine_of_an_environment_outlives_what_another_thread_collects():
    """An environment that a test leaves behind is a circle, and holds its scanner; any thread may collect it. A scanner
    of YARA that ends in a thread that did not make it is an error at the end of this test."""
    engine = Engine(RULESET)
    engine.scan([SKILL_MD])
    left: list[object] = [InlineScanner(engine)]
    left.append(left)
    del engine, left
    collecting = threading.Thread(target=gc.collect)
    collecting.start()
    collecting.join()

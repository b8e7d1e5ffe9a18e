"""The structural tier: what is no skill, what is a binary, and what the operator knows to be bad."""

import hashlib

import pytest

from tests.support.scanners import InlineScanner, structure_scanner
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.findings import FindingKind, ScanStatus, Severity, Verdict
from vskill_scan.engine import Engine
from vskill_scan.limits import Limits
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.ruleset import Ruleset
from vskill_scan.rules.structure import LARGE_FILE_BYTES, RULES

pytestmark = pytest.mark.anyio

SKILL_MD = SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: Tidies.\n---\n# Tidy\n")


#: These tests are about content; how long a busy machine takes for it must not change their outcome.
PATIENT = Limits(cpu_s=300)


async def findings(*files: SkillFile, known_bad=()):
    scanner = InlineScanner(Engine(Ruleset(()), read_manifest, known_bad, PATIENT))
    report = await scanner.scan(files)
    assert report.status is ScanStatus.COMPLETE
    assert report.ruleset == scanner.ruleset
    return report


async def test_a_plain_skill_passes_with_nothing_found():
    report = await findings(SKILL_MD, SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho hi\n"))
    assert report.findings == ()
    assert (report.verdict, report.score) == (Verdict.PASS, 100)
    assert (report.coverage.files_scanned, report.coverage.files_total) == (2, 2)
    assert report.coverage.bytes_scanned == report.coverage.bytes_total > 0


@pytest.mark.parametrize("path", ["skill.md", "docs/SKILL.md", "SKILL.MD"])
async def test_ST_001_without_SKILL_md_at_the_root_it_is_no_skill(path):
    (finding,) = (await findings(SkillFile(path, "100644", SKILL_MD.data))).findings
    assert (finding.rule_id, finding.kind) == ("ST-001", FindingKind.MISMATCH)


async def test_ST_002_a_SKILL_md_that_is_refused_is_found_on_its_line():
    bad = SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: \xff\n---\n")
    (finding,) = (await findings(bad)).findings
    assert (finding.rule_id, finding.file, finding.line) == ("ST-002", "SKILL.md", 3)
    assert "not UTF-8" in finding.remedy


async def test_what_was_read_leniently_is_a_note_and_no_finding():
    lenient = SkillFile("SKILL.md", "100644", b"---\nname: Tidy Up\ndescription: Tidies.\n---\n")
    report = await findings(lenient)
    assert (report.findings, report.score) == ((), 100)
    (note,) = report.notes
    assert (note.code.value, note.field, note.line) == ("name-invalid", "name", 2)


async def test_ST_003_a_long_SKILL_md_is_said_but_does_not_count():
    long = SkillFile("SKILL.md", "100644", SKILL_MD.data + b"line\n" * 600)
    report = await findings(long)
    (finding,) = report.findings
    assert (finding.rule_id, finding.kind) == ("ST-003", FindingKind.CAPABILITY)
    assert report.score == 100


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01", "ELF"),
        (b"MZ\x90\x00\x03\x00", "Windows"),
        (b"\xcf\xfa\xed\xfe\x07", "Mach-O"),
        (b"\xca\xfe\xba\xbe\x00", "Java"),
        (b"\x00asm\x01", "WebAssembly"),
    ],
)
async def test_ST_004_an_executable_binary_is_reported_by_type_and_hash(data, kind):
    (finding,) = (await findings(SKILL_MD, SkillFile("bin/tool", "100644", data))).findings
    assert (finding.rule_id, finding.file) == ("ST-004", "bin/tool")
    assert kind in finding.excerpt
    assert hashlib.sha256(data).hexdigest() in finding.excerpt


@pytest.mark.parametrize("data", [b"MZ is how this text begins\n", b"\x89PNG\r\n", b"ELF", b""])
async def test_ST_004_leaves_other_files_alone(data):
    assert (await findings(SKILL_MD, SkillFile("notes", "100755", data))).findings == ()


async def test_ST_005_a_large_file_is_said_but_does_not_count():
    report = await findings(SKILL_MD, SkillFile("data.txt", "100644", b"x" * (LARGE_FILE_BYTES + 1)))
    assert [finding.rule_id for finding in report.findings] == ["ST-005"]
    assert report.score == 100


async def test_ST_006_a_binary_of_unknown_type_is_said_but_does_not_count():
    data = b"\x07\x13" + bytes(200)
    report = await findings(SKILL_MD, SkillFile("blob.bin", "100644", data))
    (finding,) = report.findings
    assert (finding.rule_id, finding.kind) == ("ST-006", FindingKind.CAPABILITY)
    assert hashlib.sha256(data).hexdigest() in finding.excerpt
    assert report.score == 100


async def test_KB_001_content_that_the_operator_listed_is_certain():
    digest = digest_of_files([SKILL_MD])
    (finding,) = (await findings(SKILL_MD, known_bad=(digest,))).findings
    assert (finding.rule_id, finding.severity, finding.certain) == ("KB-001", Severity.CRITICAL, True)


async def test_KB_001_any_other_content_is_not():
    other = digest_of_files([SKILL_MD, SkillFile("a", "100644", b"a")])
    assert (await findings(SKILL_MD, known_bad=(other,))).findings == ()


async def test_an_error_of_the_scanner_is_a_report_of_its_own_and_never_clean():
    def broken(data: bytes) -> None:
        raise ZeroDivisionError(len(data))

    report = await structure_scanner(broken).scan([SKILL_MD])
    assert report.status is ScanStatus.ERROR
    assert "ZeroDivisionError" in report.problem


def test_rule_ids_are_unique():
    assert len({rule.id for rule in RULES}) == len(RULES)

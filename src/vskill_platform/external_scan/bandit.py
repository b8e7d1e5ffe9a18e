"""Bandit: known weaknesses in Python code, by its own built-in tests, which need no network."""

from pathlib import Path
from typing import ClassVar, cast

import msgspec

from vskill_core.findings import Severity
from vskill_platform.external_scan.contract import (
    Analyser,
    Parsed,
    Unreadable,
    clean,
    decode_json,
    severity_of,
)
from vskill_platform.store.external_scans import ExternalFinding

#: Bandit's scale; its confidence in a finding is ignored.
SEVERITIES = {
    "LOW": Severity.LOW,
    "MEDIUM": Severity.MEDIUM,
    "HIGH": Severity.HIGH,
    "UNDEFINED": Severity.LOW,
}


class _BanditResult(msgspec.Struct, frozen=True):
    filename: str
    test_id: str
    issue_severity: str
    issue_text: str = ""
    line_number: int = 0


class _BanditError(msgspec.Struct, frozen=True):
    filename: str
    reason: str = ""


class _BanditOutput(msgspec.Struct, frozen=True):
    results: tuple[_BanditResult, ...]
    errors: tuple[_BanditError, ...]


class Bandit(Analyser):
    """Bandit, from the package of that name."""

    name: ClassVar[str] = "bandit"
    reads: ClassVar[frozenset[str]] = frozenset({".py"})

    def command(self, folder: Path) -> tuple[str, ...]:
        return (
            self.program,
            "--recursive",
            "--format=json",
            "--quiet",
            "--exit-zero",
            # Comments in a scanned file must not suppress findings.
            "--ignore-nosec",
            str(folder),
        )

    def parse(self, out: bytes, err: bytes, code: int) -> Parsed:
        if code != 0:
            raise Unreadable(f"it ended with code {code}: {clean(err.decode('utf-8', 'replace')[-1000:])}")
        output = cast("_BanditOutput", decode_json(out, _BanditOutput))
        findings = tuple(
            ExternalFinding(
                rule_id=clean(one.test_id),
                severity=severity_of(one.issue_severity, SEVERITIES),
                file=one.filename,
                line=one.line_number,
                message=clean(one.issue_text),
            )
            for one in output.results
        )
        return Parsed(findings, tuple(dict.fromkeys(one.filename for one in output.errors)))

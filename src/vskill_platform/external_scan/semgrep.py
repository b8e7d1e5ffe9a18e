"""Semgrep: patterns and taint over Python, JavaScript, TypeScript and shell, by rules of our own in `rules/`.

It runs with those rules only, so it needs no network; metrics, version check and log-in are off.
"""

from collections.abc import Mapping
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

RULES = Path(__file__).parent / "rules"
#: Semgrep has two scales.
SEVERITIES = {
    "INFO": Severity.LOW,
    "LOW": Severity.LOW,
    "WARNING": Severity.MEDIUM,
    "MEDIUM": Severity.MEDIUM,
    "ERROR": Severity.HIGH,
    "HIGH": Severity.HIGH,
    "CRITICAL": Severity.CRITICAL,
}
#: Timeout of one rule in one file; the whole scan has its own budget.
SECONDS_A_FILE = 10


class _Place(msgspec.Struct, frozen=True):
    line: int = 0


class _Extra(msgspec.Struct, frozen=True):
    severity: str
    message: str = ""


class _SemgrepResult(msgspec.Struct, frozen=True):
    check_id: str
    path: str
    extra: _Extra
    start: _Place = _Place()


class _SemgrepError(msgspec.Struct, frozen=True):
    level: str = "error"
    path: str = ""
    message: str = ""


class _SemgrepOutput(msgspec.Struct, frozen=True):
    results: tuple[_SemgrepResult, ...]
    errors: tuple[_SemgrepError, ...]
    version: str = ""


class Semgrep(Analyser):
    """Semgrep's open engine, from the package of that name."""

    name: ClassVar[str] = "semgrep"
    reads: ClassVar[frozenset[str]] = frozenset({".py", ".sh", ".js", ".jsx", ".ts", ".tsx"})
    # Its engine reserves about 3 GB of address space and uses about 100 MB.
    memory_bytes: ClassVar[int] = 8 * 1024**3
    environment: ClassVar[Mapping[str, str]] = {
        "SEMGREP_SEND_METRICS": "off",
        "SEMGREP_ENABLE_VERSION_CHECK": "0",
        "SEMGREP_LOG_FILE": "/dev/null",
    }

    def command(self, folder: Path) -> tuple[str, ...]:
        return (
            self.program,
            "scan",
            f"--config={RULES}",
            "--json",
            "--quiet",
            "--metrics=off",
            "--disable-version-check",
            "--oss-only",
            # Comments in a scanned file must not suppress findings.
            "--disable-nosem",
            "--no-git-ignore",
            "--no-rewrite-rule-ids",
            "--max-target-bytes=0",
            "--no-exclude-binary-files",
            f"--timeout={SECONDS_A_FILE}",
            "--jobs=1",
            str(folder),
        )

    def parse(self, out: bytes, err: bytes, code: int) -> Parsed:
        if not out.strip():
            raise Unreadable(f"it ended with code {code}: {clean(err.decode('utf-8', 'replace')[-1000:])}")
        output = cast("_SemgrepOutput", decode_json(out, _SemgrepOutput))
        serious = [one for one in output.errors if one.level == "error"]
        if any(not one.path for one in serious):
            raise Unreadable("; ".join(clean(one.message) for one in serious if not one.path)[:500])
        if code != 0 and not serious:
            raise Unreadable(f"it ended with code {code}")
        findings = tuple(
            ExternalFinding(
                rule_id=clean(one.check_id),
                severity=severity_of(one.extra.severity, SEVERITIES),
                file=one.path,
                line=one.start.line,
                message=clean(one.extra.message),
            )
            for one in output.results
        )
        # Warnings, too, name files that were not fully read.
        return Parsed(
            findings,
            tuple(dict.fromkeys(one.path for one in output.errors if one.path)),
            clean(output.version),
        )

    def version_command(self) -> None:
        """Its report says it; asking takes as long as a scan."""

"""What an analyser is: a separate program that reads a folder and prints what it found. One file per analyser beside
this one; the list of all is in `dispatch`.

An analyser knows its command line and its output format. `sandbox` decides where it runs, for how long and with what
limits, the same for all.
"""

import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from vskill_core.findings import Severity, Verdict
from vskill_core.foreign_json import read_json
from vskill_platform.settings import Settings
from vskill_platform.store.external_scans import ExternalFinding, ExternalReport, ExternalStatus

#: Findings that a report keeps; all are counted.
MOST_FINDINGS = 200
#: Names of unread files that a report keeps.
MOST_UNREAD = 20
#: Characters of one text of an analyser.
MOST_TEXT = 500
#: The setting's value that disables an installed analyser.
OFF = "off"


class Unreadable(Exception):
    """What the analyser printed is not a report; the message says why."""


class Parsed(msgspec.Struct, frozen=True):
    """An analyser's parsed output. Paths are those in the folder that it was given."""

    findings: tuple[ExternalFinding, ...]
    #: files that it could not read
    unread: tuple[str, ...] = ()
    version: str = ""


class Analyser(ABC):
    """An installed program."""

    #: Its name in keys, tasks and reports.
    name: ClassVar[str]
    #: The kinds of files that it reads, by the extensions that `layout` gives.
    reads: ClassVar[frozenset[str]]
    #: Limit of its address space; some reserve far more than they use.
    memory_bytes: ClassVar[int] = 2 * 1024**3
    #: Environment variables that it needs.
    environment: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: str) -> None:
        self.program = program

    @abstractmethod
    def command(self, folder: Path) -> tuple[str, ...]:
        """The program and its arguments for reading this folder."""

    @abstractmethod
    def parse(self, out: bytes, err: bytes, code: int) -> Parsed:
        """What it found. Raises Unreadable if the output is not a report."""

    def version_command(self) -> tuple[str, ...] | None:
        """How to ask for its version; None where its output says it."""
        return (self.program, "--version")

    def parse_version(self, out: bytes) -> str:
        """`name 1.2.3` in the first line."""
        words = out.decode("utf-8", "replace").split("\n", 1)[0].split()
        return clean(words[-1])[:40] if words else ""


def find_program(name: str, settings: Settings) -> str | None:
    """The path of an analyser, by its setting or on the PATH; None if it is off or not installed. Reads the disk."""
    if not is_wanted(name, settings):
        return None
    found = shutil.which(_command(name, settings) or name)
    return None if found is None else str(Path(found).absolute())


def is_wanted(name: str, settings: Settings) -> bool:
    """Whether the operator has not switched it off."""
    return _command(name, settings) != OFF


def _command(name: str, settings: Settings) -> str:
    return {"bandit": settings.bandit_command, "semgrep": settings.semgrep_command}[name]


def clean(text: str) -> str:
    """On one line, without control characters, and not too long: it came from a foreign program or a foreign file."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: MOST_TEXT * 4])
    return " ".join(plain.split())[:MOST_TEXT]


def decode_json(out: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Foreign output as a struct, or Unreadable."""
    try:
        return read_json(out, kind)
    except msgspec.DecodeError as error:
        raise Unreadable(f"its output is not what was asked for: {error}") from error


def severity_of(text: str, names: Mapping[str, Severity]) -> Severity:
    """Translate an analyser's severity; an unknown one counts as high."""
    return names.get(text.upper(), Severity.HIGH)


def verdict_of(counts: Mapping[str, int]) -> Verdict:
    """One rule for all analysers: critical fails, high is a concern, the rest informs."""
    if counts.get(Severity.CRITICAL):
        return Verdict.FAIL
    return Verdict.CONCERNS if counts.get(Severity.HIGH) else Verdict.PASS


def summed_up(report: ExternalReport, findings: Sequence[ExternalFinding]) -> ExternalReport:
    """The report with its findings: all counted, the worst ones kept, and a verdict where one can be given."""
    counts = {str(severity): n for severity, n in Counter(one.severity for one in findings).items()}
    worst = sorted(findings, key=lambda one: (-one.severity.rank, one.file, one.line))
    return msgspec.structs.replace(
        report,
        counts=counts,
        critical=counts.get(Severity.CRITICAL, 0),
        findings=tuple(worst[:MOST_FINDINGS]),
        unread=report.unread[:MOST_UNREAD],
        verdict=_verdict(report.status, counts),
    )


def _verdict(status: ExternalStatus, counts: Mapping[str, int]) -> Verdict | None:
    """An incomplete scan can be bad, but never clean."""
    if status is ExternalStatus.COMPLETE:
        return verdict_of(counts)
    found = verdict_of(counts)
    return found if status is ExternalStatus.INCOMPLETE and found is not Verdict.PASS else None

"""How a reviewer is shown the evidence about a submission: a file with the findings in it, and how the content differs
from the one that is live.

All of it is foreign, and all of it is bounded: a file is shown up to a length, a difference up to a size.
"""

import asyncio
import difflib
from collections.abc import Sequence

import msgspec

from vskill_platform.actions.action import Services
from vskill_platform.actions.evidence import ContentEvidence, read_stored_files
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.scan import Finding
from vskill_platform.web.highlight import CodePart, highlight

MOST_BYTES = 200_000
MOST_LINES = 3_000
#: Of a line; one in which something was found is shown up to the larger width.
MOST_WIDTH, MOST_FOUND_WIDTH = 400, 8_000
#: Lines on either side of a finding.
AROUND = 4
#: What two versions of a file may have together for their difference to be computed.
MOST_DIFF_LINES = 4_000
MOST_DIFF_SHOWN = 1_500
MOST_FILES = 200


class FileLine(msgspec.Struct, frozen=True):
    """One line of a file, and the findings in it."""

    number: int
    parts: tuple[CodePart, ...]
    findings: tuple[Finding, ...] = ()


class ShownFile(msgspec.Struct, frozen=True):
    """One file as text."""

    path: str
    size: int
    #: False: it is no text.
    is_text: bool
    lines: tuple[FileLine, ...] = ()
    #: There is more than is shown.
    cut: bool = False


class FindingPlace(msgspec.Struct, frozen=True):
    """A finding with the lines around it."""

    finding: Finding
    #: Empty where the file is not there, or the finding is about all of it.
    lines: tuple[FileLine, ...] = ()
    #: What is live has no such line.
    is_new: bool = False


class DifferenceLine(msgspec.Struct, frozen=True):
    """One line of a difference."""

    #: ` `, `+`, `-` or `@`
    sign: str
    parts: tuple[CodePart, ...]


class Difference(msgspec.Struct, frozen=True):
    """How one file differs from the live version's."""

    path: str
    #: `added`, `removed` or `changed`
    status: str
    #: Each with its first character: ` `, `+`, `-` or `@`
    lines: tuple[DifferenceLine, ...] = ()
    #: There is more, or it is too large to be compared.
    cut: bool = False

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)


def choose(evidence: ContentEvidence, wanted: str | None) -> ShownFile | None:
    """The file that was asked for, or the one with the worst finding, or the first."""
    by_path = {file.path: file for file in evidence.files}
    worst = next((one.file for one in evidence.findings if one.file in by_path), None)
    first = evidence.files[0].path if evidence.files else None
    path = wanted if wanted in by_path else worst or first
    if path is None:
        return None
    return show_file(by_path[path], (*evidence.findings, *evidence.capabilities))


def show_file(file: SkillFile, findings: Sequence[Finding]) -> ShownFile:
    """The file's lines with what was found in them."""
    texts = _lines_of(file)
    if texts is None:
        return ShownFile(file.path, len(file.data), is_text=False)
    lines = _show_lines(file.path, texts, findings, 1, MOST_LINES)
    cut = len(file.data) > MOST_BYTES or len(texts) > MOST_LINES
    return ShownFile(file.path, len(file.data), is_text=True, lines=lines, cut=cut)


def place_findings(evidence: ContentEvidence, before: Sequence[SkillFile]) -> tuple[FindingPlace, ...]:
    """Each finding in its file, with the lines around it, and whether what is live has that line too."""
    files = {file.path: file for file in evidence.files}
    texts: dict[str, list[str] | None] = {}
    live = {file.path: frozenset(_lines_of(file) or ()) for file in before}
    found = []
    for one in evidence.findings:
        if one.file in files and one.file not in texts:
            texts[one.file] = _lines_of(files[one.file])
        lines = texts.get(one.file)
        if not lines or not 1 <= one.line <= len(lines):
            found.append(FindingPlace(one))
            continue
        shown = _show_lines(one.file, lines, [one], one.line - AROUND, one.line + AROUND)
        is_new = bool(before) and lines[one.line - 1] not in live.get(one.file, frozenset())
        found.append(FindingPlace(one, shown, is_new))
    return tuple(found)


def _lines_of(file: SkillFile) -> list[str] | None:
    """None: it is no text."""
    data = file.data[:MOST_BYTES]
    return None if b"\x00" in data else data.decode("utf-8", "replace").split("\n")


def _show_lines(
    path: str, texts: Sequence[str], findings: Sequence[Finding], first: int, last: int
) -> tuple[FileLine, ...]:
    begin = max(first, 1)
    lines = []
    for number, text in enumerate(texts[begin - 1 : last], begin):
        here = tuple(one for one in findings if one.file == path and one.line == number)
        shown = _visible(text, MOST_FOUND_WIDTH if here else MOST_WIDTH)
        lines.append(FileLine(number, highlight(shown, path), here))
    return tuple(lines)


def _visible(text: str, width: int = MOST_WIDTH) -> str:
    """What hides in a text is shown: a reviewer must see what an agent would read."""
    chars = text[:width].rstrip("\r")
    shown = "".join(char if char.isprintable() or char == "\t" else f"<U+{ord(char):04X}>" for char in chars)
    return shown + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > width else "")


async def read_live_files(services: Services, evidence: ContentEvidence) -> tuple[SkillFile, ...]:
    """The files of what is live; nothing where nothing is."""
    digest = None if evidence.live is None else evidence.live.current_digest
    if digest is None or not evidence.files:
        return ()
    files, _ = await read_stored_files(services, digest)
    return files


async def compare(evidence: ContentEvidence, before: Sequence[SkillFile]) -> tuple[Difference, ...]:
    """How the content differs from what is live."""
    if not before:
        return ()
    return await asyncio.to_thread(_differences, before, evidence.files)


def _differences(before: Sequence[SkillFile], after: Sequence[SkillFile]) -> tuple[Difference, ...]:
    old, new = ({file.path: file.data for file in files} for files in (before, after))
    changed = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    return tuple(_difference(path, old.get(path), new.get(path)) for path in changed[:MOST_FILES])


def _difference(path: str, old: bytes | None, new: bytes | None) -> Difference:
    status = "added" if old is None else "removed" if new is None else "changed"
    texts = [(data or b"")[:MOST_BYTES] for data in (old, new)]
    if any(b"\x00" in text for text in texts):
        return Difference(path, status, cut=True)
    left, right = (text.decode("utf-8", "replace").split("\n") if text else [] for text in texts)
    if len(left) + len(right) > MOST_DIFF_LINES:
        return Difference(path, status, cut=True)
    found = list(difflib.unified_diff(left, right, lineterm="", n=3))[2:]
    shown = tuple(_difference_line(line, path) for line in found[:MOST_DIFF_SHOWN])
    return Difference(path, status, shown, cut=len(found) > MOST_DIFF_SHOWN)


def _difference_line(line: str, path: str) -> DifferenceLine:
    if line.startswith("@"):
        return DifferenceLine("@", (CodePart(line),))
    return DifferenceLine(line[:1], highlight(_visible(line[1:], MOST_FOUND_WIDTH), path))

"""How a reviewer is shown the evidence about a submission: a file with the findings in it, and how the content differs
from the one that is live.

All of it is foreign, and all of it is bounded: a file is shown up to a length, a difference up to a size.
"""

import asyncio
import difflib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import re2

from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_platform.actions.review.evidence import ContentEvidence, read_stored_files
from vskill_platform.web.drawing.highlight import CodeLine, CodePart, CodeText, Highlighter, shorten

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
_HUNK = re2.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")


class ColouredFiles(msgspec.Struct, frozen=True):
    """The lines of the files that the page shows, in colours, by path."""

    submitted: dict[str, CodeText]
    live: dict[str, CodeText]


class FileLine(msgspec.Struct, frozen=True):
    """One line of a file, and the findings in it."""

    number: int
    parts: CodeLine
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
    parts: CodeLine


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


def choose(evidence: ContentEvidence, wanted: str | None) -> SkillFile | None:
    """The file that was asked for, or the one with the worst finding, or the first."""
    by_path = {file.path: file for file in evidence.files}
    worst = next((one.file for one in evidence.findings if one.file in by_path), None)
    first = evidence.files[0].path if evidence.files else None
    path = wanted if wanted in by_path else worst or first
    return None if path is None else by_path[path]


async def colour_files(
    highlighter: Highlighter, evidence: ContentEvidence, before: Sequence[SkillFile], chosen: SkillFile | None
) -> ColouredFiles:
    """What the page shows of the files, in colours: the chosen one first, then those with findings, then those that
    changed and are compared. All at once, because they share one process."""
    old, new = ({file.path: file.data for file in files} for files in (before, evidence.files))
    first = [] if chosen is None else [chosen.path]
    found = [one.file for one in evidence.findings if one.file in new]
    changed = _changed_paths(old, new) if before else []
    compared = [path for path in changed if _is_compared(old.get(path), new.get(path))]
    submitted = [path for path in dict.fromkeys((*first, *found, *compared)) if path in new]
    live = [path for path in compared if path in old]
    texts = [_text_of(new[path]) for path in submitted] + [_text_of(old[path]) for path in live]
    lines = await highlighter.highlight(list(zip((*submitted, *live), texts, strict=True)))
    return ColouredFiles(
        dict(zip(submitted, lines[: len(submitted)], strict=True)),
        dict(zip(live, lines[len(submitted) :], strict=True)),
    )


def _changed_paths(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[str]:
    """The files whose difference the page names."""
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))[:MOST_FILES]


def _is_compared(old: bytes | None, new: bytes | None) -> bool:
    """Whether two versions of a file are text, and few enough lines."""
    texts = [data[:MOST_BYTES] for data in (old, new) if data]
    lines = sum(text.count(b"\n") + 1 for text in texts)
    return lines <= MOST_DIFF_LINES and not any(b"\x00" in text for text in texts)


def show_file(file: SkillFile, findings: Sequence[Finding], lines: CodeText) -> ShownFile:
    """The file's lines with what was found in them."""
    if b"\x00" in file.data[:MOST_BYTES]:
        return ShownFile(file.path, len(file.data), is_text=False)
    shown = _show_lines(file.path, lines, findings, 1, MOST_LINES)
    cut = len(file.data) > MOST_BYTES or len(lines) > MOST_LINES
    return ShownFile(file.path, len(file.data), is_text=True, lines=shown, cut=cut)


def place_findings(
    evidence: ContentEvidence, before: Sequence[SkillFile], coloured: ColouredFiles
) -> tuple[FindingPlace, ...]:
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
        around = (one.line - AROUND, one.line + AROUND)
        shown = _show_lines(one.file, coloured.submitted[one.file], [one], *around)
        is_new = bool(before) and lines[one.line - 1] not in live.get(one.file, frozenset())
        found.append(FindingPlace(one, shown, is_new))
    return tuple(found)


def _lines_of(file: SkillFile) -> list[str] | None:
    """None: it is no text."""
    return None if b"\x00" in file.data[:MOST_BYTES] else _text_of(file.data).split("\n")


def _text_of(data: bytes) -> str:
    return data[:MOST_BYTES].decode("utf-8", "replace")


def _show_lines(
    path: str, lines: CodeText, findings: Sequence[Finding], first: int, last: int
) -> tuple[FileLine, ...]:
    begin = max(first, 1)
    shown = []
    for number, line in enumerate(lines[begin - 1 : last], begin):
        here = tuple(one for one in findings if one.file == path and one.line == number)
        shown.append(FileLine(number, shorten(line, MOST_FOUND_WIDTH if here else MOST_WIDTH), here))
    return tuple(shown)


async def read_live_files(evidence: ContentEvidence) -> tuple[SkillFile, ...]:
    digest = None if evidence.live is None else evidence.live.current_digest
    if digest is None or not evidence.files:
        return ()
    files, _ = await read_stored_files(digest)
    return files


async def compare(
    evidence: ContentEvidence, before: Sequence[SkillFile], coloured: ColouredFiles
) -> tuple[Difference, ...]:
    old, new = ({file.path: file.data for file in files} for files in (before, evidence.files))
    paths = _changed_paths(old, new) if before else ()

    def differences() -> tuple[Difference, ...]:
        return tuple(_difference(path, old.get(path), new.get(path), coloured) for path in paths)

    return await asyncio.to_thread(differences)


def _difference(path: str, old: bytes | None, new: bytes | None, coloured: ColouredFiles) -> Difference:
    status = "added" if old is None else "removed" if new is None else "changed"
    if not _is_compared(old, new):
        return Difference(path, status, cut=True)
    left, right = (_text_of(data).split("\n") if data else [] for data in (old, new))
    found = list(difflib.unified_diff(left, right, lineterm="", n=3))[2:]
    live, submitted = coloured.live.get(path, ()), coloured.submitted.get(path, ())
    shown = tuple(_difference_lines(found[:MOST_DIFF_SHOWN], live, submitted))
    return Difference(path, status, shown, cut=len(found) > MOST_DIFF_SHOWN)


def _difference_lines(found: Sequence[str], live: CodeText, submitted: CodeText) -> Iterator[DifferenceLine]:
    """Each line of a difference in the colours that it has in its file."""
    old = new = 0
    for line in found:
        sign = line[:1]
        if hunk := _HUNK.match(line) if sign == "@" else None:
            old, new = int(hunk.group(1)), int(hunk.group(2))
            yield DifferenceLine(sign, (CodePart(line),))
            continue
        parts = live[old - 1] if sign == "-" else submitted[new - 1]
        old, new = old + (sign != "+"), new + (sign != "-")
        yield DifferenceLine(sign, shorten(parts, MOST_FOUND_WIDTH))

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

MOST_BYTES = 200_000
MOST_LINES = 3_000
MOST_WIDTH = 400
#: What two versions of a file may have together for their difference to be computed.
MOST_DIFF_LINES = 4_000
MOST_DIFF_SHOWN = 1_500
MOST_FILES = 200


class FileLine(msgspec.Struct, frozen=True):
    """One line of a file, and the findings in it."""

    number: int
    text: str
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


class Difference(msgspec.Struct, frozen=True):
    """How one file differs from the live version's."""

    path: str
    #: `added`, `removed` or `changed`
    status: str
    #: Each with its first character: ` `, `+`, `-` or `@`
    lines: tuple[str, ...] = ()
    #: There is more, or it is too large to be compared.
    cut: bool = False


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
    data = file.data[:MOST_BYTES]
    if b"\x00" in data:
        return ShownFile(file.path, len(file.data), is_text=False)
    texts = data.decode("utf-8", "replace").split("\n")
    here = [one for one in findings if one.file == file.path]
    lines = [
        FileLine(number, _visible(text), tuple(one for one in here if one.line == number))
        for number, text in enumerate(texts[:MOST_LINES], start=1)
    ]
    cut = len(file.data) > MOST_BYTES or len(texts) > MOST_LINES
    return ShownFile(file.path, len(file.data), is_text=True, lines=tuple(lines), cut=cut)


def _visible(text: str) -> str:
    """What hides in a text is shown: a reviewer must see what an agent would read."""
    chars = text[:MOST_WIDTH].rstrip("\r")
    shown = "".join(char if char.isprintable() or char == "\t" else f"<U+{ord(char):04X}>" for char in chars)
    return shown + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > MOST_WIDTH else "")


async def compare(services: Services, evidence: ContentEvidence) -> tuple[Difference, ...]:
    """How the content differs from what is live; nothing where nothing is."""
    digest = None if evidence.live is None else evidence.live.current_digest
    if digest is None or not evidence.files:
        return ()
    before, _ = await read_stored_files(services, digest)
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
    shown = tuple(line[:1] + _visible(line[1:]) for line in found[:MOST_DIFF_SHOWN])
    return Difference(path, status, shown, cut=len(found) > MOST_DIFF_SHOWN)

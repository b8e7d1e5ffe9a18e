"""Copies of published skills: sketches find candidates among all of them, and an exact comparison of lines tells how
much of one is in another and what was added.

Many planted skills are somebody's honest skill with a few lines more. Rules read those lines among hundreds of honest
ones; whoever knows the original reads only the difference.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from heapq import nsmallest

import msgspec

from vskill_core.content import SkillFile
from vskill_core.identity import SKILL_FILE
from vskill_scan.memory.sketch import is_licence, reading_order

#: Bytes of text that are compared line by line.
MOST_BYTES = 1024 * 1024
#: A published skill with fewer lines is a template, and everybody's.
FEWEST_LINES = 12
#: So much of the published skill must be in the other, in percent of its lines.
LEAST_CONTAINED = 80
#: Added lines that are shown.
MOST_SHOWN = 40
LONGEST_LINE = 200

#: Every copy says these of itself.
_OWN_FIELDS = frozenset({"name", "version", "author", "owner", "homepage", "repository"})


class AddedLine(msgspec.Struct, frozen=True):
    """A line that the published skill does not have; line 0 is a whole file that is not text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


class CopyComparison(msgspec.Struct, frozen=True):
    """How one content contains another."""

    #: of the published skill's lines, in percent
    contained: int
    #: the first lines that were added
    added: tuple[AddedLine, ...]
    #: how many there are in all
    total_added: int

    @property
    def is_copy(self) -> bool:
        return self.contained >= LEAST_CONTAINED


def shared_enough(shared: int, size: int, other_size: int) -> bool:
    """Whether two sketches share so much that the contents are worth a comparison."""
    return shared * 3 >= min(size, other_size)


def compare_contents(published: Iterable[SkillFile], new: Iterable[SkillFile]) -> CopyComparison | None:
    """How much of a published content is in a new one; None where it is too short to tell."""
    before, after = _lines_of(published), _lines_of(new)
    if len(before) < FEWEST_LINES:
        return None
    added = [after[line] for line in after.keys() - before.keys()]
    contained = len(before.keys() & after.keys())
    shown = (
        AddedLine(file, line, text[:LONGEST_LINE]) for _, file, line, text in nsmallest(MOST_SHOWN, added)
    )
    return CopyComparison(contained * 100 // len(before), tuple(shown), len(added))


#: The number of a file in reading order, its path, a line of it, and the line's text.
_Place = tuple[int, str, int, str]


def _lines_of(files: Iterable[SkillFile]) -> Mapping[str, _Place]:
    """Each different line in its plain form, with its first place. A line without letters says nothing."""
    found: dict[str, _Place] = {}
    left = MOST_BYTES
    for order, file in enumerate(sorted(files, key=reading_order)):
        if is_licence(file.path):
            continue
        if b"\0" in file.data[:4096]:
            digest = blake2b(file.data, digest_size=16).hexdigest()
            found.setdefault(digest, (order, file.path, 0, f"a file of {len(file.data)} bytes"))
            continue
        text, left = file.data[: max(left, 0)].decode("utf-8", "replace"), left - len(file.data)
        manifest = file.path == SKILL_FILE
        for number, line in enumerate(text.splitlines(), 1):
            plain = " ".join(line.split())
            if manifest and plain.partition(":")[0] in _OWN_FIELDS:
                continue
            if any(map(str.isalpha, plain)) and (key := plain.lower()) not in found:
                found[key] = (order, file.path, number, plain)
    return found


def describe_copy(comparison: CopyComparison, *, withdrawn: bool) -> str:
    """A sentence for the author and the reviewer. Decisions and histories keep it, so it does not name the skill, which
    may be narrowed later."""
    of_whom = f"a published skill of another owner{' that was withdrawn' if withdrawn else ''}"
    count = comparison.total_added
    if not count:
        return f"it has {comparison.contained} % of the lines of {of_whom}, and nothing else"
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return f"it has {comparison.contained} % of the lines of {of_whom}, and {lines} added or changed"

"""Copies of published skills: a sketch finds candidates among all of them, and an exact comparison of lines tells how
much of one is in another and what was added.

Many planted skills are somebody's honest skill with a few lines more. Rules read those lines among hundreds of honest
ones; whoever knows the original reads only the difference.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from heapq import nsmallest
from zlib import crc32

import msgspec

from vskill_core.content import SkillFile
from vskill_core.identity import SKILL_FILE

#: Hashes of one sketch.
SKETCH_SIZE = 32
#: A shorter sketch is of a text that many skills have by chance.
SHORTEST_SKETCH = 16
#: Words of a text that a sketch is made of; a longer text is sketched by its beginning.
MOST_WORDS = 5000
#: Of one file.
SKETCHED_BYTES = 64 * 1024
#: Bytes of text that are compared line by line.
MOST_BYTES = 1024 * 1024
#: A published skill with fewer lines is a template, and everybody's.
FEWEST_LINES = 12
#: So much of the published skill must be in the other, in percent of its lines.
LEAST_CONTAINED = 80
#: Added lines that are shown.
MOST_SHOWN = 40
LONGEST_LINE = 200

#: Letters, digits and what is not ASCII stay; all else parts words.
_PARTING = bytes(code if code > 127 or chr(code).isalnum() or code == ord("_") else 32 for code in range(256))
_SKETCHED = (".md", ".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".php", ".lua")
_LICENCES = ("license", "licence", "copying", "notice")
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


def sketch_of(files: Iterable[SkillFile]) -> tuple[int, ...]:
    """Hashes of a few of its runs of five words, the same ones for the same text: two contents share as much of their
    sketches as of their text. Empty for a short text."""
    words = _words(files)
    runs = map(b" ".join, zip(words, words[1:], words[2:], words[3:], words[4:], strict=False))
    # Each once, in their order. The cheap hash chooses, the good one names.
    different = dict.fromkeys(runs)
    by_rank = dict(zip(map(crc32, different), different, strict=True))
    chosen = nsmallest(SKETCH_SIZE, by_rank)
    if len(chosen) < SHORTEST_SKETCH:
        return ()
    return tuple(sorted({_hash(by_rank[rank]) for rank in chosen}))


def _words(files: Iterable[SkillFile]) -> list[bytes]:
    words: list[bytes] = []
    for file in sorted(files, key=_reading_order):
        if file.path.lower().endswith(_SKETCHED) and not _is_licence(file.path):
            # Each line once: what is repeated says nothing more, and takes no place from the rest.
            lines = dict.fromkeys(file.data[:SKETCHED_BYTES].lower().splitlines())
            words += b"\n".join(lines).translate(_PARTING).split()
        if len(words) >= MOST_WORDS:
            break
    return words[:MOST_WORDS]


def _reading_order(file: SkillFile) -> tuple[bool, str]:
    return file.path != SKILL_FILE, file.path


def _hash(run: bytes) -> int:
    """48 bits tell the runs of a million skills apart."""
    return int.from_bytes(blake2b(run, digest_size=6).digest(), "big")


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
    for order, file in enumerate(sorted(files, key=_reading_order)):
        if _is_licence(file.path):
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


def _is_licence(path: str) -> bool:
    return path.rpartition("/")[2].lower().startswith(_LICENCES)


def describe_copy(comparison: CopyComparison, *, withdrawn: bool) -> str:
    """A sentence for the author and the reviewer. Decisions and histories keep it, so it does not name the skill, which
    may be narrowed later."""
    of_whom = f"a published skill of another owner{' that was withdrawn' if withdrawn else ''}"
    count = comparison.total_added
    if not count:
        return f"it has {comparison.contained} % of the lines of {of_whom}, and nothing else"
    lines = "1 line was" if count == 1 else f"{count} lines were"
    return f"it has {comparison.contained} % of the lines of {of_whom}, and {lines} added or changed"

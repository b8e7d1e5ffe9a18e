"""The sketch of a skill's text: a few hashes by which two skills are known to share most of their text."""

from collections.abc import Iterable
from hashlib import blake2b
from heapq import nsmallest
from zlib import crc32

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

#: Letters, digits and what is not ASCII stay; all else parts words.
_PARTING = bytes(code if code > 127 or chr(code).isalnum() or code == ord("_") else 32 for code in range(256))
_SKETCHED = (".md", ".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".php", ".lua")
_LICENCES = ("license", "licence", "copying", "notice")


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
    return tuple(sorted({hash48(by_rank[rank]) for rank in chosen}))


def _words(files: Iterable[SkillFile]) -> list[bytes]:
    words: list[bytes] = []
    for file in sorted(files, key=reading_order):
        if file.path.lower().endswith(_SKETCHED) and not is_licence(file.path):
            # Each line once: what is repeated says nothing more, and takes no place from the rest.
            lines = dict.fromkeys(file.data[:SKETCHED_BYTES].lower().splitlines())
            words += b"\n".join(lines).translate(_PARTING).split()
        if len(words) >= MOST_WORDS:
            break
    return words[:MOST_WORDS]


def reading_order(file: SkillFile) -> tuple[bool, str]:
    return file.path != SKILL_FILE, file.path


def is_licence(path: str) -> bool:
    return path.rpartition("/")[2].lower().startswith(_LICENCES)


def hash48(data: bytes) -> int:
    """48 bits tell the runs of a million skills apart."""
    return int.from_bytes(blake2b(data, digest_size=6).digest(), "big")

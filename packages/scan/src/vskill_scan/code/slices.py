"""Large code without the parts that cannot tell anything: what the parser is given instead of a megabyte of filler.

`worth_parsing` and the rules say where something stands that may matter. The names on those lines lead to other lines.
The rest is blanked, byte for byte, so that every offset stays what it was. Parsing takes a second for each megabyte,
and most of a large file is data.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

import re2

#: Smaller code is parsed as it is.
SLICED_BYTES = 64 * 1024
#: Parts are no smaller than this.
PART_BYTES = 1024
#: Names that are followed, how often they may stand in the code, and from part to part how far. Code that needs more is
#: parsed whole.
MOST_NAMES = 400
MOST_MENTIONS = 4000
ROUNDS = 3

#: A line that begins something at the outermost level, or a function of a class.
_BEGINS = re2.compile(
    rb"(?m)^(?:[A-Za-z_@$\"'(\[!.]|(?:  |    |\t)(?:async +)?(?:def|function|static|public|private)\b)"
)
_CONTINUES = re2.compile(rb"(?:else|elif|except|finally|case|catch|then|do|done|fi|esac|in)\b")
_NAME = re2.compile(rb"[A-Za-z_$][\w$]*")
_DEFINITION = re2.compile(
    rb"(?m)^\s*(?:export\s+)?(?:async\s+)?(?:def|function)\s+([\w$]+)|^\s*([\w$-]+)\s*\(\)\s*\{"
)
_COMMON = frozenset(
    b"and as async await break catch class console const continue def del do done echo elif else esac except export "
    b"false False fi finally for from function global if import in is json lambda len let local log new None not null "
    b"open or os pass print range require return self set static str sys then this throw true True try undefined var "
    b"while with yield".split()
)
#: What may go over several parts: a part with an odd number of one is kept.
_SPANNING = {"python": (b'"""', b"'''"), "bash": (b'"', b"'", b"`")}
_SPANNING_SCRIPT = (b"`",)
#: People do not write so many in a row, and the parser's time grows with the square of their number.
_COMMENTS = re2.compile(rb"(?:(?m)^[ \t]*#[^\n]*\n){40,}")
_NOT_NEWLINE = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


def blank_comments(source: bytes) -> bytes:
    """Python without long runs of comments."""
    written: list[bytes] = []
    last = 0
    for run in _COMMENTS.finditer(source):
        written += (source[last : run.start()], run.group().translate(_NOT_NEWLINE))
        last = run.end()
    return b"".join((*written, source[last:]))


def slice_code(source: bytes, language: str, seeds: Collection[int]) -> tuple[bytes, int]:
    """The code with only those parts that hold a seed or a name that leads to one, and the size of those parts."""
    starts = list(_starts(source))
    wanted = {bisect_right(starts, seed) - 1 for seed in seeds}
    names: set[bytes] = set()
    lines = {source.rfind(b"\n", 0, seed) + 1 for seed in seeds}
    for left in reversed(range(ROUNDS + 1)):
        found = _names_of(source, lines) - names
        if not found:
            break
        names |= found
        mentions = islice(_mentions(found).finditer(source), MOST_MENTIONS + 1) if left else ()
        places = [match.start() for match in mentions]
        if not left or len(names) > MOST_NAMES or len(places) > MOST_MENTIONS:
            # What cannot be followed is not left out: the parser is given all of it.
            return source, len(source)
        wanted.update(bisect_right(starts, place) - 1 for place in places)
        lines = {source.rfind(b"\n", 0, place) + 1 for place in places}
    written: list[bytes] = []
    size = 0
    for number, part in enumerate(_parts(source, starts)):
        kept = number in wanted or _spans(part, language)
        size += len(part) if kept else 0
        written.append(part if kept else b" " * (len(part) - 1) + b"\n")
    return b"".join(written), size


def _starts(source: bytes) -> Iterator[int]:
    last = 0
    yield 0
    for match in _BEGINS.finditer(source):
        if match.start() - last >= PART_BYTES and not _CONTINUES.match(source, match.start()):
            last = match.start()
            yield last


def _parts(source: bytes, starts: list[int]) -> Iterator[bytes]:
    for start, end in zip(starts, [*starts[1:], len(source)], strict=True):
        yield source[start:end]


def _names_of(source: bytes, lines: Iterable[int]) -> set[bytes]:
    """The names on these lines, and those of the functions that they stand in."""
    found: set[bytes] = set()
    for start in lines:
        end = source.find(b"\n", start)
        line = source[start : end if end >= 0 else len(source)][:2000]
        found.update(match.group() for match in _NAME.finditer(line))
        above = list(_DEFINITION.finditer(source, max(0, start - 4000), start))
        if above and line[:1].isspace():
            found.add(above[-1].group(1) or above[-1].group(2))
    return found - _COMMON


def _mentions(names: Iterable[bytes]) -> "re2._Regexp":
    return re2.compile(rb"\b(?:" + b"|".join(map(re2.escape, sorted(names))) + rb")\b")


def _spans(part: bytes, language: str) -> bool:
    """Whether a text, comment or here-document may begin or end in it."""
    if language == "bash" and b"<<" in part:
        return True
    if any(part.count(mark) % 2 for mark in _SPANNING.get(language, _SPANNING_SCRIPT)):
        return True
    return language not in _SPANNING and part.count(b"/*") != part.count(b"*/")

"""Foreign code for pages: split into lines and coloured by another process (`colours`), with hidden characters made
visible. A text that is too large, or takes too long, is shown without colours; nothing is ever lost or added.
"""

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec

from vskill_platform.machine.child_processes import ProcessDied, start_own
from vskill_platform.machine.process_cache import MOST_BYTES, Kept

COLOURS = "vskill_platform.web.drawing.colours"
#: Characters that one call colours; the rest stays without colours.
MOST_CHARACTERS = 400_000
#: Concurrent processes, how long a page waits for its turn, and how long for its process. The processes' own limit is
#: CPU time, which passes more slowly on a busy machine.
AT_ONCE = 2
TURN_S = 1.0
WAIT_S = 10.0
#: Memory of a piece, and at most of a character. A text at both limits, of characters and of pieces (`colours`), is
#: small enough for the cache.
PIECE_BYTES = 220
CHARACTER_BYTES = 8
MOST_KEPT_ONE = MOST_BYTES // 2
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class CodePart(msgspec.Struct, frozen=True):
    """A piece of a line as it is shown; without a kind it is plain."""

    text: str
    #: string, comment, number, keyword, name or hidden
    kind: str = ""


CodeLine = tuple[CodePart, ...]
#: A line as it is: texts and their kinds. `shorten` reveals hidden characters later, because each becomes a part of its
#: own, and most lines are never shown.
RawLine = tuple[tuple[str, str], ...]
CodeText = tuple[RawLine, ...]


class Highlighter:
    """Colours texts in separate processes, and caches the results by content."""

    def __init__(self, at_once: int = AT_ONCE, wait_s: float = WAIT_S) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._wait_s = wait_s
        #: An entry without lines: the text has no colours.
        self._kept: Kept[CodeText] = Kept(MOST_BYTES, MOST_KEPT_ONE)

    async def highlight(self, files: Sequence[tuple[str, str]]) -> list[CodeText]:
        """Each text, given with its path, as lines in pieces; one process colours all that are not cached."""
        keys = [(path.rpartition("/")[2], hashlib.sha256(text.encode()).digest()) for path, text in files]
        found = {key: self._kept.get(key) for key in keys}
        left = MOST_CHARACTERS
        wanted: dict[tuple[str, bytes], tuple[str, str]] = {}
        for key, (path, text) in zip(keys, files, strict=True):
            if found[key] is None and key not in wanted and len(text) <= left:
                left -= len(text)
                wanted[key] = (path, text)
        coloured = await self._colour(list(wanted.values())) if wanted else []
        for key, lines, (_, text) in zip(wanted, coloured, wanted.values(), strict=False):
            found[key] = made = lines or ()
            characters = len(text) if made else 0
            self._kept.put(key, made, PIECE_BYTES * (1 + sum(map(len, made))) + CHARACTER_BYTES * characters)
        return [found[key] or plain_lines(text) for key, (_, text) in zip(keys, files, strict=True)]

    async def _colour(self, files: list[tuple[str, str]]) -> list[CodeText | None]:
        """No colours if its turn does not come soon, or the process cannot be started, fails or takes too long."""
        try:
            async with asyncio.timeout(TURN_S):
                await self._turns.acquire()
        except TimeoutError:
            return []
        try:
            async with asyncio.timeout(self._wait_s):
                process = await start_own(COLOURS, quiet=True)
                try:
                    answer = await process.ask(files)
                finally:
                    await asyncio.shield(process.end())
                return msgspec.msgpack.decode(answer, type=list[CodeText | None])
        except (TimeoutError, OSError, ProcessDied, msgspec.DecodeError):
            return []
        finally:
            self._turns.release()


def plain_lines(text: str) -> CodeText:
    """The same lines without colours."""
    return tuple(((line, ""),) if line else () for line in text.split("\n"))


def shorten(line: RawLine, width: int) -> CodeLine:
    """The beginning of a line with hidden characters revealed, and an ellipsis if it is longer. The line end, which may
    include a carriage return, is left out."""
    parts: list[CodePart] = []
    for place, (piece, kind) in enumerate(line, 1):
        text = piece.removesuffix("\r") if place == len(line) else piece
        parts += _reveal(text[:width], kind)
        if len(text) > width:
            return (*parts, CodePart(ELLIPSIS))
        width -= len(text)
    return tuple(parts)


def _reveal(text: str, kind: str) -> list[CodePart]:
    """Reveal hidden characters: a reader must see what an agent would read."""
    if not text or text.replace("\t", "").isprintable():
        return [CodePart(text, kind)] if text else []
    parts: list[CodePart] = []
    start = 0
    for at, char in enumerate(text):
        if not (char.isprintable() or char == "\t"):
            if at > start:
                parts.append(CodePart(text[start:at], kind))
            parts.append(CodePart(f"<U+{ord(char):04X}>", "hidden"))
            start = at + 1
    return parts if start == len(text) else [*parts, CodePart(text[start:], kind)]

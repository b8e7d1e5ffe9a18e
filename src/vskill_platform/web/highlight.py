"""Code of strangers for pages: cut into lines and coloured by another process (`colours`), with what hides in it made
visible. A text that is too large, or takes too long, is shown without colours; nothing of it is ever lost or added.
"""

import asyncio
import hashlib
import sys
from collections.abc import Iterable, Sequence

import msgspec

from vskill_platform.child_processes import end_group
from vskill_platform.keeping import MOST_BYTES, Kept

COLOURS = "vskill_platform.web.colours"
#: Of all texts of one call, in characters; the rest stays without colours.
MOST_CHARACTERS = 400_000
#: Processes at the same time, and how long one is waited for. Their own limit is processor time, which counts less on
#: a busy machine.
AT_ONCE = 2
WAIT_S = 10.0
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class CodePart(msgspec.Struct, frozen=True):
    """A piece of a line; without a kind it is plain."""

    text: str
    #: string, comment, number, keyword, name or hidden
    kind: str = ""


CodeLine = tuple[CodePart, ...]
CodeText = tuple[CodeLine, ...]


class Highlighter:
    """Colours texts in processes of their own, and keeps what was coloured last by its content."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._kept: Kept[CodeText] = Kept(MOST_BYTES // 2)

    async def highlight(self, files: Sequence[tuple[str, str]]) -> list[CodeText]:
        """Each text, given with its path, as lines in pieces; all that is missing by one process."""
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
            found[key] = made = plain_lines(text) if lines is None else tuple(map(_parts_of, lines))
            self._kept.put(key, made, 4 * len(text))
        return [found[key] or plain_lines(text) for key, (_, text) in zip(keys, files, strict=True)]

    async def _colour(self, files: list[tuple[str, str]]) -> list[list[list[tuple[str, str]]] | None]:
        """Nothing where the process could not be started, did not end in time or broke."""
        try:
            async with asyncio.timeout(WAIT_S), self._turns:
                return await _run(msgspec.msgpack.encode(files))
        except (TimeoutError, OSError, msgspec.DecodeError):
            return []


async def _run(message: bytes) -> list[list[list[tuple[str, str]]] | None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", COLOURS),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = await process.communicate(message)
    finally:
        await asyncio.shield(end_group(process, kill=process.returncode is None))
    return msgspec.msgpack.decode(out, type=list[list[list[tuple[str, str]]] | None])


def plain_lines(text: str) -> CodeText:
    """The same lines without colours."""
    return tuple(_parts_of([(line, "")]) for line in text.split("\n"))


def _parts_of(pieces: Iterable[tuple[str, str]]) -> CodeLine:
    return tuple(part for text, kind in pieces for part in _reveal(text, kind))


def _reveal(text: str, kind: str) -> list[CodePart]:
    """What hides in a text is shown: a reader must see what an agent would read."""
    text = text.removesuffix("\r")
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


def shorten(line: CodeLine, width: int) -> CodeLine:
    """The beginning of a line, with an ellipsis where there is more."""
    parts: list[CodePart] = []
    for part in line:
        if len(part.text) > width:
            return (*parts, CodePart(part.text[:width], part.kind), CodePart(ELLIPSIS))
        width -= len(part.text)
        parts.append(part)
    return tuple(parts)

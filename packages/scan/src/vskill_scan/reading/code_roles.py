"""What code only says and does not do: its comments, and lists of what a program looks for to refuse it. Told by
tokens, in time linear in the code, and only where something matched; nothing is parsed for it."""

from bisect import bisect_right
from collections.abc import Iterator

import re2

from vskill_scan.model import CodeBlock, Layer, Piece, TextRole

#: Roles of code, which a comment or such a list in it has not.
_DOING = frozenset({TextRole.CODE, TextRole.COMMAND, TextRole.LOAD})
SPOKEN = frozenset({TextRole.COMMENT, TextRole.QUOTE})
#: Groups are comments; the first one of Python is a text that stands alone.
COMMENTS = {
    "bash": re2.compile(rb"(?ms)\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?:^|[\s;|&(])(#[^\n]*)"),
    "python": re2.compile(
        rb"(?ms)(^[ \t]*[rRuUbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''))|\"\"\".*?\"\"\"|'''.*?'''|"
        rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(#[^\n]*)"
    ),
    "javascript": re2.compile(
        rb"(?ms)\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?:^|[^:\"'`])(//[^\n]*)|"
        rb"(/\*.*?(?:\*/|\z))"
    ),
    "other": re2.compile(
        rb"(?ms)\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?:^|[^:])(//[^\n]*|#[^\n]*|-- [^\n]*)|(/\*.*?(?:\*/|\z))"
    ),
}
COMMENTS["typescript"] = COMMENTS["javascript"]
#: In other languages the signs of comments have other meanings too, so that only whole lines count.
_WHOLE_LINES = re2.compile(rb"(?m)^[ \t]*((?:#|//|--|rem\b|::)[^\n]*)$")
#: Behind these a text on a line of its own explains what follows, or is the first of a file.
_EXPLAINED = re2.compile(rb"^[ \t]*(?:(?:async[ \t]+)?def\b|class\b|\)[^\"'\n]*:$|#|from\b|import\b)")

_REFUSING = re2.compile(
    rb"(?i)pattern|signature|deny|denied|block(?:ed|list)|dangerous|malicious|suspicious|forbidden|indicator|_ioc|ioc_|"
    rb"blacklist|threat|risk|banned|unsafe|detect|regex|rules?\b|checks?\b|rule_"
)
#: A name that is given a list, a table or the result of a call.
_NAMED = re2.compile(
    rb"(?m)^[ \t]*(?:(?:export|const|let|var|local|declare|readonly|static|-\w+)[ \t]+)*([\w.]+)"
    rb"(?:[ \t]*:[^=\n]{1,60})?[ \t]*=[ \t]*(?:new[ \t]+)?[\w.]*[\[({]"
)
_BRACKET = re2.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|([\[({])|([\])}])")


def role_at(layer: Layer, piece: Piece, offset: int) -> TextRole:
    """The role of a place: the piece's, unless it is code and only says what stands there."""
    if piece.role not in _DOING:
        return piece.role
    index = bisect_right(layer.blocks, offset, key=_start) - 1
    if index < 0 or offset >= layer.blocks[index].end:
        return piece.role
    block = layer.blocks[index]
    if block.start not in layer.spoken:
        layer.spoken[block.start] = sorted(_spoken(layer, block))
    spoken = layer.spoken[block.start]
    before = bisect_right(spoken, offset, key=_first) - 1
    return spoken[before][2] if before >= 0 and offset < spoken[before][1] else piece.role


Spoken = tuple[int, int, TextRole]


def _start(block: CodeBlock) -> int:
    return block.start


def _first(spoken: Spoken) -> int:
    return spoken[0]


def _spoken(layer: Layer, block: CodeBlock) -> Iterator[Spoken]:
    if block.language in COMMENTS:
        comments = comments_of(layer, block.start, block.end, block.language)
    else:
        comments = [match.span(1) for match in _WHOLE_LINES.finditer(layer.flowing, block.start, block.end)]
    for start, end in comments:
        yield start, end, TextRole.COMMENT
    for start, end in _refused_lists(layer.flowing, block):
        yield start, end, TextRole.QUOTE


def comments_of(layer: Layer, start: int, end: int, language: str) -> list[tuple[int, int]]:
    """Where the comments of a stretch of code begin and end, told once for all that ask."""
    if start not in layer.comments:
        layer.comments[start] = list(_comments_in(layer.flowing, start, end, language))
    return layer.comments[start]


def _comments_in(text: bytes, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    pattern = COMMENTS.get(language, COMMENTS["other"])
    for token in pattern.finditer(text, start, end):
        if token.lastindex and not (
            language == "python" and token.lastindex == 1 and _is_value(text, start, token.start())
        ):
            yield token.span(token.lastindex)


def _is_value(text: bytes, start: int, offset: int) -> bool:
    """Whether a text on a line of its own continues something; otherwise it is a comment."""
    before = text[max(start, offset - 400) : offset].rstrip()
    return before != b"" and _EXPLAINED.match(before[before.rfind(b"\n") + 1 :]) is None


def _refused_lists(text: bytes, block: CodeBlock) -> Iterator[tuple[int, int]]:
    end = block.start
    for match in _NAMED.finditer(text, block.start, block.end):
        if match.start() >= end and _REFUSING.search(match.group(1)):
            start, end = match.end() - 1, _closing(text, match.end() - 1, block.end)
            if end < 0:
                # One that never ends is looked for once, or many of them would take quadratic time.
                return
            yield start, end


def _closing(text: bytes, start: int, end: int) -> int:
    """Where the bracket that opens at the start is closed; -1 for never."""
    depth = 0
    for token in _BRACKET.finditer(text, start, end):
        depth += (token.lastindex == 1) - (token.lastindex == 2)
        if not depth:
            return int(token.end())
    return -1

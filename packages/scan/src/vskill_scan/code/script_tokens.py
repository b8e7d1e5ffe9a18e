"""The words of Ruby, Perl, PHP, Lua, PowerShell, Go, VBScript and awk, for `scripts`: names, texts, brackets and
signs, each with its place.

The patterns are for the engine of the standard library, which finds a word in a tenth of the time that RE2 takes. They
take back nothing that they have read, and what was once not closed is looked for no more, so the time is linear.
"""

import re  # noqa: TID251 - these patterns take nothing back, see above; a test holds them to linear time
from collections.abc import Iterator
from functools import cache

import msgspec

#: Of one script.
MOST_TOKENS = 100_000


class ScriptToken(msgspec.Struct, frozen=True, gc=False):
    """A word of the code."""

    kind: str
    text: str
    start: int
    end: int


_KINDS = ("comment", "string", "unclosed", "end", "name", "member", "open", "close", "sign")


class _Marked(msgspec.Struct, frozen=True):
    """What stands between two marks. If it may go on to the end of the code, `opening` is its first mark."""

    pattern: bytes
    opening: bytes = b""


_C_COMMENT = _Marked(rb"/\*(?s:.*?)\*/", rb"/\*")
_COMMENTS = {
    "ruby": (_Marked(rb"#[^\n{]*+"),),
    "perl": (_Marked(rb"#[^\n]*+"),),
    "awk": (_Marked(rb"#[^\n]*+"),),
    "php": (_Marked(rb"//[^\n]*+"), _Marked(rb"#[^\n]*+"), _C_COMMENT),
    "lua": (_Marked(rb"--\[\[(?s:.*?)\]\]", rb"--\[\["), _Marked(rb"--[^\n]*+")),
    "powershell": (_Marked(rb"<#(?s:.*?)#>", rb"<#"), _Marked(rb"#[^\n]*+")),
    "go": (_Marked(rb"//[^\n]*+"), _C_COMMENT),
    "vbscript": (_Marked(rb"'[^\n]*+"), _Marked(rb"(?m:^[ \t]*+rem\b[^\n]*+)")),
}
_STRINGS = {
    "vbscript": (_Marked(rb'"(?:[^"\n]|"")*"'),),
    "powershell": (_Marked(rb'"[^"`]*+(?:`(?s:.)[^"`]*+)*+"', b'"'), _Marked(rb"'[^']*+'", b"'")),
    # A text of Go ends on its line, closed or not.
    "go": (
        _Marked(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'),
        _Marked(rb"`[^`]*+`", b"`"),
        _Marked(rb"'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?"),
    ),
}
_STRING = (
    _Marked(rb'"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+"', b'"'),
    _Marked(rb"'[^'\\]*+(?:\\(?s:.)[^'\\]*+)*+'", b"'"),
    _Marked(rb"`[^`\n]*+`"),
    _Marked(rb"%[wWqQ][\[({|][^\])}|]*+[\])}|]", rb"%[wWqQ][\[({|]"),
    _Marked(rb"\[\[[^\]\n]{0,400}+\]\]"),
)
_NAME = rb"[$@%&]{0,2}[A-Za-z_]\w*+[?!]?(?:(?:::|->|\.|:)[$]?[A-Za-z_]\w*+[?!]?)*"
_NAME_WITH_HYPHEN = rb"[$@]?[A-Za-z_]\w*+(?:-[A-Za-z]\w*+)*(?:(?:::|\.|:)[A-Za-z_]\w*+)*"
_MEMBER = rb"(?:::|->|\.|:)[A-Za-z_]\w*+[?!]?(?:(?:::|->|\.|:)[A-Za-z_]\w*+[?!]?)*"


@cache
def _pattern(language: str, unclosed: frozenset[bytes]) -> re.Pattern[bytes]:
    """`unclosed` are the opening marks behind which nothing closes."""
    comments, strings = (
        [one for one in kinds if one.opening not in unclosed or not one.opening]
        for kinds in (_COMMENTS[language], _STRINGS.get(language, _STRING))
    )
    openings = [one.opening for one in (*comments, *strings) if one.opening]
    name = _NAME_WITH_HYPHEN if language == "powershell" else _NAME
    groups = (
        b"|".join(one.pattern for one in comments) or _NEVER,
        b"|".join(one.pattern for one in strings) or _NEVER,
        b"|".join(openings) or _NEVER,
        rb"\r?\n|;",
        name,
        _MEMBER,
        rb"[(\[{]",
        rb"[)\]}]",
        rb"[^\s\w]",
    )
    return re.compile(b"|".join(b"(" + group + b")" for group in groups))


_NEVER = rb"[^\s\S]"


def script_tokens(source: bytes, language: str) -> Iterator[ScriptToken]:
    """The words in order, comments among them."""
    unclosed: frozenset[bytes] = frozenset()
    at = 0
    while at >= 0:
        pattern, start, at = _pattern(language, unclosed), at, -1
        for match in pattern.finditer(source, start):
            kind = _KINDS[(match.lastindex or 1) - 1]
            if kind == "unclosed":
                unclosed |= {_opening(language, match.group())}
                at = match.start()
                break
            yield ScriptToken(kind, match.group().decode("utf-8", "replace"), *match.span())


def _opening(language: str, written: bytes) -> bytes:
    marked = (*_COMMENTS[language], *_STRINGS.get(language, _STRING))
    return next(one.opening for one in marked if one.opening and re.fullmatch(one.opening, written))

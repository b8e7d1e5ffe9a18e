"""Colours for code, line by line: strings, comments, numbers and keywords. It is a help for the eye and no parser: the
text is foreign, so each line is read once, from left to right, and nothing is ever left out."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import re2

_KEYWORDS = {
    "py": "and as assert async await break class continue def del elif else except finally for from global if import "
    "in is lambda None nonlocal not or pass raise return True False try while with yield exec eval",
    "sh": "if then else elif fi for while do done case esac in function return export local source eval exec set sudo "
    "curl wget bash sh chmod rm",
    "js": "async await break case catch class const continue default delete else export extends finally for function "
    "if import in instanceof let new null of return static switch this throw true false try typeof var while yield "
    "require eval",
}
_FAMILIES = {
    **dict.fromkeys(("py", "pyi", "pyw"), "py"),
    **dict.fromkeys(("sh", "bash", "zsh", "fish", "env", "ps1", "rb", "pl"), "sh"),
    **dict.fromkeys(
        ("js", "mjs", "cjs", "ts", "tsx", "jsx", "java", "go", "rs", "c", "cpp", "php", "json"), "js"
    ),
    **dict.fromkeys(("md", "markdown", "mdx", "txt", "rst"), "md"),
}
_HIDDEN = r"(?P<hidden><U\+[0-9A-F]{4,6}>)"
_STRING = r"""(?P<string>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|`[^`]*`?)"""
_REST = r"(?P<number>\b\d[\w.]*)|(?P<word>[A-Za-z_$][\w$]*)"
_COMMENTS = {
    "py": r"(?P<comment>\#.*)",
    "sh": r"(?P<comment>(?:^|\s)\#.*)",
    "js": r"(?P<comment>//.*|/\*.*)",
}
_PROSE = (
    r"(?P<comment><!--.*)|(?P<keyword>^\s{0,3}(?:\#{1,6}\s.*|`{3,}.*|~{3,}.*|---$))|(?P<string>`[^`]+`)"
    r"|(?P<number>https?://[^\s)>\]]+)"
)


class CodePart(msgspec.Struct, frozen=True):
    """A piece of a line; without a kind it is plain."""

    text: str
    #: string, comment, number, keyword or hidden
    kind: str = ""


def highlight(line: str, path: str) -> tuple[CodePart, ...]:
    """The pieces of a line, which together are the line."""
    family = _FAMILIES.get(path.rpartition(".")[2].lower(), "sh")
    return tuple(_cut(line, family))


def _cut(line: str, family: str) -> Iterator[CodePart]:
    keywords = frozenset(_KEYWORDS.get(family, "").split())
    at = 0
    for match in _pattern(family).finditer(line):
        if match.start() > at:
            yield CodePart(line[at : match.start()])
        kind, text = match.lastgroup or "", match.group()
        if kind == "word":
            kind = "keyword" if text in keywords else ""
        yield CodePart(text, kind)
        at = match.end()
    if at < len(line):
        yield CodePart(line[at:])


@lru_cache(maxsize=8)
def _pattern(family: str) -> Any:
    if family == "md":
        return re2.compile(f"{_HIDDEN}|{_PROSE}")
    return re2.compile(f"{_HIDDEN}|{_COMMENTS[family]}|{_STRING}|{_REST}")

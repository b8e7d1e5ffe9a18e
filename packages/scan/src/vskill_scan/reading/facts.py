"""Archives whose password is written beside them: a fact that needs no syntax."""

from collections.abc import Iterator

import re2

from vskill_scan.model import Fact, Layer

_ARCHIVE = re2.compile(rb"(?i)\.(?:zip|rar|7z)\b|\barchive\b|\bextract\b|\bunzip\b")
_PASSWORD_SIGNS = (b"pass", b"pwd", b" -p")
_PASSWORD = re2.compile(
    rb"(?i)\b(?:pass(?:word|code|phrase|wd)?|pwd)\b(?: (?:is|to (?:extract|open|unzip)[^\n:]{0,30}|"
    rb"for [^\n:]{0,30}))?\s*"
    rb"(?:[:=`\"'*(]|is\s)[\s`\"'*(:]*[\w!@#$%^&.-]{3,40}|\b(?:unzip|7z x|"
    rb"unrar x?)\b[^\n]{0,40}\s-[pP]\s?[\w!@#$%^&-]{3,40}"
)


def locked_archives(layer: Layer) -> Iterator[Fact]:
    """A password counts if an archive is spoken of under the same heading."""
    text = layer.flowing
    lower = text.lower()
    if not any(sign in lower for sign in _PASSWORD_SIGNS):
        return
    found = list(_PASSWORD.finditer(text))
    if not found:
        return
    sections = {layer.piece_at(match.start()).section for match in _ARCHIVE.finditer(text)}
    for match in found:
        if layer.piece_at(match.start()).section in sections:
            yield Fact("password.archive", match.start(), match.end() - match.start())

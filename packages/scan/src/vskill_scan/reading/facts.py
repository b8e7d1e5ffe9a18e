"""Facts that need no syntax: addresses and what kind of place they are, what the front matter declares, and archives
whose password stands beside them.
"""

from collections.abc import Container, Iterator

import re2

from vskill_scan.model import FACTS, Fact, Layer, TextRole
from vskill_scan.places import host_kind

MOST_ADDRESSES = 200

_ADDRESS = re2.compile(
    rb"(?i)\b(?:https?|wss?|ftp)://(?:[^/\s@\"'`<>]{1,80}@)?([a-z0-9.\-_\[\]:]{2,120})(/[^\s\"'`)>\]]{0,80})?"
)
_TOOLS = re2.compile(rb"(?m)^allowed-tools:[ \t]*([^\n]*(?:\n[ \t]+-[^\n]*)*)")
_TOOL = re2.compile(rb"[A-Za-z_][\w.-]*(?:\([^)\n]{0,200}\))?")
_ARCHIVE = re2.compile(rb"(?i)\.(?:zip|rar|7z)\b|\barchive\b|\bextract\b|\bunzip\b")
_PASSWORD_SIGNS = (b"pass", b"pwd", b" -p")
_PASSWORD = re2.compile(
    rb"(?i)\b(?:pass(?:word|code|phrase|wd)?|pwd)\b(?: (?:is|to (?:extract|open|unzip)[^\n:]{0,30}|"
    rb"for [^\n:]{0,30}))?\s*"
    rb"(?:[:=`\"'*(]|is\s)[\s`\"'*(:]*[\w!@#$%^&.-]{3,40}|\b(?:unzip|7z x|"
    rb"unrar x?)\b[^\n]{0,40}\s-[pP]\s?[\w!@#$%^&-]{3,40}"
)


def facts_of(layer: Layer, asked: Container[str] = FACTS) -> Iterator[Fact]:
    """Those that a rule asks for by name."""
    text = layer.flowing
    if "url" in asked and b"://" in text:
        yield from _addresses(text)
    if "declared" in asked and text.startswith(b"---"):
        yield from _declared_facts(layer)
    if "password.archive" in asked:
        lower = text.lower()
        if any(sign in lower for sign in _PASSWORD_SIGNS):
            yield from _locked_archives(layer, text)


def _addresses(text: bytes) -> Iterator[Fact]:
    for count, match in enumerate(_ADDRESS.finditer(text)):
        if count == MOST_ADDRESSES:
            return
        host = match.group(1).decode("ascii", "replace").lower().rstrip(".:")
        path = (match.group(2) or b"").decode("utf-8", "replace")
        attributes = {"host": host, "kind": host_kind(host, path) or "ordinary"}
        yield Fact("url", match.start(), match.end() - match.start(), attributes)


def _declared_facts(layer: Layer) -> Iterator[Fact]:
    head = layer.piece_at(0)
    if head.role is not TextRole.CONFIG:
        return
    for tools in _TOOLS.finditer(layer.text, 0, head.end):
        for tool in _TOOL.finditer(layer.text, tools.start() + len(b"allowed-tools"), tools.end()):
            name = tool.group().decode("utf-8", "replace")
            yield Fact("declared", tool.start(), tool.end() - tool.start(), {"name": name})


def _locked_archives(layer: Layer, text: bytes) -> Iterator[Fact]:
    """A password counts if an archive is spoken of under the same heading."""
    found = list(_PASSWORD.finditer(text))
    if not found:
        return
    sections = {layer.piece_at(match.start()).section for match in _ARCHIVE.finditer(text)}
    for match in found:
        if layer.piece_at(match.start()).section in sections:
            yield Fact("password.archive", match.start(), match.end() - match.start())

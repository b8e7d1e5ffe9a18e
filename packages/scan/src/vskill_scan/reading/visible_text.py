"""From a file's bytes to the text that rules look at: decoded, without characters that nobody sees, and with letters
that only look Latin replaced by those they imitate.

Lines stay where they are, so a finding's line is the file's own. What was hidden is not lost: each kind is
reported as a fact, and text spelt in invisible characters becomes a layer of its own.
"""

import unicodedata
from collections.abc import Iterator

import msgspec
import re2

from vskill_scan.model import Fact

#: More places of one kind tell the reader nothing new; what stands there is read all the same.
MOST_FACTS = 10
#: First bytes that tell a binary file.
HEAD = 8192

_ZERO_WIDTH = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200d\u2060-\u2064\u3164\ufeff\uffa0"
_VARIATION = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e007f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

_BEYOND_ASCII = re2.compile("[^\\x00-\\x7f\ufffd]")
#: The flags of England, Scotland and Wales are this one with their names and an end in tag characters behind it.
_FLAG = "\U0001f3f4"
_FLAG_NAMES = frozenset({"gbeng", "gbsct", "gbwls"})

_IMITATED = dict(
    zip(
        map(ord, "аеорсухіјѕһԁԛԝѵԍАВЕКМНОРСТУХІЈЅοΟΑΒΕΖΗΙΚΜΝΡΤΥΧ"),
        "aeopcyxijshdqwvgABEKMHOPCTYXIJSoOABEZHIKMNPTYX",
        strict=True,
    )
)
_LOOKALIKE = "[" + "".join(map(chr, _IMITATED)) + "]"
_MIXED = re2.compile(f"[a-zA-Z]+{_LOOKALIKE}+[a-zA-Z]*|{_LOOKALIKE}+[a-zA-Z]+")

_ASCII_FORMS = {
    **dict.fromkeys((8216, 8217, 8219, 700, 8242), "'"),
    **dict.fromkeys((8220, 8221, 8222, 8223, 171, 187, 8243), '"'),
    **dict.fromkeys((8208, 8209, 8210, 8211, 8212, 8722), "-"),
    **dict.fromkeys((160, *range(8192, 8203), 8239, 8287, 12288), " "),
    0x2026: "...",
    0x2028: " ",
    0x2029: " ",
}


def _styled_letters() -> Iterator[tuple[int, str]]:
    """Full-width, mathematical and circled letters, each with the plain one."""
    for code in (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800), *range(0x24B6, 0x24EA)):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            yield code, plain


def _spelt(ranges: str) -> Iterator[int]:
    """The code points of a class such as `a-cx`."""
    rest = list(ranges)
    while rest:
        first = ord(rest.pop(0))
        if rest[:1] == ["-"]:
            rest.pop(0)
            yield from range(first, ord(rest.pop(0)) + 1)
        else:
            yield first


#: How text is hidden, in which characters, and how that looks. A single joiner or selector belongs to honest emoji and
#: scripts.
_HIDDEN = tuple(
    (how, frozenset(map(chr, _spelt(characters))), re2.compile(pattern))
    for how, characters, pattern in (
        ("zero-width", _ZERO_WIDTH, f"[0-9A-Za-z][{_ZERO_WIDTH}]+[0-9A-Za-z]|[{_ZERO_WIDTH}]{{4,}}"),
        ("tag", _TAGS, f"[{_TAGS}]{{2,}}"),
        ("variation", _VARIATION, f"[{_VARIATION}]{{4,}}"),
        ("bidi", _BIDI, "[\u202d\u202e\u2066-\u2068]"),
    )
)
_IMITATING = frozenset(map(chr, _IMITATED))
_ASCII = bytes(range(128))
_PLAIN: dict[int, str | None] = {
    **_ASCII_FORMS,
    **dict(_styled_letters()),
    **dict.fromkeys(_spelt(_ZERO_WIDTH + _VARIATION + _TAGS + _BIDI), None),
}
_PLAIN_AND_LATIN: dict[int, str | None] = {**_PLAIN, **_IMITATED}


class Normal(msgspec.Struct):
    """A file's text, ready to be cut into segments."""

    text: bytes
    #: as it was written, where that differs
    written: str | None = None
    facts: list[Fact] = []
    #: text spelt in invisible characters: its line, how, and what it says
    spelt: list[tuple[int, str, str]] = []


def decode_text(data: bytes, *, named_text: bool = False) -> str | None:
    """The text of a file; None for a binary one. A shell reads a script on past a zero byte, and so do we."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").replace("\0", "")
    if b"\0" in data[:HEAD] and not named_text:
        return None
    data = data.replace(b"\0", b"")
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and not _BEYOND_ASCII.search(text):
        # In an old encoding; one wrong byte in UTF-8 must not make what it hides unreadable.
        return data.decode("latin-1")
    return text


def normalise_text(written: str) -> Normal:
    written = written.replace("\r\n", "\n")
    if written.isascii():
        return Normal(written.encode())
    beyond = _beyond_ascii(written)
    mixed = not _IMITATING.isdisjoint(beyond) and _MIXED.search(written) is not None
    table = _PLAIN_AND_LATIN if mixed else _PLAIN
    normal = Normal(_plain_text(written, table, beyond).encode("utf-8", "replace"), written)
    if mixed:
        normal.facts.extend(_lookalikes(written, table))
    _uncover(written, table, normal, beyond)
    return normal


def _beyond_ascii(written: str) -> set[str]:
    """The characters of a text that are not ASCII. What is deleted byte by byte need not be looked at by character."""
    return set(written.encode("utf-8", "replace").translate(None, _ASCII).decode())


def _plain_text(written: str, table: dict[int, str | None], beyond: set[str]) -> str:
    """The same as `translate`, several times as fast where few of the characters occur."""
    for char in beyond:
        plain = table.get(ord(char), char)
        if plain != char:
            written = written.replace(char, plain or "")
    return written


def written_column(written: str, line: int, column: int) -> int:
    """Where in the file's own line a byte of the normal text stands; both count from 1."""
    lines = written.split("\n", line)
    source = lines[line - 1] if line <= len(lines) else ""
    seen = 1
    for number, char in enumerate(source, start=1):
        if seen >= column and char.translate(_PLAIN):
            return number
        seen += len(char.translate(_PLAIN).encode("utf-8", "replace"))
    return len(source) + 1


def _lookalikes(written: str, table: dict[int, str | None]) -> Iterator[Fact]:
    for count, match in enumerate(_MIXED.finditer(written)):
        if count == MOST_FACTS:
            return
        word = match.group().translate(table)
        yield Fact("homoglyph", _offset(written, match.start(), table), len(word), {"name": word})


def _uncover(written: str, table: dict[int, str | None], normal: Normal, beyond: set[str]) -> None:
    for how, characters, pattern in _HIDDEN:
        if characters.isdisjoint(beyond):
            continue
        line, at = 1, 0
        for count, match in enumerate(pattern.finditer(written)):
            if how == "tag" and _is_flag(written, match.start(), match.group()):
                continue
            if count < MOST_FACTS:
                offset = _offset(written, match.start(), table)
                normal.facts.append(Fact("hidden", offset, 0, {"how": how}))
            if said := _spelt_text(how, match.group()):
                line, at = line + written.count("\n", at, match.start()), match.start()
                normal.spelt.append((line, how, said))


def _is_flag(written: str, at: int, tags: str) -> bool:
    behind_flag = written[max(0, at - 1) : at] == _FLAG and tags.endswith("\U000e007f")
    return behind_flag and _spelt_text("tag", tags) in _FLAG_NAMES


def _offset(written: str, index: int, table: dict[int, str | None]) -> int:
    return len(written[:index].translate(table).encode("utf-8", "replace"))


def _spelt_text(how: str, characters: str) -> str:
    """What a run of invisible characters says, if it says anything."""
    if how == "tag":
        return "".join(chr(ord(char) - 0xE0000) for char in characters if 0xE0020 <= ord(char) < 0xE007F)
    if how == "variation":
        return _readable(bytes(_variation_byte(ord(char)) for char in characters))
    kinds = sorted(set(characters) & set("\u200b\u200c\u200d\u2060"))
    if how == "zero-width" and len(kinds) == 2:
        bits = "".join("01"[kinds.index(char)] for char in characters if char in kinds)
        whole = bits[: len(bits) // 8 * 8]
        return _readable(int(whole, 2).to_bytes(len(whole) // 8, "big")) if whole else ""
    return ""


def _variation_byte(code: int) -> int:
    return code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16


def _readable(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    shown = sum(char.isprintable() or char in "\n\t" for char in text.replace("\ufffd", "\0"))
    return text if text and shown >= 0.9 * len(text) else ""

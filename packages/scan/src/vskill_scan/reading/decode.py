"""Text inside text: finds what is written in base64, hexadecimal, escapes or character codes, and reads it, layer
by layer under limits. What comes out is scanned like anything else, as text that a reader cannot see.

Only what decodes to text counts; keys, digests and pictures do not.
"""

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator

import msgspec
import re2

#: How often what was decoded may hold something encoded again.
DEEPEST = 3
MOST_LAYERS = 400
MOST_BYTES = 2 * 1024 * 1024
#: Enough to tell text from anything else.
SAMPLE = 96
#: Enough to tell most of what is neither.
GLANCE = 8

_BASE64 = re2.compile(rb"[A-Za-z0-9+/_-]{20,}(?:\s*\n\s*[A-Za-z0-9+/_-]{20,})*={0,2}")
_PRINTABLE = bytes(range(32, 127)) + b"\n\t\r"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
#: The first letters of what is printable or compressed.
_BEGINNING = frozenset(b"CDHIJKLMNOPQRSTUVWXYZabcdef")
_COMPRESSED = (b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01", b"x^")


class Decoded(msgspec.Struct, frozen=True):
    """What stood encoded at one place."""

    #: in the text that was searched first
    offset: int
    length: int
    #: the ways, outermost first
    how: tuple[str, ...]
    text: bytes


class TooMuchEncoded(Exception):
    """A text holds more encoded text than is decoded."""


def decoded_layers(text: bytes) -> Iterator[Decoded]:
    """Everything readable that the text holds encoded, however deep; TooMuchEncoded at a limit."""
    room = MOST_BYTES
    waiting = [Decoded(0, 0, (), text)]
    found = 0
    while waiting:
        outer = waiting.pop(0)
        for offset, length, how, inner in _candidates(outer.text):
            if found == MOST_LAYERS or room <= 0:
                raise TooMuchEncoded
            place = (outer.offset, outer.length) if outer.how else (offset, length)
            layer = Decoded(*place, (*outer.how, how), inner[:room])
            yield layer
            found += 1
            room -= len(inner)
            if len(layer.how) < DEEPEST:
                waiting.append(layer)


def _candidates(text: bytes) -> Iterator[tuple[int, int, str, bytes]]:
    long_words = False
    for match in _BASE64.finditer(text):
        long_words = True
        start, end = match.span()
        inner = _from_base64(text[start:end])
        if inner is not None:
            yield start, end - start, "base64", inner
    for how, sign, pattern, read in _WAYS:
        # What is long enough to be hexadecimal also looks like base64.
        if not _may_hold(text, sign) or (not sign and not long_words):
            continue
        for match in pattern.finditer(text):
            inner = read(match.group())
            if inner is not None:
                yield match.start(), match.end() - match.start(), how, inner


def _may_hold(text: bytes, sign: bytes) -> bool:
    """Its first byte alone is found much faster, and is rare."""
    return sign[:1] in text and sign in text


def is_text(data: bytes) -> bool:
    return len(data) >= 4 and not data.translate(None, _PRINTABLE)


def _text(data: bytes) -> bytes | None:
    """The bytes themselves if they are text, or the text that they are the compressed form of."""
    if data.startswith(_COMPRESSED):
        data = _inflate(data)
    if is_text(data[:SAMPLE]) and is_text(data):
        return data
    return None


def _inflate(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=47).decompress(data, MOST_BYTES)
    except zlib.error:
        return b""


def _from_base64(written: bytes) -> bytes | None:
    compact = b"".join(written.split()).rstrip(b"=").translate(_URL_SAFE)
    for spelling in (compact, compact[::-1]):
        # Most are paths and names, as their first bytes show.
        if spelling[0] not in _BEGINNING or not _begins_well(spelling[:GLANCE]):
            continue
        head = _base64_bytes(spelling[: SAMPLE // 3 * 4])
        if head.startswith(_COMPRESSED) or is_text(head):
            return _text(_base64_bytes(spelling))
    return None


def _begins_well(first: bytes) -> bool:
    """Whether the first characters, a multiple of four, may begin text or something compressed."""
    data = binascii.a2b_base64(first)
    return not data.translate(None, _PRINTABLE) or data.startswith(_COMPRESSED)


def _base64_bytes(compact: bytes) -> bytes:
    whole = compact[: len(compact) // 4 * 4 + (len(compact) % 4 if len(compact) % 4 > 1 else 0)]
    try:
        return base64.b64decode(whole + b"=" * (-len(whole) % 4))
    except binascii.Error:
        return b""


def _from_hex(written: bytes) -> bytes | None:
    return _text(bytes.fromhex(written[: len(written) // 2 * 2].decode("ascii")))


def _from_escapes(written: bytes) -> bytes | None:
    r"""`\x41`, `\u0041` and `%41`: the two last digits of each."""
    digits = written.replace(b"\\u00", b"").replace(b"\\x", b"").replace(b"%", b"")
    return _from_hex(digits)


def _from_codes(written: bytes) -> bytes | None:
    numbers = [int(number) for number in written.replace(b",", b" ").split()]
    return _text(bytes(numbers)) if all(number < 256 for number in numbers) else None


def _from_octal(written: bytes) -> bytes | None:
    return _text(bytes(int(number, 8) & 255 for number in written.split(b"\\")[1:]))


def _from_entities(written: bytes) -> bytes | None:
    numbers = [part.lstrip(b"&#") for part in written.split(b";") if part]
    codes = [int(one[1:], 16) if one[:1] in b"xX" else int(one) for one in numbers]
    return _text(bytes(codes)) if all(code < 256 for code in codes) else None


Reader = Callable[[bytes], bytes | None]
#: Name, a cheap sign that it may be there, what it looks like, how it is read.
_WAYS: tuple[tuple[str, bytes, re2._Regexp, Reader], ...] = (
    ("hex", b"", re2.compile(rb"(?:[0-9a-fA-F]{2}){12,}"), _from_hex),
    ("escapes", b"\\x", re2.compile(rb"(?:\\x[0-9a-fA-F]{2}){6,}"), _from_escapes),
    ("escapes", b"\\u00", re2.compile(rb"(?:\\u00[0-9a-fA-F]{2}){6,}"), _from_escapes),
    ("octal", b"\\1", re2.compile(rb"(?:\\[01][0-7]{2}){6,}"), _from_octal),
    ("percent", b"%", re2.compile(rb"(?:%[0-9a-fA-F]{2}){8,}"), _from_escapes),
    ("codes", b",", re2.compile(rb"(?:[0-9]{1,3}\s*,\s*){11,}[0-9]{1,3}"), _from_codes),
    ("entities", b"&#", re2.compile(rb"(?:&#(?:[xX][0-9a-fA-F]{2,4}|[0-9]{2,4});){4,}"), _from_entities),
)

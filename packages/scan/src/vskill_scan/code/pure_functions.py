"""The functions, methods and operators that a pure expression of a skill's code may use, as tables: texts put together
from parts, character codes, and the decoders that hide a text (base64, hexadecimal, rot13, exclusive or, compression,
reversal). `fold` evaluates expressions by them and by no other names.

None of them reads or changes anything outside its arguments, and each refuses what would grow beyond the limits.
"""

import base64
import binascii
import bz2
import codecs
import html
import lzma
import operator
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

#: The size of one value, in bytes or members.
LARGEST = 64 * 1024
#: Of a decompressor whose data may ask for gigabytes.
MOST_MEMORY = 32 * 1024 * 1024


class Unfoldable(Exception):
    """The expression is not pure, not known, or too large."""


#: What can go wrong in the functions of the tables when they are given nonsense.
WRONG = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, binascii.Error, zlib.error, lzma.LZMAError,
    OSError, EOFError, UnicodeError, RecursionError,
)  # fmt: skip


def _inflate(data: bytes) -> bytes:
    for bits in (47, -15):
        try:
            return zlib.decompressobj(wbits=bits).decompress(data, LARGEST)
        except zlib.error:
            continue
    raise Unfoldable


def _unpack_with(opener: Callable[[], Any]) -> Callable[[bytes], bytes]:
    def unpack(data: bytes) -> bytes:
        return bytes(opener().decompress(data, LARGEST))

    return unpack


def _decode(data: bytes | str, encoding: str = "utf-8", _: str = "strict") -> Any:
    """A text from bytes, or by one of the codecs that only hide."""
    plain = encoding.lower().replace("-", "").replace("_", "")
    if plain in {"rot13", "rot"}:
        return codecs.decode(data if isinstance(data, str) else data.decode(), "rot13")
    if plain in {"hex", "base64", "hexcodec", "base64codec"}:
        raw = data.encode() if isinstance(data, str) else data
        return binascii.unhexlify(raw) if plain.startswith("hex") else base64.b64decode(raw)
    if isinstance(data, str) or plain not in {"utf8", "ascii", "latin1", "iso88591", "utf16le"}:
        raise Unfoldable
    return data.decode(plain.replace("utf8", "utf-8").replace("utf16le", "utf-16-le"))


def _encode(text: str, encoding: str = "utf-8", _: str = "strict") -> bytes:
    """In one of the encodings that take time linear in the text."""
    plain = encoding.lower().replace("-", "").replace("_", "")
    if plain not in {"utf8", "ascii", "latin1"}:
        raise Unfoldable
    return text.encode("latin-1" if plain == "latin1" else "utf-8")


def _from_base64(text: str | bytes, *_: object) -> bytes:
    raw = text.encode() if isinstance(text, str) else bytes(text)
    return base64.b64decode(raw + b"=" * (-len(raw) % 4))


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > LARGEST:
        raise Unfoldable
    return numbers


def _cycle(value: Any) -> list[Any]:
    members = list(bounded(value))
    return (members * (LARGEST // max(1, len(members)) + 1))[:LARGEST]


def plain_text(value: Any) -> str:
    """A text, or a number as text. A list could hold the same large text many times."""
    if not isinstance(value, str | int | float):
        raise Unfoldable
    return str(value)


def join_texts(parts: Iterable[str], between: str = "") -> str:
    """The parts joined, unless that is too large."""
    known = list(parts)
    if sum(map(len, known)) + len(between) * len(known) > LARGEST:
        raise Unfoldable
    return between.join(known)


def _character(*codes: int) -> str:
    return "".join(chr(int(code)) for code in codes)


#: Functions by the end of their full names.
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "chr": _character,
    "ord": ord,
    "int": int,
    "str": lambda value="", *how: _decode(value, *how) if how else plain_text(value),
    "bytes": lambda value=b"", *how: (
        _encode(value, *how) if isinstance(value, str) else bytes(bounded(value))
    ),
    "bytearray": lambda value=b"": bytes(bounded(value)),
    "len": len,
    "range": _range,
    "list": lambda value=(): list(bounded(value)),
    "tuple": lambda value=(): list(bounded(value)),
    "reversed": lambda value: list(bounded(value))[::-1],
    "zip": lambda *lists: list(bounded(zip(*lists, strict=False))),
    "enumerate": lambda value: list(enumerate(bounded(value))),
    "sum": lambda value: sum(bounded(value)),
    "cycle": _cycle,
    "itertools.cycle": _cycle,
    "operator.xor": operator.xor,
    "base64.b64decode": _from_base64,
    "base64.urlsafe_b64decode": lambda text: base64.urlsafe_b64decode(_padded(text)),
    "base64.standard_b64decode": _from_base64,
    "base64.decodebytes": _from_base64,
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": base64.a85decode,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_base64": _from_base64,
    "binascii.a2b_hex": binascii.unhexlify,
    "codecs.decode": _decode,
    "zlib.decompress": lambda data, *_: _inflate(data),
    "gzip.decompress": _inflate,
    "bz2.decompress": _unpack_with(bz2.BZ2Decompressor),
    "lzma.decompress": _unpack_with(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)),
    "bytes.fromhex": bytes.fromhex,
    "bytearray.fromhex": bytes.fromhex,
    "str.maketrans": str.maketrans,
    "html.unescape": html.unescape,
    "urllib.parse.unquote": urllib.parse.unquote,
    "unquote": urllib.parse.unquote,
    "os.path.expanduser": lambda path: path,
    "os.path.join": lambda *parts: join_texts(parts, "/"),
    "atob": lambda text: _from_base64(text).decode("latin-1"),
    "String.fromCharCode": _character,
    "String.fromCodePoint": _character,
    "decodeURIComponent": urllib.parse.unquote,
    "unescape": urllib.parse.unquote,
    "parseInt": lambda text, radix=10: int(str(text), int(radix)),
    "Number": float,
    "Buffer.from": lambda value, how="utf8": _buffer(value, how),
    "String": lambda value: value,
}
#: Those that hide a text; what they give back is worth a look by itself.
HIDING = frozenset(
    [
        "chr",
        "base64.b64decode",
        "base64.urlsafe_b64decode",
        "base64.standard_b64decode",
        "base64.decodebytes",
        "base64.b32decode",
        "base64.b16decode",
        "base64.b85decode",
        "base64.a85decode",
        "binascii.unhexlify",
        "binascii.a2b_base64",
        "binascii.a2b_hex",
        "codecs.decode",
        "zlib.decompress",
        "gzip.decompress",
        "bz2.decompress",
        "lzma.decompress",
        "bytes.fromhex",
        "bytearray.fromhex",
        "atob",
        "String.fromCharCode",
        "String.fromCodePoint",
        "Buffer.from",
    ]
)


def _padded(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return raw + b"=" * (-len(raw) % 4)


def _buffer(value: Any, how: str) -> bytes:
    if isinstance(value, list):
        return bytes(value)
    if how in {"base64", "base64url"}:
        return base64.b64decode(_padded(value.translate(str.maketrans("-_", "+/"))))
    return bytes.fromhex(value) if how == "hex" else value.encode()


def _replace(text: Any, old: Any, new: Any, *_: object) -> Any:
    if not old or len(text) + text.count(old) * len(new) > LARGEST:
        raise Unfoldable
    return text.replace(old, new)


def _text_of(value: Any, how: Any = "utf8") -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1" if how in {"latin1", "binary"} else "utf-8")
    return plain_text(value)


def _join(value: Any, given: Any = "") -> Any:
    """Python's texts join a list, JavaScript's lists are joined by a text."""
    if isinstance(value, list):
        return join_texts(map(plain_text, value), plain_text(given))
    if isinstance(value, bytes):
        return join_texts((one.decode("latin-1") for one in given), value.decode("latin-1")).encode("latin-1")
    return join_texts(given, value)


def _split(value: Any, *given: Any) -> list[Any]:
    return list(value) if given[:1] == ("",) else value.split(*given)


METHODS: Mapping[str, Callable[..., Any]] = {
    "join": _join,
    "replace": _replace,
    "replaceAll": _replace,
    "split": _split,
    **{name: operator.methodcaller(name) for name in ("lower", "upper", "swapcase", "copy")},
    **{
        name: lambda value, *given, _name=name: getattr(value, _name)(*given)
        for name in ("strip", "lstrip", "rstrip")
    },
    "encode": _encode,
    "decode": _decode,
    "translate": lambda value, table: value.translate(table),
    "trim": operator.methodcaller("strip"),
    "toLowerCase": operator.methodcaller("lower"),
    "toString": _text_of,
    "reverse": lambda value: value[::-1],
    "hex": operator.methodcaller("hex"),
    "charCodeAt": lambda value, at=0: ord(value[int(at)]),
    "charAt": lambda value, at=0: value[int(at)],
    "slice": lambda value, *bounds: value[slice(*(map(int, bounds)))],
    "substring": lambda value, *bounds: value[slice(*(map(int, bounds)))],
    "concat": lambda value, *others: concat_values(value, others),
    "format": lambda value, *given: format_text(value, given),
    "joinpath": lambda value, *parts: join_texts((value, *parts), "/"),
    "removeprefix": lambda value, given: value.removeprefix(given),
    "removesuffix": lambda value, given: value.removesuffix(given),
}


def concat_values(value: Any, others: tuple[Any, ...]) -> Any:
    for other in others:
        value = value + other
        if len(value) > LARGEST:
            raise Unfoldable
    return value


def format_text(value: str, given: tuple[Any, ...]) -> str:
    """Only `{}`: other fields can ask for attributes."""
    if value.count("{}") != len(given) or value.count("{") != len(given):
        raise Unfoldable
    parts = value.split("{}")
    return join_texts(part + plain_text(one) for part, one in zip(parts, (*given, ""), strict=True))


def bounded(value: Iterable[Any]) -> Any:
    if isinstance(value, int):
        raise Unfoldable
    members = list(islice(value, LARGEST + 1))
    if len(members) > LARGEST:
        raise Unfoldable
    return bytes(members) if isinstance(value, bytes) else members


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "^": operator.xor,
    "&": operator.and_,
    "|": operator.or_,
    "//": operator.floordiv,
    ">>": operator.rshift,
}

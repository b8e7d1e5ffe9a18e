"""What a pure expression of Python or JavaScript comes to: texts put together from parts, character codes, slices, and
the decoders that hide a text (base64, hexadecimal, rot13, exclusive or, compression, reversal).

Nothing of the skill is run. Trees are evaluated by the tables below and no other names, with a limit on steps and on
bytes; whatever is not in the tables, or grows beyond the limits, has no value.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tree_sitter import Node

#: Of one program: nodes that are evaluated, and the size of one value in bytes or members.
MOST_STEPS = 20_000
LARGEST = 64 * 1024
DEEPEST = 60
#: Of a decompressor whose data may ask for gigabytes.
MOST_MEMORY = 32 * 1024 * 1024


class Unfoldable(Exception):
    """The expression is not pure, not known, or too large."""


#: What can go wrong in the functions of the tables when they are given nonsense.
_WRONG = (
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
    members = list(_bounded(value))
    return (members * (LARGEST // max(1, len(members)) + 1))[:LARGEST]


def _plain(value: Any) -> str:
    """A text, or a number as text. A list could hold the same large text many times."""
    if not isinstance(value, str | int | float):
        raise Unfoldable
    return str(value)


def _together(parts: Iterable[str], between: str = "") -> str:
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
    "str": lambda value="", *how: _decode(value, *how) if how else _plain(value),
    "bytes": lambda value=b"", *how: (
        _encode(value, *how) if isinstance(value, str) else bytes(_bounded(value))
    ),
    "bytearray": lambda value=b"": bytes(_bounded(value)),
    "len": len,
    "range": _range,
    "list": lambda value=(): list(_bounded(value)),
    "tuple": lambda value=(): list(_bounded(value)),
    "reversed": lambda value: list(_bounded(value))[::-1],
    "zip": lambda *lists: list(_bounded(zip(*lists, strict=False))),
    "enumerate": lambda value: list(enumerate(_bounded(value))),
    "sum": lambda value: sum(_bounded(value)),
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
    "os.path.join": lambda *parts: _together(parts, "/"),
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
    return _plain(value)


def _join(value: Any, given: Any = "") -> Any:
    """Python's texts join a list, JavaScript's lists are joined by a text."""
    if isinstance(value, list):
        return _together(map(_plain, value), _plain(given))
    if isinstance(value, bytes):
        return _together((one.decode("latin-1") for one in given), value.decode("latin-1")).encode("latin-1")
    return _together(given, value)


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
    "concat": lambda value, *others: _concat(value, others),
    "format": lambda value, *given: _format(value, given),
    "joinpath": lambda value, *parts: _together((value, *parts), "/"),
    "removeprefix": lambda value, given: value.removeprefix(given),
    "removesuffix": lambda value, given: value.removesuffix(given),
}


def _concat(value: Any, others: tuple[Any, ...]) -> Any:
    for other in others:
        value = value + other
        if len(value) > LARGEST:
            raise Unfoldable
    return value


def _format(value: str, given: tuple[Any, ...]) -> str:
    """Only `{}`: other fields can ask for attributes."""
    if value.count("{}") != len(given) or value.count("{") != len(given):
        raise Unfoldable
    parts = value.split("{}")
    return _together(part + _plain(one) for part, one in zip(parts, (*given, ""), strict=True))


def _bounded(value: Iterable[Any]) -> Any:
    if isinstance(value, int):
        raise Unfoldable
    members = list(islice(value, LARGEST + 1))
    if len(members) > LARGEST:
        raise Unfoldable
    return bytes(members) if isinstance(value, bytes) else members


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "^": operator.xor,
    "&": operator.and_,
    "|": operator.or_,
    "//": operator.floordiv,
    ">>": operator.rshift,
}

Names = dict[str, Any]


class Fold:
    """Evaluates the expressions of one program."""

    def __init__(self, source: bytes, resolve: Callable[[Node], str]) -> None:
        """`resolve` gives the full name of a function's node, "" for one without."""
        self._source = source
        self._resolve = resolve
        self._steps = MOST_STEPS
        #: names by the expression that was assigned to them last
        self._assigned: dict[str, Node] = {}
        self._functions: dict[str, tuple[list[str], Node]] = {}
        self._busy: set[str] = set()
        self.hid = False

    def bind(self, name: str, expression: Node) -> None:
        self._assigned[name] = expression

    def knows(self, function: str) -> bool:
        """Whether the program defines this function."""
        return function in self._functions

    def forget(self, name: str) -> None:
        self._assigned.pop(name, None)

    def define(self, name: str, parameters: list[str], body: Node) -> None:
        self._functions[name] = (parameters, body)

    def text(self, node: Node) -> str | None:
        """The text that an expression comes to; None where that cannot be told. `hid` says whether a decoder was
        used."""
        self.hid = False
        try:
            value = self._value(node, {}, 0)
        except (Unfoldable, *_WRONG):
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def _value(self, node: Node, names: Names, depth: int) -> Any:
        self._steps -= 1
        if self._steps < 0 or depth > DEEPEST:
            raise Unfoldable
        handler = _NODES.get(node.type)
        if handler is None:
            raise Unfoldable
        value = handler(self, node, names, depth + 1)
        if isinstance(value, str | bytes | list) and len(value) > LARGEST:
            raise Unfoldable
        return value

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _field(self, node: Node, name: str) -> Node:
        child = node.child_by_field_name(name)
        if child is None:
            raise Unfoldable
        return child

    # Names and literals.

    def on_name(self, node: Node, names: Names, depth: int) -> Any:
        name = self._text(node)
        if name in names:
            return names[name]
        if name not in self._assigned or name in self._busy:
            raise Unfoldable
        self._busy.add(name)
        try:
            return self._value(self._assigned[name], {}, depth)
        finally:
            self._busy.discard(name)

    def on_number(self, node: Node, _: Names, __: int) -> Any:
        return int(self._text(node).replace("_", ""), 0)

    def on_string(self, node: Node, names: Names, depth: int) -> Any:
        written = self._text(node)
        quote = min((at for at in (written.find(mark) for mark in "\"'`") if at >= 0), default=-1)
        if quote < 0 or quote > 2:
            raise Unfoldable
        prefix = written[:quote].lower()
        if any(child.type in {"interpolation", "template_substitution"} for child in node.named_children):
            return self._interpolated(node, names, depth)
        size = 3 if written[quote : quote + 3] in {'"""', "'''"} else 1
        body = written[quote + size : len(written) - size]
        if "\\" in body and "r" not in prefix:
            body = codecs.escape_decode(body.encode())[0].decode("latin-1" if "b" in prefix else "utf-8")
        return body.encode("latin-1") if "b" in prefix else body

    def _interpolated(self, node: Node, names: Names, depth: int) -> str:
        parts: list[str] = []
        for child in node.named_children:
            if child.type in {"interpolation", "template_substitution"}:
                parts.append(_plain(self._value(child.named_children[0], names, depth)))
            elif child.type in {"string_content", "string_fragment"}:
                parts.append(self._text(child))
        return _together(parts)

    def on_strings(self, node: Node, names: Names, depth: int) -> Any:
        return _concat(
            self._value(node.named_children[0], names, depth),
            tuple(self._all(node.named_children[1:], names, depth)),
        )

    def on_list(self, node: Node, names: Names, depth: int) -> list[Any]:
        return list(self._all(node.named_children, names, depth))

    def _all(self, nodes: Iterable[Node], names: Names, depth: int) -> Iterator[Any]:
        for node in nodes:
            if node.type == "comment":
                continue
            if node.type in {"spread_element", "list_splat"}:
                yield from self._value(node.named_children[0], names, depth)
            else:
                yield self._value(node, names, depth)

    def on_inner(self, node: Node, names: Names, depth: int) -> Any:
        return self._value(node.named_children[0], names, depth)

    # Operators.

    def on_binary(self, node: Node, names: Names, depth: int) -> Any:
        left = self._value(self._field(node, "left"), names, depth)
        right = self._value(self._field(node, "right"), names, depth)
        sign = self._field(node, "operator").type
        if sign == "*":
            return self._repeat(left, right)
        if sign == "%":
            return (
                left % right if isinstance(left, int) else _format(left.replace("%s", "{}"), _as_tuple(right))
            )
        if sign == "/":
            return f"{_plain(left)}/{_plain(right)}"
        if sign not in _OPERATORS:
            raise Unfoldable
        if sign == "+" and isinstance(left, str) is not isinstance(right, str):
            return _plain(left) + _plain(right)
        return _OPERATORS[sign](left, right)

    def _repeat(self, left: Any, right: Any) -> Any:
        size = (
            len(left) * right
            if hasattr(left, "__len__")
            else len(right) * left
            if hasattr(right, "__len__")
            else 0
        )
        if size > LARGEST:
            raise Unfoldable
        return left * right

    def on_unary(self, node: Node, names: Names, depth: int) -> Any:
        value = self._value(node.named_children[-1], names, depth)
        return (
            -value
            if self._text(node).startswith("-")
            else ~value
            if self._text(node).startswith("~")
            else value
        )

    def on_subscript(self, node: Node, names: Names, depth: int) -> Any:
        base, index = node.named_children[0], node.named_children[-1]
        value = self._value(base, names, depth)
        if index.type != "slice":
            return value[self._value(index, names, depth)]
        bounds: list[int | None] = [None, None, None]
        at = 0
        for child in index.children:
            if child.type == ":":
                at += 1
            else:
                bounds[at] = self._value(child, names, depth)
        if bounds[2] is not None and bounds[2] < 0:
            self.hid = True
        return value[slice(*bounds)]

    # Calls.

    def on_call(self, node: Node, names: Names, depth: int) -> Any:
        function = node.child_by_field_name("function") or self._field(node, "constructor")
        arguments = self._field(node, "arguments")
        if arguments.type == "generator_expression":
            given: list[Node] = [arguments]
        else:
            given = [one for one in arguments.named_children if one.type != "comment"]
        name = self._resolve(function)
        if name in {"map", "filter"} and len(given) == 2:
            return self._mapped(given[0], self._value(given[1], names, depth), names, depth)
        if name in FUNCTIONS:
            self.hid = self.hid or name in HIDING
            return FUNCTIONS[name](*self._all(given, names, depth))
        if name in self._functions:
            return self._run(*self._functions[name], list(self._all(given, names, depth)), depth)
        if function.type not in {"attribute", "member_expression"}:
            raise Unfoldable
        return self._method(function, given, names, depth)

    def _method(self, function: Node, given: list[Node], names: Names, depth: int) -> Any:
        base = self._field(function, "object")
        last = self._text(function.child_by_field_name("attribute") or self._field(function, "property"))
        value = self._value(base, names, depth)
        if last == "map" and len(given) == 1:
            return self._mapped(given[0], value, names, depth)
        if last not in METHODS:
            raise Unfoldable
        self.hid = self.hid or last == "reverse" or (last == "decode" and len(given) > 0)
        return METHODS[last](value, *self._all(given, names, depth))

    def _mapped(self, function: Node, members: Any, names: Names, depth: int) -> list[Any]:
        return [self._apply(function, [one], names, depth) for one in _bounded(members)]

    def _apply(self, function: Node, given: list[Any], names: Names, depth: int) -> Any:
        if function.type in {"lambda", "arrow_function"}:
            parameters = function.child_by_field_name("parameters") or self._field(function, "parameter")
            wanted = [self._text(one) for one in parameters.named_children] or [self._text(parameters)]
            body = self._field(function, "body")
            return self._value(body, {**names, **dict(zip(wanted, given, strict=False))}, depth)
        name = self._resolve(function)
        if name in FUNCTIONS:
            self.hid = self.hid or name in HIDING
            return FUNCTIONS[name](*given)
        if name in self._functions:
            return self._run(*self._functions[name], given, depth)
        raise Unfoldable

    # Comprehensions and functions of the program's own.

    def on_comprehension(self, node: Node, names: Names, depth: int) -> list[Any]:
        body = self._field(node, "body")
        clauses = [one for one in node.named_children if one.type == "for_in_clause"]
        if len(clauses) != 1 or any(one.type == "if_clause" for one in node.named_children):
            raise Unfoldable
        target, source = self._field(clauses[0], "left"), self._field(clauses[0], "right")
        values = []
        for member in _bounded(self._value(source, names, depth)):
            inner = {**names, **self._bound(target, member)}
            values.append(self._value(body, inner, depth))
        return values

    def _bound(self, target: Node, value: Any) -> Names:
        if target.type == "identifier":
            return {self._text(target): value}
        return {self._text(one): part for one, part in zip(target.named_children, value, strict=False)}

    def _run(self, parameters: list[str], body: Node, given: list[Any], depth: int) -> Any:
        """A function: assignments, loops over lists, `append`, and what it returns."""
        names: Names = dict(zip(parameters, given, strict=False))
        if body.type not in {"block", "statement_block"}:
            return self._value(body, names, depth + 1)
        returned = self._statements(body.named_children, names, depth + 1)
        if returned is None:
            raise Unfoldable
        return returned[0]

    def _statements(self, nodes: Iterable[Node], names: Names, depth: int) -> list[Any] | None:
        """What a `return` among the statements gives back, in a list; None where there is none."""
        for node in nodes:
            if node.type == "return_statement":
                return [self._value(node.named_children[0], names, depth)]
            if node.type == "for_statement":
                members = _bounded(self._value(self._field(node, "right"), names, depth))
                for member in members:
                    names.update(self._bound(self._field(node, "left"), member))
                    if self._statements(self._field(node, "body").named_children, names, depth) is not None:
                        raise Unfoldable
            elif node.type == "expression_statement" and node.named_children:
                self._effect(node.named_children[0], names, depth)
            elif node.type != "comment":
                raise Unfoldable
        return None

    def _effect(self, node: Node, names: Names, depth: int) -> None:
        if node.type == "string":
            return
        if node.type in {"assignment", "augmented_assignment"}:
            name = self._text(self._field(node, "left"))
            value = self._value(self._field(node, "right"), names, depth)
            if node.type == "augmented_assignment":
                sign = self._text(self._field(node, "operator")).removesuffix("=")
                value = _OPERATORS[sign](names[name], value)
            names[name] = value
            return
        function = self._field(node, "function")
        if function.type != "attribute" or self._text(self._field(function, "attribute")) != "append":
            raise Unfoldable
        target = names[self._text(self._field(function, "object"))]
        target.append(self._value(self._field(node, "arguments").named_children[0], names, depth))
        if len(target) > LARGEST:
            raise Unfoldable


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


_NODES: dict[str, Callable[[Fold, Node, Names, int], Any]] = {
    "identifier": Fold.on_name,
    "integer": Fold.on_number,
    "number": Fold.on_number,
    "string": Fold.on_string,
    "template_string": Fold.on_string,
    "concatenated_string": Fold.on_strings,
    **dict.fromkeys(("list", "tuple", "array", "expression_list"), Fold.on_list),
    **dict.fromkeys(("parenthesized_expression", "await_expression"), Fold.on_inner),
    **dict.fromkeys(("binary_operator", "binary_expression"), Fold.on_binary),
    **dict.fromkeys(("unary_operator", "unary_expression"), Fold.on_unary),
    **dict.fromkeys(("subscript", "subscript_expression"), Fold.on_subscript),
    **dict.fromkeys(("call", "call_expression"), Fold.on_call),
    **dict.fromkeys(("list_comprehension", "generator_expression"), Fold.on_comprehension),
}

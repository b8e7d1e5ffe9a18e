"""Text inside files that are none: the strings and calls of pickles, the strings of compiled Python, the text of PDF
documents, and a picture that begins like a script. Nothing is loaded, rendered or run, and each is read under limits.
"""

import pickletools
import zlib
from collections.abc import Iterator
from itertools import islice

import msgspec
import re2

from vskill_scan.model import CodeBlock, Fact, Layer, Piece, TextRole

#: Of one file that is read for text, what it may unpack to, and the steps of a pickle.
MOST_BYTES = 4 * 1024 * 1024
MOST_TEXT = 512 * 1024
MOST_STEPS = 100_000
MOST_STREAMS = 300
LONGEST_STRING = 4000
LONGEST_NAME = 200

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".p")
_COMPILED = (".pyc", ".pyo")
_STRINGS = re2.compile(rb"[\x20-\x7e\t]{6,}")
_HEAD = re2.compile(rb"[\x20-\x7e\t]{16,1000}")
_STREAM = re2.compile(rb"stream\r?\n")
_SHOWN = re2.compile(
    rb"\(((?:[^()\\]|\\(?s:.))*)\)\s*(?:Tj|'|\")|\[((?:[^\]\\]|\\(?s:.))*)\]\s*TJ|<([0-9a-fA-F\s]+)>\s*Tj"
)
_PART = re2.compile(rb"\(((?:[^()\\]|\\(?s:.))*)\)")
_ESCAPE = re2.compile(rb"\\([()\\])")

#: What a pickle calls to do more than build data, by module; an empty set means everything in it.
_CALLS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "os",
            "posix",
            "nt",
            "subprocess",
            "runpy",
            "pty",
            "commands",
            "socket",
            "ctypes",
            "shutil",
            "webbrowser",
            "importlib",
            "code",
            "timeit",
            "urllib.request",
            "requests",
            "httpx",
            "sys",
        ),
        frozenset(),
    ),
    **dict.fromkeys(
        ("builtins", "__builtin__"), frozenset({"eval", "exec", "compile", "__import__", "getattr", "open"})
    ),
}


class ReadBinary(msgspec.Struct, frozen=True):
    """The text of a binary file."""

    text: bytes
    role: TextRole
    facts: tuple[Fact, ...] = ()


def read_binary(path: str, data: bytes, *, referenced: bool) -> ReadBinary | None:
    """What can be read in a file; None where there is nothing, or the file is text."""
    name = path.lower()
    if len(data) > MOST_BYTES:
        return None
    if name.endswith(_PICKLES) or data[:2] in {b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"}:
        return _read_pickle(data)
    if name.endswith(_COMPILED):
        return ReadBinary(b"\n".join(_strings(data)), TextRole.HIDDEN)
    if data.startswith(b"%PDF"):
        return ReadBinary(_pdf_text(data), TextRole.FOLLOW if referenced else TextRole.QUOTE)
    if data.startswith(_PICTURES) and (head := _HEAD.match(data)) is not None:
        # A picture whose first line is a command to a shell.
        return ReadBinary(head.group(), TextRole.HIDDEN)
    return None


#: Those whose mark is text.
_PICTURES = (b"GIF8", b"RIFF", b"BM", b"wOFF", b"wOF2", b"OTTO", b"ID3")


def binary_layer(path: str, read: ReadBinary) -> Layer:
    """The layer of such a text: it has no lines of its own, so what is found stands at the first."""
    piece = Piece(0, len(read.text), read.role, 0)
    block = CodeBlock(0, len(read.text), "bash")
    roles = frozenset({read.role})
    return Layer(path, read.text, [piece], [block], list(read.facts), read.text, decoded=True, roles=roles)


def _strings(data: bytes) -> Iterator[bytes]:
    size = 0
    for match in _STRINGS.finditer(data):
        size += len(match.group())
        if size > MOST_TEXT:
            return
        yield match.group()[:LONGEST_STRING]


class _Pickle:
    """The steps of a pickle, read and not taken."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[str] = []
        #: the last texts that were put on the stack, and those that can be put there again
        self._stack: list[str] = []
        self._kept: dict[int, str] = {}

    def step(self, name: str, argument: object) -> None:
        if name in {"GLOBAL", "INST"}:
            self.calls.append(str(argument).replace(" ", "."))
        elif name == "STACK_GLOBAL":
            self.calls.append(".".join(self._stack[-2:]))
        elif name in _KEEPING and self._stack:
            self._kept[argument if isinstance(argument, int) else len(self._kept)] = self._stack[-1]
        elif name in _GETTING and isinstance(argument, int):
            self._push(self._kept.get(argument, ""))
        elif isinstance(argument, str):
            self.texts.append(argument[:LONGEST_STRING])
            self._push(argument[:LONGEST_NAME])
        elif name not in {"FRAME", "PROTO"}:
            self._push("")

    def _push(self, text: str) -> None:
        self._stack = [*self._stack[-3:], text]


_KEEPING = frozenset({"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"})
_GETTING = frozenset({"BINGET", "LONG_BINGET", "GET"})


def _read_pickle(data: bytes) -> ReadBinary | None:
    """The texts of a pickle, and what it calls."""
    pickle = _Pickle()
    try:
        for step, argument, _ in islice(pickletools.genops(data), MOST_STEPS):
            pickle.step(step.name, argument)
    except (ValueError, IndexError, KeyError, UnicodeError, OverflowError):
        if not pickle.calls:
            return None
    facts = tuple(Fact("pickle.calls", 0, 0, {"name": name}) for name in pickle.calls if _is_call(name))
    text = "\n".join(pickle.texts)[:MOST_TEXT].encode("utf-8", "replace")
    return ReadBinary(text, TextRole.HIDDEN, facts)


def _is_call(name: str) -> bool:
    module, _, function = name.rpartition(".")
    known = _CALLS.get(module, _CALLS.get(module.partition(".")[0]))
    return known is not None and (not known or function in known)


def _pdf_text(data: bytes) -> bytes:
    """What the pages show, as far as it is plain or deflated; fonts with tables of their own are not resolved."""
    shown: list[bytes] = []
    room = MOST_TEXT
    for number, match in enumerate(_STREAM.finditer(data)):
        if number == MOST_STREAMS or room <= 0:
            break
        end = data.find(b"endstream", match.end())
        content = _inflate(data[match.end() : end if end >= 0 else len(data)], room)
        for one in _SHOWN.finditer(content):
            text = _pdf_string(one.group(1), one.group(2), one.group(3))
            shown.append(text)
            room -= len(text)
    return b" ".join(shown)


def _pdf_string(plain: bytes | None, parts: bytes | None, digits: bytes | None) -> bytes:
    if digits is not None:
        compact = b"".join(digits.split())
        return bytes.fromhex(compact[: len(compact) // 2 * 2].decode()).replace(b"\0", b"")
    if parts is not None:
        plain = b"".join(one.group(1) for one in _PART.finditer(parts))
    return bytes(_ESCAPE.sub(rb"\1", plain or b""))


def _inflate(data: bytes, room: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, room)
    except zlib.error:
        return data[:room]

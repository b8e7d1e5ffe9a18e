"""Shell text cut into simple commands without a parser: quotes, comments and documents inside it are blanked, the
rest is split where a command ends. One pass, in time linear in the text.

The capability card needs the programs of every command in every skill; `flows` cuts what is telling into statements.
"""

from collections.abc import Container, Iterator

import msgspec
import re2

from vskill_scan.words import words

#: Of one command; more only names more files.
MOST_WORDS = 24
#: Of one command, in bytes.
LONGEST = 2_000

_TOKEN = re2.compile(
    rb"(?ms)\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?:^|[\s;|&(])#[^\n]*|<<-?[ \t]*\\?[\"']?[A-Za-z_]\w*[\"']?"
)
_CASE_LABEL = re2.compile(rb"(?m)^[ \t]*[^\s()=$;]+(?:[ \t]*\|[ \t]*[^\s()=$;]+)*\)")
_LIST = re2.compile(rb"[A-Za-z_]\w*\+?=\([^)]*\)|\(\([^)]*\)\)")
_FUNCTION = re2.compile(
    rb"(?m)^[ \t]*(?:function[ \t]+)?([A-Za-z_][\w-]*)[ \t]*\(\)|^[ \t]*function[ \t]+([\w-]+)"
)
_PROMPT = re2.compile(rb"(?m)^[ \t]*[$%>][ \t]+\S")
#: What may hide an end of a command.
_SPECIAL = (b"'", b'"', b"#", b"\\", b"<<")
#: Of `translate`: what ends a command ends its line.
ENDS = bytes.maketrans(b";|&()`", b"\n\n\n\n\n\n")
_DIGITS = b"0123456789"
#: What stands before a command and is none.
_BEFORE = frozenset(word.encode() for word in words("then do else elif if while until ! { time function"))
#: What begins a segment that holds no command.
_NO_COMMAND = frozenset(word.encode() for word in words("for case select in esac fi done } ]] [[ [ test"))
_STARTERS = frozenset(
    word.encode() for word in words("sudo doas env nohup timeout nice xargs command exec setsid")
)
_PROMPTS = frozenset((b"$", b"%", b">"))
_PROMPT_SIGNS = (b"$ ", b"% ", b"> ")
_REDIRECTS = frozenset((b"<", b">"))
#: `command -v` asks whether there is a program.
_QUESTIONS = ([b"-v"], [b"-V"])


class CommandLine(msgspec.Struct, frozen=True, gc=False):
    """A simple command."""

    #: of its first word, in the text that was given
    offset: int
    #: as written, without quotes, the program first
    words: tuple[str, ...]
    #: what stands behind it: `|` where its output goes into another command, `(` where one is put into it
    ends: str = ""
    #: programs that only start this one
    starters: tuple[str, ...] = ()


def defined_functions(text: bytes) -> frozenset[str]:
    """Names that the script gives to functions of its own."""
    if b"()" not in text and b"function" not in text:
        return frozenset()
    return frozenset((one.group(1) or one.group(2)).decode() for one in _FUNCTION.finditer(text))


def command_lines(
    text: bytes, plain: bytes | None = None, ignored: Container[bytes] = ()
) -> Iterator[CommandLine]:
    """The simple commands of a shell text, in order, without those of `ignored` programs.

    `plain` is what `blank_quoted` made of the text, if somebody did.
    """
    plain = blank_quoted(text) if plain is None else plain
    prompted = any(sign in text for sign in _PROMPT_SIGNS) and _PROMPT.search(text) is not None
    at = 0
    begins_line = True
    for segment in plain.translate(ENDS).split(b"\n"):
        start, at = at, at + len(segment) + 1
        given = segment.split(None, MOST_WORDS)
        has_prompt = begins_line and given[:1] and given[0] in _PROMPTS
        if given and (has_prompt or not (prompted and begins_line)):
            first, starters = _first_word(given, 1 if has_prompt else 0)
            if first < len(given) and given[first] not in ignored:
                offset = _offset_of(plain, given[: first + 1], start)
                written = text[offset : min(at - 1, offset + LONGEST)].replace(b'"', b"").replace(b"'", b"")
                words = written.decode("utf-8", "replace").split()
                if words:
                    ends = plain[at - 1 : at].decode("ascii", "replace")
                    yield CommandLine(offset, tuple(words[:MOST_WORDS]), ends, starters)
        begins_line = plain[at - 1 : at] == b"\n"


def _first_word(given: list[bytes], at: int) -> tuple[int, tuple[str, ...]]:
    """Which word from `at` on is the program, and what starts it; past the end where there is none."""
    starters: tuple[str, ...] = ()
    while at < len(given):
        word = given[at]
        if word in _NO_COMMAND or (word == b"command" and given[at + 1 : at + 2] in _QUESTIONS):
            return len(given), ()
        if word in _BEFORE or _is_assignment(word):
            at += 1
        elif word.lstrip(_DIGITS)[:1] in _REDIRECTS:
            at += 1 if word.strip(b"0123456789<>&") else 2
        elif word in _STARTERS and at + 1 < len(given):
            starters += (word.decode(),)
            at += 1
            while at < len(given) and (given[at].startswith(b"-") or given[at].isdigit()):
                at += 1
        else:
            break
    return at, starters


def _offset_of(plain: bytes, given: list[bytes], at: int) -> int:
    """Where the last of these words begins."""
    for word in given[:-1]:
        at = plain.find(word, at) + len(word)
    return plain.find(given[-1], at)


def _is_assignment(word: bytes) -> bool:
    name, equals, _ = word.partition(b"=")
    return bool(equals) and name.rstrip(b"+").replace(b"_", b"a").isalnum()


def blank_quoted(text: bytes) -> bytes:
    """The text at the same length, with letters instead of what stands in quotes, and spaces instead of comments,
    documents, labels of `case`, lists, sums and line breaks that are escaped."""
    plain = bytearray(text)
    if any(special in text for special in _SPECIAL):
        _blank_tokens(text, plain)
    for pattern, sign in ((_CASE_LABEL, b";;"), (_LIST, b"=("), (_LIST, b"((")):
        if sign in plain:
            for one in pattern.finditer(bytes(plain)):
                _fill(plain, one.start(), one.end(), b" ")
    return bytes(plain)


def _blank_tokens(text: bytes, plain: bytearray) -> None:
    skip = 0
    # A document that never ends is looked for once, or many of them would take quadratic time.
    documents = True
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        if start < skip:
            continue
        first = text[start]
        if first == ord("'"):
            _fill(plain, start, end, b"x")
        elif first == ord('"'):
            _blank_double(plain, start, end)
        elif first == ord("\\"):
            plain[start:end] = b"  " if text[start + 1 : end] == b"\n" else b"xx"[: end - start]
        elif first == ord("<"):
            mark = text[start:end].strip(b"<- \t\\\"'")
            skip = _blank_document(text, plain, end, mark) if documents else -1
            documents = skip >= 0
        else:
            _fill(plain, start + (first != ord("#")), end, b" ")


def _blank_double(plain: bytearray, start: int, end: int) -> None:
    """What is run inside the quotes stays; the quotes end no word."""
    if plain.find(b"$(", start, end) >= 0 or plain.find(b"`", start, end) >= 0:
        plain[start : start + 1] = plain[end - 1 : end] = b"x"
    else:
        _fill(plain, start, end, b"x")


def _fill(plain: bytearray, start: int, end: int, letter: bytes) -> None:
    plain[start:end] = letter * (end - start)


def _blank_document(text: bytes, plain: bytearray, start: int, mark: bytes) -> int:
    """Blank the lines from the next one to the one with the mark; where reading goes on, or -1 without an end."""
    at = body = text.find(b"\n", start)
    if body < 0:
        return -1
    while (found := text.find(mark, at)) >= 0:
        line = text.rfind(b"\n", 0, found) + 1
        stop = text.find(b"\n", found)
        stop = len(text) if stop < 0 else stop
        if line > body and text[line:stop].strip() == mark:
            _fill(plain, body + 1, stop, b" ")
            return stop
        at = stop
    return -1

"""Shell text cut into simple commands without a parser: quotes, comments and documents inside it are blanked, the
rest is split where a command ends. One pass, in time linear in the text.

The capability card needs the programs of every command in every skill; `flows` cuts what is telling into statements.
"""

from bisect import bisect_right
from collections.abc import Container, Iterator

import msgspec
import re2

from vskill_scan.words import words

#: Of one command; more only names more files.
MOST_WORDS = 24
#: Of one command, in bytes.
LONGEST = 2_000

#: What may hide the end of a command: outside of quotes, in an output that stands in double quotes, and in these.
_PIECE = (
    rb"(?ms)\\.|\$?\(\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)\)|\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\$`]|\\.)*\"|"
    rb"\"|(?:^|[\s;|&(])#[^\n]*|<<<|<<-?[ \t]*(?:\\?[^\s;|&<>()'\"\\$`]|'[^'\n]*'|\"[^\"\n]*\")+"
)
_TOKEN, _NESTED = re2.compile(_PIECE), re2.compile(_PIECE + rb"|[()`]")
_QUOTED = re2.compile(rb"(?s)\\.|\$[({]|[\"`}]")
_HIDING = (b"\\", b"'", b'"', b"$")
_QUOTES, _CLOSERS = (b'"', b"}"), {b"$(": b")", b"${": b"}", b"`": b"`"}
_OUTPUT = re2.compile(rb"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")
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
        # What follows an output at once belongs to the word in which that stands.
        is_rest = plain[start - 1 : start] == b")" and not segment[:1].isspace()
        if given and not is_rest and (has_prompt or not (prompted and begins_line)):
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
    return Quotes(text).plain


class Quotes:
    """What of a shell text is quoted, a comment or a document. What runs inside double quotes is none of these."""

    def __init__(self, text: bytes) -> None:
        #: where each quoted or escaped part of a word, and each comment, begins and ends
        self.pieces: list[tuple[int, int]] = []
        #: from the line break before each document to the end of its last line
        self.documents: list[tuple[int, int]] = []
        self._text, self._blanked = text, bytearray(text)
        #: of documents that begin with the next line, as written
        self._marks: list[bytes] = []
        #: what closes all that is open, and where that begins
        self._open: list[tuple[bytes, int]] = []
        #: whether double quotes close
        self._closes = True
        self._lines: dict[bytes, list[int]] = {}
        at = 0 if any(special in text for special in _SPECIAL) else len(text)
        while at < len(text):
            at = self._read(at)
        self.plain = bytes(self._blanked)
        for pattern, sign in ((_CASE_LABEL, b";;"), (_LIST, b"=("), (_LIST, b"((")):
            if sign in self.plain:
                for one in pattern.finditer(bytes(self._blanked)):
                    self._fill(one.start(), one.end(), b" ")
                self.plain = bytes(self._blanked)

    def _read(self, at: int) -> int:
        """Read until quotes open or close, or documents begin; where to go on."""
        text, top = self._text, self._open[-1][0] if self._open else b""
        is_quoted = top in _QUOTES
        for token in (_QUOTED if is_quoted else _NESTED if top else _TOKEN).finditer(text, at):
            start, end = token.span()
            if self._marks and not is_quoted and (line_end := text.find(b"\n", at, start + 1)) >= 0:
                return self._skip_documents(line_end)
            if is_quoted:
                self._fill(at, start, b"x")
            at = end
            if (self._quoted if is_quoted else self._bare)(text[start:end], start, end):
                return at
        if self._marks and (line_end := text.find(b"\n", at)) >= 0:
            return self._skip_documents(line_end)
        if self._open:
            # These quotes never close, so they are none.
            self._closes, at = False, self._open[0][1]
            self._blanked[at:] = text[at:]
            self._open.clear()
            self.pieces = [one for one in self.pieces if one[0] < at]
            self.documents = [one for one in self.documents if one[0] < at]
            return at + 1
        return len(text)

    def _bare(self, sign: bytes, start: int, end: int) -> bool:
        """Outside double quotes; whether something else is read from here on."""
        if sign in (b")", b"`"):
            is_closed = self._open[-1][0] == sign
            if is_closed:
                self._open.pop()
            return is_closed
        if sign == b'"':
            if self._closes:
                self._fill(start, end, b"x")
                self._open.append((sign, start))
            return self._closes
        if sign.startswith(b"<<"):
            if sign != b"<<<":
                self._marks.append(sign[2:])
        elif sign == b"(":
            self._open.append((b")", start))
        elif not sign.startswith((b"((", b"$((")):
            self._piece(sign, start, end)
        return False

    def _piece(self, sign: bytes, start: int, end: int) -> None:
        is_comment = sign[:1] not in _HIDING and b"#" in sign[:2]
        if is_comment and sign[:1] != b"#":
            # What stands before it.
            if sign[:1] == b"(" and self._open:
                self._open.append((b")", start))
            start += 1
        self._fill(start, end, b" " if is_comment or sign == b"\\\n" else b"x")
        self.pieces.append((start, end))

    def _quoted(self, sign: bytes, start: int, end: int) -> bool:
        """Inside double quotes; whether something else is read from here on."""
        top = self._open[-1][0]
        if sign in (b"$(", b"${", b"`"):
            self._open.append((_CLOSERS[sign], start))
            return True
        self._fill(start, end, b"x")
        if sign == top:
            self._open.pop()
        elif sign == b'"':
            self._open.append((sign, start))
        return sign in (top, b'"')

    def _skip_documents(self, at: int) -> int:
        """Blank those that begin behind this line break; where reading goes on."""
        if not self._lines:
            line_at = 0
            for line in self._text.split(b"\n"):
                # A mark stands alone on its line; where all is indented it is, too.
                for key in (line, b"\n" + line.strip()):
                    self._lines.setdefault(key, []).append(line_at)
                line_at += len(line) + 1
        for sign in self._marks:
            mark = sign.lstrip(b"- \t").translate(None, b"".join(_HIDING))
            ends = [self._lines.get(key, ()) for key in (mark, b"\n" + mark)][sign.startswith(b"-") :]
            begins = next(
                (lines[first] for lines in ends if (first := bisect_right(lines, at)) < len(lines)), -1
            )
            if begins >= 0:
                end = self._text.find(b"\n", begins) % (len(self._text) + 1)
                self.documents.append((at, end))
                at += 1
                for one in (
                    () if any(one in sign for one in _HIDING) else _OUTPUT.finditer(self._text, at, end)
                ):
                    self._fill(at, one.start(), b" ")
                    at = one.end()
                self._fill(at, end, b" ")
                at = end
        self._marks.clear()
        return at

    def _fill(self, start: int, end: int, letter: bytes) -> None:
        self._blanked[start:end] = letter * (end - start)

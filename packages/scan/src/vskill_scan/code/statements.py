"""Code cut into statements, each with what is known of its names put in their places: what a pattern sees is what runs.
Nothing is parsed, and the time is linear in the code."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import re2

from vskill_scan.results.command_lines import Quotes

#: Of what is known of one name, and of what is put for names in one statement, in characters.
LONGEST_TEXT, MOST_INSERTED = 1000, 32 * 1024
#: Brackets that are open so long never close.
LONGEST_STATEMENT = 32 * 1024

#: What a format inserts may hold its quotes.
_FORMAT = "|".join(
    rf"[fF][rR]?{quote}(?:[^{quote}\\\n{{]|\\.|\{{(?:[^{{}}\n]|\{{[^{{}}\n]*\}})*\}})+{quote}"
    for quote in "\"'"
)
_STRING = r"\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
#: What ends a statement, and what may hide that. What a bracket holds and closes at once is one.
_PYTHON_TOKEN = re2.compile(
    rf"(?s){_FORMAT}|{_STRING}|#[^\n]*|\\.|[(\[{{][^()\[\]{{}}\"'#\\;\n]*[)\]}}]|[()\[\]{{}};\n]".encode()
)
_OPEN, _CLOSED, _ENDS = b"([{", b")]}", b";\n"
#: With these a line begins something new, whatever is still open above it.
_BEGINNINGS = (b"def ", b"class ", b"import ", b"from ", b"async ")
#: What is written between words, and where that changes nothing.
_BLANK = re2.compile(rf"(?s){_FORMAT}|{_STRING}|(?:\s|\\\r?\n|#[^\n]*)+".encode())
_UNEVEN = re2.compile(r"[#\n\\\t\f\v\r]|\s[.,(\[)\]]|[.(\[]\s")
#: Texts with their prefixes, names with their members, and comments.
_PYTHON_PIECE = re2.compile(
    rf"(?s){_FORMAT}|[rbfuRBFU]{{0,2}}(?:{_STRING})|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|#[^\n]*".encode()
)
_NAME = re2.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_GIVES = re2.compile(r"(?:^|[^=<>!:])=(?:[^=]|$)|:=")
_INSERTED = re2.compile(r"\{([^{}]{0,200})\}")
_JOINED = re2.compile(r"\"([^\"]{0,3})\"\.join\(\s*[\[(]+((?:\s*\"[^\"]*\"\s*,?)+)[\])]+")
_HOME = re2.compile(
    r"(?:pathlib\.)?Path\.home\(\)|os\.path\.expanduser\(\s*[\"']~/?[\"']\s*\)|"
    r"os\.(?:environ(?:\.get)?[\[(]|getenv\()\s*[\"'](?:HOME|USERPROFILE)[\"']\s*[\])]"
)
_IMPORTING = re2.compile(r"(?:^|:\s*)((?:import|from)\s.*)")
#: A name in brackets that is called.
_ALONE = re2.compile(r"(^|[^\w)\]\"'])\(([\w.]+)\)\(")
#: Modules and members that are named by a text.
_IMPORTED = re2.compile(r"(?:__import__|\bimport_module|importlib\.\w+)\(\s*\"([\w.]+)\"\s*\)")
_MEMBER = re2.compile(r"\bgetattr\(\s*([\w.]+)\s*,\s*\"(\w+)\"\s*\)")
_BUILTIN = re2.compile(r"\b(?:__builtins__|builtins)\.")
_APART = str.maketrans(",()", "   ")
#: Where a pipe goes on, a line does not end.
_SHELL_END = re2.compile(rb"\|\||\|\s*\n|[\n;()]|&&")
#: What needs no quotes, and what backslashes stand for.
_PLAIN_WORD = re2.compile(rb"^[\w./~:@%+,-]*$")
_CODED = re2.compile(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|([0-3][0-7]{2}))")
#: What stands before a command and is none: the label of a case, words of the shell, settings, and what starts it.
_LABEL = re2.compile(r"^[^\s()=$;&`\"']+\)\s+")
_BEFORE_COMMAND = re2.compile(
    r"(?m)(^|[;&|(`])\s*(?:(?:(?:\w+\s*\(\)|function\s+\w+(?:\s*\(\))?)\s*\{|[{!]|then|do|else|elif|if|while|until|"
    r"time|coproc|command(?:\s+-p)?|\w+=(?:\"[^\"`$]*\"|'[^']*'|\"?\$\w+\"?|[^\s\"'`$(]*)|(?:\S*/)?(?:sudo|doas|nohup|env|"
    r"exec|builtin|nice|timeout|stdbuf|setsid|xargs|caffeinate)(?:\s+(?:-[ugI]\s+\S+|-\S+|\d+\w*|\w+=\S*))*)\s+)+"
    r"([^\s|&;<>()#][^\s=]*(?:\s|$))"
)
_EXPANSION = re2.compile(r"\$\{?[!#]?(\w+)(?:(:?-)([^{}]*)|[^\w{}\s\"'/$][^{}\s]*)?\}|\$(\w+)")
#: How signs end before the `=` of what is changed in its place.
_ADDED = tuple("+-*/%|&^@")
#: Begins the tags of what holds a key of a service.
KEY = "key:"


class Value(NamedTuple):
    """What is known of a name."""

    tags: frozenset[str] = frozenset()
    #: the text that it stands for; "" where that is not known
    text: str = ""

    @property
    def plain(self) -> str:
        """What is put for it: the name of what holds a service's key stays."""
        return "" if any(tag.startswith(KEY) for tag in self.tags) else self.text


class Used(NamedTuple):
    """A name in a statement."""

    name: str
    #: what of it is asked for: `.read()`, `[`
    rest: str


class CodeStatement(NamedTuple):
    """One statement."""

    text: str
    used: list[Used]
    #: names that it gives something to
    given: list[str]
    #: what these are given
    value: str
    #: of the shell, without what stands in quotes
    plain: str


Known = Mapping[str, Value]


def python_statements(code: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the statements begin and end; of a compound one its head."""
    at, depth = start, 0
    for token in _PYTHON_TOKEN.finditer(code, start, end):
        first, stop = token.span()
        if stop - first > 1:
            continue
        sign = code[first]
        if sign in _OPEN:
            depth += 1
        elif sign in _CLOSED:
            depth = max(0, depth - 1)
        elif sign in _ENDS:
            if depth and (stop - at > LONGEST_STATEMENT or code.startswith(_BEGINNINGS, stop)):
                depth = 0
            if not depth:
                yield at, first
                at = stop
    if at < end:
        yield at, end


def compact(written: str) -> str:
    """A statement of Python on one line, without comments and without blanks that change nothing."""
    if not _UNEVEN.search(written):
        return written
    out, at = list[str](), 0
    # One byte a character, so that places in the one are places in the other.
    for piece in _BLANK.finditer(written.encode("ascii", "replace")):
        start, end = piece.span()
        if written[start] in "\"'fF":
            continue
        out.append(written[at:start])
        before, at = written[start - 1 : start] if start else "", end
        if before and before not in ".([" and written[end : end + 1] not in ".([)],":
            out.append(" ")
    return "".join((*out, written[at:]))


class ShellStatement(NamedTuple):
    """A pipeline."""

    start: int
    end: int
    #: with its words as the shell reads them, without comments and documents
    written: bytes
    #: as written, but for their last lines
    documents: Sequence[bytes] = ()


def shell_statements(code: bytes, start: int, end: int) -> Iterator[ShellStatement]:
    """The pipelines, each with the documents in it."""
    text = code[start:end]
    quotes = Quotes(text)
    documents = dict(quotes.documents)
    pieces = iter(sorted((*quotes.pieces, *quotes.documents)))
    begins, ends = next(pieces, (len(text), 0))
    for first, stop in _pipelines(quotes.plain, documents):
        at, out, inside = first, [], []
        while begins < stop:
            out.append(text[at:begins])
            if begins in documents:
                inside.append(text[begins + 1 : ends].rpartition(b"\n")[0])
            else:
                out.append(_unquoted(text, begins, ends))
            at = ends
            begins, ends = next(pieces, (len(text), 0))
        yield ShellStatement(start + first, start + stop, b"".join((*out, text[at:stop])), inside)


def _pipelines(plain: bytes, documents: Container[int]) -> Iterator[tuple[int, int]]:
    depth, at = 0, 0
    for token in _SHELL_END.finditer(plain):
        sign, stop = token.group(), token.start()
        if sign == b"(":
            depth += 1
        elif sign == b")":
            depth = max(0, depth - 1)
        elif (
            sign in (b"\n", b";", b"&&", b"||")
            and stop not in documents
            and (not depth or stop - at > LONGEST_STATEMENT)
        ):
            yield at, stop
            depth, at = 0, token.end()
    yield at, len(plain)


def _unquoted(text: bytes, start: int, end: int) -> bytes:
    """A quoted part of a word without its quotes, where it does not need them; "" for a comment."""
    piece = text[start:end]
    if piece[:1] == b"#" or piece == b"\\\n":
        return b""
    inner = piece.lstrip(b"$")[1:] if piece[:1] == b"\\" else piece.lstrip(b"$")[1:-1]
    if piece[:1] == b"$":
        inner = decoded(inner.decode("utf-8", "replace")).encode("utf-8", "replace")
        piece = b"'%s'" % inner.replace(b"'", b'"')
    is_word = bool(inner) or (text[start - 1 : start] + text[end : end + 1]).strip()
    return inner if is_word and _PLAIN_WORD.match(inner) else piece


def decoded(text: str) -> str:
    """A text with the signs that are written by their numbers."""
    return str(_CODED.sub(lambda one: chr(int(one[1] or one[2] or one[3], 8 if one[3] else 16)), text))


class PythonReader:
    """Puts texts for names, and names for those that stand for them."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._aliases: dict[str, str] = {}

    def read(self, written: str) -> CodeStatement:
        written = compact(written)
        if (importing := _IMPORTING.search(written)) is not None:
            self._import(importing.group(1).translate(_APART).split())
            return CodeStatement(written, [], [], "", written)
        fold = _Fold(self._known, self._aliases)
        fold.read(_HOME.sub('"~"', written))
        text = _JOINED.sub(_join_texts, fold.text)
        text = _BUILTIN.sub("", _MEMBER.sub(r"\1.\2", _IMPORTED.sub(r"\1", text)))
        text = _ALONE.sub(r"\1\2(", text)
        given, value = fold.given, text
        if fold.split >= 0:
            value = text.partition(fold.sign)[2]
            meant = [one.strip() for one in value.rpartition(" = ")[2].split(",")]
            if len(meant) == len(given) and all(one.replace(".", "").isidentifier() for one in meant):
                self._aliases.update(zip(given, meant, strict=True))
        return CodeStatement(
            text,
            fold.used,
            given or _bound([one.name + one.rest.rstrip("([") for one in fold.used]),
            value,
            text,
        )

    def _import(self, words: list[str]) -> None:
        module = words[1] + "." if words[0] == "from" and len(words) > 1 else ""
        names = words[words.index("import") + 1 :] if "import" in words else []
        for at, (before, name) in enumerate(zip(["", *names], names, strict=False)):
            if before == "as" and at > 1:
                self._aliases[name] = module + names[at - 2]
            elif module:
                self._aliases[name] = module + name


def _join_texts(found: "re2._Match[str]") -> str:
    parts = [part.strip().strip('"') for part in found.group(2).split(",") if part.strip()]
    return f'"{found.group(1).join(parts)}"'


def _bound(words: list[str]) -> list[str]:
    """The names that a loop or `with` gives something to."""
    words = words[1:] if words[:1] == ["async"] else words
    if words[:1] == ["for"] and "in" in words:
        return words[1 : words.index("in")]
    return [name for before, name in pairwise(words) if before == "as" and words[0] == "with"]


class _Fold:
    """One statement while it is read: texts that are joined become one."""

    def __init__(self, known: Known, aliases: Mapping[str, str]) -> None:
        self._known, self._aliases = known, aliases
        self.used: list[Used] = []
        self.given: list[str] = []
        #: where its first assignment stands, and how that is written
        self.split, self.sign = -1, "\0="
        self._out: list[str] = []
        #: a text that may go on, and what stands behind it
        self._open: str | None = None
        self._between = ""
        self._depth = 0
        self._room = MOST_INSERTED

    @property
    def text(self) -> str:
        self._close()
        return "".join(self._out)

    def read(self, written: str) -> None:
        at = 0
        # One byte a character, so that places in the one are places in the other.
        for piece in _PYTHON_PIECE.finditer(written.encode("ascii", "replace")):
            start, end = piece.span()
            self._gap(written[at:start])
            said, at = written[start:end], end
            if said[-1] in "\"'":
                prefix, quote, rest = said.partition(said[-1])
                quotes = 3 if rest.startswith(quote * 2) and len(rest) > 2 else 1
                self._string(rest[quotes - 1 : -quotes], inserts="f" in prefix.lower())
            elif said[0] != "#":
                self._name(self._real(said), written[end : end + 1])
        self._close()
        self._gap(written[at:])

    def _gap(self, signs: str) -> None:
        """What stands between texts and names."""
        if not signs:
            return
        plain = signs.strip()
        if self._open is not None and plain in ("", "+", "/"):
            self._between += plain
            return
        self._close()
        if ":=" in signs and self.used:
            self.given.append(self.used[-1].name)
        before = self._depth + _opened(signs.partition("=")[0])
        self._depth += _opened(signs)
        if self.split < 0 and not before and "=" in signs and _GIVES.search(signs):
            self.split = len(self._out)
            self.given += [one.name + one.rest.rstrip("([") for one in self.used]
            # What is assigned to is not read, unless it is added to.
            if not signs.partition("=")[0].rstrip().endswith(_ADDED):
                self.used.clear()
            signs = signs.replace("=", self.sign, 1)
        self._out.append(signs)

    def _real(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return self._aliases.get(first, first) + dot + rest

    def _name(self, name: str, after: str) -> None:
        base = name
        while base and base not in self._known:
            base = base.rpartition(".")[0]
        rest = name[len(base) :] if base else ""
        self.used.append(Used(base or name, rest + (after if after in "([" else "")))
        text = self._known[base].plain if base and self._room > 0 else ""
        self._room -= len(text)
        if text and not (after == "(" and not rest):
            self._string(text, inserts=False)
            if rest:
                self._close()
                self._out.append(rest)
        else:
            self._close()
            self._out.append(name)

    def _string(self, text: str, *, inserts: bool) -> None:
        text = decoded(text) if "\\" in text else text
        if inserts and "{" in text:
            text = _INSERTED.sub(self._insert, text)
        if self._open is not None and len(self._between) < 2:
            self._open += self._between.replace("+", "") + text[:LONGEST_TEXT]
            self._between = ""
        else:
            self._close()
            self._open = text[:LONGEST_TEXT]

    def _insert(self, found: "re2._Match[str]") -> str:
        for name in _NAME.findall(found.group(1)):
            base = name if name in self._known else name.partition(".")[0]
            self.used.append(Used(base, name[len(base) :]))
        known = self._known.get(found.group(1).strip())
        text = known.plain if known is not None and self._room > 0 else ""
        self._room -= len(text)
        return text or "{}"

    def _close(self) -> None:
        if self._open is not None:
            self._out += ('"', self._open[:LONGEST_TEXT].replace('"', "'"), '"', self._between)
            self._open, self._between = None, ""


def _opened(signs: str) -> int:
    return sum(map(signs.count, "([{")) - sum(map(signs.count, ")]}"))


class ShellReader:
    """Puts texts for variables."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def read(self, written: str) -> CodeStatement:
        used: list[Used] = []
        room = MOST_INSERTED
        written = _BEFORE_COMMAND.sub(r"\1\2", _LABEL.sub("", written))

        def expand(found: "re2._Match[str]") -> str:
            nonlocal room
            name = found.group(1) or found.group(4)
            used.append(Used(name, ""))
            text = self._known[name].text if name in self._known and room > 0 else ""
            room -= len(text)
            return text or found.group(3) or ("sh" if name == "SHELL" else f"${name}")

        text = _EXPANSION.sub(expand, written)
        return CodeStatement(text, used, [], text, text)

"""Files that carry code of another language: notebooks, makefiles, Dockerfiles, workflows, settings with commands in
them, pages and pictures with scripts. The text stays as it is, byte for byte; what patterns and readers see (`flowing`)
has the syntax around the code blanked and its escapes resolved, so that a finding stands on the file's own line.

`segments` asks here for files whose names say that they carry something.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice

import re2

from vskill_scan.model import CodeBlock, Piece, TextRole
from vskill_scan.reading.outline import may_be_command

#: Of one file, and matches of one pattern in it; a file with more is read up to there, which no honest one has.
MOST_BLOCKS = 2000
MOST_MATCHES = 20_000
LONGEST_LINE = 16 * 1024
TOO_MANY = "not fully read: it carries too much code"

#: Start and end of code, and its language.
Carried = tuple[int, int, str]

_CELL_TYPE = re2.compile(rb'"cell_type"\s*:\s*"(\w+)"')
_SOURCE = re2.compile(rb'"source"\s*:\s*(?:\[((?:\s*"(?:[^"\\\n]|\\.)*"\s*,?)*)\s*\]|("(?:[^"\\\n]|\\.)*"))')
_RECIPE = re2.compile(rb"(?m)^(?:\t[^\n]*(?:\n|$))+")
_RECIPE_MARK = re2.compile(rb"(?m)^\t[@+-]*")
_RUN = re2.compile(
    rb"(?mi)^[ \t]*(?:RUN|CMD|ENTRYPOINT|SHELL)[ \t]+(?:--\S+[ \t]+(?:\\\n[ \t]*)?)*((?:[^\n\\]|\\(?s:.))*)"
)
_YAML_KEY = re2.compile(
    rb"(?m)^([ \t]*)((?:- +)?)(?:run|command|entrypoint|script|before_script|after_script|args|entry|shell|cmd|"
    rb"postCreateCommand)[ \t]*:[ \t]*(\S[^\n]*)?$"
)
#: An expression of a workflow: one secret by its name, or all of them, and a variable that is set to one.
_EXPRESSION = rb"\$\{\{\s*(?:secrets\.(\w+)|toJ(?:SON|son)\(\s*secrets\s*\))\s*\}\}"
_SECRETS = re2.compile(_EXPRESSION)
_SECRET_VARIABLE = re2.compile(
    rb"(?m)^[ \t]*(?:- )?([A-Z][A-Z0-9_]*)[ \t]*:[ \t]*[\"']?" + _EXPRESSION + rb"[\"']?[ \t]*$"
)
_EXEC_LINE = re2.compile(
    rb"(?mi)^[ \t]*(?:Exec(?:Start|StartPre|StartPost|Stop|Reload)?|[\w.-]+)[ \t]*=[ \t]*([\"']?)!?([^\n]*)$"
)
_PLIST_STRING = re2.compile(rb"<string>([^<]*)</string>")
_SCRIPT = re2.compile(rb"(?is)<script\b[^>]*>(?:\s*<!\[CDATA\[)?(.*?)(?:\]\]>\s*)?</script")
#: A text of several words between tags; code has other signs in it.
_SHOWN = re2.compile(rb">\s*([^<>{}]{3,60}\s[^<>{}]{20,})<")
_HANDLER = re2.compile(
    rb"(?i)\son(?:load|error|click|mouseover|begin|focus)\s*=\s*(?:\"([^\"]+)\"|'([^']+)')"
)
_BACKSLASH = ord("\\")
_NOT_NEWLINE = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


class CarriedCode:
    """The code that one text carries."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.flowing = bytearray(text)
        self.found: list[Carried] = []
        #: prose that the agent reads, such as the texts of a notebook
        self.prose: list[tuple[int, int]] = []
        #: whether there was more than is read
        self.partial = False

    def add(self, start: int, end: int, language: str) -> None:
        if start < end:
            if len(self.found) < MOST_BLOCKS:
                self.found.append((start, end, language))
            else:
                self.partial = True

    def matches(self, pattern: "re2._Regexp", text: bytes | None = None) -> Iterator["re2._Match[bytes]"]:
        """Those of a pattern in the text, unless another is given, up to a number."""
        found = pattern.finditer(self.text if text is None else text)
        yield from islice(found, MOST_MATCHES)
        self.partial = self.partial or next(found, None) is not None

    def overwrite(self, start: int, end: int, plain: bytes) -> None:
        """What the code comes to, at the same length; it must not be longer."""
        self.flowing[start:end] = plain.ljust(end - start)

    def blank(self, start: int, end: int) -> None:
        self.flowing[start:end] = self.text[start:end].translate(_NOT_NEWLINE)

    def unescape(self, start: int, end: int) -> None:
        """The escapes of a JSON text between its quotes, at the same length."""
        written = self.text[start:end]
        if b"\\" in written:
            plain = (
                written.replace(b'\\"', b' "')
                .replace(b"\\n", b" \n")
                .replace(b"\\t", b" \t")
                .replace(b"\\\\", b" \\")
            )
            self.flowing[start:end] = plain

    @property
    def blocks(self) -> list[CodeBlock]:
        return [CodeBlock(start, end, language) for start, end, language in sorted(self.found)]

    def pieces(self, role: TextRole) -> list[Piece]:
        """In a file of data the code is code and prose is to be followed; other files act as a whole."""
        if role is not TextRole.DATA:
            return [Piece(0, len(self.text), role, 0)]
        pieces: list[Piece] = []
        at = 0
        for start, end, kind in sorted(
            [(start, end, TextRole.CODE) for start, end, _ in self.found]
            + [(start, end, TextRole.FOLLOW) for start, end in self.prose]
        ):
            if start < at:
                continue
            if at < start:
                pieces.append(Piece(at, start, role, len(pieces)))
            pieces.append(Piece(start, end, kind, len(pieces)))
            at = end
        if at < len(self.text) or not pieces:
            pieces.append(Piece(at, len(self.text), role, len(pieces)))
        return pieces


def read_notebook(code: CarriedCode) -> None:
    """Cells in order: Python, unless the first line says that it is for a shell; texts are prose."""
    kinds = [(match.start(), match.group(1)) for match in code.matches(_CELL_TYPE)]
    for source in code.matches(_SOURCE):
        start, end = source.span(1) if source.group(1) is not None else source.span(2)
        before = bisect_left(kinds, (start,)) - 1
        kind = kinds[before][1] if before >= 0 else b"code"
        inside = list(quoted_texts(code.text, start, end))
        if not inside:
            continue
        code.blank(start, end)
        for low, high in inside:
            code.flowing[low:high] = code.text[low:high]
            code.unescape(low, high)
            # The line begins where its text does, so that Python's indentation is what it was.
            code.flowing[low - 1] = ord("\n")
        first, last = inside[0][0], inside[-1][1] + 1
        if kind == b"markdown":
            code.prose.append((first, last))
        else:
            _add_cell(code, first, last)


def _add_cell(code: CarriedCode, start: int, end: int) -> None:
    cell = bytes(code.flowing[start:end])
    if cell.lstrip().startswith((b"%%bash", b"%%sh", b"%%script")):
        stop = cell.find(b"\n") + 1 or len(cell)
        code.flowing[start : start + stop] = cell[:stop].translate(_NOT_NEWLINE)
        code.add(start, end, "bash")
        return
    at = start
    for line in cell.split(b"\n"):
        if line.lstrip().startswith(b"!"):
            mark = at + line.index(b"!")
            code.flowing[mark] = ord(" ")
            code.add(mark, at + len(line), "bash")
        at += len(line) + 1
    code.add(start, end, "python")


def read_recipes(code: CarriedCode) -> None:
    for recipe in code.matches(_RECIPE):
        for mark in _RECIPE_MARK.finditer(code.text, recipe.start(), recipe.end()):
            code.blank(mark.start(), mark.end())
        stretch = bytes(code.flowing[recipe.start() : recipe.end()])
        code.flowing[recipe.start() : recipe.end()] = stretch.replace(b"$$", b" $")
        code.add(recipe.start(), recipe.end(), "bash")


def read_dockerfile(code: CarriedCode) -> None:
    for command in code.matches(_RUN):
        start, end = command.span(1)
        if code.text[start : start + 1] == b"[":
            _read_strings(code, start, end)
        else:
            code.add(start, end, "bash")


def read_yaml(code: CarriedCode) -> None:
    """The commands of workflows, compose files and their like: behind their keys, on the line or indented below it.
    What their expressions put in is written as a shell would name it."""
    for variable in code.matches(_SECRET_VARIABLE):
        name, secret = variable.group(1), variable.group(2)
        start, end = variable.span()
        code.overwrite(start, end, b"%s=%s" % (name, b"$" + secret if secret else b"$(env)"))
        code.add(start, end, "bash")
    for expression in code.matches(_SECRETS, bytes(code.flowing)):
        secret = expression.group(1)
        start, end = expression.span()
        code.overwrite(start, end, b"${%s}" % secret if secret else b"$(env)")
    # Where the last script and the last list end: what stands in them is not read once more.
    script = items = 0
    for key in code.matches(_YAML_KEY):
        said = (key.group(3) or b"").strip()
        if said and said[:1] not in b"|>":
            start, end = key.span(3)
            _read_strings(code, start, end)
            if not said.startswith((b"[", b'"', b"'")):
                code.add(start, end, "bash")
            continue
        start = min(key.end() + 1, len(code.text))
        column = len(key.group(1)) + len(key.group(2))
        if said and start > script:
            script = _indented_until(code.text, start, column, listed=False)
            code.add(start, script, "bash")
        elif not said and start > items:
            items = _indented_until(code.text, start, column, listed=True)
            _read_items(code, start, items)


def _indented_until(text: bytes, start: int, column: int, *, listed: bool) -> int:
    """Where what belongs to a key in this column ends: further in, or in the column if it is a list."""
    at = start
    while at < len(text):
        stop = text.find(b"\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        item = line.lstrip(b" ")
        indent = len(line) - len(item)
        if item.strip() and (
            indent < column or (indent == column and not (listed and item.startswith(b"- ")))
        ):
            return at
        at = stop + 1
    return len(text)


def _read_items(code: CarriedCode, start: int, end: int) -> None:
    """A list with one command a line."""
    at = start
    while at < end:
        stop = code.text.find(b"\n", at, end)
        stop = end if stop < 0 else stop
        line = code.text[at:stop]
        item = line.lstrip()
        if item.startswith(b"- "):
            begin = at + len(line) - len(item) + 2
            _read_strings(code, begin, stop)
            code.add(begin, stop, "bash")
        at = stop + 1


def _read_strings(code: CarriedCode, start: int, end: int) -> None:
    """Texts in quotes that are commands."""
    for low, high in quoted_texts(code.text, start, end):
        if code.text.find(b" ", low, high) >= 0 and may_be_command(code.text[low:high]):
            code.unescape(low, high)
            code.add(low, high, "bash")


def quoted_texts(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the texts in double quotes lie, without their quotes, each on one line. A file may hold a hundred thousand,
    for which a pattern takes seconds."""
    line_end = start
    low = text.find(b'"', start, end) + 1
    while low:
        if low > line_end:
            line_end = text.find(b"\n", low, end)
            line_end = end if line_end < 0 else line_end
        high = _closing_quote(text, low, line_end)
        if high >= 0:
            yield low, high
        low = text.find(b'"', high + 1 if high >= 0 else line_end, end) + 1


def _closing_quote(text: bytes, start: int, end: int) -> int:
    """Where the next quote stands that is not escaped; -1 if there is none."""
    at = text.find(b'"', start, end)
    while at >= 0 and text[at - 1] == _BACKSLASH:
        before = text[start:at]
        if not (len(before) - len(before.rstrip(b"\\"))) % 2:
            break
        start = at + 1
        at = text.find(b'"', start, end)
    return at


def read_json(code: CarriedCode) -> None:
    """Settings. A line that no person wrote is cut between its values: patterns look as far as a line goes, and what
    they look behind stands on such a line thousands of times."""
    _read_strings(code, 0, len(code.text))
    longest = max(map(len, code.text.split(b"\n")))
    if longest > LONGEST_LINE:
        for _, end in quoted_texts(code.text, 0, len(code.text)):
            if code.text[end + 1 : end + 2] == b",":
                code.flowing[end + 1] = ord("\n")


def read_settings(code: CarriedCode) -> None:
    """Lines with a name and a command: units of systemd, aliases of git, desktop entries."""
    for line in code.matches(_EXEC_LINE):
        start, end = line.span(2)
        said = code.text[start:end].rstrip().removesuffix(line.group(1))
        shell = said.removeprefix(b"/bin/").removeprefix(b"/usr/bin/")
        if may_be_command(shell):
            code.unescape(start, start + len(said))
            code.add(start, start + len(said), "bash")


def read_plist(code: CarriedCode) -> None:
    for text in code.matches(_PLIST_STRING):
        if b" " in text.group(1) and may_be_command(text.group(1)):
            code.add(text.start(1), text.end(1), "bash")


def read_page(code: CarriedCode) -> None:
    """Scripts, and the texts that stand between tags."""
    for script in code.matches(_SCRIPT):
        code.add(script.start(1), script.end(1), "javascript")
    for handler in code.matches(_HANDLER):
        group = 1 if handler.group(1) is not None else 2
        code.add(handler.start(group), handler.end(group), "javascript")
    # Code is a tag here: a text ends before it and begins behind it.
    around = bytearray(code.text)
    for start, end, _ in code.found:
        around[start:end] = b"<".ljust(end - start, b">")
    for text in code.matches(_SHOWN, bytes(around)):
        if len(code.prose) < MOST_BLOCKS:
            code.prose.append(text.span(1))
        else:
            code.partial = True


Reader = Callable[[CarriedCode], None]
_BY_SUFFIX: dict[str, Reader] = {
    "ipynb": read_notebook,
    "mk": read_recipes,
    "html": read_page,
    "htm": read_page,
    "svg": read_page,
    "vue": read_page,
    "svelte": read_page,
    "service": read_settings,
    "timer": read_settings,
    "desktop": read_settings,
    "gitconfig": read_settings,
    "plist": read_plist,
}
_BY_NAME: dict[str, Reader] = {
    "makefile": read_recipes,
    "gnumakefile": read_recipes,
    "justfile": read_recipes,
    "dockerfile": read_dockerfile,
    "containerfile": read_dockerfile,
}


def carrier_reader(path: str, language: str) -> Reader | None:
    """What reads the code that a file of this name carries; None for a file that carries none."""
    name = path.rpartition("!")[2].rpartition("/")[2].lower()
    suffix = name.rpartition(".")[2]
    if name in _BY_NAME or name.startswith("dockerfile"):
        return _BY_NAME.get(name, read_dockerfile)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if language != "config":
        return None
    return {"json": read_json, "yml": read_yaml, "yaml": read_yaml}.get(suffix)


def carried_by(path: str, text: bytes, language: str) -> CarriedCode | None:
    """The code that a file carries; None where it carries none."""
    reader = carrier_reader(path, language)
    if reader is None:
        return None
    code = CarriedCode(text)
    reader(code)
    return code if code.found or code.prose or code.partial or code.flowing != text else None

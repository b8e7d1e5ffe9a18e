"""Facts from syntax: parses scripts and code blocks, and lets the reader of their language find what the code does.

Parsing costs more than everything else together, so it is done only where `worth_parsing` says that a fact could come
about. A file that does not parse is read as far as its tree goes.
"""

from functools import cache

import re2
import tree_sitter
import tree_sitter_bash
import tree_sitter_python

from vskill_scan.code.python import PythonCode
from vskill_scan.code.shell import Shell
from vskill_scan.code.taint import FETCHED, NO_TAGS, NOTHING, Check, Program, RunShell, Value, Worth
from vskill_scan.limits import PARSED_BYTES
from vskill_scan.model import CodeBlock, Layer
from vskill_scan.reading.languages import PARSED

#: Command lines inside other languages that are read as shell, per block.
MOST_COMMAND_LINES = 2000
#: More code in one piece is not parsed: its tree would take more memory and time than a scan has.
MOST_CODE_BYTES = 512 * 1024
#: What the parsers take the square of: Python's lines that are joined by a backslash, and its comments in a row; the
#: shell's commands in one pipe, documents in it, and brackets that never close. People write a tenth of it.
MOST_JOINED_LINES = 2000
MOST_PIPED, MOST_DOCUMENTS, MOST_UNCLOSED = 500, 1000, 500
TOO_LARGE = f"not fully read: more than {MOST_CODE_BYTES} bytes of code in one piece"
TANGLED = "not fully read: its code is too tangled"

_COMMENTS = re2.compile(rb"(?:(?m)^[ \t]*#[^\n]*\n){40,}")
_NOT_NEWLINE = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))
_PIPE_END = re2.compile(rb"\|[ \t]*\n|\\\n")


def read_code(layer: Layer, telling: Worth, check: Check = lambda _: None) -> None:
    """Adds the facts of the layer's code between offsets that are telling. `check` raises when there are no steps left;
    what was found until then stays."""
    # Blocks of one file continue each other: what one fence downloads the next may run.
    names: dict[str, Value] = {}
    for block in layer.blocks:
        check(1)
        if block.language in PARSED and telling(block.start, block.end):
            _read(layer, block, names, telling, check)


def _read(layer: Layer, block: CodeBlock, names: dict[str, Value], telling: Worth, check: Check) -> None:
    """`telling` says which functions are worth reading."""
    source = layer.flowing[block.start : block.end]
    if not _is_parsable(layer, source, block.language):
        return
    if block.language == "python":
        source = blank_comments(source)
    start = block.start
    # A function without a telling word passes on what it is given, as any unknown one does.
    program = Program(start, names, lambda low, high: telling(start + low, start + high), check)
    root = parse_code(source, block.language, program)
    try:
        _reader(program, source, _CommandLines(program), block.language).run(root)
    finally:
        _keep(layer, program)


def _keep(layer: Layer, program: Program) -> None:
    layer.facts.extend(program.facts.values())
    if program.partial:
        layer.unread = TANGLED


def _is_parsable(layer: Layer, source: bytes, language: str) -> bool:
    """Whether the parser takes time linear in the source, and how much of it; the layer says why not."""
    if len(source) > MOST_CODE_BYTES:
        layer.unread = TOO_LARGE
    elif is_tangled(source, language):
        layer.unread = TANGLED
    else:
        return True
    return False


def is_tangled(source: bytes, language: str) -> bool:
    """Whether the source holds so much of one thing that a parser takes the square of it, which cannot be stopped."""
    if language == "python":
        return source.count(b"\\\n") > MOST_JOINED_LINES
    if language != "bash" or len(source) < MOST_PIPED:
        return False
    if source.count(b"<<") > MOST_DOCUMENTS or source.count(b"${") - source.count(b"}") > MOST_UNCLOSED:
        return True
    return source.count(b"|") > MOST_PIPED and any(
        line.count(b"|") > MOST_PIPED for line in _PIPE_END.sub(b"|", source).split(b"\n")
    )


def blank_comments(source: bytes) -> bytes:
    """Python without long runs of comments, for which its parser takes the square of their number."""
    written: list[bytes] = []
    last = 0
    for run in _COMMENTS.finditer(source):
        written += (source[last : run.start()], run.group().translate(_NOT_NEWLINE))
        last = run.end()
    return b"".join((*written, source[last:]))


def _reader(program: Program, source: bytes, run_shell: RunShell, language: str) -> Shell | PythonCode:
    return (Shell if language == "bash" else PythonCode)(program, source, run_shell)


class _CommandLines:
    """Reads command lines that a program runs; what they do is placed at the call that runs the outermost."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._left = MOST_COMMAND_LINES
        self._place: tuple[int, int] | None = None

    def __call__(
        self, text: str, start: int, length: int, language: str = "bash", tags: frozenset[str] = NO_TAGS
    ) -> Value:
        """What the code writes to its output: what its commands read, and something fetched, if it fetches anything."""
        self._left -= 1
        if self._left < 0:
            self._program.partial = True
            return NOTHING
        outermost = self._place is None
        self._place = self._place or (start, length)
        source = text.encode("utf-8", "replace")
        inner = Program(0, dict(self._program.names), check=self._program.check)
        output = NOTHING
        if language in PARSED and not is_tangled(source, language):
            output = _reader(inner, source, self, language).run(parse_code(source, language, inner))
        carried = Value(tags)
        for fact in inner.facts.values():
            self._program.fact(fact.name, *self._place, **fact.attributes)
            if fact.name in _TALKING and carried.sensitive:
                host = fact.attributes["to"].replace("unknown", "")
                self._program.send(
                    Value(text=f"https://{host}"), carried, fact.attributes["how"], *self._place
                )
        self._program.take_files(inner)
        self._program.partial = self._program.partial or inner.partial
        if outermost:
            self._place = None
        fetches = any(fact.name == "net.fetch" for fact in inner.facts.values())
        return output.tagged(FETCHED) if fetches else output


_TALKING = frozenset({"net.send", "net.fetch"})


#: Every byte beyond ASCII is a letter.
_ASCII = bytes(byte if byte < 128 else ord("x") for byte in range(256))


def parse_code(source: bytes, language: str, program: Program) -> tree_sitter.Node:
    program.check(len(source) // PARSED_BYTES)
    return _parser(language).parse(_shown(source, language)).root_node


def _shown(source: bytes, language: str) -> bytes:
    """The grammar of the shell asks C's tables for letters about every character, and ends the process at one far
    beyond ASCII; for a shell all of these are letters, so it is shown one."""
    return source if language != "bash" or source.isascii() else source.translate(_ASCII)


@cache
def _parser(language: str) -> tree_sitter.Parser:
    return tree_sitter.Parser(_language(language))


@cache
def _language(language: str) -> tree_sitter.Language:
    grammars = {
        "bash": tree_sitter_bash.language,
        "python": tree_sitter_python.language,
    }
    return tree_sitter.Language(grammars[language]())

"""Facts from syntax: parses scripts and code blocks, lets the reader of their language find what the code does, and
gives comments and deny-lists their own roles.

Parsing costs more than everything else together, so it is done only where a pattern matched, or where
`worth_parsing` says that a fact could come about. A file that does not parse is read as far as its tree goes.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import re2
import tree_sitter
import tree_sitter_bash
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_typescript

from vskill_scan.code.across_files import Knowledge
from vskill_scan.code.javascript import JavaScriptCode
from vskill_scan.code.python import PythonCode
from vskill_scan.code.script_calls import may_harm
from vskill_scan.code.script_commands import COMMAND_READERS
from vskill_scan.code.scripts import ScriptCode
from vskill_scan.code.shell import Shell
from vskill_scan.code.slices import SLICED_BYTES, blank_comments, slice_code
from vskill_scan.code.taint import FETCHED, NO_TAGS, NOTHING, SOURCES, Program, RunShell, Value
from vskill_scan.code.worth_parsing import ASSEMBLING, Telling
from vskill_scan.model import CodeBlock, Fact, Layer, TextRole
from vskill_scan.reading.languages import PARSED, READ, SCRIPTS
from vskill_scan.reading.overlay import Overlaid, Stretch, overlay

#: Command lines inside other languages that are read as shell, per block.
MOST_COMMAND_LINES = 2000
#: More code that may matter is not parsed: its tree would take more memory and time than a scan has.
MOST_CODE_BYTES = 2 * 1024 * 1024
#: Python's lines that are joined by a backslash; the parser's time grows with the square of their number.
MOST_JOINED_LINES = 2000
TOO_LARGE = f"not fully read: more than {MOST_CODE_BYTES} bytes of code in one piece"
TANGLED = "not fully read: its code is too tangled"
#: Shell code is parsed as it is up to this length, which takes 0.2 s at worst; longer code is tried first.
STRETCH_BYTES = 8 * 1024
#: Of one stretch. What people write takes a tenth of it; what takes as long and is quadratic takes 1.5 s for 100 KB.
SLOWEST_PARSE_S = 0.01
TRIES = 3
#: Longer code of any language is parsed with an eye on the time: so much at first, and so much for each byte, which is
#: ten times what most code of people takes, and twice what their densest takes. The parser looks at the clock when it
#: asks for the next chunk.
SLOW_START_S = 0.1
SLOWEST_BYTE_S = 2.5e-6
CHUNK_BYTES = 4 * 1024

_HASH_COMMENT = re2.compile(rb"(?m)^[ \t]*(?:#|//|--|rem\b|::)[^\n]*$")
_OBFUSCATED_NAME = re2.compile(rb"\b_0x[0-9a-f]{4,6}\b")


def refine(
    layer: Layer, telling: Telling, matches: Sequence[int] = (), check: Callable[[], None] = lambda: None
) -> None:
    """Adds the facts of the layer's code, and separates the comments and deny-lists in blocks with matches.

    `matches` are the offsets, in order, at which something stands that a rule may yet count. `check` raises when
    there is no time left; what was found until then stays.
    """
    if not telling and not matches and all(block.language in PARSED for block in layer.blocks):
        return
    stretches: list[Stretch] = []
    # Blocks of one file continue each other: what one fence downloads the next may run.
    names = {name: Value(text=text) for name, text in layer.variables.items()}
    for block in layer.blocks:
        check()
        inside = (
            matches[bisect_left(matches, block.start) : bisect_left(matches, block.end)] if matches else ()
        )
        if block.language not in PARSED:
            if inside:
                stretches.extend(_find_comments(layer, block))
            if block.language in READ:
                _read_script(layer, block, names, check)
        elif telling(block.start, block.end) or (inside and _roles_matter(layer, block, telling, inside)):
            stretches.extend(_read(layer, block, names, telling, inside, check))
    if stretches:
        cut = layer.cut
        if isinstance(cut, list) and len(cut) == 1:
            kept = stretches if cut[0].role in _REFINED else []
        else:
            kept = [one for one in stretches if layer.piece_at(one.start).role in _REFINED]
        if isinstance(cut, list) or callable(cut):
            layer.cut = overlay(layer.pieces, kept)
        else:
            layer.cut = Overlaid(cut, kept)
        layer.roles |= {TextRole.COMMENT, TextRole.QUOTE}


def _roles_matter(layer: Layer, block: CodeBlock, telling: Telling, matches: Sequence[int]) -> bool:
    """Whether reading the block may give a match in it another role: in shell, a comment's or a deny-list's."""
    if block.language != "bash":
        return True
    commented = any(b"#" in _line(layer, offset) for offset in matches)
    listed = b"(" in layer.flowing[block.start : block.end]
    return (commented or listed) and telling.anything(block.start, block.end)


def _line(layer: Layer, offset: int) -> bytes:
    stop = layer.flowing.find(b"\n", offset)
    return layer.flowing[layer.line_start(offset) : stop if stop >= 0 else len(layer.flowing)]


def _find_comments(layer: Layer, block: CodeBlock) -> Iterator[Stretch]:
    for one in _HASH_COMMENT.finditer(layer.flowing, block.start, block.end):
        yield Stretch(one.start(), one.end(), TextRole.COMMENT)


_REFINED = frozenset({TextRole.CODE, TextRole.COMMAND, TextRole.LOAD})


def across_files(layers: list[Layer]) -> Iterator[tuple[int, Fact]]:
    """A secret that one file writes down and another sends."""
    stored = {name: tags for layer in layers for name, (_, tags) in layer.stored.items()}
    for number, layer in enumerate(layers):
        for name, offset in layer.sent.items():
            for tag in sorted(stored.get(name, ())):
                if tag.startswith(SOURCES):
                    attributes = {"from": tag.partition(":")[2] or tag, "to": "unknown", "how": "file"}
                    yield number, Fact("flow", offset, 0, attributes)


def _read(
    layer: Layer,
    block: CodeBlock,
    names: dict[str, Value],
    telling: Telling,
    matches: Sequence[int],
    check: Callable[[], None],
) -> list[Stretch]:
    """`telling` says which functions are worth reading; where something matched all are."""
    source = _source(layer, block, telling, matches)
    if not source:
        return []
    # A function without a telling word passes on what it is given, as any unknown one does.
    start = block.start
    worth = None
    if ASSEMBLING.search(source) is None:

        def worth(low: int, high: int) -> bool:
            matched = bisect_left(matches, start + low) < bisect_left(matches, start + high)
            return matched or telling(start + low, start + high)

    program = Program(block.start, names, worth, check)
    root = parse_code(source, block.language, program)
    try:
        _reader(program, source, _CommandLines(program), block.language).run(root)
        if block.language != "bash":
            _whole_file(program, source)
    finally:
        _keep(layer, program)
    stretches = [
        Stretch(block.start + start, block.start + end, role)
        for places, role in ((program.comments, TextRole.COMMENT), (program.refused, TextRole.QUOTE))
        for start, end in places
    ]
    if matches and block.language == "python" and len(source) > STRETCH_BYTES:
        # Those that the parser was not shown.
        stretches.extend(_find_comments(layer, block))
    return stretches


def read_again(layer: Layer, knowledge: Knowledge, check: Callable[[], None]) -> list[Fact]:
    """The facts of a module with what others tell about the functions that it calls and defines."""
    block = layer.blocks[0]
    source = blank_comments(layer.flowing[block.start : block.end])
    if len(source) > SLICED_BYTES or source.count(b"\\\n") > MOST_JOINED_LINES:
        return []
    program = Program(block.start, dict(knowledge.names), check=check)
    program.given = knowledge.given
    root = parse_code(source, block.language, program)
    _reader(program, source, _CommandLines(program), block.language).run(root)
    layer.returned.update(program.returned)
    layer.passed.update(program.passed)
    if program.partial:
        layer.unread = TANGLED
    return list(program.facts.values())


def _read_script(layer: Layer, block: CodeBlock, names: dict[str, Value], check: Callable[[], None]) -> None:
    source = layer.flowing[block.start : block.end]
    if not may_harm(source, block.language):
        return
    if len(source) > MOST_CODE_BYTES:
        layer.unread = TOO_LARGE
        return
    program = Program(block.start, names, check=check)
    run_shell = _CommandLines(program)
    try:
        if block.language in SCRIPTS:
            ScriptCode(program, source, run_shell, block.language).run()
        else:
            for text, start, length, assembled in COMMAND_READERS[block.language](source):
                run_shell(text, start, length)
                if assembled:
                    program.unpack(text, start, "bash")
    finally:
        _keep(layer, program)


def _keep(layer: Layer, program: Program) -> None:
    layer.facts.extend(program.facts.values())
    layer.stored.update(program.stored)
    layer.sent.update(program.sent)
    layer.returned.update(program.returned)
    layer.passed.update(program.passed)
    layer.unpacked.extend(program.unpacked)
    if program.partial:
        layer.unread = TANGLED


def _source(layer: Layer, block: CodeBlock, telling: Telling, matches: Sequence[int]) -> bytes:
    """What the parser is given: all of the block, or as much as it can bear of what may matter in it."""
    whole = layer.flowing[block.start : block.end]
    source = whole
    if len(whole) > SLICED_BYTES:
        places = (*telling.places(block.start, block.end), *matches)
        source, size = slice_code(whole, block.language, [place - block.start for place in places])
        if size > MOST_CODE_BYTES:
            layer.unread = TOO_LARGE
            return b""
    if len(source) <= STRETCH_BYTES:
        return source
    if block.language == "python":
        source = blank_comments(source)
        if source.count(b"\\\n") > MOST_JOINED_LINES:
            layer.unread = TANGLED
            return b""
    elif block.language == "bash":
        source = parsable(source)
        if len(source) < len(whole):
            layer.unread = TANGLED
    return source


def parsable(source: bytes) -> bytes:
    """The shell code, or as much of it as stands before a stretch that the parser is slow at.

    Its time grows with the square of some statements (one pipe of thousands of commands), it cannot be stopped, and it
    is quick at everything that people write. So long code is tried a stretch at a time before it is read as a whole.
    """
    if len(source) <= STRETCH_BYTES:
        return source
    for start in range(0, len(source), STRETCH_BYTES):
        stretch = source[start : start + STRETCH_BYTES]
        # What else the machine does may make one try slow, hardly several.
        if all(_parse_s(stretch) > SLOWEST_PARSE_S for _ in range(TRIES)):
            return source[:start]
    return source


def _parse_s(source: bytes) -> float:
    began = time.thread_time()
    _parser("bash").parse(_shown(source, "bash"))
    return time.thread_time() - began


def _reader(
    program: Program, source: bytes, run_shell: RunShell, language: str
) -> Shell | PythonCode | JavaScriptCode:
    if language == "bash":
        return Shell(program, source, run_shell)
    return (PythonCode if language == "python" else JavaScriptCode)(program, source, run_shell)


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
        if language in SCRIPTS:
            ScriptCode(inner, source, self, language).run()
        else:
            output = _reader(inner, source, self, language).run(parse_code(source, language, inner))
        carried = Value(tags)
        for fact in inner.facts.values():
            self._program.fact(fact.name, *self._place, **fact.attributes)
            if fact.name in _TALKING and carried.sensitive:
                host = fact.attributes["to"].replace("unknown", "")
                self._program.send(
                    Value(text=f"https://{host}"), carried, fact.attributes["how"], *self._place
                )
        self._program.take_files(inner, self._place[0])
        for _, made, spoken in inner.unpacked:
            self._program.unpack(made, self._place[0], spoken)
        self._program.partial = self._program.partial or inner.partial
        if outermost:
            self._place = None
        fetches = any(fact.name == "net.fetch" for fact in inner.facts.values())
        return output.tagged(FETCHED) if fetches else output


_TALKING = frozenset({"net.send", "net.fetch"})


def _whole_file(program: Program, source: bytes) -> None:
    """What only several calls together show."""
    shell = b"/bin/sh" in source or b"/bin/bash" in source or b"cmd.exe" in source or b"powershell" in source
    if shell and (b"dup2" in source or b"pty.spawn" in source) and b"socket" in source:
        program.fact("reverse.shell", max(source.find(b"dup2"), source.find(b"pty.spawn"), 0), how="socket")
    if shell and b"net." in source and b".pipe(" in source and (b"spawn" in source or b"exec" in source):
        program.fact("reverse.shell", source.find(b".pipe("), how="socket")
    names = {match.group() for match in _OBFUSCATED_NAME.finditer(source)}
    if len(names) >= 8:
        program.fact("obfuscated", source.find(min(names)), how="names", layers="1")


#: Every byte beyond ASCII is a letter.
_ASCII = bytes(byte if byte < 128 else ord("x") for byte in range(256))


def parse_code(source: bytes, language: str, program: Program) -> tree_sitter.Node:
    """The tree of a source. If the parser is slow, it is told that the source ends, and the program is read in part."""
    shown = _shown(source, language)
    if len(shown) <= STRETCH_BYTES:
        return _parser(language).parse(shown).root_node
    began = time.thread_time()
    furthest = 0

    def read(offset: int, _: object) -> bytes:
        nonlocal furthest
        furthest = max(furthest, offset)
        if time.thread_time() - began > SLOW_START_S + furthest * SLOWEST_BYTE_S:
            program.partial = True
        return b"" if program.partial else shown[offset : offset + CHUNK_BYTES]

    return _parser(language).parse(read).root_node


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
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return tree_sitter.Language(grammars[language]())

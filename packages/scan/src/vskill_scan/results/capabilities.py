"""The capability card of a skill, made of the layers that the scan has read: hosts, commands, files, secrets, installs
and what outlives the session, each with its first place, and what could not be read.

Words and literals are looked for in code and commands, not in comments, and nothing is parsed for it; what only a
syntax tree tells (which secret is read, what is made to last) comes from the facts of `parsing`. So a card costs
little, and the same text gives the same card whatever stands beside it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from vskill_core.capability import (
    LONGEST_VALUE,
    CapabilityContext,
    CapabilityKind,
    SkillCapability,
)
from vskill_scan.limits import Budget
from vskill_scan.model import Layer, TextRole
from vskill_scan.reading.files import Reading
from vskill_scan.reading.languages import language_of
from vskill_scan.results import capability_words as known
from vskill_scan.results.card_names import (
    addresses_in,
    argument_lines,
    host_name,
    hosts_of,
    installed_by,
    path_name,
    program_of,
    runs_its_input,
)
from vskill_scan.results.command_lines import (
    CommandLine,
    blank_quoted,
    command_lines,
    defined_functions,
)

#: Places that are looked at in one skill; nobody reads a card with more.
MOST_PLACES = 20_000
#: Of the text after a call that starts a program, how much is looked at for the program's name.
ARGUMENT_BYTES = 400

#: A file, and why it was not read.
Unread = tuple[str, str]


class ActingCode(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a layer that a machine or an agent runs."""

    start: int
    end: int
    language: str
    context: CapabilityContext


class _Spot(msgspec.Struct, gc=False):
    """The first place of one thing in one context."""

    layer: Layer
    offset: int
    shell: bool


def capabilities_of(
    layers: Sequence[Layer], budget: Budget, reading: Reading, paths: Iterable[str] = ()
) -> list[SkillCapability]:
    """What a skill can do. `paths` are its files: running one of them is nothing new to tell."""
    reader = _CardReader(frozenset(path.rpartition("/")[2] for path in paths))
    for layer in layers:
        budget.check()
        if not reader.read(layer):
            # What stands behind so many others must not be called clean.
            reading.problem(
                layer.path, f"only partly listed: more than {MOST_PLACES} hosts, commands and files"
            )
            break
    return list(reader.entries())


def unread_capabilities(layers: Sequence[Layer], unread: Iterable[Unread]) -> Iterator[SkillCapability]:
    for path, why in unread:
        yield SkillCapability(CapabilityKind.UNREAD, why[:LONGEST_VALUE], path)
    seen = set()
    for layer in layers:
        if layer.decoded or layer.roles != {TextRole.CODE} or layer.path.lower().endswith(known.MARKUP):
            continue
        suffix = layer.path.rpartition("/")[2].rpartition(".")[2].lower()[:20]
        if suffix not in seen and language_of(layer.path, layer.text) in known.NO_READER:
            seen.add(suffix)
            said = f"commands and files in .{suffix} programs (their hosts are listed)"
            yield SkillCapability(CapabilityKind.UNREAD, said, layer.path)


class _CardReader:
    """What was found so far in one skill."""

    def __init__(self, own_files: frozenset[str]) -> None:
        self._own_files = own_files
        self._spots: dict[tuple[CapabilityKind, str, CapabilityContext], _Spot] = {}
        self._left = MOST_PLACES

    def entries(self) -> Iterator[SkillCapability]:
        for (kind, value, context), spot in self._spots.items():
            line = spot.layer.line_at(spot.offset)
            yield SkillCapability(kind, value, spot.layer.path, line, context, spot.shell)

    def read(self, layer: Layer) -> bool:
        """Whether all of it was read."""
        if layer.roles == {TextRole.TEST}:
            return True
        for kind, value, offset, context, shell in _LayerReader(layer, self._own_files).found():
            self._left -= 1
            if self._left < 0:
                return False
            self._add(kind, value, _Spot(layer, offset, shell), context)
        return True

    def _add(self, kind: CapabilityKind, value: str, spot: _Spot, context: CapabilityContext) -> None:
        value = value[:LONGEST_VALUE]
        if not value.isprintable():
            value = "".join(char for char in value if char.isprintable())
        before = self._spots.setdefault((kind, value, context), spot)
        before.shell = before.shell or spot.shell


Found = tuple[CapabilityKind, str, int, CapabilityContext, bool]


class _LayerReader:
    """Reads one layer."""

    def __init__(self, layer: Layer, own_files: frozenset[str]) -> None:
        self._layer = layer
        self._text = layer.text
        self._own = own_files
        self._code = list(_acting_code(layer))
        self._starts = [code.start for code in self._code]
        #: of each code, its comments
        self._comments: dict[int, list[tuple[int, int]]] = {}
        #: of shell code, its text without quotes and comments
        self._plain: dict[int, bytes] = {}
        #: a file that is one program, not a text with several blocks, starts other programs
        self._starts_programs = False
        #: something that acts names a host
        self._names_host = False

    def found(self) -> Iterator[Found]:
        if self._code and not self._layer.decoded:
            for index in range(len(self._code)):
                yield from self._commands(index)
            yield from self._paths()
            yield from self._variables()
            yield from self._facts()
        if self._layer.path.endswith("package.json"):
            for hook in known.INSTALL_HOOK.finditer(self._text):
                said = f"{hook.group(1).decode()} script (npm)"
                yield CapabilityKind.INSTALL, said, hook.start(), CapabilityContext.CODE, True
        if b"://" in self._text and self._layer.roles != {TextRole.DATA}:
            yield from self._addresses()
        if any(code.language != "bash" for code in self._code):
            yield from self._connections()
            if not self._names_host:
                yield from self._calls()

    # Hosts.

    def _addresses(self) -> Iterator[Found]:
        for match in known.ADDRESS.finditer(self._text):
            low, high = match.span(1)
            host = host_name(self._text[low:high].decode("utf-8", "replace"))
            if host:
                at = match.start()
                context = self._context_of_address(at)
                acts = context is not CapabilityContext.LINK
                self._names_host = self._names_host or acts
                yield CapabilityKind.HOST, host, at, context, acts and self._is_shell(at)

    def _connections(self) -> Iterator[Found]:
        for match in known.CONNECT.finditer(self._text):
            code = self._code_at(match.start())
            host = host_name(match.group(1).decode("ascii", "replace"))
            if host and code is not None and code.language != "bash" and not self._is_comment(match.start()):
                shell = self._is_shell(match.start())
                self._names_host = True
                yield CapabilityKind.HOST, host, match.start(), code.context, shell

    def _calls(self) -> Iterator[Found]:
        """The first call over the network of code that names no host: it must not look like code that needs none."""
        for match in known.CALLS.finditer(self._text):
            at = match.start()
            code = self._code_at(at)
            if code is not None and code.language != "bash" and not self._is_comment(at):
                yield CapabilityKind.HOST, known.CHOSEN_AT_RUN_TIME, at, code.context, self._is_shell(at)
                return

    def _context_of_address(self, offset: int) -> CapabilityContext:
        code = self._code_at(offset)
        if code is None:
            return self._context_outside(offset)
        if self._is_comment(offset) or self._only_tells(offset):
            return CapabilityContext.LINK
        return code.context

    def _context_outside(self, offset: int) -> CapabilityContext:
        """Of an address that stands in none of the languages that have a reader."""
        layer = self._layer
        if layer.roles == {TextRole.CONFIG}:
            name = layer.path.rpartition("/")[2].lower()
            is_acted_upon = name not in known.MANIFESTS and "/workflows/" not in f"/{layer.path}"
            return CapabilityContext.CODE if is_acted_upon else CapabilityContext.LINK
        if layer.piece_at(offset).role in {TextRole.CODE, TextRole.COMMAND}:
            return CapabilityContext.INSTRUCTION
        return CapabilityContext.LINK

    def _is_shell(self, offset: int) -> bool:
        code = self._code_at(offset)
        return code is not None and (code.language == "bash" or self._starts_programs)

    def _only_tells(self, offset: int) -> bool:
        """A line that prints an address for a person to read."""
        start = self._layer.line_start(offset)
        if not self._text[start:offset].lstrip().startswith(known.TELLING):
            return False
        stop = self._text.find(b"\n", offset)
        line = self._text[start : stop if stop >= 0 else len(self._text)][:2_000]
        return known.DOES.search(line) is None

    # Commands and installs.

    def _commands(self, index: int) -> Iterator[Found]:
        code = self._code[index]
        if code.language == "bash":
            stretch = self._text[code.start : code.end]
            plain = self._plain[index] = blank_quoted(stretch)
            own = self._own | defined_functions(plain)
            yield from _ran(command_lines(stretch, plain, known.TAME_BYTES), code, code.start, own)
        elif code.language in known.STARTS:
            for at, lines in self._started(code):
                self._starts_programs = self._starts_programs or code.end - code.start == len(self._text)
                moved = (msgspec.structs.replace(line, offset=0) for line in lines)
                yield from _ran(moved, code, at, self._own)

    def _started(self, code: ActingCode) -> Iterator[tuple[int, list[CommandLine]]]:
        """The calls of a program that start another one, with the command line as far as it is written there."""
        text, start, end = self._text, code.start, code.end
        patterns = [known.STARTS[code.language]]
        if code.language == "python":
            if text.find(b"from subprocess import", start, end) >= 0:
                patterns.append(known.BARE_RUN)
            elif not any(text.find(word, start, end) >= 0 for word in known.STARTING_WORDS):
                return
        elif not known.IMPORTS_STARTING.search(text, start, end):
            return
        lists: dict[bytes, bytes] | None = None
        for pattern in patterns:
            for match in pattern.finditer(text, start, end):
                if self._is_comment(match.start()):
                    continue
                argument = text[match.end() : min(match.end() + ARGUMENT_BYTES, end)]
                if lists is None and argument[:1] not in b"[\"'`":
                    lists = {one.group(1): one.group(2) for one in known.LISTS.finditer(text, start, end)}
                yield match.start(), argument_lines(argument, lists or {})

    # Files, and variables that hold secrets.

    def _paths(self) -> Iterator[Found]:
        text = self._text
        for match in known.PATH.finditer(text):
            at, end = match.span()
            if at and text[at - 1] not in known.BEFORE_A_PATH:
                continue
            code = self._code_at(at)
            if code is not None and not self._is_comment(at):
                yield CapabilityKind.FILE, path_name(text[at:end]), at, code.context, False

    def _variables(self) -> Iterator[Found]:
        computed: dict[int, set[bytes]] = {}
        for match in known.SECRET_VARIABLE.finditer(self._text):
            at = match.start()
            code = self._code_at(at)
            in_shell, elsewhere = match.group(1), match.group(2)
            if code is None or (in_shell is None) is (code.language == "bash") or self._is_comment(at):
                continue
            if code.start not in computed:
                computed[code.start] = self._computed_variables(code)
            name = in_shell or elsewhere
            if name not in computed[code.start]:
                said = f"environment variable {name.decode()}"
                yield CapabilityKind.SECRET, said, at, code.context, False

    def _computed_variables(self, code: ActingCode) -> set[bytes]:
        """Variables that a script computes, and so does not take from outside."""
        if code.language != "bash" or code.context is not CapabilityContext.CODE:
            return set()
        given = known.ASSIGNED.finditer(self._text, code.start, code.end)
        return {one.group(1) for one in given if b"$" + one.group(1) not in one.group(2).replace(b"{", b"")}

    # What the syntax tree tells.

    def _facts(self) -> Iterator[Found]:
        for fact in self._layer.facts:
            said = known.FACTS.get(fact.name)
            if said is None:
                continue
            code = self._code_at(fact.offset)
            if code is None or self._layer.piece_at(fact.offset).role in _SPOKEN_OF:
                continue
            kind, names = said
            what = fact.attributes.get("what", "")
            yield kind, names.get(what, what), fact.offset, code.context, False

    # Places.

    def _code_at(self, offset: int) -> ActingCode | None:
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or offset >= self._code[index].end:
            return None
        return self._code[index]

    def _is_comment(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        if index in self._plain:
            # Only comments, documents and labels are made spaces.
            inside = offset - self._starts[index]
            return self._plain[index][inside : inside + 1] == b" " and self._text[offset] != ord(" ")
        if index not in self._comments:
            self._comments[index] = list(_comments(self._text, self._code[index]))
        spans = self._comments[index]
        before = bisect_right(spans, (offset, len(self._text))) - 1
        return before >= 0 and offset < spans[before][1]


def _ran(lines: Iterable[CommandLine], code: ActingCode, base: int, own: frozenset[str]) -> Iterator[Found]:
    """What command lines run and install."""
    piped_from: CommandLine | None = None
    for line in lines:
        at = base + line.offset
        program = program_of(line)
        for name in (*known.RAISING.intersection(line.starters), program):
            if name and name not in known.TAME and name not in own:
                yield CapabilityKind.COMMAND, name, at, code.context, True
        if program in known.INSTALLERS or program.startswith("python"):
            for package in installed_by(line, program):
                yield CapabilityKind.INSTALL, package, at, code.context, True
        elif program in known.TALKING:
            for host in hosts_of(line, program):
                yield CapabilityKind.HOST, host, at, code.context, True
        if piped_from is not None and program in known.SHELLS and runs_its_input(line):
            source = next(iter(addresses_in(piped_from)), known.CHOSEN_AT_RUN_TIME)
            yield CapabilityKind.INSTALL, f"a script from {source} (run at once)", at, code.context, True
        piped_from = line if line.piped and program in known.DOWNLOADERS else None


_SPOKEN_OF = frozenset({TextRole.QUOTE, TextRole.COMMENT, TextRole.TEST})


def _acting_code(layer: Layer) -> Iterator[ActingCode]:
    """The code of a layer, in order. In prose it is what an agent is told to run."""
    if layer.decoded:
        if layer.roles.isdisjoint({TextRole.QUOTE, TextRole.DATA, TextRole.TEST}):
            yield ActingCode(0, len(layer.text), "bash", CapabilityContext.CODE)
        return
    in_prose = TextRole.FOLLOW in layer.roles
    loads = TextRole.LOAD in layer.roles
    end = 0
    for block in layer.blocks:
        if block.start < end:
            continue
        end = block.end
        context = CapabilityContext.CODE
        if in_prose and not (loads and layer.piece_at(block.start).role is TextRole.LOAD):
            context = CapabilityContext.INSTRUCTION
        yield ActingCode(block.start, block.end, block.language, context)


def _comments(text: bytes, code: ActingCode) -> Iterator[tuple[int, int]]:
    pattern = known.COMMENTS.get(code.language, known.COMMENTS["other"])
    for token in pattern.finditer(text, code.start, code.end):
        first, second = token.span(1), token.span(2)
        if second != _NOWHERE:
            yield second
        elif first != _NOWHERE and not (code.language == "python" and _is_value(text, code.start, first[0])):
            yield first


_NOWHERE = (-1, -1)


def _is_value(text: bytes, start: int, offset: int) -> bool:
    """Whether a text on a line of its own continues the line before it; otherwise it is a comment."""
    before = text[max(start, offset - 200) : offset].rstrip()
    return before != b"" and before[-1] in known.CONTINUING

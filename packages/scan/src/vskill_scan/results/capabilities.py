"""The capability card of a skill, made of the layers that the scan has read: hosts, commands, files, secrets, installs
and what outlives the session, each with its first place, and what could not be read.

Words and literals are looked for in code and commands, not in comments; what only
whole statements tell (which secret is read, what is made to last) comes from the facts of `flows`. So a card costs
little, and the same text gives the same card whatever stands beside it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from vskill_core.capability import (
    LONGEST_VALUE,
    CapabilityContext,
    CapabilityKind,
    CapabilityUse,
    SkillCapability,
)
from vskill_scan.limits import Budget
from vskill_scan.model import Layer, TextRole
from vskill_scan.places import SECRET_PATHS, secret_at
from vskill_scan.reading.code_roles import comments_of, role_at
from vskill_scan.reading.files import Reading
from vskill_scan.reading.languages import FOLLOWED, SHALLOW, language_of
from vskill_scan.results import capability_words as known
from vskill_scan.results.card_names import argument_lines, host_name, path_name
from vskill_scan.results.command_lines import CommandLine, blank_quoted, command_lines, defined_functions
from vskill_scan.results.fetched import FetchedFiles
from vskill_scan.results.ran import ActingCode, CardFind, acting_code, ran
from vskill_scan.results.settings import auto_run, moved_hosts
from vskill_scan.results.shallow import started_lines
from vskill_scan.results.told import finds_all, told_secrets, told_uses

#: Places that are looked at in one skill; nobody reads a card with more.
MOST_PLACES = 20_000
#: Of the text after a call that starts a program, how much is looked at for the program's name.
ARGUMENT_BYTES = 400

#: A file, and why it was not read.
Unread = tuple[str, str]


class _Spot(msgspec.Struct, gc=False):
    """The first place of one thing in one context."""

    layer: Layer
    offset: int
    shell: bool = False
    uses: tuple[CapabilityUse, ...] = ()


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
        language, context = language_of(layer.path, layer.text), CapabilityContext.CODE
        if language == "other":
            said = f"commands and files in .{suffix} programs (their hosts are listed)"
        elif language in SHALLOW:
            said = f"{SHALLOW[language]}: read by patterns, the data flow is not followed"
            context = CapabilityContext.PATTERNS
        else:
            continue
        if said not in seen:
            seen.add(said)
            yield SkillCapability(CapabilityKind.UNREAD, said, layer.path, context=context)


class _CardReader:
    """What was found so far in one skill."""

    def __init__(self, own_files: frozenset[str]) -> None:
        self._own_files = own_files
        self._files = FetchedFiles(own_files)
        self._spots: dict[tuple[CapabilityKind, str, CapabilityContext], _Spot] = {}
        self._left = MOST_PLACES

    def entries(self) -> Iterator[SkillCapability]:
        for name, host, place in self._files.run():
            run = CardFind(CapabilityKind.HOST, host, place.offset, place.context, True, CapabilityUse.RUNS)
            said = f"{name} from {host} (downloaded and run)"
            self._add(place.layer, run)
            self._add(place.layer, run._replace(kind=CapabilityKind.INSTALL, value=said))
        for (kind, value, context), spot in self._spots.items():
            line = spot.layer.line_at(spot.offset)
            yield SkillCapability(kind, value, spot.layer.path, line, context, spot.shell, spot.uses)

    def read(self, layer: Layer) -> bool:
        """Whether all of it was read."""
        if layer.roles == {TextRole.TEST}:
            return True
        for one in _LayerReader(layer, self._own_files, self._files).found():
            self._left -= 1
            if self._left < 0:
                return False
            self._add(layer, one)
        return True

    def _add(self, layer: Layer, one: CardFind) -> None:
        value = one.value[:LONGEST_VALUE]
        if not value.isprintable():
            value = "".join(char for char in value if char.isprintable())
        spot = self._spots.setdefault((one.kind, value, one.context), _Spot(layer, one.offset))
        spot.shell = spot.shell or one.shell
        if one.use is not None and one.use not in spot.uses:
            spot.uses += (one.use,)


class _LayerReader:
    """Reads one layer."""

    def __init__(self, layer: Layer, own_files: frozenset[str], fetched: FetchedFiles) -> None:
        self._layer = layer
        self._text = layer.text
        self._own = own_files
        self._fetched = fetched
        self._code = list(acting_code(layer))
        self._starts = [code.start for code in self._code]
        #: of shell code, its text without quotes and comments
        self._plain: dict[int, bytes] = {}
        #: a file that is one program, not a text with several blocks, starts other programs
        self._starts_programs = False
        #: something that acts names a host
        self._names_host = False
        #: of each code, what it does with the hosts that it names
        self._uses: dict[int, list[CapabilityUse]] = {}

    def found(self) -> Iterator[CardFind]:
        if self._code and not self._layer.decoded:
            for index in range(len(self._code)):
                yield from self._commands(index)
            yield from self._paths()
            yield from self._variables()
            yield from self._facts()
        if self._layer.path.endswith("package.json"):
            for hook in known.INSTALL_HOOK.finditer(self._text):
                said = f"{hook.group(1).decode()} script (npm)"
                yield CardFind(CapabilityKind.INSTALL, said, hook.start(), CapabilityContext.CODE, True)
        yield from self._settings()
        if b"://" in self._text and self._layer.roles != {TextRole.DATA}:
            yield from self._addresses()
        if any(code.language != "bash" for code in self._code):
            yield from self._connections()
            if not self._names_host:
                yield from self._calls()
        if TextRole.FOLLOW in self._layer.roles and not self._layer.decoded:
            for what, at in told_secrets(self._layer):
                yield CardFind(CapabilityKind.SECRET, known.SECRETS[what], at, CapabilityContext.INSTRUCTION)

    def _settings(self) -> Iterator[CardFind]:
        for field, at in auto_run(self._layer):
            said = f"{field} (runs by itself, and fetches)"
            yield CardFind(
                CapabilityKind.PERSISTENCE, said, at, self._context_at(at), True, CapabilityUse.STARTS
            )
        for host, at in moved_hosts(self._layer):
            yield CardFind(CapabilityKind.HOST, host, at, self._context_at(at), False, CapabilityUse.MOVES)

    def _context_at(self, offset: int) -> CapabilityContext:
        code = self._code_at(offset)
        if code is not None:
            return code.context
        in_prose = TextRole.FOLLOW in self._layer.roles
        return CapabilityContext.INSTRUCTION if in_prose else CapabilityContext.CODE

    # Hosts.

    def _addresses(self) -> Iterator[CardFind]:
        for match in known.ADDRESS.finditer(self._text):
            low, high = match.span(1)
            host = host_name(self._text[low:high].decode("utf-8", "replace"))
            if host:
                at = match.start()
                context = self._context_of_address(at)
                uses: list[CapabilityUse] = []
                if context is CapabilityContext.LINK and self._is_prose(at):
                    is_told, uses = told_uses(self._layer, at, high - at)
                    context = CapabilityContext.INSTRUCTION if is_told else context
                else:
                    uses = self._uses_by_code(at)
                acts = context is not CapabilityContext.LINK
                self._names_host = self._names_host or acts
                for use in uses or (None,):
                    yield CardFind(CapabilityKind.HOST, host, at, context, acts and self._is_shell(at), use)

    def _connections(self) -> Iterator[CardFind]:
        for match in known.CONNECT.finditer(self._text):
            code = self._code_at(match.start())
            host = host_name(match.group(1).decode("ascii", "replace"))
            if host and code is not None and code.language != "bash" and not self._is_comment(match.start()):
                self._names_host = True
                for use in self._uses_by_code(match.start()) or (None,):
                    shell = self._is_shell(match.start())
                    yield CardFind(CapabilityKind.HOST, host, match.start(), code.context, shell, use)

    def _calls(self) -> Iterator[CardFind]:
        """The first call over the network of code that names no host: it must not look like code that needs none."""
        for match in known.CALLS.finditer(self._text):
            at = match.start()
            code = self._code_at(at)
            if code is not None and code.language != "bash" and not self._is_comment(at):
                shell = self._is_shell(at)
                yield CardFind(CapabilityKind.HOST, known.CHOSEN_AT_RUN_TIME, at, code.context, shell)
                return

    def _is_prose(self, offset: int) -> bool:
        is_prose = TextRole.FOLLOW in self._layer.roles and not self._layer.decoded
        return is_prose and self._layer.piece_at(offset).role in {TextRole.FOLLOW, TextRole.HIDDEN}

    def _uses_by_code(self, offset: int) -> list[CapabilityUse]:
        """What the program around an address does: sends something, or, where no flow is followed, fetches something
        and runs what is not written in it. Of a shell the commands tell."""
        code = self._code_at(offset)
        if code is None or code.language == "bash":
            return []
        if code.start not in self._uses:
            sends, *runs = (
                known.DOING if code.language not in known.STARTS else (known.DOING[0], *known.RUNS_A_TEXT)
            )
            found = sends.search(self._text, code.start, code.end)
            uses = self._uses[code.start] = [CapabilityUse.SENDS] if found else []
            is_run = all(sign.search(self._text, code.start, code.end) for sign in runs)
            if code.language in SHALLOW and is_run:
                uses.append(CapabilityUse.RUNS)
        return self._uses[code.start]

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

    def _commands(self, index: int) -> Iterator[CardFind]:
        code = self._code[index]
        if code.language == "bash":
            stretch = self._text[code.start : code.end]
            plain = self._plain[index] = blank_quoted(stretch)
            own = self._own | defined_functions(plain)
            written = command_lines(stretch, plain, known.UNTOLD)
            yield from ran(written, code, code.start, own, self._layer, self._fetched)
        elif code.language in SHALLOW and code.language not in known.STARTS:
            started = started_lines(self._text[code.start : code.end], code.language)
            told = [line for line in started if not self._is_comment(code.start + line.offset)]
            self._starts_programs = self._starts_programs or bool(told)
            yield from ran(told, code, code.start, self._own, self._layer, self._fetched)
        elif code.language in known.STARTS:
            for at, lines in self._started(code):
                self._starts_programs = self._starts_programs or code.end - code.start == len(self._text)
                moved = (msgspec.structs.replace(line, offset=0) for line in lines)
                yield from ran(moved, code, at, self._own, self._layer, self._fetched)

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

    def _paths(self) -> Iterator[CardFind]:
        text = self._text
        for match in known.PATH.finditer(text):
            at, end = match.span()
            if at and text[at - 1] not in known.BEFORE_A_PATH:
                continue
            code = self._code_at(at)
            if code is not None and not self._is_comment(at):
                yield CardFind(CapabilityKind.FILE, path_name(text[at:end]), at, code.context)

    def _variables(self) -> Iterator[CardFind]:
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
                yield CardFind(CapabilityKind.SECRET, said, at, code.context)
        # Of those whose values are followed, facts say it.
        for code in (one for one in self._code if one.language not in FOLLOWED):
            for match in SECRET_PATHS.finditer(self._text, code.start, code.end):
                what = secret_at(match.group().decode("utf-8", "replace"))
                if what and not self._is_comment(match.start()):
                    yield CardFind(CapabilityKind.SECRET, known.SECRETS[what], match.start(), code.context)
        for at in finds_all(self._text):
            code = self._code_at(at)
            if code is not None and not self._is_comment(at):
                yield CardFind(CapabilityKind.SECRET, known.SECRETS["every-dotenv"], at, code.context)

    def _computed_variables(self, code: ActingCode) -> set[bytes]:
        """Variables that a script computes, and so does not take from outside."""
        if code.language != "bash" or code.context is not CapabilityContext.CODE:
            return set()
        given = known.ASSIGNED.finditer(self._text, code.start, code.end)
        return {one.group(1) for one in given if b"$" + one.group(1) not in one.group(2).replace(b"{", b"")}

    # What statements tell.

    def _facts(self) -> Iterator[CardFind]:
        for fact in self._layer.facts:
            said = known.FACTS.get(fact.name)
            if said is None:
                continue
            code = self._code_at(fact.offset)
            piece = self._layer.piece_at(fact.offset)
            if code is None or role_at(self._layer, piece, fact.offset) in _SPOKEN_OF:
                continue
            kind, names = said
            what = fact.attributes.get("what", "")
            yield CardFind(kind, names.get(what, what), fact.offset, code.context)

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
        code = self._code[index]
        spans = comments_of(self._layer, code.start, code.end, code.language)
        before = bisect_right(spans, (offset, len(self._text))) - 1
        return before >= 0 and offset < spans[before][1]


_SPOKEN_OF = frozenset({TextRole.QUOTE, TextRole.COMMENT, TextRole.TEST})

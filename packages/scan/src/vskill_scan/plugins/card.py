"""What a plugin starts, talks to and runs by itself, as entries of its card and as commands for the rules to read."""

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from vskill_core.capability import LONGEST_VALUE, CapabilityKind, SkillCapability
from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_scan.model import CodeBlock, Layer, Piece, TextRole
from vskill_scan.plugins.forms import Invalid, Server
from vskill_scan.plugins.plugin import Part, Plugin, PluginProblem, ProblemKind
from vskill_scan.plugins.programs import Origin, StartedProgram, commands_in, program_of, unwrapped
from vskill_scan.plugins.secrets import without_secrets
from vskill_scan.results.card_names import host_name
from vskill_scan.rules import structure

#: Of a value that is longer, so much is shown, and then what tells it from another.
SHOWN = 120
#: Of one hook, whose programs are named; all of its commands are read by the rules.
MOST_COMMANDS = 500

_RULES = {
    ProblemKind.FATAL: structure.BAD_PLUGIN,
    ProblemKind.DISAGREE: structure.MANIFESTS_DISAGREE,
    ProblemKind.SKIPPED: structure.PART_SKIPPED,
    ProblemKind.SECRET: structure.SECRET_SHIPPED,
}


def problem_findings(problems: Sequence[PluginProblem]) -> Iterator[Finding]:
    for one in problems:
        rule = _RULES[one.kind]
        yield rule.found(one.file, line=one.line, excerpt=one.sentence[:LONGEST_VALUE], remedy=one.told)


def command_layers(plugin: Plugin) -> Iterator[Layer]:
    """Its commands as a shell would be given them, each at the line on which it is declared."""
    for part in plugin.parts:
        for command in _commands(part):
            text = command.encode("utf-8", "replace")
            piece, block = Piece(0, len(text), TextRole.COMMAND, 0), CodeBlock(0, len(text), "bash")
            roles = frozenset({TextRole.COMMAND})
            yield Layer(part.file, text, [piece], [block], [], text, origin=part.line or 1, roles=roles)


def _commands(part: Part) -> Iterator[str]:
    """As they are written, and then what they start in the end."""
    server = part.server
    if server is not None and server.command:
        yield " ".join([server.command, *map(shlex.quote, server.args)])
    if server is not None and server.headers_helper:
        yield server.headers_helper
    if part.command:
        yield part.command
    inner = [shlex.join(one) for words in _started(part) for one in unwrapped(words) if [*one] != [*words]]
    if any(inner):
        yield "; ".join(filter(None, inner))


def card_of(plugin: Plugin, files: Sequence[SkillFile]) -> Iterator[SkillCapability]:
    """Its programs, servers and hooks, and the code of them that is fetched when they start, which no scan reads."""
    paths = frozenset(file.path for file in files)
    for part in plugin.parts:
        server = part.server
        if part.event:
            whole = (part.command, part.given) if part.given else part.command
            yield _entry(CapabilityKind.HOOK, f"{part.event}: {part.command}", part, whole)
        if server is not None and server.url:
            yield _entry(CapabilityKind.SERVER, server.url, part, server)
            if host := host_name(_host(server.url)):
                yield SkillCapability(CapabilityKind.HOST, host, part.file, part.line)
        origins: set[Origin] = set()
        for number, words in enumerate(one for given in _started(part) for one in unwrapped(given)):
            if number == MOST_COMMANDS:
                yield _entry(CapabilityKind.UNREAD, f"more than {number} commands of {part.path}", part)
                break
            try:
                program = program_of(words, paths)
            except Invalid as error:
                origins.add(Origin.MISSING)
                yield _entry(CapabilityKind.UNREAD, f"the program of {part.path}: it {error.sentence}", part)
                continue
            origins.add(program.origin)
            if program.origin in (Origin.FETCHED, Origin.PINNED):
                yield _entry(CapabilityKind.UNREAD, _unread(program, part), part)
        if server is not None and origins:
            # One entry a server, so that no number of commands hides one behind the count of the rest.
            line = " ".join([server.command, *server.args]) if server.command else server.headers_helper
            first = next(one for one in Origin if one in origins)
            yield _entry(CapabilityKind.PROGRAM, f"{line} ({first})", part, server)


def _unread(program: StartedProgram, part: Part) -> str:
    newest = "" if program.origin is Origin.PINNED else ", as it is then"
    return f"the code of {program.what}, which {part.path} fetches when it starts{newest}"


def _started(part: Part) -> Iterator[Sequence[str]]:
    """The words of each program that a part starts."""
    server = part.server
    if server is not None and server.command:
        yield (server.command, *server.args)
        if " " in server.command and not server.command.startswith(("./", "${")):
            # Some clients split it.
            yield (*server.command.split(), *server.args)
    for text in filter(None, (part.command, server.headers_helper if server else "")):
        yield from commands_in(text)


def _entry(kind: CapabilityKind, told: str, part: Part, whole: object = None) -> SkillCapability:
    """An entry whose value changes with all that it stands for, also with what it does not show."""
    shown = without_secrets(" ".join(told.split()))
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
    is_hidden = len(shown) > SHOWN or shown != told or isinstance(whole, tuple)
    is_hidden = is_hidden or (isinstance(whole, Server) and bool(_more(whole)))
    if whole is not None and is_hidden:
        mark = hashlib.sha256(msgspec.json.encode(whole)).hexdigest()[:8]
        shown = f"{shown[:SHOWN]} [{_names(whole)}{mark}]"
    return SkillCapability(kind, shown[:LONGEST_VALUE], part.file, part.line)


def _more(server: Server) -> list[str]:
    """Names of what it is given beside its arguments; never the values."""
    return [*server.env, *server.headers, *(["cwd"] if server.cwd else [])]


def _names(whole: object) -> str:
    names = ", ".join(_more(whole))[:20] if isinstance(whole, Server) else ""
    return f"{names}; " if names else ""


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

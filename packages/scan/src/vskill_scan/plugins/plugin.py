"""What a folder with a plugin's manifest holds: its parts, and what its author should correct."""

import enum
from collections.abc import Iterator

import msgspec

from vskill_scan.plugins.forms import Invalid, Server, inside


class PartKind(enum.StrEnum):
    """What a part of a plugin is."""

    SKILL = "skill"
    SERVER = "server"
    HOOK = "hook"
    COMMAND = "command"
    AGENT = "agent"
    #: prose that stands before everything else that an agent is told
    STYLE = "output style"
    #: files that one client alone knows what to do with
    CLIENT = "client"


class Part(msgspec.Struct, frozen=True):
    """One part, and where it stands."""

    kind: PartKind
    #: its address in the plugin: `skills/tidy`, `servers/docs`
    path: str
    file: str
    line: int = 0
    #: of a skill, as its front matter says it
    description: str = ""
    server: Server | None = None
    #: of a hook: when it runs, the command, or the text that a model is asked, and what it is given beside that
    event: str = ""
    command: str = ""
    given: dict[str, str] = {}


class ProblemKind(enum.StrEnum):
    """What is wrong with a part or a manifest."""

    #: no client, or none of the standard, takes the manifest
    FATAL = "fatal"
    #: two manifests say different things
    DISAGREE = "disagree"
    #: a client skips or ignores it
    SKIPPED = "skipped"
    #: a value in a header or a variable looks like a secret
    SECRET = "secret"  # noqa: S105 - a kind's name


class PluginProblem(msgspec.Struct, frozen=True):
    """Something that its author should correct. It never repeats a value, which may be a secret."""

    kind: ProblemKind
    file: str
    line: int
    sentence: str
    fix: str
    #: a client might start something that was not read because of it
    unread: bool = False

    @property
    def told(self) -> str:
        """Where, what and how to correct it, in one sentence."""
        return f"{self.file} line {self.line}: {self.sentence}; {self.fix}."


class Plugin(msgspec.Struct):
    """What a folder with a plugin's manifest holds."""

    name: str = ""
    version: str = ""
    description: str = ""
    license: str = ""
    parts: list[Part] = []
    problems: list[PluginProblem] = []

    @property
    def fatal(self) -> PluginProblem | None:
        return next((one for one in self.problems if one.kind is ProblemKind.FATAL), None)

    def obeyed(self) -> Iterator[str]:
        """Files that an agent follows, or that a client starts."""
        prose = (PartKind.SKILL, PartKind.COMMAND, PartKind.AGENT, PartKind.STYLE)
        for part in self.parts:
            if part.kind in prose:
                yield part.file
            server = part.server or Server()
            for word in (server.command, *server.args, *part.command.split(), *server.headers_helper.split()):
                try:
                    yield inside(word.replace('"', "").replace("'", "")) or ""
                except Invalid:
                    continue

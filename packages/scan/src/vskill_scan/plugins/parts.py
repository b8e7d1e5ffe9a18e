"""The parts of a plugin: what a client that installs the folder would load, start, talk to and run.

A plugin has a manifest at its root in one of two forms, or in both. Clients differ in which they believe, so the parts
are those of both: what any client starts is on the card. What every client skips is no part, and is said with its fix.
"""

import enum
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidManifest
from vskill_core.kind import OLDER, PLUGIN_SCHEMA, STANDARD
from vskill_scan.plugins.forms import (
    PLAIN_TEXTS,
    SERVERS_SCHEMA,
    HookGroup,
    Invalid,
    OlderManifest,
    Server,
    StandardManifest,
    check_texts,
    convert,
    inside,
    read_server,
    require_schema,
)
from vskill_scan.plugins.json_files import BadJson, JsonObject, read_object
from vskill_scan.plugins.secrets import holds_secret
from vskill_scan.reading.manifest import read_manifest

#: More than this of one kind is not read: nobody reads a card with more, and its last entry only counts the rest.
MOST_SERVERS, MOST_HOOKS, MOST_PATHS = 50, 50, 100
#: Problems that are said, and fields of one object among them.
MOST_PROBLEMS, MOST_FIELDS = 100, 20
#: Fields by which a manifest of the older form names parts.
_NAMING = frozenset(("skills", "commands", "agents", "hooks", "mcpServers", "lspServers"))
STANDARD_SERVERS = "mcp.json"
SERVERS, HOOKS = (STANDARD_SERVERS, ".mcp.json", ".lsp.json"), ("hooks/hooks.json", "hooks.json")


class PartKind(enum.StrEnum):
    """What a part of a plugin is."""

    SKILL = "skill"
    SERVER = "server"
    HOOK = "hook"
    COMMAND = "command"
    AGENT = "agent"
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
    #: of a hook: when it runs, and the command, or the text that a model is asked
    event: str = ""
    command: str = ""


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
        prose = (PartKind.SKILL, PartKind.COMMAND, PartKind.AGENT)
        for part in self.parts:
            if part.kind in prose:
                yield part.file
            server = part.server or Server()
            for word in (server.command, *server.args, *part.command.split(), *server.headers_helper.split()):
                try:
                    yield inside(word.strip("\"'")) or ""
                except Invalid:
                    continue


def is_plugin(files: Sequence[SkillFile]) -> bool:
    return any(file.path in (STANDARD, OLDER) for file in files)


def read_plugin(files: Sequence[SkillFile]) -> Plugin | None:
    """None for a folder without a manifest at its root."""
    return _PartReader(files).read() if is_plugin(files) else None


class _PartReader:
    """Reads one folder."""

    def __init__(self, files: Sequence[SkillFile]) -> None:
        self._files = {file.path: file for file in files}
        self._plugin = Plugin()
        self._said: set[tuple[PartKind, str]] = set()

    def read(self) -> Plugin:
        plugin = self._plugin
        standard, older = self._manifest(STANDARD, StandardManifest), self._manifest(OLDER, OlderManifest)
        first = standard or older
        if first is not None:
            plugin.name, plugin.version = first.name, first.version
            plugin.description, plugin.license = first.description, first.license
        if standard and older:
            self._compare(standard, older)
        self._skills()
        for folder, kind in (("commands/", PartKind.COMMAND), ("agents/", PartKind.AGENT)):
            self._texts(kind, [path for path in self._files if path.startswith(folder)])
        for path in SERVERS:
            self._servers_in(path)
        for path in HOOKS:
            self._hooks_in(path)
        for path in (STANDARD, OLDER):
            self._named_by(path)
        self._client_folders()
        return plugin

    def _problem(
        self, kind: ProblemKind, file: str, line: int, sentence: str, fix: str, *, unread: bool = False
    ) -> None:
        said = self._plugin.problems
        counts = kind is ProblemKind.FATAL or (unread and not any(one.unread for one in said))
        if counts or len(said) < MOST_PROBLEMS:
            said.append(PluginProblem(kind, file, line, sentence, fix, unread))

    def _too_many(self, file: str, count: int, what: str, most: int) -> None:
        sentence = f"it declares {count} {what}, and at most {most} of a plugin are read"
        self._problem(ProblemKind.FATAL, file, 1, sentence, "split it into several plugins", unread=True)

    def _room(self, kind: PartKind, most: int) -> int:
        return most - sum(part.kind is kind for part in self._plugin.parts)

    def _skip(self, file: str, line: int, error: Invalid, what: str, *, unread: bool = False) -> None:
        sentence = f"{what} {error.sentence}"
        self._problem(ProblemKind.SKIPPED, file, line, sentence, error.fix, unread=unread)

    def _object(self, path: str, kind: ProblemKind) -> JsonObject | None:
        try:
            return read_object(self._files[path])
        except BadJson as error:
            self._problem(kind, path, error.line, error.sentence, error.fix, unread=error.may_count)
            return None

    # The manifests.

    def _manifest(self, path: str, form: Any) -> Any:
        if path not in self._files or (document := self._object(path, ProblemKind.FATAL)) is None:
            return None
        data = document.data
        try:
            if form is StandardManifest:
                self._check_closed(document)
                require_schema(data, PLUGIN_SCHEMA)
                check_texts(data)
            return convert(data, form)
        except Invalid as error:
            sentence, is_older = f"the manifest {error.sentence}", form is OlderManifest
            self._problem(ProblemKind.FATAL, path, 1, sentence, error.fix, unread=is_older)
            return None

    def _check_closed(self, document: JsonObject) -> None:
        known = {field.encode_name for field in msgspec.structs.fields(StandardManifest)}.union(PLAIN_TEXTS)
        strange = [name for name in document.data if name not in known][:MOST_FIELDS]
        for name, line in zip(strange, document.lines_of(strange), strict=True):
            sentence = f"the field {name[:60]!a} is none of the standard, and clients ignore it"
            self._problem(ProblemKind.SKIPPED, document.path, line, sentence, "move it below `extensions`")

    def _compare(self, standard: StandardManifest, older: OlderManifest) -> None:
        for field in ("name", "version", "description", "license"):
            one, other = getattr(standard, field), getattr(older, field)
            if one and other and one != other:
                sentence = f"its {field} is not that of {STANDARD}, and each client believes another file"
                fix = f"write the same {field} into both"
                self._problem(ProblemKind.DISAGREE, OLDER, 1, sentence, fix)

    def _named_by(self, path: str) -> None:
        """What a manifest adds to the fixed places. By the standard none does, and some clients read it there too."""
        try:
            document = read_object(self._files[path])
        except (KeyError, BadJson):
            return
        try:
            older = convert({"name": "-", **document.data}, OlderManifest)
        except Invalid as error:
            if path == STANDARD and not _NAMING.isdisjoint(document.data):
                self._skip(path, 1, error, "it", unread=True)
            return
        self._texts_named_by(older)
        for key, declared in (("mcpServers", older.mcp_servers), ("lspServers", older.lsp_servers)):
            if isinstance(declared, dict):
                self._servers(document, declared, key, standard=False)
                continue
            for named in self._paths(declared):
                self._servers_in(named)
        if isinstance(older.hooks, dict):
            self._hooks(document, older.hooks.get("hooks", older.hooks), "hooks")
            return
        for named in self._paths(older.hooks):
            self._hooks_in(named)

    def _texts_named_by(self, older: OlderManifest) -> None:
        for named in self._paths(older.skills):
            self._skills(f"{named}/" if named != "." else "")
        commands = older.commands
        if isinstance(commands, dict):
            commands = tuple(str(one.get("source", "")) for one in commands.values() if isinstance(one, dict))
        for given, kind in ((commands, PartKind.COMMAND), (older.agents, PartKind.AGENT)):
            for named in self._paths(given):
                self._texts(kind, [one for one in self._files if one == named or one.startswith(f"{named}/")])

    def _paths(self, given: str | Sequence[str]) -> Iterator[str]:
        """The files and folders that a field of the older manifest names."""
        named = [given] if isinstance(given, str) else given
        if len(named) > MOST_PATHS:
            self._too_many(OLDER, len(named), "paths", MOST_PATHS)
        for written in named[:MOST_PATHS]:
            try:
                path = inside(written if written.startswith((".", "$")) else f"./{written}")
            except Invalid as error:
                self._skip(OLDER, 1, error, "it")
                continue
            if path is not None:
                yield path

    # What an agent reads.

    def _skills(self, folder: str = "skills/") -> None:
        for path, file in self._files.items():
            name = path.removeprefix(folder).removesuffix("/SKILL.md")
            if (
                not path.startswith(folder)
                or f"{folder}{name}/SKILL.md" != path
                or self._known(PartKind.SKILL, path)
            ):
                continue
            if "/" in name:
                fix = f"move its folder to {folder}"
                self._problem(ProblemKind.SKIPPED, path, 1, "no client looks for a skill so deep", fix)
            try:
                read = read_manifest(file.data, name.rpartition("/")[2])
            except InvalidManifest as error:
                line = error.details.get("line")
                at = line if isinstance(line, int) else 1
                self._problem(
                    ProblemKind.SKIPPED, path, at, "clients skip this skill", error.message.rstrip(".")
                )
                continue
            self._plugin.parts.append(Part(PartKind.SKILL, folder + name, path, 1, read.description))

    def _texts(self, kind: PartKind, paths: Sequence[str]) -> None:
        for path in paths:
            if path.lower().endswith(".md") and not self._known(kind, path):
                self._plugin.parts.append(Part(kind, path[: -len(".md")], path, 1))

    def _known(self, kind: PartKind, path: str) -> bool:
        """Whether it was read as that already: a manifest may name what lies in its fixed place."""
        known = (kind, path) in self._said
        self._said.add((kind, path))
        return known

    def _client_folders(self) -> None:
        """Top-level folders in reverse domain form: `com.example.client`."""
        tops = {path.partition("/")[0]: path for path in self._files if "/" in path}
        for top, path in sorted(tops.items()):
            if top.count(".") >= 2 and not top.startswith("."):
                self._plugin.parts.append(Part(PartKind.CLIENT, top, path))

    # What starts by itself.

    def _servers_in(self, path: str) -> None:
        if path not in self._files or self._known(PartKind.SERVER, path):
            return
        if (document := self._object(path, ProblemKind.SKIPPED)) is None:
            return
        standard, data = path == STANDARD_SERVERS and STANDARD in self._files, document.data
        servers = data.get("mcpServers") if standard else data.get("mcpServers", data)
        strange = standard and (data.get("$schema") != SERVERS_SCHEMA or len(data) > 2)
        if strange or not isinstance(servers, dict):
            error = Invalid(
                "does not fit the form, so clients of the standard start none of its servers",
                f'write "$schema": "{SERVERS_SCHEMA}", `mcpServers`, and nothing else',
            )
            self._skip(path, 1, error, "it")
        if isinstance(servers, dict):
            # A client that is not strict would start them.
            self._servers(document, servers, "mcpServers", standard=standard and not strange)

    def _servers(self, document: JsonObject, servers: dict[str, Any], key: str, *, standard: bool) -> None:
        room = self._room(PartKind.SERVER, MOST_SERVERS)
        if len(servers) > room:
            self._too_many(document.path, len(servers), "servers", MOST_SERVERS)
        names = [*servers][:room]
        for name, line in zip(names, document.lines_of(names, key), strict=True):
            said = name[:60]
            server = self._server(document.path, line, said, servers[name], standard=standard)
            if server is None:
                continue
            part = Part(PartKind.SERVER, f"servers/{said}", document.path, line, server=server)
            self._plugin.parts.append(part)
            for where, given in (("header", server.headers), ("variable", server.env)):
                for field, value in given.items():
                    if holds_secret(field, value):
                        sentence = f"the {where} {field[:60]!a} of the server {said!a} holds what looks like a secret"
                        fix = "take it from the user's environment, and replace it where it is valid"
                        self._problem(ProblemKind.SECRET, document.path, line, sentence, fix)

    def _server(self, file: str, line: int, said: str, given: Any, *, standard: bool) -> Server | None:
        """What a strict client skips counts where a less strict one would start it."""
        try:
            return read_server(given, standard=standard)
        except Invalid as error:
            taken = self._read_leniently(given)
            self._skip(file, line, error, f"the server {said!a}", unread=taken is None)
            return taken

    def _read_leniently(self, given: Any) -> Server | None:
        try:
            return read_server(given, standard=False)
        except Invalid:
            return None

    def _hooks_in(self, path: str) -> None:
        if path not in self._files or self._known(PartKind.HOOK, path):
            return
        if (document := self._object(path, ProblemKind.SKIPPED)) is not None:
            self._hooks(document, document.data.get("hooks", document.data), "hooks")

    def _hooks(self, document: JsonObject, events: Any, key: str) -> None:
        found: list[tuple[str, str]] = []
        for event, given in events.items() if isinstance(events, dict) else ():
            for group in given if isinstance(given, list) else ():
                try:
                    read: HookGroup = convert(group, HookGroup)
                except Invalid as error:
                    self._skip(document.path, 1, error, f"a hook of {event[:60]!a}", unread=True)
                    continue
                when = f"{event} {read.matcher}".strip()
                found += [(when, one.does) for one in read.hooks or (read,) if one.does]
        room = self._room(PartKind.HOOK, MOST_HOOKS)
        if len(found) > room:
            self._too_many(document.path, len(found), "hooks", MOST_HOOKS)
        found = found[:room]
        lines = document.lines_of([command for _, command in found], key)
        first = 1 + sum(part.kind is PartKind.HOOK for part in self._plugin.parts)
        for number, ((when, command), line) in enumerate(zip(found, lines, strict=True), first):
            path = f"hooks/{number}"
            part = Part(PartKind.HOOK, path, document.path, line, event=when, command=command)
            self._plugin.parts.append(part)

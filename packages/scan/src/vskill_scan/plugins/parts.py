"""The parts of a plugin: what a client that installs the folder would load, start, talk to and run.

A plugin has a manifest at its root in one of two forms, or in both. Clients differ in which they believe, so the parts
are those of both: what any client starts is on the card. What every client skips is no part, and is said with its fix.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import re2

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidManifest
from vskill_core.kind import OLDER, PLUGIN_SCHEMA, STANDARD, is_manifest
from vskill_scan.plugins.forms import (
    PLAIN_TEXTS,
    SERVERS_SCHEMA,
    Given,
    Handler,
    Invalid,
    OlderManifest,
    Server,
    StandardManifest,
    check_texts,
    convert,
    inside,
    read_hooks,
    read_server,
    require_schema,
)
from vskill_scan.plugins.json_files import BadJson, JsonObject, read_object
from vskill_scan.plugins.plugin import Part, PartKind, Plugin, PluginProblem, ProblemKind
from vskill_scan.plugins.secrets import holds_secret
from vskill_scan.reading.manifest import read_manifest

#: More than this of one kind is not read: nobody reads a card with more, and its last entry only counts the rest.
MOST_SERVERS, MOST_HOOKS, MOST_PATHS = 50, 50, 100
#: Problems that are said, and fields of one object among them.
MOST_PROBLEMS, MOST_FIELDS = 100, 20
STANDARD_SERVERS = "mcp.json"
SERVERS, HOOKS = (STANDARD_SERVERS, ".mcp.json", ".lsp.json"), ("hooks/hooks.json", "hooks.json")
MONITORS, SETTINGS = "monitors/monitors.json", "settings.json"
#: Manifests of single clients, such as Codex, Cursor, Devin and Copilot, with the fields of the older form.
_OTHERS = re2.compile(r"^\.(?:[\w-]+-plugin|github/plugin)/plugin\.json$")
#: Fields by which these name parts.
_NAMING = frozenset(
    ("skills", "commands", "agents", "outputStyles", "hooks", "monitors", "mcpServers", "lspServers", "experimental",
     "settings")
)  # fmt: skip
_TEXT_FOLDERS = {"commands/": PartKind.COMMAND, "agents/": PartKind.AGENT, "output-styles/": PartKind.STYLE}
_BUNDLES, _STATUS_LINE = (".mcpb", ".dxt"), "subagentStatusLine"


def is_plugin(files: Sequence[SkillFile]) -> bool:
    return any(file.path in (STANDARD, OLDER) for file in files)


def is_by_standard(files: Sequence[SkillFile]) -> bool:
    """Beside a manifest of the older form, a `plugin.json` that does not name the standard is another tool's."""
    given = {file.path: file.data for file in files if file.path in (STANDARD, OLDER)}
    return STANDARD in given and (OLDER not in given or is_manifest(STANDARD, given[STANDARD]))


def read_plugin(files: Sequence[SkillFile]) -> Plugin | None:
    """None for a folder without a manifest at its root."""
    return _PartReader(files).read() if is_plugin(files) else None


class _PartReader:
    """Reads one folder."""

    def __init__(self, files: Sequence[SkillFile]) -> None:
        self._files = {file.path: file for file in files}
        self._is_standard = is_by_standard(files)
        self._plugin = Plugin()
        self._said: set[tuple[PartKind, str]] = set()
        self._objects: dict[str, JsonObject | None] = {}

    def read(self) -> Plugin:
        plugin = self._plugin
        standard = self._manifest(STANDARD, StandardManifest) if self._is_standard else None
        older = self._manifest(OLDER, OlderManifest)
        first = standard or older
        if first is not None:
            plugin.name, plugin.version = first.name, first.version
            plugin.description, plugin.license = first.description, first.license
        if standard and older:
            self._compare(standard, older)
        self._skills()
        for folder, kind in _TEXT_FOLDERS.items():
            self._texts(kind, [path for path in self._files if path.startswith(folder)])
        for path in SERVERS:
            self._servers_in(path)
        for path in HOOKS:
            self._hooks_in(path)
        self._hooks_in(MONITORS, "monitors")
        if (settings := self._object(SETTINGS, ProblemKind.SKIPPED)) is not None:
            self._status_line(settings, settings.data)
        for path in (
            STANDARD,
            OLDER,
            *(path for path in self._files if _OTHERS.match(path) and path != OLDER),
        ):
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

    def _object(self, path: str, kind: ProblemKind, array: str = "") -> JsonObject | None:
        """The object in a file, if there is one; why it cannot be read is said once."""
        if path in self._files and path not in self._objects:
            self._objects[path] = None
            try:
                self._objects[path] = read_object(self._files[path], array)
            except BadJson as error:
                self._problem(kind, path, error.line, error.sentence, error.fix, unread=error.may_count)
        return self._objects.get(path)

    # The manifests.

    def _manifest(self, path: str, form: Any) -> Any:
        if (document := self._object(path, ProblemKind.FATAL)) is None:
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
        if (document := self._object(path, ProblemKind.SKIPPED)) is None:
            return
        try:
            older = convert({"name": "-", **document.data}, OlderManifest)
            monitors = convert(older.experimental.get("monitors", older.monitors), Given)
        except Invalid as error:
            if path != OLDER or "experimental" in document.data:
                self._skip(path, 1, error, "it", unread=not _NAMING.isdisjoint(document.data))
            return
        self._texts_named_by(path, older)
        for key, declared in (
            ("mcpServers", older.mcp_servers),
            ("lspServers", older.lsp_servers),
            ("monitors", monitors),
            ("hooks", older.hooks),
        ):
            for one in self._given(path, declared):
                self._started_by(document, key, one)
        self._status_line(document, older.settings)

    def _started_by(self, document: JsonObject, key: str, given: str | dict[str, Any]) -> None:
        is_server = key.endswith("Servers")
        if isinstance(given, str):
            self._servers_in(given) if is_server else self._hooks_in(given, key)
        elif is_server:
            self._servers(document, given, key, standard=False)
        else:
            self._hooks(document, {"monitor": given} if key == "monitors" else given, key)

    def _texts_named_by(self, path: str, older: OlderManifest) -> None:
        for named in self._given(path, older.skills):
            self._skills(f"{named}/" if named != "." else "")
        commands = older.commands
        if isinstance(commands, dict):
            written = [one for one in commands.values() if not isinstance(one, dict) or "content" in one]
            if written:
                error = Invalid(
                    "holds the text of a command", "put it into a file, and name that as its `source`"
                )
                self._skip(path, 1, error, "it", unread=True)
            sources = (one.get("source") for one in commands.values() if isinstance(one, dict))
            commands = tuple(one for one in sources if isinstance(one, str))
        styles = (older.output_styles, PartKind.STYLE)
        for given, kind in ((commands, PartKind.COMMAND), (older.agents, PartKind.AGENT), styles):
            for named in self._given(path, given):
                self._texts(kind, [one for one in self._files if one == named or one.startswith(f"{named}/")])

    def _given(self, file: str, declared: Given) -> Iterator[str | dict[str, Any]]:
        """The files and folders that a field of a manifest names, and what stands in it itself."""
        given = declared if isinstance(declared, tuple) else (declared,)
        if len(given) > MOST_PATHS:
            self._too_many(file, len(given), "paths", MOST_PATHS)
        for one in given[:MOST_PATHS]:
            if isinstance(one, dict):
                yield one
                continue
            if "://" in one:
                fix = "put it into the folder, and name it there"
                error = Invalid("names an address, from which a client fetches what it starts", fix)
                self._skip(file, 1, error, "it", unread=True)
                continue
            try:
                path = inside(one if one.startswith((".", "$")) else f"./{one}")
            except Invalid as error:
                self._skip(file, 1, error, "it")
                continue
            if path is not None:
                yield path

    # What an agent reads.

    def _skills(self, folder: str = "skills/") -> None:
        for path, file in self._files.items():
            name = path.removeprefix(folder).removesuffix("/SKILL.md")
            if folder not in ("", "skills/") and path == f"{folder}SKILL.md":
                # The folder of one skill is named, and not one with skills in it.
                name = ""
            elif not path.startswith(folder) or f"{folder}{name}/SKILL.md" != path:
                continue
            if self._known(PartKind.SKILL, path):
                continue
            if "/" in name:
                fix = f"move its folder to {folder}"
                self._problem(ProblemKind.SKIPPED, path, 1, "no client looks for a skill so deep", fix)
            try:
                read = read_manifest(file.data, path.split("/")[-2])
            except InvalidManifest as error:
                line = error.details.get("line")
                at = line if isinstance(line, int) else 1
                self._problem(
                    ProblemKind.SKIPPED, path, at, "clients skip this skill", error.message.rstrip(".")
                )
                continue
            address = (folder + name).rstrip("/")
            self._plugin.parts.append(Part(PartKind.SKILL, address, path, 1, read.description))

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
        if path.lower().endswith(_BUNDLES):
            fix = "declare its servers in .mcp.json"
            self._skip(
                path, 1, Invalid("is a bundle, which a client unpacks and starts", fix), "it", unread=True
            )
            return
        if (document := self._object(path, ProblemKind.SKIPPED)) is None:
            return
        standard, data = path == STANDARD_SERVERS and self._is_standard, document.data
        servers = data.get("mcpServers") if standard else data.get("mcpServers", data)
        strange = standard and (data.get("$schema") != SERVERS_SCHEMA or len(data) > 2)
        if strange or not isinstance(servers, dict):
            error = Invalid(
                "does not fit the form, so clients of the standard start none of its servers",
                f'write "$schema": "{SERVERS_SCHEMA}", `mcpServers`, and nothing else',
            )
            self._skip(path, 1, error, "it", unread=not isinstance(servers, dict))
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
            self._check_secrets(part, f"the server {said!a}", server)

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

    def _hooks_in(self, path: str, key: str = "hooks") -> None:
        """Those of a file; of one with monitors, which is an array, as hooks of the event that a session begins."""
        if path not in self._files or self._known(PartKind.HOOK, path):
            return
        array = "" if key == "hooks" else key
        if (document := self._object(path, ProblemKind.SKIPPED, array)) is not None:
            data = document.data
            self._hooks(document, {"monitor": data.get(key, data)} if array else data, key)

    def _status_line(self, document: JsonObject, settings: dict[str, Any]) -> None:
        if (line := settings.get(_STATUS_LINE)) is not None:
            self._hooks(document, {_STATUS_LINE: [line]}, _STATUS_LINE)

    def _hooks(self, document: JsonObject, events: dict[str, Any], key: str) -> None:
        if "hooks" in events:
            # Whatever else is a list beside it would be an event to a client that takes both forms.
            inner = events["hooks"]
            beside = {event: given for event, given in events.items() if isinstance(given, list)}
            events = {**beside, **inner} if isinstance(inner, dict) else events
        found: list[tuple[str, Handler]] = []
        for when, read in read_hooks(events):
            if isinstance(read, Invalid):
                self._skip(document.path, 1, read, f"a hook of {when[:60]!a}", unread=True)
            else:
                found.append((when, read))
        room = self._room(PartKind.HOOK, MOST_HOOKS)
        if len(found) > room:
            self._too_many(document.path, len(found), "hooks", MOST_HOOKS)
        found = found[:room]
        lines = document.lines_of([read.command or read.does for _, read in found], key)
        first = 1 + sum(part.kind is PartKind.HOOK for part in self._plugin.parts)
        for number, ((when, read), line) in enumerate(zip(found, lines, strict=True), first):
            path, given = f"hooks/{number}", {**read.env, **read.headers}
            part = Part(PartKind.HOOK, path, document.path, line, event=when, command=read.does, given=given)
            self._plugin.parts.append(part)
            self._check_secrets(part, f"the hook of {when[:60]!a}", read)

    def _check_secrets(self, part: Part, said: str, given: Server | Handler) -> None:
        for where, values in (("header", given.headers), ("variable", given.env)):
            for field in (field for field, value in values.items() if holds_secret(field, value)):
                sentence = f"the {where} {field[:60]!a} of {said} holds what looks like a secret"
                fix = "take it from the user's environment, and replace it where it is valid"
                self._problem(ProblemKind.SECRET, part.file, part.line, sentence, fix)

"""A skill or plugin as clients of plugins install it: the manifests that the registry adds, or puts in place of those
that stand there.

Agent Plugins 1.0.0 fixes the manifest at the root; Claude Code and Gemini CLI read older ones, with the same fields.
Where a folder has several, each client believes another one, so they say the same. Our short names are names of plugins
there, which may not have two hyphens in a row either.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from vskill_core.content import SkillFile
from vskill_core.kind import OLDER as CLAUDE
from vskill_core.kind import PLUGIN_SCHEMA, STANDARD, is_made_here
from vskill_scan.plugins.forms import SERVERS_SCHEMA, Invalid, Server, read_server
from vskill_scan.plugins.json_files import BadJson, read_object
from vskill_scan.plugins.parts import STANDARD_SERVERS, is_by_standard, read_plugin

#: By which Claude Code, Copilot CLI and Codex know a plugin, and Gemini CLI an extension.
OLDER = (CLAUDE, "gemini-extension.json")
GENERATED = (STANDARD, *OLDER)
_CLAUDE_SERVERS, STANDARD_SKILLS = ".mcp.json", "skills/"
#: How the standard calls the older form's ways to talk to a server elsewhere.
_TYPES = {"http": "streamable-http", "streamable-http": "streamable-http", "sse": "sse"}
#: Fields of the manifests that are handed out as they were verified; all others are left out.
_KEPT = ("license", "keywords", "author", "homepage", "repository", "extensions")
_KEPT_OLDER = (
    *_KEPT[:-1], "skills", "commands", "agents", "outputStyles", "workflows", "hooks", "monitors", "mcpServers",
    "lspServers", "userConfig", "channels",
)  # fmt: skip
_KEPT_INSIDE = {"experimental": ("monitors",), "settings": ("agent", "subagentStatusLine")}


def generated_files(name: str, version: str, description: str) -> tuple[SkillFile, ...]:
    """What makes a folder a plugin of that name."""
    older = {"name": name, "version": version, "description": description}
    made: dict[str, dict[str, Any]] = {STANDARD: {"$schema": PLUGIN_SCHEMA, **older}}
    return tuple(_file(path, manifest) for path, manifest in (made | dict.fromkeys(OLDER, older)).items())


def whole_plugin(
    name: str, version: str, description: str, files: tuple[SkillFile, ...]
) -> tuple[SkillFile, ...]:
    """A plugin as it was verified, with the manifests that it has: they keep the fields that were read, and say this
    name, version and description. A plugin by the standard gets the older manifest too. One of the older form alone
    gets one by the standard only where the standard knows all of its parts: a client that finds one starts nothing
    else."""
    said = {"name": name, "version": version, "description": description}
    kept = tuple(file for file in files if file.path not in GENERATED and not is_made_here(file))
    standard = _object(files, STANDARD) if is_by_standard(files) else None
    older = _object(files, CLAUDE)
    made: dict[str, dict[str, Any]] = {}
    if standard is not None:
        made[STANDARD] = {"$schema": PLUGIN_SCHEMA, **said, **_kept(standard, _KEPT)}
    own = _kept(older or {}, _KEPT_OLDER)
    own |= {
        name: _kept(given, _KEPT_INSIDE[name]) for name, given in _kept(older or {}, _KEPT_INSIDE).items()
    }
    if older is None and (servers := _claude_servers(files)):
        own["mcpServers"] = servers
    if standard is None and (told := _standard_servers(files)) is not None:
        made[STANDARD] = {"$schema": PLUGIN_SCHEMA, **said}
        made |= {STANDARD_SERVERS: {"$schema": SERVERS_SCHEMA, "mcpServers": told}} if told else {}
    made |= {CLAUDE: {**said, **own}, OLDER[1]: said}
    return (*(_file(path, manifest) for path, manifest in made.items()), *kept)


def _kept(manifest: Any, fields: Iterable[str]) -> dict[str, Any]:
    return {field: manifest[field] for field in fields if isinstance(manifest, dict) and field in manifest}


def _file(path: str, manifest: dict[str, Any]) -> SkillFile:
    return SkillFile(path, "100644", msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def _object(files: tuple[SkillFile, ...], path: str) -> dict[str, Any] | None:
    file = next((file for file in files if file.path == path), None)
    try:
        return None if file is None else read_object(file).data
    except BadJson:
        # Nothing was verified of it; the scan says so.
        return None


def _claude_servers(files: tuple[SkillFile, ...]) -> dict[str, dict[str, Any]]:
    """The servers of `mcp.json`, as clients of the older form read them."""
    declared = (_object(files, STANDARD_SERVERS) or {}).get("mcpServers")
    found: dict[str, dict[str, Any]] = {}
    for name, given in declared.items() if isinstance(declared, dict) else ():
        try:
            server = read_server(given, standard=True)
        except Invalid:
            # Clients of the standard skip it as well; the scan says so.
            continue
        kind = "sse" if given["type"] == "sse" else "http"
        found[name] = (
            {"type": kind, "url": server.url, "headers": server.headers} if server.url else _local(server)
        )
    return found


def _local(server: Server) -> dict[str, Any]:
    """By the standard a program starts in the plugin's folder, and its path begins there."""
    root, command, cwd = "${CLAUDE_PLUGIN_ROOT}", server.command, server.cwd or "./"
    return {
        "command": f"{root}/{command[2:]}" if command.startswith("./") else command,
        "args": [_claude_text(one) for one in server.args],
        "env": {field: _claude_text(value) for field, value in server.env.items()},
        "cwd": f"{root}/{cwd[2:]}".rstrip("/") if cwd.startswith("./") else _claude_text(cwd),
    }


def _standard_servers(files: tuple[SkillFile, ...]) -> dict[str, dict[str, Any]] | None:
    """The servers of a plugin of the older form as the standard has them; None where it has a part that the standard
    does not know."""
    plugin, document = read_plugin(files), _object(files, _CLAUDE_SERVERS) or {}
    known = (STANDARD_SKILLS, _CLAUDE_SERVERS)
    if plugin is None or any(not part.file.startswith(known) for part in plugin.parts):
        return None
    if any(one.unread for one in plugin.problems) or any(file.path == STANDARD_SERVERS for file in files):
        return None
    declared = document.get("mcpServers", document)
    if not isinstance(declared, dict):
        return None
    try:
        return {name: _standard_server(given) for name, given in declared.items()}
    except Invalid:
        return None


def _standard_server(given: dict[str, Any]) -> dict[str, Any]:
    """Invalid where the standard has no such server."""
    server, kind = read_server(given, standard=False), given.get("type")
    root = "${CLAUDE_PLUGIN_ROOT}/"
    command = f"./{server.command[len(root) :]}" if server.command.startswith(root) else server.command
    made: dict[str, Any] = {"type": _TYPES.get(str(kind), ""), "url": server.url, "headers": server.headers}
    if server.command:
        env = {field: _standard_text(value) for field, value in server.env.items()}
        args = [_standard_text(one) for one in server.args]
        made = {"type": "stdio", "command": command, "args": args, "env": env}
    if server.cwd or server.headers_helper:
        raise Invalid("has a field that the standard does not know", "leave it out")
    read_server(made, standard=True)
    return made


def _standard_text(text: str) -> str:
    return text.replace("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}")


def _claude_text(text: str) -> str:
    return text.replace("${PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}").replace(
        "${PLUGIN_DATA}", "${CLAUDE_PLUGIN_DATA}"
    )

"""The forms of a plugin's JSON, as facts of Agent Plugins 1.0.0 and of the older manifest that Claude Code reads.

msgspec checks a form; what a form cannot say (a path that leaves the folder, an address without TLS) is checked here
as well. Each refusal is a sentence, and never repeats a value, which may be a secret.
"""

import posixpath
import shlex
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import re2

SERVERS_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"

#: How files of the plugin are named, whoever starts the program.
ROOTS = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT", "$PLUGIN_ROOT")
_NAME = r"^(?!.*(--|\.\.))[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=_NAME)]
_NEARBY = re2.compile(r"^(?:localhost|::1|127(?:\.\d{1,3}){3})$")
HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")]
HeaderValue = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*\Z")]
Texts = tuple[str, ...]
PLAIN_TEXTS = ("homepage", "repository")
#: What a manifest gives for parts of one kind: a path, the parts themselves, or several of either.
Given = str | tuple[str | dict[str, Any], ...] | dict[str, Any]
#: Fields of a hook that hold text and start nothing, and of a file of hooks, which are no events.
_HARMLESS = frozenset(
    ("$comment", "allowedEnvVars", "comment", "cwd", "description", "headers", "id", "if", "input", "model", "name",
     "shell", "statusMessage", "type")
)  # fmt: skip
_NO_EVENTS = frozenset(("$schema", "$comment", "comment", "description", "version"))


class StandardManifest(msgspec.Struct, frozen=True):
    """`plugin.json`. Clients report and ignore other fields, and an `extensions` that is no object."""

    schema: str = msgspec.field(name="$schema")
    name: Name
    version: str = ""
    description: str = ""
    author: dict[str, str] = {}
    license: str = ""
    keywords: Texts = ()
    extensions: Any = None


class OlderManifest(msgspec.Struct, frozen=True):
    """`.claude-plugin/plugin.json`. Its parts stand in it, or in files that it names beside those of fixed names."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    version: str = ""
    description: str = ""
    license: str = ""
    skills: str | Texts = ()
    commands: Given = ()
    agents: str | Texts = ()
    output_styles: str | Texts = msgspec.field(name="outputStyles", default=())
    hooks: Given = ()
    monitors: Given = ()
    mcp_servers: Given = msgspec.field(name="mcpServers", default=())
    lsp_servers: Given = msgspec.field(name="lspServers", default=())
    #: of Claude Code: monitors may stand in the one, the command of a status line in the other
    experimental: dict[str, Any] = {}
    settings: dict[str, Any] = {}


class LocalServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="stdio"):
    """A server that is a program on the user's machine."""

    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: Texts = ()
    env: dict[str, str] = {}
    cwd: str = ""


class HttpServer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="streamable-http"
):
    """A server elsewhere."""

    url: Annotated[str, msgspec.Meta(min_length=1)]
    headers: dict[HeaderName, HeaderValue] = {}


class EventServer(HttpServer, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="sse"):
    """A server elsewhere, by the older protocol."""


class Server(msgspec.Struct, frozen=True):
    """A server in any form. Older clients allow further fields."""

    command: str = ""
    args: Texts = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    headers_helper: str = msgspec.field(name="headersHelper", default="")


class Handler(msgspec.Struct, frozen=True):
    """What one hook does: a command, by some clients one for each shell or system, a text that a model is asked, a
    request, or a call of a server's tool. A group of them has what its matcher names and, by some clients, a command of
    its own; a monitor, when it starts."""

    command: str = ""
    args: Texts = ()
    bash: str = ""
    powershell: str = ""
    windows: str = ""
    command_windows: str = msgspec.field(name="commandWindows", default="")
    linux: str = ""
    osx: str = ""
    prompt: str = ""
    url: str = ""
    server: str = ""
    tool: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    matcher: str = ""
    when: str = ""
    hooks: tuple[Any, ...] = ()

    @property
    def does(self) -> str:
        command = " ".join([self.command, *map(shlex.quote, self.args)]).strip()
        shells = (self.bash, self.powershell, self.windows, self.command_windows, self.linux, self.osx)
        return "\n".join(
            filter(None, (command, *shells, self.prompt, self.url, f"{self.server} {self.tool}".strip()))
        )


class Invalid(Exception):
    """Why a client skips something, and what to do about it."""

    def __init__(self, sentence: str, fix: str) -> None:
        super().__init__(sentence)
        self.sentence, self.fix = sentence, fix


def convert(data: Any, form: Any) -> Any:
    """Data in a form; Invalid says where it differs."""
    try:
        return msgspec.convert(data, form)
    except msgspec.ValidationError as error:
        raise Invalid(f"does not fit the form: {error}", "correct the field that it names") from None


def read_hooks(events: Any) -> Iterator[tuple[str, Handler | Invalid]]:
    """When what runs; Invalid for everything of which that cannot be told."""
    if not isinstance(events, dict):
        yield "", Invalid("is no object of events", "write the event, and a list of what runs at it")
        return
    for event, given in events.items():
        for group in given if isinstance(given, list) else [given]:
            if event not in _NO_EVENTS or isinstance(given, list | dict):
                yield from _read_group(event, group, is_group=True)


def _read_group(when: str, given: Any, *, is_group: bool) -> Iterator[tuple[str, Handler | Invalid]]:
    try:
        read = convert(given, Handler)
    except Invalid as error:
        yield when, error
        return
    known = _HARMLESS.union(Handler.__struct_encode_fields__)
    strange = [
        name for name, value in given.items() if name not in known and isinstance(value, str | list | dict)
    ]
    if strange:
        yield when, Invalid(f"has a field {strange[0][:60]!a}, which may start something", "leave it out")
    if read.does:
        yield f"{when} {read.matcher or read.when}".strip(), read
    elif not strange and not (is_group and "hooks" in given):
        yield when, Invalid("does nothing that is known", "give it a `command`")
    for one in read.hooks:
        if is_group:
            yield from _read_group(f"{when} {read.matcher}".strip(), one, is_group=False)
        else:
            yield when, Invalid("holds hooks in a hook", "put them into the list of the event")


def check_texts(data: dict[str, Any]) -> None:
    """What is kept of no manifest, and must be text all the same; of the author nothing else is allowed."""
    for name in PLAIN_TEXTS:
        convert(data.get(name, ""), str)
    strange = set(convert(data.get("author", {}), dict[str, Any])) - {"name", "email", "url"}
    if strange:
        raise Invalid("has an `author` with more than name, email and url", "leave the rest out")


def require_schema(data: dict[str, Any], schema: str) -> None:
    if data.get("$schema") != schema:
        raise Invalid("names no version of the standard", f'write "$schema": "{schema}"')


def read_server(data: Any, *, standard: bool) -> Server:
    """A server as clients would start it or talk to it; Invalid if they would skip it."""
    if not standard:
        return _one_way(convert(data, Server))
    found = convert(data, LocalServer | HttpServer | EventServer)
    if isinstance(found, HttpServer):
        _check_address(found.url)
        if len({name.lower() for name in found.headers}) < len(found.headers):
            raise Invalid("names a header twice", "leave one of them out")
        return Server(url=found.url, headers=found.headers)
    _check_local(found)
    return Server(found.command, found.args, found.env, found.cwd)


def _one_way(server: Server) -> Server:
    if bool(server.command) is bool(server.url):
        raise Invalid("has neither a command nor an address, or both", "give it `command` or `url`")
    return server


def _check_local(server: LocalServer) -> None:
    command = server.command
    if not command.startswith("./") and (" " in command.strip() or "/" in command):
        raise Invalid(
            "has a command that is neither one program's name nor a path that begins with './'",
            "put its arguments into `args`, and name a program of the folder as ./PATH",
        )
    if not server.env.keys().isdisjoint({"PLUGIN_ROOT", "PLUGIN_DATA"}):
        raise Invalid("sets PLUGIN_ROOT or PLUGIN_DATA", "leave them out: the client sets them")
    inside(command)
    root, _, rest = server.cwd.partition("/")
    if server.cwd and (root not in {".", "${PLUGIN_ROOT}", "${PLUGIN_DATA}"} or server.cwd == "."):
        raise Invalid("has a `cwd` outside the plugin", "begin it with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}")
    inside(f"./{rest}")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, named = parts.hostname or "", "@" in parts.netloc
    except ValueError:
        host, named, parts = "", False, urlsplit("")
    if not host or parts.scheme not in ("http", "https"):
        raise Invalid("has no absolute http or https address", "write its whole address into `url`")
    if named or parts.fragment:
        raise Invalid("has an account or a fragment in its address", "leave it out of `url`")
    if parts.scheme == "http" and not _NEARBY.match(host):
        raise Invalid("is talked to without TLS", "use https")


def inside(written: str) -> str | None:
    """The file of the plugin that a word names; None for any other word. Invalid for one that leaves the folder."""
    root = next((root for root in ROOTS if written.startswith(root)), "")
    rest = written[len(root) :].replace("\\", "/").lstrip("/") if root else written
    if not root and not written.startswith(("./", "../")):
        return None
    path = posixpath.normpath(rest or ".")
    if path.startswith(".."):
        raise Invalid("names a path that leaves the plugin's folder", "keep what it needs inside the folder")
    return path

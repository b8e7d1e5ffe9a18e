"""The forms of a plugin's JSON, as facts of Agent Plugins 1.0.0 and of the older manifest that Claude Code reads.

msgspec checks a form; what a form cannot say (a path that leaves the folder, an address without TLS) is checked here
as well. Each refusal is a sentence, and never repeats a value, which may be a secret.
"""

import posixpath
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
Given = str | Texts | dict[str, Any]


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
    hooks: Given = ()
    mcp_servers: Given = msgspec.field(name="mcpServers", default=())
    lsp_servers: Given = msgspec.field(name="lspServers", default=())


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
    """What one hook does: a command, by some clients one for each shell, a text that a model is asked, or a request."""

    command: str = ""
    bash: str = ""
    powershell: str = ""
    prompt: str = ""
    url: str = ""

    @property
    def does(self) -> str:
        return "\n".join(filter(None, (self.command, self.bash, self.powershell, self.prompt, self.url)))


class HookGroup(Handler, frozen=True):
    """What happens at one event, for what its matcher names; by some clients a handler itself."""

    hooks: tuple[Handler, ...] = ()
    matcher: str = ""


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
    if " " in command.strip() or ("/" in command and not command.startswith("./")):
        raise Invalid(
            "has a command that is neither one program's name nor a path that begins with './'",
            "put its arguments into `args`, and name a program of the folder as ./PATH",
        )
    if not server.env.keys().isdisjoint({"PLUGIN_ROOT", "PLUGIN_DATA"}):
        raise Invalid("sets PLUGIN_ROOT or PLUGIN_DATA", "leave them out: the client sets them")
    for path in (command, server.cwd):
        inside(path)
    if server.cwd and not server.cwd.startswith(("./", "${PLUGIN_ROOT}", "${PLUGIN_DATA}")):
        raise Invalid("has a `cwd` outside the plugin", "begin it with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}")


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

"""Settings that act by themselves: fields whose command runs without anybody asking for it, and settings that lead the
keys or the traffic of a service to another host. Two tables; `capabilities` puts what they find on the card."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import re2

from vskill_scan.model import Layer
from vskill_scan.places import KEY_NAMES, host_in, is_foreign, is_nearby, service_words
from vskill_scan.words import words

#: Of a value, and between a server's address and the headers that it is sent.
LONGEST_VALUE = 1000
#: Of one kind in one file.
MOST_SETTINGS = 2000

#: Files, and the fields in them that run by themselves. Names that nothing else has count in every file and text; of
#: files without fields all of it runs.
_AUTO_RUN = {
    "*": "initializeCommand onCreateCommand updateContentCommand postCreateCommand postStartCommand postAttachCommand "
    "shellHook enterShell fsmonitor sshCommand ExecStart ExecStartPre ExecStartPost ExecStop ExecReload textconv",
    "package.json": "preinstall install postinstall prepare prepublish prepack",
    "composer.json": "pre-install-cmd post-install-cmd post-update-cmd post-autoload-dump",
    ".pre-commit-config.yaml lefthook.y*ml": "entry run",
    "*.gitconfig config": "pager editor hooksPath helper",
    "hooks.json settings.json settings.local.json *.mcp.json mcp.json plugin.json tasks.json": "command args",
    "*.desktop": "Exec TryExec",
    "*.plist": "ProgramArguments Program",
    "mise.toml .mise.toml": "enter cd postinstall preinstall",
    ".npmrc": "init-module script-shell node-options git",
    ".envrc conftest.py sitecustomize.py usercustomize.py *.pth setup.py build.rs .lldbinit .gdbinit .exrc .bashrc "
    ".zshrc .profile .zshenv .bash_profile crontab pre-commit post-checkout post-merge pre-push": "",
}
_MAKE = re2.compile(rb"(\$\(shell )|(?m)^[\w.-]+[ \t]*!=")
_MAKEFILES = ("makefile", "gnumakefile", "*.mk")
_FETCHES = re2.compile(
    rb"(?i)\b(?:curl|wget|aria2c|iwr|irm|bitsadmin|certutil|nc|ncat)\s|invoke-(?:webrequest|restmethod)|downloadstring|"
    rb"\burl(?:open|retrieve)\(|\brequests\.get|\bfetch\(|\bgit\s+clone\b|/dev/tcp/|"
    rb"\b(?:pip3?|npm|uv|gem|cargo)\s[^\n]{0,60}(?:install|add|i)\s[^\n]{0,60}https?://"
)
_AROUND = ((b"''", b"''"), (b'"', b'"'), (b"[", b"]"), (b"{", b"}"), (b"<array>", b"</array>"))
_INDENTED = re2.compile(rb"(?:\n(?:[ \t]+[^\n]*)?)+")


def _field_pattern(names: str) -> "re2._Regexp":
    """The fields of a row as JSON, YAML, TOML, INI and Nix write them."""
    fields = "|".join(name.replace(".", r"\.") for name in words(names))
    return re2.compile(rf"(?m)(?:^|[\s\"',{{;.@>-])({fields})[\"']?(?:</key>)?[ \t]*(?:[:=]|$)".encode())


_ROWS = tuple((words(files), _field_pattern(names) if names else None) for files, names in _AUTO_RUN.items())


def auto_run(layer: Layer) -> Iterator[tuple[str, int]]:
    """What runs by itself in a file and fetches something, with its place."""
    text, path = layer.text, layer.path.rpartition("!")[2]
    if not _FETCHES.search(text):
        return
    name = path.rpartition("/")[2]
    left = MOST_SETTINGS
    for files, fields in (*_ROWS, (_MAKEFILES, _MAKE)):
        if not any(fnmatchcase(name.lower(), one) for one in files):
            continue
        for match in fields.finditer(text) if fields is not None else ():
            left -= 1
            if left >= 0 and _FETCHES.search(_value_after(text, match.end())):
                field = "shell" if fields is _MAKE else match.group(1).decode()
                yield f"{field} of {name}", match.start()
        if fields is None:
            yield f"all of {name}", 0


def _value_after(text: bytes, at: int) -> bytes:
    """The value of a field: a text in quotes, a list or table, what is indented below it, or the rest of the line."""
    rest = text[at : at + LONGEST_VALUE]
    value = rest.lstrip(b" \t\n\r")
    for opens, closes in _AROUND:
        if value.startswith(opens):
            end = value.find(closes, len(opens))
            while opens == b'"' and end > 0 and value[end - 1 : end] == b"\\":
                end = value.find(closes, end + 1)
            return value[: end if end >= 0 else len(value)]
    line, _, _ = rest.partition(b"\n")
    below = _INDENTED.match(rest, len(line))
    return line + (below.group() if below is not None else b"")


#: Settings with an address: a word that each of them holds, and words of the hosts that they lead to by themselves.
_ELSEWHERE = (
    (b"proxy", r"\b(?:HTTPS?|ALL)_PROXY[\"']?\s*[:=]|\bhttps?[.-]proxy[\"']?\s*[:= ]", ""),
    (
        b"registry",
        r"(?m)(?:^|--|\s|:)registry[\"']?\s*[:= ]|\bNPM_CONFIG_REGISTRY[\"']?\s*[:=]",
        "npmjs yarnpkg npmmirror jsr github",
    ),
    (
        b"index",
        r"\b(?:extra-)?index-url[\"']?\s*[:= ]|\b(?:PIP|UV)_(?:EXTRA_|DEFAULT_)?INDEX(?:_URL)?[\"']?\s*[:=]",
        "pypi pythonhosted pytorch nvidia",
    ),
    (b"goproxy", r"\bGOPROXY[\"']?\s*[:=]", "golang goproxy"),
    (b"source", r"\bgem\s+sources?\s+(?:-a|--add)\s", "rubygems"),
    (b"mirror", r"\bbundle\s+config\s+mirror\.\S+\s", "rubygems"),
    (b"insteadof", r"\burl\.[\"']?|\[url\s", "github gitlab bitbucket"),
)
_ADDRESS = r"\s*[\"'<]?([a-z]{3,6}://[^\s\"'<>`,;)\]]{4,200})"
_MOVED = tuple(
    (word, re2.compile(f"(?:{sign}){_ADDRESS}".encode()), words(own)) for word, sign, own in _ELSEWHERE
)
_SERVICE = re2.compile(
    rf"\b([A-Z][A-Z0-9]*)_(?:\w+_)?(?:BASE_URL|API_BASE|API_URL|API_HOST|ENDPOINT|ENDPOINT_URL|PROXY_URL)[\"']?\s*[:=]{_ADDRESS}".encode()
)
#: One of these stands in each of them.
_SERVICE_WORDS = (b"_URL", b"API_BASE", b"API_HOST", b"ENDPOINT")
_SERVER = re2.compile(rf"\"(?:url|serverUrl|endpoint)\"\s*:{_ADDRESS}".encode())
_KEY = re2.compile(rf"\$\{{?(?:env:)?({KEY_NAMES})\b".encode())
_HEADERS = re2.compile(rb"\"(?:headers|env)\"\s*:\s*\{([^}]{0,600})")


def moved_hosts(layer: Layer) -> Iterator[tuple[str, int]]:
    """Hosts that a setting leads keys or traffic to although they are not the service's own, with their places."""
    text = layer.text
    if b"://" not in text:
        return
    lower = text.lower()
    for word, pattern, own in _MOVED:
        for match in pattern.finditer(text) if word in lower else ():
            if (host := _far_host(match.group(1))) and not any(word in host for word in own):
                yield host, match.start()
    for match in _SERVICE.finditer(text) if any(word in text for word in _SERVICE_WORDS) else ():
        service = service_words(match.group(1).decode())
        if service and (host := _far_host(match.group(2))) and not any(word in host for word in service):
            yield host, match.start()
    for match in _SERVER.finditer(text) if b'"headers"' in text else ():
        sent = _HEADERS.search(text, match.end(), match.end() + LONGEST_VALUE)
        keys = _KEY.findall(sent.group(1)) if sent is not None else ()
        if (host := _far_host(match.group(1))) and any(is_foreign(key.decode(), host) for key in keys):
            yield host, match.start()


def _far_host(address: bytes) -> str:
    """The host of an address; "" for one nearby, or that is put in later."""
    host = host_in(address.decode("utf-8", "replace"))
    return "" if "." not in host or is_nearby(host) else host.partition(":")[0]

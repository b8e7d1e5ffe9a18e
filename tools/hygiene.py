"""Nothing in the repository ties it to one machine or to one package server.

Packages are named, never the servers that they come from: an installation behind a mirror must find nothing
to edit. Paths of the machine that a file was written on are useless to everyone else.

And no command that people copy looks up a name that is nobody's: whoever registers it would run code on their machine.
What is ours is named by its address or its file (`unknown_installs`).
"""

import re
from collections.abc import Iterator

from tools.blocks import is_page
from tools.problem import Problem

# Joined here, so that this file passes its own check.
REGISTRY_HOSTS = tuple(
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("anaconda", "org"),
        ("unpkg", "com"),
        ("jsdelivr", "net"),
    )
)

_HOST = re.compile("|".join(re.escape(host) for host in REGISTRY_HOSTS), re.IGNORECASE)
# A slash that continues a longer path or an address is not the root of a file system.
_MACHINE_PATH = re.compile(r"(?<![\w.~*}\])>/-])/(?:(?:work|root|home|Users)/[\w.]|tmp/bash)")
# Files about what attacks look for; such paths are what they are about.
_ABOUT_ATTACKS = ("packages/scan/", "tests/scan/", "docs/reference/rules.md")
# `vskill` installs a repository's newest commit, not what was verified.
_INSTALL_BY_VSKILL = re.compile(r"(?<![\w-])vskill[ ]install\b")
#: Where commands that people copy come from, beside the documents. Example skills are data.
_PRINTING = ("src/vskill_platform/", "packages/client/", "deploy/")
_DATA = "src/vskill_platform/examples/"
#: Commands that look up what they are given and run or install it; what follows ends with the line or its code.
_LOOKS_UP = re.compile(
    r"(?<![\w.-])(?:(?P<one>uvx|pipx run|uv tool run|npx|bunx|(?:npm exec|(?:pnpm|yarn) dlx))"
    r"|(?P<image>(?:docker|podman) (?:pull|run))"
    r"|(?P<many>(?:pip3?|pipx|uv pip|uv tool) install|uv add|(?:npm|pnpm|yarn|bun) (?:i|install|add)"
    r"|(?:brew|apt|apt-get|dnf|yum|apk|gem|cargo|go|snap|choco|winget|conda) (?:install|add)))"
    r"(?P<rest>(?:[ \t]|$)[^\n`<;|&]*)",
    re.MULTILINE,
)
#: Options whose next word is no name, and those whose next word is the name.
_WITH_VALUE = frozenset({"-r", "-c", "-v", "-e", "--python", "--name", "--target", "--registry"})
_WITH_NAME = frozenset({"--from", "--with", "--package"})
#: Clients that people have, by their names on their index, and what the image gets from Debian.
_KNOWN_NAMES = frozenset({"skills", "clawhub", "git", "tini"})
#: A registry, as documents and tests write its address; files of a release; what is put together when it is printed.
_OURS = re.compile(
    r"(?:https://skills\.example\.org|http://(?:127\.0\.0\.1(?::\d+)?|HOST|\w+\.test))/"
    r"|(?:\./|tools/)?vskill_(?:platform|client|scan)-\S*\.whl(?:\[\w+\])?$|\{|[A-Z]+(?:/|$)"
)
_LOCK_PIN = re.compile(r"^[a-z0-9][a-z0-9.-]*==[^ ]+( ; [^\\]+)? \\$")
_LOCK_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def check_text(path: str, text: str) -> Iterator[Problem]:
    """Host names of package registries, paths of a particular machine, and installs by a name that is not ours where
    people may copy them."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HOST.search(line):
            yield Problem(path, number, f"names the package server {found[0]}: name the package instead")
        if not path.startswith(_ABOUT_ATTACKS) and (found := _MACHINE_PATH.search(line)):
            yield Problem(path, number, f"holds a path of one machine ({found[0]}...): make it relative")
        if found := _INSTALL_BY_VSKILL.search(line):
            yield Problem(path, number, f"installs what was not verified ({found[0]}): use another client")
        if is_printed(path):
            for name in unknown_installs(line):
                yield Problem(path, number, f"installs {name!r}, a name that is not ours: give its address")


def is_printed(path: str) -> bool:
    """Whether people may be shown a command that stands in this file. Pages about rules show what attacks do."""
    if path.startswith((_DATA, *_ABOUT_ATTACKS)):
        return False
    return is_page(path) or path.startswith(_PRINTING)


def unknown_installs(text: str) -> list[str]:
    """What commands in a text look up by a name that is neither ours by its address or file, nor that of a client that
    people have."""
    return [
        name
        for found in _LOOKS_UP.finditer(text)
        if not (found["image"] and "--pull=never" in found["rest"])
        for name in _names_in(found["rest"], only_first=not found["many"])
        if name not in _KNOWN_NAMES and not _OURS.match(name)
    ]


def _names_in(rest: str, *, only_first: bool) -> Iterator[str]:
    """The words that are looked up: after an option such as `--from` the one behind it, otherwise those that belong to
    no option, up to the end of the quotation or of the sentence."""
    words = iter(rest.split())
    for word in words:
        if word in _WITH_NAME:
            yield next(words, "").strip("'\"")
            return
        if word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            name = word.lstrip("'\"").rstrip("'\",.:)")
            if name:
                yield name
            if only_first or not name or word[-1] in "'\",.:)":
                return


def check_lock(path: str, text: str) -> Iterator[Problem]:
    """A lock file is exact pins with SHA-256 hashes, and nothing else at all."""
    previous_was_pin = False
    for number, line in enumerate(text.splitlines(), start=1):
        is_pin, is_hash = bool(_LOCK_PIN.match(line)), bool(_LOCK_HASH.match(line))
        if not (is_pin or is_hash):
            yield Problem(path, number, "is neither an exact pin nor a SHA-256 hash: run 'make lock'")
        if previous_was_pin and not is_hash:
            yield Problem(path, number - 1, "has no hash: run 'make lock'")
        previous_was_pin = is_pin
    if previous_was_pin:
        yield Problem(path, len(text.splitlines()), "has no hash: run 'make lock'")

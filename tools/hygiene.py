"""Nothing in the repository ties it to one machine or to one package server.

Packages are named, never the servers that they come from: an installation behind a mirror must find nothing
to edit. Paths of the machine that a file was written on are useless to everyone else.
"""

import re
from collections.abc import Iterator

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
# Names that are not ours on a public index: whoever registers one runs code where somebody pastes the line.
# And `vskill` installs a repository's newest commit, not what was verified.
_FOREIGN_INSTALL = re.compile(
    r"(?<![\w-])vskill[ ]install\b|\b(?:npx|bunx|npm \S+|pnpm \S+|yarn \S+)(?: -\S+)*[ ]vskill(?![\w-])"
    r"|\b(?:pip3?|pipx|uvx?)(?: [a-z]+)*(?: -\S+)* ['\"]?vskill[-_]platform(?![\w-])"
)
_LOCK_PIN = re.compile(r"^[a-z0-9][a-z0-9.-]*==[^ ]+( ; [^\\]+)? \\$")
_LOCK_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def check_text(path: str, text: str) -> Iterator[Problem]:
    """Host names of package registries, paths of a particular machine and installs by a name that is not ours, in any
    text file."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HOST.search(line):
            yield Problem(path, number, f"names the package server {found[0]}: name the package instead")
        if not path.startswith(_ABOUT_ATTACKS) and (found := _MACHINE_PATH.search(line)):
            yield Problem(path, number, f"holds a path of one machine ({found[0]}...): make it relative")
        if found := _FOREIGN_INSTALL.search(line):
            yield Problem(path, number, f"installs a package that is not ours ({found[0]}): name the wheel")


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

"""Hosts that an install step names: a command or a sentence that brings something onto the machine. Of these the
registry asks whether any published skill has named them before."""

from collections.abc import Iterable

import re2

from vskill_platform.domain.capability import CapabilityKind, SkillCapability
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.known_hosts import is_known_host

#: Bytes of a file that are looked at.
MOST_BYTES = 512 * 1024
#: Unknown hosts of one skill that are looked up.
MOST_HOSTS = 40
#: Places of one host that are told.
MOST_PLACES = 3

#: Commands that bring something onto the machine.
_COMMANDS = (
    # A download that is kept or run at once. What is piped into a program of one line is only read.
    (
        r"\b(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod|start-bitstransfer|certutil|bitsadmin)\b.*"
        r"(?:\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k|fi)?sh|python\d?|node|ruby|perl|iex)(?:\s+-s?(?:\s|$)|\s*[;&)\"'`]|\s*$)"
        r"|\|\s*(?:sudo\s+)?(?:tar|unzip)\b"
        r"|\s-[a-z]*o\b|--output\b|--remote-name\b|-outfile\b|\s>>?\s*[\"']?[\w./~$])"
    ),
    r"\b(?:bash|sh|zsh)\s+(?:<\(|-c\s+[\"']?\$\()\s*(?:curl|wget)\b",
    # A package manager with an address.
    (
        r"\b(?:pip3?|pipx|uvx?|npm|npx|yarn|pnpm|bunx?|gem|cargo|go|brew|apt|apt-get|dnf|yum|apk|snap|choco|winget|"
        r"scoop|conda|mamba|docker|podman|helm|git|claude|codex|gemini|code)\s+(?:[\w-]+\s+){0,2}"
        r"(?:install|add|tap|pull|run|clone|get|i|exec|x)\b"
    ),
    r"--(?:extra-)?index-url\b|--registry\b|--find-links\b",
    # A file that is there to be installed.
    r"https?://[^\s/]+/\S*\.(?:zip|exe|dmg|pkg|msi|deb|rpm|appimage|sh|ps1|bat|cmd|jar|whl|tgz|tar\.\w+|7z|rar|apk|vsix)\b",
)
_COMMAND = re2.compile("|".join(f"(?:{one})" for one in _COMMANDS))
#: Sentences that say so; an address may hold these words by chance.
_SENTENCE = re2.compile(r"\b(?:install|download|installer|unzip)\b")
_ADDRESS = re2.compile(r"https?://[^\s)\"'>`]+")
_NOWHERE = re2.compile(r"\d?>\s*/dev/null")
_PART_OF_A_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


def hosts_named(card: Iterable[SkillCapability]) -> tuple[str, ...]:
    """Every host of a card that is not known to everybody, each once."""
    named = dict.fromkeys(one.value for one in card if one.kind is CapabilityKind.HOST)
    return tuple(host for host in named if not is_known_host(host))[:MOST_HOSTS]


def install_steps(hosts: Iterable[str], files: Iterable[SkillFile]) -> dict[str, tuple[str, ...]]:
    """Of these hosts the ones that install steps name, each with its places."""
    found: dict[str, list[str]] = {host: [] for host in hosts}
    for file in files:
        data = file.data[:MOST_BYTES].lower()
        here = [host for host in found if host.encode() in data]
        if not here or b"\0" in data[:4096]:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            named = [host for host in here if _names(line, host)]
            if named and _is_step(line[:2000]):
                for host in named:
                    found[host].append(f"{host} at {file.path}:{number}")
    return {host: tuple(places[:MOST_PLACES]) for host, places in found.items() if places}


def _names(line: str, host: str) -> bool:
    """Whether a line names this host, and not one whose name holds it."""
    at = line.find(host)
    while at >= 0:
        end = at + len(host)
        before, after = line[at - 1 : at] if at else "", line[end : end + 1]
        # A full stop may end the sentence.
        if before not in _PART_OF_A_NAME and (after == "." or after not in _PART_OF_A_NAME):
            return True
        at = line.find(host, end)
    return False


def _is_step(line: str) -> bool:
    plain = _NOWHERE.sub("", line)
    return bool(_COMMAND.search(plain) or _SENTENCE.search(_ADDRESS.sub(" ", plain)))


def describe_hosts(hosts: Iterable[str]) -> str:
    """A sentence for the author and the reviewer."""
    names = list(hosts)
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"an install step names {said}, which no other published skill uses"

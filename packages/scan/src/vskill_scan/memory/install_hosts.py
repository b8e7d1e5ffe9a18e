"""Hosts that an install step names: a download that is run at once, or a sentence that says to install or download. Of
these the memory and the registry are asked whether any skill has named them before."""

from collections.abc import Iterable, Iterator

import re2

from vskill_core.capability import CapabilityKind, SkillCapability
from vskill_core.content import SkillFile
from vskill_core.identity import SKILL_FILE
from vskill_scan.memory.known_hosts import is_known_host

#: Bytes of all files together that are looked at.
MOST_BYTES = 512 * 1024
#: Unknown hosts of one skill that are looked up.
MOST_HOSTS = 40
#: Places of one host that are told.
MOST_PLACES = 3
#: Bytes of a line that are looked at, on each side of where it names a host.
MOST_AROUND = 1000

#: A download that a shell or an interpreter runs at once. What is piped into a program of one line is only read.
_RUN_AT_ONCE = re2.compile(
    r"\b(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod|start-bitstransfer|certutil|bitsadmin)\b.*"
    r"\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k|fi)?sh|python\d?|node|ruby|perl|iex)(?:\s+-s?(?:\s|$)|\s*[;&)\"'`]|\s*$)"
    r"|\b(?:bash|sh|zsh)\s+(?:<\(|-c\s+[\"']?\$\()\s*(?:curl|wget)\b"
)
#: Sentences that say so; an address may hold these words by chance.
_SENTENCE = re2.compile(r"\b(?:install|download|installer|unzip)\b")
_ADDRESS = re2.compile(r"https?://[^\s)\"'>`]+")
_PART_OF_A_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")


def hosts_named(card: Iterable[SkillCapability]) -> tuple[str, ...]:
    """Every host of a card that is not known to everybody, each once."""
    named = dict.fromkeys(one.value for one in card if one.kind is CapabilityKind.HOST)
    return tuple(host for host in named if not is_known_host(host))[:MOST_HOSTS]


def install_steps(hosts: Iterable[str], files: Iterable[SkillFile]) -> dict[str, tuple[str, ...]]:
    """Of these hosts the ones that install steps name, each with its places. The work grows with the bytes and with the
    lines that name a host, not with all lines."""
    found: dict[str, list[str]] = {host: [] for host in hosts}
    left = MOST_BYTES
    for file in sorted(files, key=_reading_order):
        if b"\0" in file.data[:4096]:
            continue
        data, left = file.data[: max(left, 0)].lower(), left - len(file.data)
        # Several hosts may stand in one line.
        judged: dict[tuple[int, int], bool] = {}
        for host, places in found.items():
            for start, end in _lines_naming(data, host.encode()):
                if len(places) >= MOST_PLACES:
                    break
                if (start, end) not in judged:
                    judged[start, end] = _is_step(data[start:end].decode("utf-8", "replace"))
                if judged[start, end]:
                    line = data.count(b"\n", 0, start) + 1
                    places.append(f"{host} at {file.path}:{line}")
    # A long line is looked at in parts.
    return {host: tuple(dict.fromkeys(places)) for host, places in found.items() if places}


def _reading_order(file: SkillFile) -> tuple[bool, int, str]:
    """Small files first, so that a large one does not use up the bytes of all others."""
    return file.path != SKILL_FILE, len(file.data), file.path


def _lines_naming(data: bytes, host: bytes) -> Iterator[tuple[int, int]]:
    """Where the lines begin and end that name this host, and not one whose name holds it; of a long line the part
    around the name."""
    at = data.find(host)
    while at >= 0:
        end = at + len(host)
        if _is_whole(data, at, end):
            start = data.rfind(b"\n", max(at - MOST_AROUND, 0), at) + 1 or max(at - MOST_AROUND, 0)
            stop = data.find(b"\n", end, end + MOST_AROUND)
            end = stop if stop >= 0 else min(end + MOST_AROUND, len(data))
            yield start, end
        at = data.find(host, end)


def _is_whole(data: bytes, at: int, end: int) -> bool:
    """Whether nothing before or after belongs to the name. A full stop may end the sentence."""
    before = data[at - 1] if at else None
    after = data[end] if end < len(data) else None
    return before not in _PART_OF_A_NAME and (after == ord(".") or after not in _PART_OF_A_NAME)


def _is_step(line: str) -> bool:
    return bool(_RUN_AT_ONCE.search(line) or _SENTENCE.search(_ADDRESS.sub(" ", line)))


def describe_hosts(hosts: Iterable[str], nobody: str) -> str:
    """A sentence for the author and the reviewer; `nobody` says who was asked."""
    names = list(hosts)
    said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"an install step names {said}, which {nobody} names"

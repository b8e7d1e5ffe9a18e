"""How a memory is made: the facts about each public skill, and the file of many of them, on top of another one where
there is one. The same facts give the same bytes."""

import contextlib
from collections import Counter
from collections.abc import Iterable
from itertools import chain

import msgspec
import re2

from vskill_core.content import SkillFile
from vskill_core.errors import PlatformError
from vskill_core.findings import StaticReport
from vskill_core.identity import SKILL_FILE, normalise
from vskill_core.naming import hyphenate, slugify
from vskill_scan.memory.install_hosts import hosts_named
from vskill_scan.memory.memory import FORMAT, MemoryContent
from vskill_scan.memory.notices import acting_entries
from vskill_scan.memory.sketch import sketch_of
from vskill_scan.reading.manifest import read_manifest

#: Of an origin or a name.
LONGEST = 120
_REPOSITORY = re2.compile(r"(?m)^ *repository: *[\"']?(https://[^\s\"']+)")


class PublicFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of a public skill."""

    name: str
    #: marketplace and handle, the vendor, or an upstream
    owner: str
    #: whether all that the owner has is its own
    is_vendor: bool
    sketch: tuple[int, ...]
    card: tuple[int, ...]
    hosts: tuple[str, ...] = ()
    #: that its front matter names
    repository: str = ""


def facts_of(
    files: tuple[SkillFile, ...], report: StaticReport, folder: str, owner: str, *, is_vendor: bool = False
) -> PublicFacts:
    """Of a skill that was found in this folder."""
    name, repository = slugify(folder), ""
    text = next((file.data for file in files if file.path == SKILL_FILE), b"")
    head = text.decode("utf-8", "replace").removeprefix("---").partition("\n---")[0]
    # What cannot be submitted as it is, is known by its text and its hosts all the same.
    with contextlib.suppress(PlatformError):
        name = read_manifest(text).name if is_vendor else name
    with contextlib.suppress(PlatformError):
        if said := _REPOSITORY.search(head):
            repository = normalise(said[1]).repo_key
    return PublicFacts(
        hyphenate(name)[:LONGEST] or "unnamed",
        owner,
        is_vendor,
        tuple(sketch_of(files)),
        tuple(acting_entries(report)),
        tuple(sorted(set(hosts_named(report.capabilities or ())))),
        repository,
    )


def pack_memory(
    skills: Iterable[PublicFacts], date: str, ruleset: str, base: MemoryContent | None = None
) -> bytes:
    """The file. What `base` remembers comes first, with its own numbers."""
    known = base or MemoryContent(FORMAT, date, ruleset, [], {}, b"", b"", b"", {}, {}, {})
    told = tuple(skills)
    numbered = tuple(enumerate(told, len(known.origins)))
    vendors = {one.name: one.owner for one in told if one.is_vendor}
    content = MemoryContent(
        format=FORMAT,
        date=date,
        ruleset=ruleset,
        origins=[*known.origins, *(f"{one.owner}/{one.name}"[:LONGEST] for one in told)],
        repositories=known.repositories
        | {number: one.repository for number, one in numbered if one.repository},
        sizes=known.sizes + bytes(len(one.sketch) for one in told),
        sketches=_packed(
            known.sketches, (part << 16 | number for number, one in numbered for part in one.sketch)
        ),
        cards=_packed(known.cards, (number << 48 | part for number, one in numbered for part in one.card)),
        hosts=_counted(known.hosts, ((host, one.owner) for one in told for host in one.hosts)),
        names=_counted(known.names, ((one.name, one.owner) for one in told)),
        vendors=dict(sorted((known.vendors | vendors).items())),
    )
    return msgspec.msgpack.encode(content)


def _packed(known: bytes, numbers: Iterable[int]) -> bytes:
    before = (int.from_bytes(known[at : at + 8], "little") for at in range(0, len(known), 8))
    return b"".join(one.to_bytes(8, "little") for one in sorted(set(chain(before, numbers))))


def _counted(known: dict[str, int], used: Iterable[tuple[str, str]]) -> dict[str, int]:
    """By what is used, its owners: those known, and each new one once."""
    more = Counter(what for what, _ in set(used))
    return {one: known.get(one, 0) + more[one] for one in sorted(known.keys() | more.keys())}

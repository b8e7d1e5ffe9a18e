"""What the memory tells about a submission: that it is a public skill with something added, that it installs from a
host that nobody names, that its name can be taken for a popular one. The registry adds what it knows itself."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from vskill_core.capability import CapabilityKind, SkillCapability
from vskill_core.content import SkillFile
from vskill_core.findings import StaticReport, counting
from vskill_core.naming import hyphenate
from vskill_core.plural import counted
from vskill_scan.memory.install_hosts import describe_hosts, hosts_named, install_steps
from vskill_scan.memory.look_alike import look_alikes
from vskill_scan.memory.memory import POPULAR, Likeness, Memory
from vskill_scan.memory.sketch import hash48, sketch_of

#: Remembered skills that one submission is compared with.
MOST_COMPARED = 20
#: What was gained: entries that the sentence names, and places that are listed.
MOST_NAMED, MOST_DETAILS = 3, 20


class MemoryNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was noticed."""

    #: remembered, host or look-alike
    kind: str
    #: a sentence for the author and the reviewer
    reason: str
    #: places in the submitted files
    details: tuple[str, ...] = ()
    #: whether a reviewer should look at it
    holds: bool = True
    #: of the remembered skill's sketch
    sketch: str = ""


def acting_entries(report: StaticReport) -> dict[int, str]:
    """What a skill does or is told to do, and the rules that found something, by hash, each with its place."""
    card = [one for one in report.capabilities or () if one.acts]
    found = {hash48(_entry(one)): f"{one.kind.value} {one.value} at {one.place}" for one in card}
    for finding in counting(report.findings):
        place = f"{finding.file}:{finding.line}" if finding.line else finding.file or "the whole skill"
        found.setdefault(
            hash48(f"finding\0{finding.rule_id}".encode()), f"finding {finding.rule_id} at {place}"
        )
    return found


def _entry(one: SkillCapability) -> bytes:
    """Each unread file is a thing of its own."""
    file = one.file if one.kind is CapabilityKind.UNREAD else ""
    return f"{one.kind.value}\0{one.value}\0{file}".encode()


def notice_likeness(
    memory: Memory, sketch: Sequence[int], report: StaticReport, place: str = ""
) -> MemoryNotice | None:
    """That the text is a remembered skill's, and what this one can do and that one cannot. At the place that the memory
    names it is the remembered skill itself. `place` is a repository as `Identity.repo_key`."""
    alike = memory.find_like(sketch)[:MOST_COMPARED]
    if not alike or any(one.repository == place for one in alike if one.repository):
        return None
    entries = acting_entries(report)
    gains = {one.number: entries.keys() - memory.card_of(one.number) for one in alike}
    # Of forks of one skill, the one that can do the same tells where it comes from.
    origin = min(alike, key=lambda one: (len(gains[one.number]), -one.shared))
    gained = [words for entry, words in entries.items() if entry in gains[origin.number]]
    said = _describe_likeness(memory, origin, gained)
    listed = tuple(gained[:MOST_DETAILS])
    if len(gained) > MOST_DETAILS:
        listed += (f"{len(gained) - MOST_DETAILS} more",)
    return MemoryNotice("remembered", said, listed, bool(gained), memory.name_sketch(origin.number))


def _describe_likeness(memory: Memory, origin: Likeness, gained: Sequence[str]) -> str:
    said = (
        f"{origin.shared} % of its text is that of the public skill {origin.origin} (as of {memory.date[:7]})"
    )
    if not gained:
        return f"{said}, and it can do nothing that the public one cannot"
    named = list(gained[:MOST_NAMED])
    if len(gained) > MOST_NAMED:
        named.append(f"{len(gained) - MOST_NAMED} more")
    return f"{said}, which does not have: {', '.join(named)}"


def notice_hosts(memory: Memory, steps: Mapping[str, Iterable[str]], others: str = "") -> MemoryNotice | None:
    """That install steps name hosts that nobody is known to name. `others` says who else was asked."""
    unseen = [host for host in steps if host not in memory.hosts]
    if not unseen:
        return None
    said = describe_hosts(unseen, f"{others}none of {memory.words},")
    return MemoryNotice("host", said, tuple(place for host in unseen for place in steps[host]))


def notice_name(memory: Memory, name: str) -> MemoryNotice | None:
    """That a name can be taken for one of the memory. It holds if three owners or a vendor use that one; what is itself
    a public name imitates none."""
    if not name or name in memory.names:
        return None
    close = sorted(look_alikes(name) & memory.names.keys())
    if not close:
        return None
    imitated = max(close, key=lambda one: (one in memory.vendors, memory.names[one], one))
    holds = imitated in memory.vendors or memory.names[imitated] >= POPULAR
    users = memory.vendors.get(imitated) or counted(memory.names[imitated], "public owner")
    reason = f"its name {name} can be taken for {imitated}, a name of {users} (as of {memory.date[:7]})"
    return MemoryNotice("look-alike", reason, holds=holds)


def notices_of(
    memory: Memory, name: str, files: Sequence[SkillFile], report: StaticReport
) -> tuple[MemoryNotice, ...]:
    """All that the memory alone tells of a first publication."""
    steps = install_steps(hosts_named(report.capabilities or ()), files)
    found = (
        notice_likeness(memory, sketch_of(files), report),
        notice_name(memory, hyphenate(name)),
        notice_hosts(memory, steps),
    )
    return tuple(one for one in found if one is not None)

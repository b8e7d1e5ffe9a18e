"""What the registry and its memory know about a skill and no scan of its files can know: that it is a copy of another
one, that its name can be taken for a popular one, that it installs from a host that nobody else uses, and that its
owner's other skills were blocked. Rules of the policy send it to a reviewer for that.

The record keeps what is said, and its readers change: it is compared with skills and names that everybody may read, so
that nobody learns of a private one, and a reviewer's page compares with what that reviewer may read. Which skills are
meant is shown to those who may read them at that time. Hosts are counted among the skills that every reader of the
submission may read, and name none. An owner's blocks are counted and not named, because not everybody who may submit
there may read all of them.
"""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged
from vskill_core.findings import StaticReport
from vskill_core.identity import Identity
from vskill_core.naming import hyphenate
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, TargetKind
from vskill_platform.domain.canonical_names import canonical_name
from vskill_platform.domain.people import namespace
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.copies import (
    CopyComparison,
    compare_contents,
    describe_copy,
    shared_enough,
)
from vskill_platform.ledger.kv.collections import SKETCHES, SKILLS
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.ledger.kv.query import Between
from vskill_platform.records import Skips, decode_readable, entries_of, read_entries
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.owners import owners_of
from vskill_platform.store.recall.blocklist import blocklist_version
from vskill_platform.store.skills.names import read_names
from vskill_platform.store.skills.skills import (
    ContentMarks,
    Sketch,
    SkillPlace,
    place_of,
    read_skills,
    read_versions,
)
from vskill_platform.store.stored_content import INLINE_BYTES, read_content
from vskill_platform.store.verdicts.past_decisions import was_accepted
from vskill_platform.worker_context import require_env
from vskill_scan.memory.install_hosts import install_steps
from vskill_scan.memory.look_alike import MIN_INSTALLS, look_alikes
from vskill_scan.memory.memory import Memory
from vskill_scan.memory.notices import MemoryNotice, notice_hosts, notice_likeness, notice_name
from vskill_scan.memory.sketch import sketch_of

#: For how long a block speaks against its owner.
BLOCKED_WITHIN_MS = 90 * 86_400_000
#: Blocks of one owner that are counted.
MOST_BLOCKS = 100
#: Hosts that no unmanaged skill names and that are looked up in managed namespaces.
MOST_LOOKED_UP = 10
#: So many skills of one owner, published or updated within a day, are a burst.
BURST, BURST_MS = 20, 86_400_000
#: Skills of one owner that are looked at for that.
MOST_SKILLS = 200


async def registry_signals(
    record: Submission,
    place: SkillPlace,
    files: tuple[SkillFile, ...],
    marks: ContentMarks,
    report: StaticReport,
    memory: Memory,
) -> tuple[Signal, ...]:
    directory = await read_directory()
    readers = namespace.common_audiences(record.audience, directory)
    return (
        *await copy_signals(record, place, files, marks.hashes, namespace.shared_form(directory)),
        *await _remembered(record.identity, marks.hashes, report, memory),
        *await _look_alike(place, memory),
        *await _first_seen_hosts(files, marks.hosts, readers, memory),
        *await _publisher(record.identity),
    )


def signal_of(notice: MemoryNotice) -> Signal:
    """What the memory tells, as the registry notices it."""
    return Signal(SignalKind(notice.kind), notice.reason, notice.details, (), notice.holds, notice.sketch)


async def _remembered(
    identity: Identity, hashes: tuple[int, ...], report: StaticReport, memory: Memory
) -> list[Signal]:
    """That it is a skill of the memory, and what it can do beyond that. Once a reviewer has approved that for this
    owner, none is asked again."""
    notice = notice_likeness(memory, hashes, report, identity.repo_key)
    if notice is None:
        return []
    signal = signal_of(notice)
    if signal.holds and await was_accepted(identity, signal):
        signal = msgspec.structs.replace(signal, holds=False)
    return [signal]


async def reviewer_signals(
    record: Submission, files: tuple[SkillFile, ...], audiences: namespace.Audiences
) -> tuple[Signal, ...]:
    """What only a reviewer is shown, and holds nothing by itself: copies of skills that this reviewer may read, and the
    owner's history."""
    place = await place_of(record.identity)
    copies = await copy_signals(record, place, files, sketch_of(files), audiences)
    told = {skill for one in _noticed(record) for skill in one.skills}
    found = [one for one in copies if not told.issuperset(one.skills)]
    found += await _history(record.identity, audiences)
    return tuple(msgspec.structs.replace(one, holds=False) for one in found)


async def hide_signals(records: Sequence[Submission], audiences: namespace.Audiences) -> list[Submission]:
    """The records without the signals that speak of skills that a reader of these audiences may not read now."""
    named = {skill for record in records for one in _noticed(record) for skill in one.skills}
    if not named or isinstance(audiences, namespace.Everything):
        return [*records]
    readable = frozenset(await read_skills(named, audiences=audiences))
    return [_with_signals_of(record, readable) for record in records]


def _with_signals_of(record: Submission, readable: frozenset[str]) -> Submission:
    shown = tuple(one for one in _noticed(record) if readable.issuperset(one.skills))
    if record.evidence is None or shown == record.evidence.noticed:
        return record
    return msgspec.structs.replace(record, evidence=msgspec.structs.replace(record.evidence, noticed=shown))


def _noticed(record: Submission) -> tuple[Signal, ...]:
    return record.evidence.noticed if record.evidence is not None else ()


async def _look_alike(place: SkillPlace, memory: Memory) -> list[Signal]:
    """Only of a first publication: what is published keeps its name."""
    name = hyphenate(place.slug)
    if place.skill is not None or not name:
        return []
    if found := await _look_alike_here(place, name):
        return found
    notice = notice_name(memory, name)
    return [] if notice is None else [signal_of(notice)]


async def _look_alike_here(place: SkillPlace, name: str) -> list[Signal]:
    if not await _has_popular():
        return []
    held = (await read_names(look_alikes(name))).held
    holders = {
        one.holders[namespace.PUBLIC].canonical: flat
        for flat, one in held.items()
        if namespace.PUBLIC in one.holders
    }
    stored = await read_entries(map(keys.skill, holders))
    skills = decode_readable(stored.values(), PublishedSkill, "registry_signals")
    popular = [skill for skill in skills if _is_imitated(skill, place.canonical)]
    if not popular:
        return []
    first = max(popular, key=lambda one: (one.trust.installs, one.canonical))
    reason = (
        f"its name {name} can be taken for {holders[first.canonical]}, the name of another owner's skill, which was "
        f"installed {first.trust.installs} times"
    )
    return [Signal(SignalKind.LOOK_ALIKE, reason, skills=tuple(sorted(one.canonical for one in popular)))]


async def _has_popular() -> bool:
    """Whether there is a name worth imitating: reading the neighbours of a name costs more than all else that a first
    publication reads."""
    page = await require_env("kv").kv.select(
        SKILLS.prefix,
        audiences=namespace.PUBLIC_ONLY,
        where={"installs": Between(MIN_INSTALLS, None)},
        order_by="installs",
        descending=True,
        limit=1,
    )
    return bool(entries_of(page))


def _is_imitated(skill: PublishedSkill, canonical: str) -> bool:
    """Whether that is a popular skill of another owner. One that was blocked is imitated by nobody."""
    own = skill.canonical.partition("/")[0] == canonical.partition("/")[0]
    return not own and not skill.withdrawn and skill.trust.installs >= MIN_INSTALLS


async def _publisher(identity: Identity) -> list[Signal]:
    recent = await count_recent_blocks(identity)
    if not recent:
        return []
    blocked = "another skill of its owner was" if recent == 1 else f"{recent} other skills of its owner were"
    return [Signal(SignalKind.PUBLISHER, f"{blocked} blocked within 90 days")]


async def count_recent_blocks(identity: Identity) -> int:
    """Skills and repositories of its owner that were blocked within 90 days."""
    env = require_env("kv")
    if await blocklist_version() == ABSENT:
        # Nothing was ever blocked.
        return 0
    since = env.kv.now() - BLOCKED_WITHIN_MS
    recent = 0
    for kind in (TargetKind.PLACE, TargetKind.REPOSITORY):
        page = await env.kv.scan(_blocks_of(kind, identity), limit=MOST_BLOCKS)
        blocks = decode_readable(entries_of(page), BlockEntry, "registry_signals")
        recent += sum(block.discovered_at >= since for block in blocks)
    return recent


def _blocks_of(kind: TargetKind, identity: Identity) -> str:
    """The beginning of the keys of an owner's blocks."""
    owner, _, _ = identity.repo_key.rpartition("/")
    return BlockTarget(kind, f"{owner}/").key


async def _first_seen_hosts(
    files: tuple[SkillFile, ...], hosts: tuple[str, ...], audiences: frozenset[str], memory: Memory
) -> list[Signal]:
    """Hosts of install steps that neither a published skill nor the memory names. Of the hosts that skills of managed
    namespaces may name, the first ten are looked up and the others left out, so that a submission does not read keys by
    hosts times namespaces."""
    steps = await _find_steps(tuple(host for host in hosts if host not in memory.hosts), files)
    unseen = await _without_seen(steps, namespace.PUBLIC_ONLY)
    unseen = await _without_seen(unseen[:MOST_LOOKED_UP], audiences - namespace.PUBLIC_ONLY)
    notice = notice_hosts(memory, {host: steps[host] for host in unseen}, "no other published skill and ")
    return [] if notice is None else [signal_of(notice)]


async def _find_steps(hosts: tuple[str, ...], files: tuple[SkillFile, ...]) -> dict[str, tuple[str, ...]]:
    if not hosts or size_of(files) <= INLINE_BYTES:
        return install_steps(hosts, files)
    return await asyncio.to_thread(install_steps, hosts, files)


async def find_seen_hosts(hosts: Iterable[str]) -> set[str]:
    """Those that a published skill names which everybody may read."""
    wanted = set(hosts)
    return wanted.difference(await _without_seen(wanted, namespace.PUBLIC_ONLY))


async def _without_seen(hosts: Iterable[str], audiences: frozenset[str]) -> list[str]:
    """The hosts that no skill of these audiences names."""
    wanted = [*hosts]
    counters = {keys.host(audience, host): host for host in wanted for audience in audiences}
    if not counters:
        return wanted
    seen = {counters[key] for key in await read_entries(counters)}
    return [host for host in wanted if host not in seen]


async def _history(identity: Identity, audiences: namespace.Audiences) -> list[Signal]:
    """That the owner has published nothing before, or much within a day."""
    env = require_env("kv")
    owner, _, _ = canonical_name(identity).partition("/")
    page = await env.kv.select(SKILLS.prefix, audiences=audiences, under=f"{owner}/", limit=MOST_SKILLS)
    if not entries_of(page):
        return [Signal(SignalKind.PUBLISHER, f"no skill of {owner} is published here yet")]
    changed = [SKILLS.fields["listed_at"].read(entry.value) for entry in page.items]
    since = env.kv.now() - BURST_MS
    recent = sum(isinstance(at, int) and at >= since for at in changed)
    if recent < BURST:
        return []
    return [
        Signal(SignalKind.PUBLISHER, f"{recent} skills of {owner} were published or updated within a day")
    ]


# Copies of published skills by other owners: the sketches name candidates, and the stored files tell how much of one is
# in what was submitted, and what was added. Only skills of the audiences that the caller names are compared: of those
# that everybody may read for what a record keeps, of those that a reviewer may read for that reviewer. What is quoted
# are lines of the submission itself.

#: Of skills of other owners that share something, how many sketches are read, and how many contents are compared.
MOST_CANDIDATES, MOST_COMPARED = 10, 3


class _Twin(msgspec.Struct, frozen=True):
    """A published skill, the files that its sketch was made of, and how they are contained in the new ones."""

    skill: PublishedSkill
    files: tuple[SkillFile, ...]
    comparison: CopyComparison


async def copy_signals(
    record: Submission,
    place: SkillPlace,
    files: tuple[SkillFile, ...],
    hashes: tuple[int, ...],
    audiences: namespace.Audiences,
) -> list[Signal]:
    """The signal of the skill that most of the submitted text is taken from, if there is one. A plain copy of a live
    skill is only shown."""
    if not hashes:
        return []
    candidates = await _find_candidates(place.canonical, hashes, audiences)
    for twin in await _compare(candidates, files, audiences):
        found, skill = twin.comparison, twin.skill
        if await _is_same_owner(record.identity, record.submitter, skill):
            continue
        if place.skill is not None and await _is_accepted(twin, place.skill):
            continue
        withdrawn = skill.current_version is None
        reason = describe_copy(found, withdrawn=withdrawn)
        details = tuple(map(str, found.added))
        if (more := found.total_added - len(found.added)) > 0:
            details += (f"{more} more",)
        holds = withdrawn or found.total_added > 0
        return [Signal(SignalKind.COPY, reason, details, (skill.canonical,), holds)]
    return []


async def _find_candidates(
    canonical: str, hashes: tuple[int, ...], audiences: namespace.Audiences
) -> dict[str, Sketch]:
    """Sketches of other owners' skills that share enough, by canonical name, the most alike first."""
    env = require_env("kv")
    owner, _, _ = canonical.partition("/")
    others = await env.kv.overlap(
        SKETCHES.prefix,
        hashes,
        audiences=audiences,
        least=len(hashes) // 4,
        limit=MOST_CANDIDATES,
        without=owner,
    )
    if not others:
        return {}
    stored = await read_entries(one.key for one in others)
    skips = Skips("copy_signals")
    sketches: dict[str, Sketch] = {}
    for one in others:
        entry = stored.get(one.key)
        sketch = None if entry is None else skips.decode(entry, Sketch)
        if sketch is not None and shared_enough(one.shared, len(hashes), len(sketch.hashes)):
            sketches[keys.parse(one.key).parts[0]] = sketch
    skips.report(env)
    return dict(list(sketches.items())[:MOST_COMPARED])


async def _compare(
    candidates: dict[str, Sketch], files: tuple[SkillFile, ...], audiences: namespace.Audiences
) -> list[_Twin]:
    """Those whose text is contained, the best first. One whose files are gone or damaged cannot be compared."""
    if not candidates:
        return []
    skills = await read_skills(candidates, audiences=audiences)
    twins: list[_Twin] = []
    for name, skill in skills.items():
        published = await _read_files(candidates[name].digest)
        comparison = await _compare_files(published, files) if published else None
        if comparison is not None and comparison.is_copy:
            twins.append(_Twin(skill, published, comparison))
    return sorted(twins, key=lambda one: (-one.comparison.contained, one.skill.canonical))


async def _read_files(digest: str) -> tuple[SkillFile, ...]:
    try:
        return await read_content(digest)
    except ContentDamaged:
        return ()


async def _compare_files(
    published: tuple[SkillFile, ...], new: tuple[SkillFile, ...]
) -> CopyComparison | None:
    if size_of(published) + size_of(new) <= INLINE_BYTES:
        return compare_contents(published, new)
    return await asyncio.to_thread(compare_contents, published, new)


def size_of(files: Iterable[SkillFile]) -> int:
    return sum(len(file.data) for file in files)


async def _is_same_owner(identity: Identity, submitter: str | None, skill: PublishedSkill) -> bool:
    """Whether somebody proved control of both places, or submits one and controls the other."""
    theirs = {owner.account for owner in await owners_of(skill.identity)}
    if not theirs:
        return False
    ours = {owner.account for owner in await owners_of(identity)}
    return bool(theirs & (ours | {submitter}))


async def _is_accepted(twin: _Twin, own: PublishedSkill) -> bool:
    """Whether a live version that a reviewer approved is this copy with something added."""
    for digest in await _approved_digests(own):
        before = await _read_files(digest)
        earlier = await _compare_files(twin.files, before) if before else None
        if earlier is not None and earlier.is_copy and earlier.total_added > 0:
            return True
    return False


async def _approved_digests(own: PublishedSkill) -> list[str]:
    """Contents of the newest live versions that a reviewer approved or kept. The version's own record tells it, since a
    rescan may change the certification in the skill's."""
    versions = await read_versions(own)
    certified = {number for number, one in versions.items() if one.certification is Certification.CERTIFIED}
    live = (ref for ref in reversed(own.versions) if ref.status is VersionStatus.LIVE)
    return [ref.digest for ref in live if ref.kept_by or ref.number in certified][:MOST_COMPARED]

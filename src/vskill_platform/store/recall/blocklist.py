"""The blocklist: entries, the version that every change of them raises, and the pass that applies them.

An entry is effective once written: whoever publishes asserts `control:blocklist` in its own commit, so what is
blocked while it is being published does not go live. Applying entries to what is queued or live already is a
pass that is repeated whenever the version has risen, so a crash in the middle of one costs only time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

import msgspec

from vskill_core.errors import Blocked, PlatformError
from vskill_core.identity import Identity, submission_id_at
from vskill_platform.domain import keys
from vskill_platform.domain.audience import EVERYTHING, PUBLIC, widest
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    TargetKind,
    hit_reason,
    merge,
    worst_of,
)
from vskill_platform.domain.people.namespace import Visibility, audience_for
from vskill_platform.domain.recall.block_index import Blocklist, all_targets, version_targets
from vskill_platform.domain.skills import skill
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef, VersionStatus
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.env import Env
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS, RecordKind
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Delete, Operation, Put
from vskill_platform.ledger.kv.query import Is
from vskill_platform.records import Skips, audience_of, decode, persist
from vskill_platform.store.people.audit import record_audit, was_audited
from vskill_platform.store.people.namespaces import belonging_of, read_directory
from vskill_platform.store.skills.skills import require_skill, skill_writes
from vskill_platform.submission_store import (
    RecordChange,
    next_run,
    read_submission,
    stored_form,
    update_submission,
)
from vskill_platform.worker_context import require_env

T = TypeVar("T")

#: Targets whose entries are about what lies in one namespace.
_OF_ONE_PLACE = (TargetKind.PLACE, TargetKind.REPOSITORY)

UNBLOCKED = "no entry of the blocklist hits it any more"


async def blocklist_version() -> int:
    """The version to assert: read it first, then the entries, then commit."""
    entry = await require_env("kv").kv.get(keys.CONTROL_BLOCKLIST)
    return ABSENT if entry is None else entry.version


async def assert_blocklist() -> Assert:
    """What whoever acts on an entry commits with it: nothing is written if the blocklist has changed meanwhile."""
    return Assert(keys.CONTROL_BLOCKLIST, await blocklist_version())


async def require_unblocked(targets: Iterable[BlockTarget]) -> Assert:
    """Raises Blocked where an entry hits one of them. The answer is what whoever relies on it commits with it: the
    version is read first, so an entry that comes after this look makes that commit fail."""
    asserted = await assert_blocklist()
    if asserted.version == ABSENT:
        # No entry was ever written: each raises the version.
        return asserted
    hit = hit_reason(await find_hits(targets))
    if hit is not None:
        raise Blocked(hit)
    return asserted


async def list_blocks() -> list[BlockEntry]:
    """Every entry, whole or not at all: one that cannot be read must not look like one that was lifted."""
    found: list[BlockEntry] = []
    async for page in iterate_pages(require_env("kv").kv, keys.BLOCK):
        for error in page.failed.values():
            raise error
        found += [decode(stored, BlockEntry) for stored in page.items]
    return found


async def read_blocklist(version: int) -> Blocklist:
    """All of it, under the version that was read before."""
    entries = await list_blocks()
    # A place that nobody has submitted, whether mistyped or blocked ahead, says nothing about its neighbours.
    places = await places_with_records(entry.target for entry in entries)
    tainted: dict[str, tuple[BlockEntry, ...]] = {}
    for entry in entries:
        if entry.target.kind is TargetKind.PLACE and entry.target.value in places:
            repo = _repository_of(entry.target)
            tainted[repo] = (*tainted.get(repo, ()), entry)
    return Blocklist(version, {entry.target: entry for entry in entries}, tainted)


def _repository_of(target: BlockTarget) -> str:
    return "/".join(target.value.split("/")[:3])


async def find_hits(targets: Iterable[BlockTarget]) -> tuple[BlockEntry, ...]:
    """The entries for these targets. A read that fails raises: unknown is not "not blocked"."""
    settled = await require_env("kv").kv.get_many(keys.block(target) for target in targets)
    for error in settled.failed.values():
        raise error
    return tuple(decode(entry, BlockEntry) for entry in settled.found.values())


async def why_blocked(identity: Identity, names: Iterable[str | None], digest: str | None) -> str | None:
    """Why this skill may not be published, or None."""
    return hit_reason(await find_hits(all_targets(identity, names, digest)))


async def why_version_blocked(published: PublishedSkill, ref: VersionRef) -> str | None:
    """Why this version may not be handed out, or None."""
    return hit_reason(await find_hits(version_targets(published, ref)))


async def block_writes(entry: BlockEntry, audit_id: str | None = None) -> tuple[Operation, ...]:
    """The operations that write an entry, joined with what is known already, raise the version, and say who did it."""
    found = await require_env("kv").kv.get(keys.block(entry.target))
    merged = entry if found is None else merge(decode(found, BlockEntry), entry)
    version = ABSENT if found is None else found.version
    return (
        Put(keys.block(entry.target), msgspec.json.encode(merged), version),
        Add(keys.CONTROL_BLOCKLIST),
        record_audit(
            "block",
            str(entry.target),
            by=entry.discovered_by,
            reason=entry.reason,
            details={"severity": entry.severity.value},
            entry_id=audit_id,
        ),
    )


async def add_block(entry: BlockEntry) -> None:
    """Write an entry; it is effective now. `reapply_blocklist` ends what runs and takes down what is live."""
    audit_id = require_env("clock").clock.new_id()

    async def write() -> None:
        if not await was_audited(audit_id):
            await require_env("kv").kv.commit(await block_writes(entry, audit_id))

    await persist(write)


async def remove_block(target: BlockTarget, *, by: str = "system", reason: str = "lifted") -> bool:
    """Lift an entry; whether there was one. The next pass starts a new run of what no other entry hits."""
    kv = require_env("kv").kv
    audit_id = require_env("clock").clock.new_id()

    async def write() -> bool:
        found = await kv.get(keys.block(target))
        if found is None:
            return await was_audited(audit_id)
        audit = record_audit("unblock", str(target), by=by, reason=reason, entry_id=audit_id)
        await kv.commit([Delete(keys.block(target), found.version), Add(keys.CONTROL_BLOCKLIST), audit])
        return True

    return await persist(write)


# What an entry hits.


class BlockHits(msgspec.Struct, frozen=True):
    """What an entry hits, or would hit."""

    #: by id
    submissions: tuple[str, ...] = ()
    #: by canonical name
    skills: tuple[str, ...] = ()
    #: how many versions of these skills
    versions: int = 0
    #: whose readers may hear of all that
    audience: str = PUBLIC
    #: places of the same repository, or else of the same owner; only where nothing is hit
    near: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        return not (self.submissions or self.skills)


async def find_hit_by(target: BlockTarget) -> BlockHits:
    """What an entry for this target hits now, whether or not there is one."""
    env = require_env("kv")
    walk = _Walk(env)
    submissions: list[str] = []
    skills: list[str] = []
    places: set[str] = set()
    versions = 0
    audiences: set[str] = set()
    async for record in walk.records(SUBMISSIONS, Submission):
        places.add(record.identity.key)
        if target in targets_for(record):
            submissions.append(record.id)
            audiences.add(record.audience)
    async for published in walk.records(SKILLS, PublishedSkill):
        hit = sum(target in version_targets(published, ref) for ref in published.versions)
        if hit:
            skills.append(published.canonical)
            audiences.add(published.audience)
            versions += hit
    walk.finish()
    audience = widest(audiences) or await _audience_ahead(target) or PUBLIC
    near = () if submissions or skills else _near(target, places)
    return BlockHits(tuple(submissions), tuple(skills), versions, audience, near)


async def audience_of_block(target: BlockTarget, known: str) -> str:
    """Whose readers may see a new entry about a skill of this audience. Content can be found elsewhere too; what the
    indexes do not know, the next pass over the blocklist adds."""
    if target.kind is not TargetKind.DIGEST:
        return known
    kv = require_env("kv").kv
    found = {known}
    for collection, field in ((SUBMISSIONS, "digest"), (SKILLS, "current_digest")):
        page = await kv.select(
            collection.prefix, audiences=EVERYTHING, where={field: Is(target.value)}, order_by="key"
        )
        for error in page.failed.values():
            raise error
        found |= {audience for entry in page.items if (audience := audience_of(entry)) is not None}
    return widest(found) or known


async def _audience_ahead(target: BlockTarget) -> str | None:
    """The audience of an entry that hits nothing: for a place or a full name, the narrowest of its namespace. None
    where the target does not say whose it is."""
    if target.kind in _OF_ONE_PLACE:
        host, owner, repo = _repository_of(target).split("/")
        place = Identity(host.replace("_", ":"), owner, repo)
        return (await belonging_of(place, Visibility.TEAM)).audience
    owner, slash, _ = target.value.partition("/")
    if not slash:
        return None
    managed = (await read_directory()).namespaces.items()
    found = ((name, namespace) for name, namespace in managed if name.casefold() == owner)
    return next((audience_for(namespace, name, Visibility.TEAM) for name, namespace in found), None)


def _near(target: BlockTarget, places: set[str]) -> tuple[str, ...]:
    """Known places of the same repository, or else of the same owner, the most alike first."""
    for parts in (3, 2):
        around = "/".join(target.value.split("/")[:parts]) + "/"
        known = sorted(place for place in places if f"{place}/".startswith(around))
        if known:
            return tuple(get_close_matches(target.value, known, n=3, cutoff=0.0))
    return ()


async def places_with_records(targets: Iterable[BlockTarget]) -> frozenset[str]:
    """Of these places, those that were ever submitted. A read that fails raises."""
    wanted = {
        keys.sub(submission_id_at(target.value)): target.value
        for target in targets
        if target.kind is TargetKind.PLACE
    }
    if not wanted:
        return frozenset()
    settled = await require_env("kv").kv.get_many(wanted)
    for error in settled.failed.values():
        raise error
    return frozenset(wanted[key] for key in settled.found)


# Applying entries to what is queued or live already.


def targets_for(record: Submission) -> tuple[BlockTarget, ...]:
    """Every target that would hit this submission."""
    return all_targets(record.identity, (record.skill_name, record.declared_name), record.digest)


#: Has a version judged again that came back.
JudgeAgain = Callable[[PublishedSkill, VersionRef], Awaitable[object]]


async def reapply_blocklist(applied: int | None = None, *, judge_again: JudgeAgain | None = None) -> int:
    """End and restart runs, take versions down and bring them back, until the store agrees with the blocklist; the
    version it agrees with.

    `applied` is what the last pass returned: while the blocklist stands there, there is nothing to do. `judge_again` is
    called for every version that came back: the rules may have changed while it was down. The pass also gives each
    entry the audience of what it hits now.
    """
    env = require_env("kv")
    version = await blocklist_version()
    if version == applied:
        return version
    walk = _Walk(env)
    entries = {entry.target: _Hits(entry) for entry in await list_blocks()}
    async for record in walk.records(SUBMISSIONS, Submission):
        own = [entries[target] for target in targets_for(record) if target in entries]
        for hits in own:
            named = hits.entry.source_url == record.repo_url
            hits.add(record.audience, _facts_of_submission(record), named=named, published=False)
        hit = bool(own)
        if hit and may_move(record.state, State.BLOCKED) and not record.appeals_block:
            await _end_run(env, record)
        elif not hit and record.state is State.BLOCKED:
            await _restart(env, record)
    async for published in walk.records(SKILLS, PublishedSkill):
        own = [entries[target] for target in _targets_of_skill(published) if target in entries]
        for hits in own:
            named = published.canonical == hits.entry.skill_name
            named = named or hits.entry.source_url == published.repo_url
            facts = _facts_of_skill(published, hits.entry.target)
            hits.add(published.audience, facts, named=named, published=True)
        if own or any(map(skill.taken_down_by_block, published.versions)):
            await _agree(env, published.canonical, judge_again)
    walk.finish()
    for hits in entries.values():
        await _renew_audience(hits)
    return version


class _BlockFacts(msgspec.Struct, frozen=True, order=True):
    """What an entry tells about something that it hits."""

    skill_name: str
    source_url: str
    digest: str
    content_hash: str


def _facts_of_submission(record: Submission) -> _BlockFacts:
    return _BlockFacts(record.skill_name, record.repo_url, record.digest or "", "")


def _facts_of_skill(published: PublishedSkill, target: BlockTarget) -> _BlockFacts:
    """With the newest version that the entry hits."""
    ref = next(ref for ref in reversed(published.versions) if target in version_targets(published, ref))
    return _BlockFacts(ref.name, published.repo_url, ref.digest, ref.content_hash)


class _Hits:
    """An entry, the audiences of what it hits, and what it tells about that."""

    def __init__(self, entry: BlockEntry) -> None:
        self.entry = entry
        self._all: set[str] = set()
        self._named: set[str] = set()
        self._told: tuple[bool, bool, _BlockFacts, str] | None = None

    def add(self, audience: str, facts: _BlockFacts, *, named: bool, published: bool) -> None:
        """`named`: this is what the entry's names are about. Something public is told of before anything else, and a
        skill before a submission."""
        self._all.add(audience)
        if named:
            self._named.add(audience)
        if named or not (self.entry.skill_name or self.entry.source_url):
            found = (audience != PUBLIC, not published, facts, audience)
            self._told = found if self._told is None else min(self._told, found)

    async def renew(self, entry: BlockEntry) -> BlockEntry:
        """The entry with the audiences as they are now, and with names and hashes of what it hits where it has none.
        What hits nothing any more keeps all of it: its names are still those of what it hit."""
        audience = widest(self._all) or await _audience_ahead(entry.target) or entry.audience
        entry = msgspec.structs.replace(entry, audience=audience, origin=widest(self._named) or entry.origin)
        if self._told is None or entry.digest:
            return entry
        _, _, facts, origin = self._told
        if not (entry.skill_name or entry.source_url):
            entry = msgspec.structs.replace(entry, origin=origin)
        told = {name: getattr(entry, name) or getattr(facts, name) for name in facts.__struct_fields__}
        if entry.target.kind is TargetKind.NAME:
            # Clients take an address for the only place that is meant.
            told["source_url"] = entry.source_url
        return msgspec.structs.replace(entry, **told)


async def _renew_audience(hits: _Hits) -> None:
    if await hits.renew(hits.entry) == hits.entry:
        return
    kv, key = require_env("kv").kv, keys.block(hits.entry.target)

    async def write() -> None:
        found = await kv.get(key)
        if found is None:
            return
        entry = decode(found, BlockEntry)
        renewed = await hits.renew(entry)
        if renewed != entry:
            # With the version, so that every process reads it again.
            await kv.commit(
                [Put(key, msgspec.json.encode(renewed), found.version), Add(keys.CONTROL_BLOCKLIST)]
            )

    await persist(write)


class _Walk:
    """Every record of some kinds. A pass that could not read one has not applied the blocklist: it goes to the
    end all the same, and then says so."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._skips = Skips("reapply_blocklist")
        self._failed: list[PlatformError] = []

    async def records(self, collection: RecordKind, kind: type[T]) -> AsyncIterator[T]:
        async for page in iterate_pages(self._env.kv, collection.prefix, exclude=collection.exclude):
            self._skips.failed(page.failed)
            self._failed += page.failed.values()
            for entry in page.items:
                record = self._skips.decode(entry, kind)
                if record is not None:
                    yield record

    def finish(self) -> None:
        """Raises what a read failed with, so that the pass is repeated."""
        self._skips.report(self._env)
        for error in self._failed:
            raise error


async def _end_run(env: Env, record: Submission) -> None:
    """Whatever it is doing, it is BLOCKED now, by the entries that hit it at this moment."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        asserted = await assert_blocklist()
        reason = hit_reason(await find_hits(targets_for(current)))
        if reason is None or not may_move(current.state, State.BLOCKED) or current.appeals_block:
            return None
        return RecordChange(_block(current, Step(event_id, env.kv.now(), "system", reason)), (asserted,))

    await update_submission(record.id, decide, event_id=event_id)


def _block(record: Submission, step: Step) -> Submission:
    decision = submission.RecordedDecision(step.reason)
    return submission.move(submission.cancel_rerun(record), State.BLOCKED, step, decision=decision)


async def _restart(env: Env, record: Submission) -> None:
    """Every BLOCKED submission has an entry that hits it; where none is left, it was unblocked."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        if current.state is not State.BLOCKED or await find_hits(targets_for(current)):
            return None
        step = Step(event_id, env.kv.now(), "system", UNBLOCKED)
        return next_run(current, step, submitter=current.submitter, upload=current.upload)

    await update_submission(record.id, decide, event_id=event_id)


def _targets_of_skill(published: PublishedSkill) -> tuple[BlockTarget, ...]:
    each = (version_targets(published, ref) for ref in published.versions)
    return tuple(dict.fromkeys(target for targets in each for target in targets))


async def _agree(env: Env, canonical: str, judge_again: JudgeAgain | None) -> None:
    """Take down every version that an entry hits at this moment: all by place or repository, some by name or digest.
    Bring back what an entry took down, where none hits it any more.

    A submission that is PUBLISHED with such a version is BLOCKED in the same commit: where the pass could not read
    it, or breaks off here, and the entry is lifted before the next one, nobody would ever bring the version back.
    """

    async def write() -> tuple[PublishedSkill, PublishedSkill]:
        asserted = await assert_blocklist()
        published, version = await require_skill(canonical)
        hits = await find_hits(_targets_of_skill(published))
        changed = _as_blocked(published, hits, env.kv.now())
        if changed != published:
            publisher = await _publisher_writes(env, changed)
            written = await skill_writes(published, changed, version)
            await env.kv.commit([asserted, *written, *publisher])
        return published, changed

    before, after = await persist(write)
    for old, new in zip(before.versions, after.versions, strict=True):
        if judge_again is not None and skill.taken_down_by_block(old) and new.status is VersionStatus.LIVE:
            await judge_again(after, new)


async def _publisher_writes(env: Env, changed: PublishedSkill) -> tuple[Operation, ...]:
    found = None if changed.submission is None else await read_submission(changed.submission)
    if found is None or found[0].state is not State.PUBLISHED:
        return ()
    record, version = found
    ref = next((ref for ref in reversed(changed.versions) if ref.digest == record.digest), None)
    if ref is None or ref.status is not VersionStatus.TAKEN_DOWN:
        return ()
    # A step of its own for each try: one that was applied unseen may have been followed by another run.
    step = Step(env.clock.new_id(), env.kv.now(), "system", ref.reason)
    return stored_form(RecordChange(_block(record, step)), version, step.event_id)[1]


def _as_blocked(published: PublishedSkill, hits: Sequence[BlockEntry], now: int) -> PublishedSkill:
    # Versions with the same bytes have the same name.
    for digest, ref in {ref.digest: ref for ref in published.versions}.items():
        targets = version_targets(published, ref)
        own = [entry for entry in hits if entry.target in targets]
        reason, worst = hit_reason(own), worst_of(own)
        if reason is not None and worst is not None:
            step = skill.StatusChange(
                StatusRole.BLOCK, "system", now, reason, worst.threat_type, worst.severity
            )
            published = skill.take_down(published, step, digest=digest)
        else:
            step = skill.StatusChange(StatusRole.BLOCK, "system", now, UNBLOCKED)
            published = skill.unblock(published, step, digest=digest)
    return published

"""The pass that applies the blocklist to what is queued or live already, and what an entry hits or would hit.

The pass is repeated whenever the blocklist's version has risen, so a crash in the middle of one costs only time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

import msgspec

from vskill_core.errors import PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    TargetKind,
    hit_reason,
    worst_of,
)
from vskill_platform.domain.people.namespace import PUBLIC, widest
from vskill_platform.domain.recall.block_index import version_targets
from vskill_platform.domain.skills import skill, skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef, VersionStatus
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS, RecordKind
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Add, Put
from vskill_platform.records import (
    Skips,
    persist,
    read_record,
)
from vskill_platform.store.recall import blocklist
from vskill_platform.store.recall.withdrawals import plan_commit
from vskill_platform.store.skills.skills import require_skill
from vskill_platform.submission_store import (
    RecordChange,
    next_run,
    update_submission,
)
from vskill_platform.worker_context import Env, require_env

T = TypeVar("T")

UNBLOCKED = "no entry of the blocklist hits it any more"

#: Has a version judged again that came back.
JudgeAgain = Callable[[PublishedSkill, VersionRef], Awaitable[object]]


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
        if target in blocklist.targets_for(record):
            submissions.append(record.id)
            audiences.add(record.audience)
    async for published in walk.records(SKILLS, PublishedSkill):
        hit = sum(target in version_targets(published, ref) for ref in published.versions)
        if hit:
            skills.append(published.canonical)
            audiences.add(published.audience)
            versions += hit
    walk.finish()
    audience = widest(audiences) or await blocklist.audience_ahead(target) or PUBLIC
    near = () if submissions or skills else _near(target, places)
    return BlockHits(tuple(submissions), tuple(skills), versions, audience, near)


def _near(target: BlockTarget, places: set[str]) -> tuple[str, ...]:
    """Known places of the same repository, or else of the same owner, the most alike first."""
    for parts in (3, 2):
        around = "/".join(target.value.split("/")[:parts]) + "/"
        known = sorted(place for place in places if f"{place}/".startswith(around))
        if known:
            return tuple(get_close_matches(target.value, known, n=3, cutoff=0.0))
    return ()


# Applying entries to what is queued or live already.


async def reapply_blocklist(applied: int | None = None, *, judge_again: JudgeAgain | None = None) -> int:
    """End and restart runs, take versions down and bring them back, until the store agrees with the blocklist; returns
    the blocklist's version that it agrees with.

    `applied` is the result of the last pass: if the blocklist still has that version, there is nothing to do.
    `judge_again` is called for every version that came back: the rules may have changed while it was down. The pass
    also gives each entry the audience of what it hits now.
    """
    env = require_env("kv")
    version = await blocklist.blocklist_version()
    if version == applied:
        return version
    walk = _Walk(env)
    entries = {entry.target: _Hits(entry) for entry in await blocklist.list_blocks()}
    async for record in walk.records(SUBMISSIONS, Submission):
        own = [entries[target] for target in blocklist.targets_for(record) if target in entries]
        for hits in own:
            named = hits.entry.source_url == record.repo_url
            facts = _BlockFacts(record.skill_name, record.repo_url, record.digest or "", "")
            hits.add(record.audience, facts, named=named, published=False)
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
    """What an entry says about something that it hits."""

    skill_name: str
    source_url: str
    digest: str
    content_hash: str


def _facts_of_skill(published: PublishedSkill, target: BlockTarget) -> _BlockFacts:
    """With the newest version that the entry hits."""
    ref = next(ref for ref in reversed(published.versions) if target in version_targets(published, ref))
    return _BlockFacts(ref.name, published.repo_url, ref.digest, ref.content_hash)


class _Hits:
    """An entry, the audiences of what it hits, and what it says about that."""

    def __init__(self, entry: BlockEntry) -> None:
        self.entry = entry
        self._all: set[str] = set()
        self._named: set[str] = set()
        self._told: tuple[bool, bool, _BlockFacts, str] | None = None

    def add(self, audience: str, facts: _BlockFacts, *, named: bool, published: bool) -> None:
        """`named`: the entry's names are about this. Public facts win over others, and a skill's over a
        submission's."""
        self._all.add(audience)
        if named:
            self._named.add(audience)
        if named or not (self.entry.skill_name or self.entry.source_url):
            found = (audience != PUBLIC, not published, facts, audience)
            self._told = found if self._told is None else min(self._told, found)

    async def renew(self, entry: BlockEntry) -> BlockEntry:
        """The entry with the current audiences, and with names and hashes of what it hits if it has none. An entry that
        hits nothing any more keeps what it has: its names are still those of what it hit."""
        audience = widest(self._all) or await blocklist.audience_ahead(entry.target) or entry.audience
        entry = msgspec.structs.replace(entry, audience=audience, origin=widest(self._named) or entry.origin)
        if self._told is None or entry.digest:
            return entry
        _, _, facts, origin = self._told
        if not (entry.skill_name or entry.source_url):
            entry = msgspec.structs.replace(entry, origin=origin)
        told = {name: getattr(entry, name) or getattr(facts, name) for name in facts.__struct_fields__}
        if entry.target.kind is TargetKind.NAME:
            # Clients read the URL as the only place that is blocked.
            told["source_url"] = entry.source_url
        return msgspec.structs.replace(entry, **told)


async def _renew_audience(hits: _Hits) -> None:
    if await hits.renew(hits.entry) == hits.entry:
        return
    kv, key = require_env("kv").kv, hits.entry.target.key

    async def write() -> None:
        entry, version = await read_record(key, BlockEntry)
        renewed = None if entry is None else await hits.renew(entry)
        if renewed != entry:
            # With the version, so that every process reads it again.
            await kv.commit([Put(key, msgspec.json.encode(renewed), version), Add(keys.CONTROL_BLOCKLIST)])

    await persist(write)


class _Walk:
    """Every record of some kinds. If one cannot be read, the blocklist is not fully applied: the walk still goes to the
    end, and then raises."""

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
        """Raise the error of a failed read, so that the pass is repeated."""
        self._skips.report(self._env)
        for error in self._failed:
            raise error


async def _end_run(env: Env, record: Submission) -> None:
    """End the run as BLOCKED, whatever its state, by the entries that hit it now."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        asserted = await blocklist.assert_blocklist()
        reason = hit_reason(await blocklist.find_hits(blocklist.targets_for(current)))
        if reason is None or not may_move(current.state, State.BLOCKED) or current.appeals_block:
            return None
        return RecordChange(_block(current, Step(event_id, env.kv.now(), "system", reason)), (asserted,))

    await update_submission(record.id, decide, event_id=event_id)


def _block(record: Submission, step: Step) -> Submission:
    """What was submitted meanwhile has its own run, which ends in the same way where the entry hits that too."""
    decision = submission.RecordedDecision(step.reason)
    return submission.move(record, State.BLOCKED, step, decision=decision)


async def _restart(env: Env, record: Submission) -> None:
    """Start a new run if no entry hits this BLOCKED submission any more."""
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        if current.state is not State.BLOCKED or await blocklist.find_hits(blocklist.targets_for(current)):
            return None
        step = Step(event_id, env.kv.now(), "system", UNBLOCKED)
        return next_run(current, step, submitter=None, upload=current.upload)

    await update_submission(record.id, decide, event_id=event_id)


def _targets_of_skill(published: PublishedSkill) -> tuple[BlockTarget, ...]:
    each = (version_targets(published, ref) for ref in published.versions)
    return tuple(dict.fromkeys(target for targets in each for target in targets))


async def _agree(env: Env, canonical: str, judge_again: JudgeAgain | None) -> None:
    """Take down every version that an entry hits now: all by place or repository, some by name or digest. Bring back
    versions that an entry took down and none hits any more.

    A submission that is PUBLISHED with such a version becomes BLOCKED in the same commit: otherwise, if the pass ended
    here and the entry was lifted before the next pass, nothing would ever bring the version back.
    """

    async def write() -> tuple[PublishedSkill, PublishedSkill]:
        asserted = await blocklist.assert_blocklist()
        published, version = await require_skill(canonical)
        hits = await blocklist.find_hits(_targets_of_skill(published))
        changed = _as_blocked(published, hits, env.kv.now())
        if changed != published:
            step = Step("", env.kv.now(), "system", "")
            planned = await plan_commit(published, version, changed, step, _block_publisher)
            await env.kv.commit([asserted, *planned.operations])
            planned.count_steps()
        return published, changed

    before, after = await persist(write)
    for old, new in zip(before.versions, after.versions, strict=True):
        if judge_again is not None and skill.taken_down_by_block(old) and new.status is VersionStatus.LIVE:
            await judge_again(after, new)


def _block_publisher(record: Submission, ref: VersionRef | None, step: Step) -> RecordChange | None:
    is_down = ref is not None and ref.status is VersionStatus.TAKEN_DOWN
    if ref is None or not is_down or record.state is not State.PUBLISHED:
        return None
    # A new event id for each try: one with an unknown outcome may have been applied, and another run begun since.
    event_id = require_env("clock").clock.new_id()
    return RecordChange(_block(record, msgspec.structs.replace(step, event_id=event_id, reason=ref.reason)))


def _as_blocked(published: PublishedSkill, hits: Sequence[BlockEntry], now: int) -> PublishedSkill:
    # Versions with the same bytes have the same name.
    for digest, ref in {ref.digest: ref for ref in published.versions}.items():
        targets = version_targets(published, ref)
        own = [entry for entry in hits if entry.target in targets]
        reason, worst = hit_reason(own), worst_of(own)
        if reason is not None and worst is not None:
            step = skill_changes.StatusChange(
                StatusRole.BLOCK, "system", now, reason, worst.threat_type, worst.severity
            )
            published = skill_changes.take_down(published, step, digest=digest)
        else:
            step = skill_changes.StatusChange(StatusRole.BLOCK, "system", now, UNBLOCKED)
            published = skill_changes.unblock(published, step, digest=digest)
    return published

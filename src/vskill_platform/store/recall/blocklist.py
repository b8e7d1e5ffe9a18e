"""The blocklist: its entries, and the version that every change of them raises.

An entry is effective once written: publishing asserts `control:blocklist` in its own commit, so a skill that is blocked
while it is being published does not go live. `blocklist_pass` applies entries to what is queued or live already.
"""

from collections.abc import Iterable

import msgspec

from vskill_core.errors import Blocked
from vskill_core.findings import Severity
from vskill_core.identity import Identity, submission_id_at, upstream_identity
from vskill_platform.domain import blocklist, keys
from vskill_platform.domain.people.namespace import Visibility, audience_for, widest
from vskill_platform.domain.recall.block_index import Blocklist, all_targets, version_targets
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.decision import BlockScope, Decision
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Delete, Operation, Put
from vskill_platform.records import (
    audience_of,
    decode,
    iter_entries,
    read_entries,
    read_record,
)
from vskill_platform.store.people.audit import AuditNote, commit_audited, record_audit
from vskill_platform.store.people.namespaces import belonging_of, read_directory
from vskill_platform.store.stored_content import find_holders
from vskill_platform.worker_context import require_env

#: Targets that lie in one namespace.
_OF_ONE_PLACE = (blocklist.TargetKind.PLACE, blocklist.TargetKind.REPOSITORY)


async def blocklist_version() -> int:
    """The version to assert: read it first, then the entries, then commit."""
    entry = await require_env("kv").kv.get(keys.CONTROL_BLOCKLIST)
    return ABSENT if entry is None else entry.version


async def assert_blocklist() -> Assert:
    """An assertion to commit with what follows from an entry: nothing is written if the blocklist changed meanwhile."""
    return Assert(keys.CONTROL_BLOCKLIST, await blocklist_version())


async def require_unblocked(targets: Iterable[blocklist.BlockTarget]) -> Assert:
    """Raise Blocked if an entry hits one of them. Commit the result with what relies on it: the version is read first,
    so an entry that comes later makes that commit fail."""
    asserted = await assert_blocklist()
    if asserted.version == ABSENT:
        # No entry was ever written, since each raises the version.
        return asserted
    hit = blocklist.hit_reason(await find_hits(targets))
    if hit is not None:
        raise Blocked(hit)
    return asserted


async def list_blocks() -> list[blocklist.BlockEntry]:
    """Every entry. An unreadable one raises: it must not look like a lifted one."""
    return [decode(entry, blocklist.BlockEntry) async for entry in iter_entries(keys.block.prefix)]


async def read_blocklist(version: int) -> Blocklist:
    entries = await list_blocks()
    # A place that was never submitted, whether mistyped or blocked in advance, says nothing about its neighbours.
    places = await places_with_records(entry.target for entry in entries)
    tainted: dict[str, tuple[blocklist.BlockEntry, ...]] = {}
    for entry in entries:
        if entry.target.kind is blocklist.TargetKind.PLACE and entry.target.value in places:
            repo = _repository_of(entry.target)
            tainted[repo] = (*tainted.get(repo, ()), entry)
    return Blocklist(version, {entry.target: entry for entry in entries}, tainted)


def _repository_of(target: blocklist.BlockTarget) -> str:
    return "/".join(target.value.split("/")[:3])


async def find_hits(targets: Iterable[blocklist.BlockTarget]) -> tuple[blocklist.BlockEntry, ...]:
    """The entries for these targets. A read that fails raises: unknown is not "not blocked"."""
    stored = await read_entries(target.key for target in targets)
    return tuple(decode(entry, blocklist.BlockEntry) for entry in stored.values())


async def why_blocked(identity: Identity, names: Iterable[str | None], digest: str | None) -> str | None:
    return blocklist.hit_reason(await find_hits(all_targets(identity, names, digest)))


async def why_version_blocked(published: PublishedSkill, ref: VersionRef) -> str | None:
    return blocklist.hit_reason(await find_hits(version_targets(published, ref)))


async def block_writes(entry: blocklist.BlockEntry) -> tuple[Operation, ...]:
    """The operations that write an entry, merged with an existing one, raise the version, and audit it."""
    note = _note_about(entry)
    audit = record_audit(note.action, note.target, by=note.by, reason=note.reason, details=note.details)
    return (*await _entry_writes(entry), *audit)


async def _entry_writes(entry: blocklist.BlockEntry) -> tuple[Operation, ...]:
    known, version = await read_record(entry.target.key, blocklist.BlockEntry)
    merged = entry if known is None else blocklist.merge(known, entry)
    return Put(entry.target.key, msgspec.json.encode(merged), version), Add(keys.CONTROL_BLOCKLIST)


def _note_about(entry: blocklist.BlockEntry) -> AuditNote:
    severity = {"severity": entry.severity.value}
    return AuditNote("block", str(entry.target), entry.discovered_by, entry.reason, severity)


class BlockedContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a decision, as the entry names it."""

    identity: Identity
    digest: str
    #: who decided
    by: str
    #: of the skill or the submission
    audience: str
    skill_name: str
    source_url: str
    content_hash: str = ""


async def decided_block_writes(
    decision: Decision | RescanDecision, blocked: BlockedContent
) -> tuple[Operation, ...]:
    """The operations that write a decision's entry; none if it asks for none."""
    if decision.block is BlockScope.NONE:
        return ()
    is_place = decision.block is BlockScope.PLACE
    target = blocklist.place_target(blocked.identity) if is_place else blocklist.digest_target(blocked.digest)
    now = require_env("kv").kv.now()
    entry = blocklist.BlockEntry(
        target=target,
        severity=Severity.CRITICAL,
        reason=decision.reason,
        discovered_by=blocked.by,
        discovered_at=now,
        updated_at=now,
        threat_type=decision.worst.category.value if decision.worst else "",
        evidence=decision.rule_ids,
        skill_name=blocked.skill_name,
        source_url=blocked.source_url,
        content_hash=blocked.content_hash,
        digest=blocked.digest,
        audience=await audience_of_block(target, blocked.audience),
        origin=blocked.audience,
    )
    return await block_writes(entry)


async def add_block(entry: blocklist.BlockEntry) -> None:
    """Write an entry; it is effective now. `reapply_blocklist` ends what runs and takes down what is live."""

    async def write() -> tuple[None, tuple[Operation, ...]]:
        return None, await _entry_writes(entry)

    await commit_audited(_note_about(entry), write)


async def remove_block(target: blocklist.BlockTarget, *, by: str = "system", reason: str = "lifted") -> bool:
    """Lift an entry; whether there was one. The next pass starts a new run of what no other entry hits."""

    async def write() -> tuple[bool, tuple[Operation, ...]]:
        entry = await require_env("kv").kv.get(target.key)
        if entry is None:
            return False, ()
        return True, (Delete(entry.key, entry.version), Add(keys.CONTROL_BLOCKLIST))

    return await commit_audited(AuditNote("unblock", str(target), by, reason), write)


def targets_for(record: Submission) -> tuple[blocklist.BlockTarget, ...]:
    return all_targets(record.identity, (record.skill_name, record.declared_name), record.digest)


async def places_with_records(targets: Iterable[blocklist.BlockTarget]) -> frozenset[str]:
    """The places among these that were ever submitted. A failed read raises."""
    wanted = {
        keys.sub(submission_id_at(target.value)): target.value
        for target in targets
        if target.kind is blocklist.TargetKind.PLACE
    }
    if not wanted:
        return frozenset()
    return frozenset(wanted[key] for key in await read_entries(wanted))


async def audience_of_block(target: blocklist.BlockTarget, known: str) -> str:
    """The audience of a new entry about a skill of this audience. Other skills may hold the same content; those that no
    index finds are added by the next pass over the blocklist."""
    if target.kind is not blocklist.TargetKind.DIGEST:
        return known
    skills, submissions = await find_holders(target.value)
    holders = map(audience_of, (*skills, *submissions))
    return widest({known, *(audience for audience in holders if audience is not None)}) or known


async def audience_ahead(target: blocklist.BlockTarget) -> str | None:
    """The audience of an entry that hits nothing: for a place, a full name or what one upstream brought, the narrowest
    of its namespace. None if the target belongs to no namespace."""
    _, at, upstream = target.value.partition("@")
    if target.kind is blocklist.TargetKind.DIGEST and at:
        return (await belonging_of(upstream_identity(upstream, "any", "any"), Visibility.TEAM)).audience
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

"""Lists of revoked versions, derived from the skills' records for one set of audiences, and cached.

The first list of a process walks over every skill that its readers may read. After that, the events since its serial
name the skills to read again. Records can be newer than the serial that was read before them, so the events are
followed until no new one comes: every change of a list adds one in the same commit.

The serial that readers see is stored for each list at `revoked:{scope}`, so every process gives the same. It rises only
if that list changes, and so reveals nothing about what its readers may not read.
"""

import contextlib
import hashlib

import msgspec

from vskill_core.dsse import read_payload
from vskill_core.errors import AttestationInvalid, Conflict
from vskill_core.statement import read_statement
from vskill_platform.domain import keys
from vskill_platform.domain.downloads import ArchiveDigests
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.skill import PublishedSkill, RevokedList, RevokedVersion, revoked_versions
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.records import decode, decode_readable, read_entries, readable
from vskill_platform.store.revocations import PAGE, list_revocations, read_serial
from vskill_platform.store.skills.skills import iter_readable
from vskill_platform.worker_context import require_env

#: Lists that a process caches: documents about the whole registry have two forms.
MOST_KEPT = 4
DAY_MS = 86_400_000


class ListMark(msgspec.Struct, frozen=True):
    """The record at `revoked:{scope}`."""

    serial: int
    #: When the list last changed.
    at: int
    #: The list's digest, to detect changes.
    digest: str
    #: How many events it was derived from: a process that knows fewer is behind.
    followed: int


async def read_revoked(scope: str, audiences: Audiences) -> RevokedList:
    """Every revoked version that readers of these audiences may read, as of now."""
    kept = require_env("kv").kept
    async with kept.revoked_turn:
        known = kept.revoked.pop(audiences, None)
        numbered = None
        while known is None or numbered is None:
            known = await _follow(known, audiences)
            numbered = await _number(scope, known, keep_empty=True)
        kept.revoked[audiences] = known
        while len(kept.revoked) > MOST_KEPT:
            del kept.revoked[next(iter(kept.revoked))]
    return numbered


async def read_revoked_in(scope: str, namespace: str, audiences: Audiences) -> RevokedList:
    """The same for the skills of one namespace; not cached."""
    while True:
        followed = await read_serial()
        found = _derived(followed, await _walk(audiences, f"{namespace}/"))
        # Anybody can ask for any namespace, so nothing is written for a list that was always empty.
        numbered = await _number(scope, found, keep_empty=False)
        if await read_serial() == followed and numbered is not None:
            return numbered


async def _number(scope: str, revoked: RevokedList, *, keep_empty: bool) -> RevokedList | None:
    """The list with its serial; None if another process has derived a later one.

    The first serial is a time (now or, if nothing is written, the start of the day), so that a registry that lost its
    marks continues above the serials that clients have seen.
    """
    kv = require_env("kv").kv
    while True:
        entry, now = await kv.get(keys.revoked(scope)), kv.now()
        mark = None if entry is None else decode(entry, ListMark)
        if mark is None and not (revoked.skills or keep_empty):
            today = now - now % DAY_MS
            return msgspec.structs.replace(revoked, serial=today, at=today)
        if mark is not None and mark.digest == revoked.digest:
            return msgspec.structs.replace(revoked, serial=mark.serial, at=mark.at)
        if mark is not None and mark.followed > revoked.followed:
            return None
        mark = ListMark(mark.serial + 1 if mark else now, now, revoked.digest, revoked.followed)
        version = ABSENT if entry is None else entry.version
        with contextlib.suppress(Conflict):
            await kv.put(keys.revoked(scope), msgspec.json.encode(mark), if_version=version, quiet=True)


async def _follow(known: RevokedList | None, audiences: Audiences) -> RevokedList:
    while True:
        followed = await read_serial()
        if known is not None and known.followed == followed:
            return known
        names = None if known is None else await _names_since(known.followed)
        if known is None or names is None:
            found = await _walk(audiences)
        else:
            found = {name: own for name, own in known.skills.items() if name not in names}
            found |= await _read(names, audiences)
        known = _derived(followed, found)


def _derived(followed: int, skills: dict[str, tuple[RevokedVersion, ...]]) -> RevokedList:
    found = RevokedList(followed, skills, "")
    digest = hashlib.sha256(msgspec.json.encode(found.versions)).hexdigest()
    return msgspec.structs.replace(found, digest=digest)


async def _names_since(serial: int) -> frozenset[str] | None:
    """The skills that events name; None if an event says that readers may now read other skills."""
    names: set[str] = set()
    while True:
        events = await list_revocations(serial)
        names |= {event.skill for event in events}
        if "" in names:
            return None
        if len(events) < PAGE:
            return frozenset(names)
        serial = events[-1].serial


async def _walk(audiences: Audiences, under: str = "") -> dict[str, tuple[RevokedVersion, ...]]:
    every = iter_readable(under, audiences=audiences)
    return {skill.canonical: own async for skill in every if (own := revoked_versions(skill))}


async def _read(names: frozenset[str], audiences: Audiences) -> dict[str, tuple[RevokedVersion, ...]]:
    stored = await read_entries(map(keys.skill, sorted(names)))
    shown = (entry for entry in stored.values() if readable(entry, audiences) is not None)
    # A malformed record is left out and reported, as in every list: it must not block all other recalls.
    skills = decode_readable(shown, PublishedSkill, "read_revoked")
    return {skill.canonical: own for skill in skills if (own := revoked_versions(skill))}


async def read_archive_digests(revoked: RevokedList) -> dict[tuple[str, str], ArchiveDigests]:
    """Of each revoked version that has an attestation, the SHA-256 of both archives."""
    wanted = {keys.attestation(one.skill, one.version): one for one in revoked.versions}
    found: dict[tuple[str, str], ArchiveDigests] = {}
    for key, entry in (await read_entries(wanted)).items():
        one = wanted[key]
        try:
            statement = read_statement(read_payload(entry.value))
        except AttestationInvalid as error:
            require_env("log").log.warning("attestation not readable", key=key, error=error.message)
            continue
        named = {subject.name: subject.digest.get("sha256", "") for subject in statement.subject}
        name = f"{one.skill}@{one.version}"
        found[one.skill, one.version] = ArchiveDigests(
            zip=named.get(f"{name}.zip", ""), tar_gz=named.get(f"{name}.tar.gz", "")
        )
    return found

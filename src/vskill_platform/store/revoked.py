"""Lists of revoked versions, derived from the skills' records for one set of audiences, and kept by serial.

The first list of a process walks over every skill that its readers may read. After that, the events since the serial
that it was derived at name the skills to read again. Records can be newer than the serial that was read before them,
so the events are followed until the serial stands still: every change of a list raises it in the same commit.
"""

from vskill_platform.archives import ArchiveDigests
from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.errors import AttestationInvalid
from vskill_platform.domain.revocation import RevokedList, RevokedVersion, revoked_versions
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.records import Skips, readable
from vskill_platform.signing.dsse import read_payload
from vskill_platform.signing.statement import read_statement
from vskill_platform.store.revocations import PAGE, list_revocations, read_revocation, read_serial
from vskill_platform.store.skills import iter_readable
from vskill_platform.worker_context import require_env

#: Lists that a process keeps: documents about the whole registry have two forms.
MOST_KEPT = 4


async def read_revoked(audiences: Audiences) -> RevokedList:
    """Every revoked version that readers of these audiences may read, as of now."""
    kept = require_env("kv").kept
    async with kept.revoked_turn:
        known = await _follow(kept.revoked.pop(audiences, None), audiences)
        kept.revoked[audiences] = known
        while len(kept.revoked) > MOST_KEPT:
            del kept.revoked[next(iter(kept.revoked))]
    return known


async def read_revoked_in(namespace: str, audiences: Audiences) -> RevokedList:
    """The same for the skills of one namespace; not kept."""
    while True:
        serial = await read_serial()
        found = await _walk(audiences, f"{namespace}/")
        if await read_serial() == serial:
            return RevokedList(serial, await _moment_of(serial), found)


async def _follow(known: RevokedList | None, audiences: Audiences) -> RevokedList:
    while True:
        serial = await read_serial()
        if known is not None and known.serial == serial:
            return known
        names = None if known is None else await _names_since(known.serial)
        if known is None or names is None:
            found = await _walk(audiences)
        else:
            found = {name: own for name, own in known.skills.items() if name not in names}
            found |= await _read(names, audiences)
        known = RevokedList(serial, await _moment_of(serial), found)


async def _moment_of(serial: int) -> int:
    event = await read_revocation(serial) if serial else None
    return 0 if event is None else event.at


async def _names_since(serial: int) -> frozenset[str] | None:
    """The skills that events name; None where one of them says that other skills may be read now."""
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
    settled = await require_env("kv").kv.get_many(map(keys.skill, sorted(names)))
    # A skill that was not read must not look as if nothing of it was revoked. A record that is damaged is left out and
    # reported, as in every list: it must not keep all other recalls from arriving.
    for error in settled.failed.values():
        raise error
    skips = Skips("read_revoked")
    shown = (entry for entry in settled.found.values() if readable(entry, audiences) is not None)
    skills = [skips.decode(entry, PublishedSkill) for entry in shown]
    skips.report(require_env("kv"))
    return {
        skill.canonical: own for skill in skills if skill is not None and (own := revoked_versions(skill))
    }


async def read_archive_digests(revoked: RevokedList) -> dict[tuple[str, str], ArchiveDigests]:
    """Of each revoked version that has an attestation, the SHA-256 of both archives."""
    wanted = {keys.attestation(one.skill, one.version): one for one in revoked.versions}
    settled = await require_env("kv").kv.get_many(wanted)
    for error in settled.failed.values():
        raise error
    found: dict[tuple[str, str], ArchiveDigests] = {}
    for key, entry in settled.found.items():
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

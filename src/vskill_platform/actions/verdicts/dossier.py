"""Everything that is known about one version of a published skill, read in two round trips: the skill's record, then
all records beside it at once. The skill's pages are made of it.

What is blocked is looked up afresh each time: an entry that was written a moment ago counts before the pass that
takes versions down has come by.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import NotFound, RecordMalformed
from vskill_core.findings import StaticReport
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.skills.catalogue import list_related
from vskill_platform.actions.skills.skill_names import block_keys, find_skill, without_hits
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry
from vskill_platform.domain.recall.block_index import all_targets
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion, VersionRef, VersionStatus
from vskill_platform.domain.skills.skill_changes import with_installs
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.records import Skips, decode, read_entries, readable
from vskill_platform.store.people.owners import Ownership, ownership_in
from vskill_platform.store.repo_health import RepoHealth
from vskill_platform.store.skills.installs import installs_in, keys_of_days
from vskill_platform.store.stored_content import read_content

T = TypeVar("T", bound=msgspec.Struct)


class Dossier(msgspec.Struct, frozen=True):
    """One version of a skill, and all that was found out about it."""

    skill: PublishedSkill
    #: The version as the skill's record lists it.
    ref: VersionRef
    version: SkillVersion
    #: By the present rules, or by those that it was published under; None: neither is kept.
    scan: StaticReport | None
    #: The run that published it last, with what its decision rested on.
    submission: Submission | None
    #: None: never checked, which is not the same as gone.
    health: RepoHealth | None
    ownership: Ownership | None
    blocks: tuple[BlockEntry, ...]
    #: There is a signed statement about it.
    attested: bool

    @property
    def installable(self) -> bool:
        return not self.blocks and self.ref.status is VersionStatus.LIVE

    @property
    def readable(self) -> bool:
        """Whether its content is shown. What an owner withdrew is still there for those who have it; what was
        blocked or taken down is not handed out."""
        return not self.blocks and self.ref.status is not VersionStatus.TAKEN_DOWN


async def read_dossier(
    services: Services, reader: Principal, name: str, number: str | None = None
) -> Dossier:
    """Read a version by canonical or flat name; by default the current version, or the last if none is live."""
    skill = await find_skill(reader, name)
    return (await read_dossier_of(services, reader, skill, number))[0]


async def read_dossier_of(
    services: Services,
    reader: Principal,
    skill: PublishedSkill,
    number: str | None = None,
    also: Iterable[str] = (),
) -> tuple[Dossier, dict[str, Entry]]:
    """The same of a skill that was read already, and what is found under other keys by the same read."""
    ref = _choose_version(skill, number)
    blocks = [target.key for target in all_targets(skill.identity, (skill.name,), ref.digest)]
    wanted = {
        "version": keys.version(skill.canonical, ref.number),
        "scan": keys.scan(ref.digest, services.scanner.ruleset),
        "health": keys.repohealth(skill.identity.repo_key),
        "attestation": keys.attestation(skill.canonical, ref.number),
        **({"submission": keys.sub(skill.submission)} if skill.submission else {}),
    }
    entries = await read_entries([*wanted.values(), *blocks, *also])
    if not readable(entries.get(wanted.get("submission", "")), audiences_of(reader)):
        wanted.pop("submission", None)
    return await _assemble(services, skill, ref, wanted, blocks, entries), entries


async def read_dossier_files(dossier: Dossier) -> tuple[SkillFile, ...]:
    """Read the version's files; NotFound if they are withheld."""
    if not dossier.readable:
        message = f"The content of {dossier.skill.canonical} {dossier.ref.number} is not available."
        raise NotFound(message, skill=dossier.skill.canonical, version=dossier.ref.number)
    return await read_content(dossier.ref.digest)


def _choose_version(skill: PublishedSkill, number: str | None) -> VersionRef:
    wanted = number or skill.current_version or (skill.versions[-1].number if skill.versions else "")
    for ref in skill.versions:
        if ref.number == wanted:
            return ref
    raise NotFound(
        f"{skill.canonical} has no version {wanted[:80]}.", skill=skill.canonical, version=wanted[:80]
    )


async def _assemble(
    services: Services,
    skill: PublishedSkill,
    ref: VersionRef,
    wanted: dict[str, str],
    blocks: list[str],
    entries: dict[str, Entry],
) -> Dossier:
    skips = Skips("dossier")

    def read(what: str, kind: type[T]) -> T | None:
        entry = entries.get(wanted.get(what, ""))
        return None if entry is None else skips.decode(entry, kind)

    version = entries.get(wanted["version"])
    if version is None:
        raise NotFound(
            f"{skill.canonical} has no version {ref.number}.", skill=skill.canonical, version=ref.number
        )
    submission = read("submission", Submission)
    found = Dossier(
        skill=skill,
        ref=ref,
        version=decode(version, SkillVersion),
        scan=read("scan", StaticReport) or await _earlier_scan(services, ref, submission, skips),
        submission=submission,
        health=read("health", RepoHealth),
        ownership=_known_ownership(services, skill),
        blocks=tuple(decode(entries[key], BlockEntry) for key in blocks if key in entries),
        attested=wanted["attestation"] in entries,
    )
    skips.report(services)
    return found


def _known_ownership(services: Services, skill: PublishedSkill) -> Ownership | None:
    """As the process knows it from finding out what the reader may read."""
    known = services.kept.directory
    return None if known is None else ownership_in(known[1], skill.identity)


async def _earlier_scan(
    services: Services, ref: VersionRef, submission: Submission | None, skips: Skips
) -> StaticReport | None:
    """The report of the rules that it was published under, until the rescan with the current rules is done."""
    evidence = submission.evidence if submission else None
    if evidence is None or evidence.digest != ref.digest or evidence.ruleset == services.scanner.ruleset:
        return None
    entry = await services.kv.get(keys.scan(ref.digest, evidence.ruleset))
    return None if entry is None else skips.decode(entry, StaticReport)


#: The days that a chart of weeks can show.
DAYS = 91


class SkillLook(msgspec.Struct, frozen=True):
    """One version of a skill, with what is shown beside it."""

    dossier: Dossier
    #: Installs by day of the last weeks; empty where a counter cannot be read.
    days: dict[str, int]
    #: Other skills of the owner, and skills of others on the same topic.
    related: tuple[tuple[PublishedSkill, ...], tuple[PublishedSkill, ...]]


async def look_at_skill(services: Services, reader: Principal, name: str, related: int) -> SkillLook:
    """The current version, with at most so many related skills of each kind."""
    skill = await find_skill(reader, name)
    own, others = await list_related(reader, skill, related)
    days = keys_of_days(skill.canonical, DAYS)
    also = {*block_keys((*own, *others)), *days.values()}
    dossier, entries = await read_dossier_of(services, reader, skill, also=also)
    try:
        installs = installs_in(entries, days)
    except RecordMalformed as error:
        services.log.warning("installs not counted", skill=skill.canonical, error=error.message)
        installs = {}
    # The record follows the counters; those of the last weeks may be ahead of it.
    total = max(skill.trust.installs, sum(installs.values()))
    return SkillLook(
        msgspec.structs.replace(dossier, skill=with_installs(skill, total)),
        installs,
        (without_hits(own, entries)[:related], without_hits(others, entries)[:related]),
    )

"""Which skill and which version a name means, for a reader. What the reader may not read is not found."""

from vskill_core.errors import Blocked, InvalidInput, NotFound, Withdrawn
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.blocked_skills import current_blocklist
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.records import decode, read_entries, readable
from vskill_platform.store.skills import skills


async def find_skill(reader: Principal, name: str, repo_url: str | None = None) -> PublishedSkill:
    """By canonical name, by `owner/slug`, or by flat name, which `repo_url` may tell from others of that name. Several
    skills of a flat name are an error that lists them, never a guess."""
    return await skills.find_by_name(name, repo_url, audiences=audiences_of(reader))


async def find_skill_version(
    services: Services, reader: Principal, name: str
) -> tuple[PublishedSkill, int, Blocklist]:
    """A skill by its canonical name, the version of its record, which every change raises, and the blocklist: one read,
    because this is asked most."""
    names = [keys.skill(written) for written in dict.fromkeys((name, name.lower()))]
    entries = await read_entries([keys.CONTROL_BLOCKLIST, *names])
    control = entries.get(keys.CONTROL_BLOCKLIST)
    blocklist = await current_blocklist(services, ABSENT if control is None else control.version)
    for key in names:
        entry = readable(entries.get(key), audiences_of(reader))
        if entry is not None:
            return decode(entry, PublishedSkill), entry.version, blocklist
    raise NotFound(f"There is no skill {name[:200]}.", skill=name[:200])


async def find_installable(services: Services, skill: PublishedSkill, number: str | None) -> VersionRef:
    """The version asked for, or the current one. Blocked, Withdrawn or NotFound says why there is none."""
    blocklist = await current_blocklist(services)
    ref = choose_version(skill, number)
    refuse_blocked(skill, ref, blocklist)
    return ref


def require_version(skill: PublishedSkill, number: str, field: str = "version") -> VersionRef:
    """A version that a parameter names; InvalidInput where there is none."""
    ref = next((ref for ref in skill.versions if ref.number == number), None)
    if ref is None:
        known = ", ".join(one.number for one in skill.versions[-10:])
        message = f"{skill.canonical} has no version {number[:80]!r}."
        raise InvalidInput(message, field=field, fix=f"give one of {known}")
    return ref


def refuse_blocked(skill: PublishedSkill, ref: VersionRef, blocklist: Blocklist) -> None:
    """Blocked and withdrawn content is not handed out, and the answer says why."""
    hits = blocklist.hits_version(skill, ref)
    what = f"{skill.canonical} {ref.number}"
    if hits:
        raise Blocked(f"{what} is blocked: {hits[0].reason}", skill=skill.canonical, reason=hits[0].reason)
    if ref.status is VersionStatus.TAKEN_DOWN:
        raise Blocked(f"{what} was taken down: {ref.reason}", skill=skill.canonical, reason=ref.reason)
    if ref.status is VersionStatus.YANKED:
        raise Withdrawn(f"{what} was withdrawn: {ref.reason}", skill=skill.canonical, reason=ref.reason)


def choose_version(skill: PublishedSkill, number: str | None) -> VersionRef:
    """The version asked for, or the current one, blocked or not; NotFound where there is none."""
    if number is not None:
        ref = next((ref for ref in skill.versions if ref.number == number), None)
    else:
        # Without a live one the latest says why there is none.
        current = next((ref for ref in skill.versions if ref.number == skill.current_version), None)
        ref = current or (skill.versions[-1] if skill.versions else None)
    if ref is None:
        raise NotFound(f"{skill.canonical} has no version {(number or '')[:80]!r}.", skill=skill.canonical)
    return ref

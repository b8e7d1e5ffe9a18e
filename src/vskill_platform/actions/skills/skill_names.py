"""Which skill and which version a name means, for a reader, whether the blocklist hits it now, and its files. What the
reader may not read is not found. A content never changes, and every byte is verified when it is read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from vskill_client.wire.base import Wire
from vskill_client.wire.skills import SkillRequest
from vskill_core.content import SkillFile, skill_file_of
from vskill_core.errors import Ambiguous, Blocked, InvalidInput, NotFound, Withdrawn
from vskill_platform.actions.action import Keep, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_views import VersionsAnswer, version_views
from vskill_platform.actions.skills.upstream_entries import explain_missing
from vskill_platform.domain import keys
from vskill_platform.domain.recall.block_index import Blocklist, all_targets
from vskill_platform.domain.skills.catalogue import SkillPage
from vskill_platform.domain.skills.names import hashed_name, holder_for, listed_name, reads_several
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    PublishedSkillSummary,
    SkillVersion,
    VersionRef,
    VersionStatus,
)
from vskill_platform.ledger.kv.entries import ABSENT, Entry
from vskill_platform.records import decode, entries_of, read_entries, readable
from vskill_platform.store.recall.attestations import get_attestation
from vskill_platform.store.recall.blocklist import blocklist_version, read_blocklist
from vskill_platform.store.skills import skills
from vskill_platform.store.skills.names import read_name, read_names
from vskill_platform.store.skills.skills import list_flat, read_skills
from vskill_platform.store.stored_content import read_content
from vskill_platform.worker_context import require_env
from vskill_scan.reading.manifest import read_front_matter


async def find_skill(reader: Principal, name: str, repo_url: str | None = None) -> PublishedSkill:
    """By canonical name, by `owner/slug`, or by flat name, which `repo_url` may tell from others of that name. Several
    skills of a flat name are an error that lists them, never a guess. NotVerifiedYet where an upstream has it."""
    try:
        return await skills.find_by_name(name, repo_url, audiences=audiences_of(reader))
    except NotFound as error:
        raise await explain_missing(require_env("kv"), reader, name, error) from None


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
    missing = NotFound(f"There is no skill {name[:200]}.", skill=name[:200])
    raise await explain_missing(services, reader, name, missing)


async def find_installable(services: Services, skill: PublishedSkill, number: str | None) -> VersionRef:
    """The version asked for, or the current one. Blocked, Withdrawn or NotFound says why there is none."""
    blocklist = await current_blocklist(services)
    ref = choose_version(skill, number)
    refuse_blocked(skill, ref, blocklist)
    return ref


def require_version(skill: PublishedSkill, number: str, field: str = "version") -> VersionRef:
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


# The blocklist: an entry counts from the moment it is written, before the pass that takes versions down has come by.


async def current_blocklist(services: Services, version: int | None = None) -> Blocklist:
    """The blocklist as it is now: one small read, or none where its present version is known, and all of it only where
    it has changed."""
    version = await blocklist_version() if version is None else version
    known = services.kept.blocklist
    if known is None or known.version != version:
        known = services.kept.blocklist = await read_blocklist(version)
    return known


async def leave_out_blocked(
    services: Services, skills: Sequence[PublishedSkill]
) -> tuple[PublishedSkill, ...]:
    """Those that no entry hits now. A process that has not read the whole blocklist yet asks for the entries that could
    hit these, so that its first answer costs no more round trips than any other."""
    if services.kept.blocklist is not None:
        blocklist = await current_blocklist(services)
        return tuple(one for one in skills if not blocklist.hits_skill(one))
    wanted = block_keys(skills)
    if not wanted:
        return ()
    return without_hits(skills, await read_entries(wanted))


def block_keys(skills: Iterable[PublishedSkill]) -> frozenset[str]:
    """The keys of the entries that would hit these skills: read together with what else is wanted of the store."""
    return frozenset(key for one in skills for key in _keys_for(one))


def without_hits(
    skills: Sequence[PublishedSkill], entries: Mapping[str, Entry]
) -> tuple[PublishedSkill, ...]:
    """Those that none of the entries hits that were found under `block_keys`."""
    return tuple(one for one in skills if not entries or entries.keys().isdisjoint(_keys_for(one)))


async def look_again(
    services: Services, reader: Principal, skills: Sequence[PublishedSkill]
) -> dict[str, PublishedSkill]:
    """Skills that were read a moment ago, as they are now, by canonical name: without those that were withdrawn, hidden
    from the reader or blocked meanwhile. By one read where the blocklist is empty or the kept one is the present one;
    the entries that could hit these are read otherwise, and never all of them for a page of a few skills."""
    if not skills:
        return {}
    records = {keys.skill(one.canonical) for one in skills}
    stored = await read_entries({*records, keys.CONTROL_BLOCKLIST})
    control, known = stored.get(keys.CONTROL_BLOCKLIST), services.kept.blocklist
    entries = (readable(stored.get(key), audiences_of(reader)) for key in records)
    found = [decode(entry, PublishedSkill) for entry in entries if entry is not None]
    shown: Sequence[PublishedSkill] = [one for one in found if one.listing is not None]
    # Each entry raises the version, so without one there was never an entry.
    if control is not None and known is not None and known.version == control.version:
        shown = [one for one in shown if not known.hits_skill(one)]
    elif control is not None:
        shown = without_hits(shown, await read_entries(block_keys(shown)))
    return {one.canonical: one for one in shown}


def _keys_for(skill: PublishedSkill) -> list[str]:
    return [target.key for target in all_targets(skill.identity, (skill.name,), skill.current_digest)]


# Short names, which some clients have alone: those in marketplaces, indexes, plugin repositories and addresses. The
# name that a skill has there stands in its record, by the readers who know it so (`domain.skills.names`). It never
# changes by what others publish, and it tells a reader nothing of skills that the reader may not read.

S = TypeVar("S", bound=PublishedSkill | PublishedSkillSummary)


async def name_skills(
    reader: Principal,
    skills: Iterable[S],
    *,
    in_repo: bool = False,
) -> dict[str, S]:
    """Skills by the short names that they have in a list for this reader, in their order: the one way to name a skill
    in a marketplace, an index, a plugin's repository or a short address. A skill is missing until it has a name, and
    where its name means another one to a reader of several namespaces.

    In a list of one skill or of one repository (`in_repo`) every skill is shown under its name.
    """
    audiences = audiences_of(reader)
    found = [
        (name, skill) for skill in skills if (name := listed_name(skill.listed_as, audiences)) is not None
    ]
    if reads_several(audiences) and not in_repo:
        held = (await read_names(name for name, _ in found)).held
        meant = {name: holder_for(one, audiences) for name, one in held.items()}
        found = [
            one for one in found if (holder := meant.get(one[0])) and holder.canonical == one[1].canonical
        ]
    named: dict[str, S] = {}
    for name, skill in found:
        named.setdefault(name, skill)
    return named


async def name_skill(reader: Principal, skill: PublishedSkill, *, in_repo: bool = False) -> str:
    """The short name of one skill; see `name_skills`. Without one yet it goes by the name that nobody else can have."""
    named = await name_skills(reader, [skill], in_repo=in_repo)
    return next(iter(named), hashed_name(skill.canonical))


async def leads_to(reader: Principal, flat: str, skill: PublishedSkill) -> bool:
    holder = holder_for(await read_name(flat), audiences_of(reader))
    return holder is not None and holder.canonical == skill.canonical


async def list_holders(reader: Principal, flat: str) -> tuple[str, ...]:
    """The canonical names of the skills that a flat name may mean to the reader."""
    return await list_flat(flat, audiences=audiences_of(reader))


async def list_beginning_with(
    services: Services, reader: Principal, beginning: str, after: str | None, limit: int
) -> SkillPage:
    """A page of the skills whose flat names begin so, in the order of those names. It ends with one that the reader may
    read, and so does its cursor."""
    audiences = audiences_of(reader)
    names_begin = keys.alias_key.under(beginning.lower()).removesuffix(":")
    aliases: list[str] = []
    at = after
    while len(aliases) <= limit:
        page = await services.kv.scan(names_begin, after=at)
        aliases += [entry.key for entry in entries_of(page) if readable(entry, audiences)]
        at = page.after
        if at is None:
            break
    shown = aliases[:limit]
    names = dict.fromkeys(keys.parse(key).parts[1] for key in shown)
    found = await read_skills(names, audiences=audiences)
    return SkillPage(
        tuple(found[name] for name in sorted(found)), shown[-1] if len(aliases) > limit else None
    )


#: A version's number as reads take it.
ReadNumber = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]


class ReadVersion(SkillRequest, frozen=True, kw_only=True):
    """One version of a skill."""

    #: the current one where none is named
    version: ReadNumber | None = None


class FileView(Wire, frozen=True):
    """One file, without its bytes."""

    path: str
    #: as git writes it: 100644 or 100755
    mode: str
    size: int
    sha256: str


class FilesAnswer(Wire, frozen=True):
    """The files of a version, by path."""

    name: str
    version: str
    digest: str
    files: tuple[FileView, ...]


async def list_files(services: Services, reader: Principal, request: ReadVersion) -> FilesAnswer:
    skill = await find_skill(reader, request.skill)
    ref = await find_installable(services, skill, request.version)
    record = await read_version(skill, ref)
    shown = tuple(FileView.of(one) for one in record.manifest)
    return FilesAnswer(skill.canonical, ref.number, ref.digest, shown)


async def list_versions(services: Services, reader: Principal, request: SkillRequest) -> VersionsAnswer:
    skill = await find_skill(reader, request.skill)
    records = await read_versions(skill)
    return VersionsAnswer(skill.canonical, version_views(skill, records, await current_blocklist(services)))


async def read_files(digest: str) -> tuple[SkillFile, ...]:
    return await read_content(digest)


async def read_file(skill: PublishedSkill, ref: VersionRef, path: str) -> SkillFile:
    found = next((one for one in await read_files(ref.digest) if one.path == path), None)
    if found is None:
        raise NotFound(f"{skill.canonical} {ref.number} has no file {path[:200]!r}.", path=path[:200])
    return found


async def read_skill_text(services: Services, digest: str) -> str:
    """The SKILL.md of a content; the process keeps it."""
    text = services.kept.texts.get(digest)
    if text is None:
        file = skill_file_of(await read_files(digest))
        text = file.data.decode("utf-8", "replace")
        services.kept.texts.put(digest, text, len(file.data))
    return text


async def read_fields(services: Services, digest: str) -> dict[str, Any] | None:
    return read_front_matter((await read_skill_text(services, digest)).encode())


async def read_version(skill: PublishedSkill, ref: VersionRef) -> SkillVersion:
    """The immutable record of one version, with the manifest of its files."""
    return await skills.get_version(skill.canonical, ref.number)


async def read_versions(skill: PublishedSkill) -> dict[str, SkillVersion]:
    """The immutable records by number; what cannot be read is left out, counted and logged."""
    return await skills.read_versions(skill)


async def read_current_versions(numbers: Mapping[str, str]) -> dict[str, SkillVersion]:
    """The same of one version each of several skills, by canonical name."""
    return await skills.read_current_versions(numbers)


async def read_attestation(reader: Principal, canonical: str, number: str) -> bytes:
    """The signed statement about one version, byte for byte as it was signed."""
    skill, _ = await skills.find_by_full_name(canonical, audiences=audiences_of(reader))
    return await get_attestation(skill, number)


_SKILL = "/api/v1/skills/{skill}"

LIST_FILES = action(
    list_files,
    "skill.files",
    f"{_SKILL}/files",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous, Blocked, Withdrawn),
    keep=Keep.BY_TAG,
    summary="List the files of a version",
)
LIST_VERSIONS = action(
    list_versions,
    "skill.versions",
    f"{_SKILL}/versions",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous),
    keep=Keep.BY_TAG,
    summary="List the versions of a skill, newest first",
    command="",
)

"""Discovery: finds the skills and plugins of a repository, and submits all of them through intake.

The repository is read once, at one commit; everything that stands on its own in it is then its own submission, and a
refused one does not affect the others. A skill in a plugin is a part of the plugin, and submitted only where somebody
names it.
"""

from collections.abc import Awaitable, Iterable, Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidManifest, PlatformError, Unsupported
from vskill_core.identity import normalise
from vskill_core.kind import Kind
from vskill_core.naming import plain_name, slug_of
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake import admission
from vskill_platform.intake.submit import Request, Submitted, submit, submit_repository
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.sources.contract import Place, Repositories, Sources
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.worker_context import require_env
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.plugins.plugin import Plugin
from vskill_scan.reading.manifest import read_manifest

#: How many places of one bulk are submitted at the same time.
AT_ONCE = 16


class FoundSkill(msgspec.Struct, frozen=True):
    """A folder with a SKILL.md, or a plugin."""

    place: Place
    #: By its manifest; None where that is refused.
    name: str | None
    description: str = ""
    #: Why its SKILL.md or manifest is refused.
    problem: str = ""
    #: The folder of the plugin that it is a part of; None: it stands on its own.
    part_of: str | None = None

    @property
    def kind(self) -> Kind:
        return self.place.kind

    @property
    def path(self) -> str:
        return self.place.identity.path


class Discovery(msgspec.Struct, frozen=True):
    """The skills and plugins of a repository, sorted by path."""

    skills: tuple[FoundSkill, ...]
    #: There are more than are listed.
    truncated: bool = False
    #: Folders with a SKILL.md whose names no address can hold.
    skipped: tuple[str, ...] = ()
    #: Plugins of its marketplace that are not here, each as a sentence with what to do.
    elsewhere: tuple[str, ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """One place of a bulk submission."""

    repo_url: str
    skill_path: str = ""
    kind: Kind | None = None


class SettledPlace(msgspec.Struct, frozen=True):
    """What became of one place: submitted, or refused with a reason."""

    repo_url: str
    skill_path: str
    submitted: Submitted | None = None
    error: PlatformError | None = None


class RepositorySubmitted(msgspec.Struct, frozen=True):
    """What became of every skill of a repository."""

    results: tuple[SettledPlace, ...]
    #: The skills below the one that was submitted, which were not asked for.
    not_submitted: tuple[str, ...] = ()
    truncated: bool = False
    skipped: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


async def discover(
    repo_url: str, skill_path: str = "", *, by: admission.SubmittedBy = admission.NOBODY
) -> Discovery:
    """Every skill and plugin at or below the path, in the default branch; NoSkillFound if there is none."""
    asked = normalise(repo_url, skill_path)
    if await admission.is_closed(asked, by):
        await admission.refuse_closed(asked, _repositories(require_env("sources").sources).survey, by)
    sources = await sources_for(asked, with_credential=await admission.may_use_credential(asked, by))
    survey = await _repositories(sources).survey(asked, by.commit)
    await admission.require_open(asked, survey.identity, by)
    parts = survey.parts()
    found = tuple(_describe_place(one, parts.get(one.identity.path)) for one in survey.places)
    return Discovery(found, survey.truncated, survey.skipped, survey.elsewhere)


async def submit_skills(
    repo_url: str,
    skill_path: str = "",
    *,
    every: bool = False,
    source: EntryPoint = EntryPoint.API,
    by: admission.SubmittedBy = admission.NOBODY,
    kind: Kind | None = None,
) -> RepositorySubmitted:
    """Submit what is at the place or, if there is nothing, everything below it; `every` always submits all."""
    asked = normalise(repo_url, skill_path)
    found = await discover(repo_url, skill_path, by=by)
    here = [one for one in found.skills if one.path == asked.path]
    whole = [one for one in found.skills if one.part_of is None or one in here]
    chosen: Sequence[FoundSkill] = whole if every or not here else here

    async def submit_one(one: FoundSkill) -> SettledPlace:
        place = msgspec.structs.replace(asked, path=one.path)
        name = one.name if one.kind is Kind.SKILL else None
        request = Request(place, source, by, declared_name=name, place=one.place, kind=kind)
        return await _settle(place.url, place.path, submit(request))

    results = await some_at_a_time(submit_one, chosen, AT_ONCE)
    submitted = {one.path for one in chosen}
    left = tuple(one.path for one in whole if one.path not in submitted)
    return RepositorySubmitted(tuple(results), left, found.truncated, found.skipped, found.elsewhere)


async def submit_many(
    wanted: Iterable[Wanted],
    *,
    source: EntryPoint = EntryPoint.API,
    by: admission.SubmittedBy = admission.NOBODY,
) -> tuple[SettledPlace, ...]:
    """Submit many places; each has its own outcome or error, in input order."""

    async def submit_one(one: Wanted) -> SettledPlace:
        submitting = submit_repository(one.repo_url, one.skill_path, source=source, by=by, kind=one.kind)
        return await _settle(one.repo_url, one.skill_path, submitting)

    return tuple(await some_at_a_time(submit_one, wanted, AT_ONCE))


async def _settle(repo_url: str, skill_path: str, submitting: Awaitable[Submitted]) -> SettledPlace:
    try:
        return SettledPlace(repo_url, skill_path, await submitting)
    except PlatformError as error:
        return SettledPlace(repo_url, skill_path, error=error)


def _repositories(sources: Sources) -> Repositories:
    if not isinstance(sources, Repositories):
        raise Unsupported("The configured source cannot look into repositories.")
    return sources


def _describe_place(place: Place, part_of: str | None) -> FoundSkill:
    if place.manifest is not None:
        return _describe_plugin(place, place.manifest, part_of)
    try:
        manifest = read_manifest(place.skill_md, slug_of(place.identity))
    except InvalidManifest as error:
        return FoundSkill(place, None, problem=error.message, part_of=part_of)
    return FoundSkill(place, manifest.name, manifest.description, part_of=part_of)


def _describe_plugin(place: Place, manifest: SkillFile, part_of: str | None) -> FoundSkill:
    """By its manifest alone; what is wrong with its parts, the run says."""
    plugin = read_plugin([manifest]) or Plugin()
    if plugin.fatal is not None:
        return FoundSkill(place, None, problem=plugin.fatal.told, part_of=part_of)
    return FoundSkill(place, plain_name(slug_of(place.identity)), plugin.description, part_of=part_of)

"""Discovery: finds the skills of a repository, and submits all of them through intake.

The repository is read once, at one commit; every skill in it is then its own submission, and a refused one does not
affect the others.
"""

from collections.abc import Awaitable, Iterable, Sequence

import msgspec

from vskill_core.errors import InvalidManifest, PlatformError, Unsupported
from vskill_core.identity import normalise
from vskill_core.naming import slug_of
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.admission import (
    NOBODY,
    SubmittedBy,
    is_closed,
    may_use_credential,
    refuse_closed,
    require_open,
)
from vskill_platform.intake.submit import Request, Submitted, submit, submit_repository
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.sources.contract import Place, Repositories, Sources
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.worker_context import require_env
from vskill_scan.reading.manifest import read_manifest

#: How many places of one bulk are submitted at the same time.
AT_ONCE = 16


class FoundSkill(msgspec.Struct, frozen=True):
    """A folder with a SKILL.md."""

    place: Place
    #: By its manifest; None where its SKILL.md is refused.
    name: str | None
    description: str = ""
    #: Why its SKILL.md is refused.
    problem: str = ""

    @property
    def path(self) -> str:
        return self.place.identity.path


class Discovery(msgspec.Struct, frozen=True):
    """The skills of a repository, sorted by path."""

    skills: tuple[FoundSkill, ...]
    #: There are more than are listed.
    truncated: bool = False
    #: Folders with a SKILL.md whose names no address can hold.
    skipped: tuple[str, ...] = ()


class Wanted(msgspec.Struct, frozen=True):
    """One place of a bulk submission."""

    repo_url: str
    skill_path: str = ""


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


async def discover(repo_url: str, skill_path: str = "", *, by: SubmittedBy = NOBODY) -> Discovery:
    """Every folder at or below the path, in the default branch, that has a SKILL.md; NoSkillFound if none has."""
    asked = normalise(repo_url, skill_path)
    if await is_closed(asked, by):
        await refuse_closed(asked, _repositories(require_env("sources").sources).survey, by)
    sources = await sources_for(asked, with_credential=await may_use_credential(asked, by))
    survey = await _repositories(sources).survey(asked, by.commit)
    await require_open(asked, survey.identity, by)
    return Discovery(tuple(map(_describe_place, survey.places)), survey.truncated, survey.skipped)


async def submit_skills(
    repo_url: str,
    skill_path: str = "",
    *,
    every: bool = False,
    source: EntryPoint = EntryPoint.API,
    by: SubmittedBy = NOBODY,
) -> RepositorySubmitted:
    """Submit the skill at the place or, if there is none, every skill below it; `every` always submits all."""
    asked = normalise(repo_url, skill_path)
    found = await discover(repo_url, skill_path, by=by)
    here = [one for one in found.skills if one.path == asked.path]
    chosen: Sequence[FoundSkill] = found.skills if every or not here else here

    async def submit_one(one: FoundSkill) -> SettledPlace:
        place = msgspec.structs.replace(asked, path=one.path)
        request = Request(place, source, by, declared_name=one.name, place=one.place)
        return await _settle(place.url, place.path, submit(request))

    results = await some_at_a_time(submit_one, chosen, AT_ONCE)
    submitted = {one.path for one in chosen}
    left = tuple(one.path for one in found.skills if one.path not in submitted)
    return RepositorySubmitted(tuple(results), left, found.truncated, found.skipped)


async def submit_many(
    wanted: Iterable[Wanted], *, source: EntryPoint = EntryPoint.API, by: SubmittedBy = NOBODY
) -> tuple[SettledPlace, ...]:
    """Submit many places; each has its own outcome or error, in input order."""

    async def submit_one(one: Wanted) -> SettledPlace:
        submitting = submit_repository(one.repo_url, one.skill_path, source=source, by=by)
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


def _describe_place(place: Place) -> FoundSkill:
    try:
        manifest = read_manifest(place.skill_md, slug_of(place.identity))
    except InvalidManifest as error:
        return FoundSkill(place, None, problem=error.message)
    return FoundSkill(place, manifest.name, manifest.description)

"""Handing skills in: one, every one of a repository, many places at once, or only a look at what is there.

Submitting is idempotent, so a client that repeats a request does no harm.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.action import Allowance
from vskill_platform.actions.submissions import SUBMISSIONS
from vskill_platform.actions.wire import Sent, Wire, as_written, iso_time, wire_names
from vskill_platform.domain.errors import InvalidInput, NoSkillFound
from vskill_platform.domain.naming import slugify
from vskill_platform.domain.submission import Source
from vskill_platform.intake.discover import Settled, Wanted, discover, submit_many, submit_skills
from vskill_platform.intake.submit import Outcome, Submitted, submit_repository
from vskill_platform.web.principal import principal_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import body_of, post

MOST_BULK = 100

Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Folder = Annotated[str, msgspec.Meta(max_length=1024)]


class SubmitBody(Sent, frozen=True):
    """A skill of a repository; without name and path, every skill in it."""

    #: a repository's address, or `owner/repo` on GitHub
    repo_url: Url
    #: the folder's name, where the path is not known
    skill_name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    #: the folder that holds SKILL.md
    skill_path: Folder | None = None
    #: which door it came through
    source: str | None = None


class Outcomes(Wire, frozen=True, omit_defaults=True):
    """What became of one place. Which members are there tells the outcome."""

    #: of the submission; absent only where a place that never had one is blocked
    id: str | None = None
    submission_id: str | None = None
    state: str | None = None
    skill_name: str | None = None
    skill_path: str | None = None
    repo_url: str | None = None
    created_at: str | None = None
    #: it is on its way already
    duplicate: bool = False
    #: these very bytes are published
    already_verified: bool = False
    #: the content changed, so a new run has begun
    requeued: bool = False
    #: it is on the blocklist, or so is what it is part of
    blocked: bool = False
    reason: str | None = None
    #: why this place was refused, where others were not
    error: str | None = None
    code: str | None = None
    #: of a repository: what became of each of its skills
    results: tuple["Outcomes", ...] = ()
    #: skills of the repository that were not asked for
    not_submitted: tuple[str, ...] = ()
    #: there are more skills than were looked at
    truncated: bool = False
    #: folders whose names no address can hold
    skipped: tuple[str, ...] = ()


class BulkBody(Sent, frozen=True):
    """Many places at once; each has an outcome of its own."""

    submissions: Annotated[tuple[SubmitBody, ...], msgspec.Meta(min_length=1, max_length=MOST_BULK)]


class BulkAnswer(Wire, frozen=True):
    """In the order in which they were sent."""

    results: tuple[Outcomes, ...]


class DiscoverBody(Sent, frozen=True):
    """A repository, or a folder in it."""

    repo_url: Url
    skill_path: Folder = ""


class FoundView(Wire, frozen=True):
    """A folder with a SKILL.md."""

    #: from the front matter; null where that cannot be read
    name: str | None
    path: str
    description: str
    #: what is wrong with the front matter
    problem: str
    repo_url: str


class DiscoverAnswer(Wire, frozen=True):
    """The skills of a repository, by path."""

    repo_url: str
    skills: tuple[FoundView, ...]
    #: there are more than are listed
    truncated: bool
    #: folders whose names no address can hold
    skipped: tuple[str, ...]


async def submit_view(request: Request) -> Response:
    body = await body_of(request, SubmitBody)
    who, source = principal_of(request).account, _source(body.source)
    if body.skill_path is not None:
        done = await submit_repository(body.repo_url, body.skill_path, source=source, submitter=who)
        return _answered(done)
    if body.skill_name:
        path = await _path_of(body.repo_url, body.skill_name)
        return _answered(await submit_repository(body.repo_url, path, source=source, submitter=who))
    found = await submit_skills(body.repo_url, source=source, submitter=who)
    results = tuple(map(_settled, found.results))
    if len(results) == 1 and not found.not_submitted and found.results[0].submitted is not None:
        return _answered(found.results[0].submitted)
    created = any(one.id and not (one.duplicate or one.already_verified) for one in results)
    whole = Outcomes(
        repo_url=body.repo_url,
        results=results,
        not_submitted=found.not_submitted,
        truncated=found.truncated,
        skipped=found.skipped,
    )
    return json_response(whole, 201 if created else 200)


async def _path_of(repo_url: str, name: str) -> str:
    """The folder of a skill that is known by name only; a look into the repository finds it."""
    found = await discover(repo_url)
    wanted = slugify(name)
    by_folder = [one.path for one in found.skills if slugify(one.path.rpartition("/")[2]) == wanted]
    by_name = [one.path for one in found.skills if slugify(one.name or "") == wanted]
    for paths in (by_folder, by_name):
        if len(paths) == 1:
            return paths[0]
        if paths:
            raise InvalidInput(
                f"{name!r} may be {', '.join(paths[:10])}.", field="skillPath", fix="give the folder"
            )
    if len(found.skills) == 1 and found.skills[0].path == "":
        return ""
    raise NoSkillFound(f"There is no skill {name!r} in {repo_url}.", field="skillName")


def _source(text: str | None) -> Source:
    """What clients call themselves is not ours to refuse."""
    known = {source.value: source for source in Source}
    return known.get((text or "").lower(), Source.API)


def _answered(done: Submitted) -> Response:
    return json_response(outcome(done), 201 if done.outcome is Outcome.CREATED else 200)


def outcome(done: Submitted) -> Outcomes:
    """The outcome in the members that the existing client looks for."""
    record = done.submission
    number = record.id if record else None
    return Outcomes(
        id=number,
        submission_id=number,
        state=record.state.value if record else None,
        skill_name=record.skill_name if record else None,
        skill_path=record.skill_path if record else None,
        repo_url=record.repo_url if record else None,
        created_at=iso_time(record.created_at) if record else None,
        duplicate=done.outcome is Outcome.DUPLICATE,
        already_verified=done.outcome is Outcome.ALREADY_VERIFIED,
        requeued=done.outcome is Outcome.REQUEUED,
        blocked=done.outcome is Outcome.BLOCKED,
        reason=done.reason or None,
    )


def _settled(one: Settled) -> Outcomes:
    if one.submitted is not None:
        return outcome(one.submitted)
    error = one.error
    return Outcomes(
        repo_url=one.repo_url,
        skill_path=one.skill_path,
        error=as_written(error.message, wire_names(SubmitBody)) if error else "not submitted",
        code=error.code if error else None,
    )


async def bulk_view(request: Request) -> Response:
    body = await body_of(request, BulkBody)
    wanted = [Wanted(one.repo_url, one.skill_path or "") for one in body.submissions]
    who = principal_of(request).account
    settled = await submit_many(wanted, source=_source(body.submissions[0].source), submitter=who)
    return json_response(BulkAnswer(tuple(map(_settled, settled))))


async def discover_view(request: Request) -> Response:
    body = await body_of(request, DiscoverBody)
    found = await discover(body.repo_url, body.skill_path)
    skills = tuple(
        FoundView(one.name, one.path, one.description, one.problem, one.place.identity.url)
        for one in found.skills
    )
    return json_response(DiscoverAnswer(body.repo_url, skills, found.truncated, found.skipped))


_REFUSED = (403, 413, 422, 501, 503)

ENDPOINTS = (
    post(
        SUBMISSIONS,
        submit_view,
        scope="submit",
        body=SubmitBody,
        answer=Outcomes,
        status=201,
        others={200: Outcomes},
        problems=_REFUSED,
        allowance=Allowance.SUBMISSIONS,
        tag="submissions",
        summary="Submit a skill, or every skill of a repository",
        about="201: a new submission or run of at least one. 200: `duplicate`, `alreadyVerified`, `requeued` or "
        "`blocked` says what it was instead. 422: there is no SKILL.md.",
    ),
    post(
        f"{SUBMISSIONS}/bulk",
        bulk_view,
        scope="submit",
        body=BulkBody,
        answer=BulkAnswer,
        problems=_REFUSED,
        allowance=Allowance.SUBMISSIONS,
        tag="submissions",
        summary="Submit many places at once",
    ),
    post(
        f"{SUBMISSIONS}/discover",
        discover_view,
        no_scope="looks and writes nothing",
        body=DiscoverBody,
        answer=DiscoverAnswer,
        problems=_REFUSED,
        allowance=Allowance.DISCOVERIES,
        tag="submissions",
        summary="List the skills of a repository without submitting any",
    ),
)

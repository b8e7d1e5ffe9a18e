"""Submitting: one skill, every skill of a repository, many places at once, an upload, or only a look at what is there.

Submitting is idempotent, so a client that repeats a request does no harm.
"""

import asyncio
from contextlib import suppress
from typing import Annotated

import msgspec

from vskill_client.wire import submissions as submissions_calls
from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_client.wire.submissions import (
    SUBMISSIONS,
    Folder,
    PlaceOutcome,
    SubmitSkill,
    UploadSkill,
    Url,
)
from vskill_core.archive_reading import read_archive
from vskill_core.content import DEFAULT_LIMITS, SkillFile, digest_of_files, skill_file_of
from vskill_core.errors import (
    InvalidInput,
    InvalidManifest,
    LimitExceeded,
    LowerVersion,
    NoSkillFound,
    NotPermitted,
    QuotaExceeded,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)
from vskill_core.identity import Identity, upload_identity
from vskill_core.kind import Kind, kind_of
from vskill_core.naming import name_note, slugify
from vskill_platform.actions.action import Allowance, action, action_for
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.submissions.submission_lists import page_for
from vskill_platform.actions.wire import as_written, wire_names
from vskill_platform.domain.people.namespace import Namespace, NamespaceRole, upload_namespace, uploader_of
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.skills import numbering
from vskill_platform.domain.skills.skill_changes import number_after
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake import discover as discovery
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.discover import SettledPlace, Wanted
from vskill_platform.intake.submit import IntakeOutcome, Submitted, submit_repository, submit_upload
from vskill_platform.store.people.accounts import read_user
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.store.people.owners import role_in
from vskill_platform.store.skills.skills import place_of
from vskill_platform.store.submissions.submission_lists import HandedIn
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.reading.manifest import declared_slug, read_manifest

MOST_BULK = 200
#: The namespace of what an operator uploads without naming one.
LOCAL_NAMESPACE = "local"


class PlaceToSubmit(ActionRequest, frozen=True, kw_only=True):
    """One place among many."""

    #: a repository's address, or `owner/repo` on GitHub
    repo_url: Url
    #: the folder that holds SKILL.md, or the manifest of a plugin
    skill_path: Folder | None = None
    #: what it is published as, where its maintainer says so: skill or plugin
    kind: Kind | None = None
    #: which door it came through
    source: str | None = None


class SubmitPlaces(ActionRequest, frozen=True, kw_only=True):
    """Many places at once; each has an outcome of its own."""

    submissions: Annotated[tuple[PlaceToSubmit, ...], msgspec.Meta(min_length=1, max_length=MOST_BULK)]


class PlaceOutcomes(Wire, frozen=True):
    """In the order in which they were sent."""

    results: tuple[PlaceOutcome, ...]
    #: the path of the page on which people follow them
    page: str


class DiscoverSkills(ActionRequest, frozen=True, kw_only=True):
    """A repository, or a folder in it."""

    repo_url: Url
    skill_path: Folder = ""


class DiscoveredSkill(Wire, frozen=True):
    """A folder with a SKILL.md, or a plugin."""

    #: by its manifest, of a plugin by its folder; null where its SKILL.md or manifest is refused
    name: str | None
    path: str
    description: str
    #: why its SKILL.md or manifest is refused
    problem: str
    #: skill or plugin, by its files
    kind: str
    #: the folder of the plugin that it is a part of; null where it stands on its own
    part_of: str | None
    repo_url: str


class DiscoveredSkills(Wire, frozen=True):
    """The skills and plugins of a repository, by path."""

    repo_url: str
    skills: tuple[DiscoveredSkill, ...]
    #: there are more than are listed
    truncated: bool
    #: folders whose names no address can hold
    skipped: tuple[str, ...]
    #: plugins of its marketplace that are not in the repository, each as a sentence with what to do
    elsewhere: tuple[str, ...]


def submitted_by(actor: Principal) -> SubmittedBy:
    return SubmittedBy(
        actor.account, audiences_of(actor), actor.namespace, actor.operator, actor.groups, actor.ci
    )


async def submit(actor: Principal, request: SubmitSkill) -> PlaceOutcome:
    by, source = submitted_by(actor), source_of(request.source)
    path = request.skill_path
    if path is None and request.skill_name:
        path = await _path_of(request.repo_url, request.skill_name, by)
    if path is not None and not request.every:
        done = outcome_view(
            await submit_repository(request.repo_url, path, source=source, by=by, kind=request.kind)
        )
        return await _with_page(actor, done, source, request.repo_url, path)
    found = await discovery.submit_skills(
        request.repo_url, path or "", every=request.every, source=source, by=by, kind=request.kind
    )
    results = tuple(map(settled_view, found.results))
    is_all = not found.not_submitted and not found.elsewhere
    if len(results) == 1 and is_all and found.results[0].submitted is not None:
        return results[0]
    return PlaceOutcome(
        repo_url=request.repo_url,
        results=results,
        not_submitted=found.not_submitted,
        truncated=found.truncated,
        skipped=found.skipped,
        elsewhere=found.elsewhere,
        page=await page_for(actor, [_handed_in(one) for one in results], source),
    )


async def submit_many(actor: Principal, request: SubmitPlaces) -> PlaceOutcomes:
    wanted = [Wanted(place.repo_url, place.skill_path or "", place.kind) for place in request.submissions]
    source = source_of(request.submissions[0].source)
    settled = await discovery.submit_many(wanted, source=source, by=submitted_by(actor))
    results = tuple(map(settled_view, settled))
    return PlaceOutcomes(results, await page_for(actor, [_handed_in(one) for one in results], source))


async def discover(actor: Principal, request: DiscoverSkills) -> DiscoveredSkills:
    found = await discovery.discover(request.repo_url, request.skill_path, by=submitted_by(actor))
    skills = (DiscoveredSkill.of(skill, repo_url=skill.place.identity.url) for skill in found.skills)
    return DiscoveredSkills.of(found, repo_url=request.repo_url, skills=tuple(skills))


async def upload(actor: Principal, request: UploadSkill) -> PlaceOutcome:
    if not request.archive:
        raise InvalidInput("The archive is missing.", field="archive", fix="send a .zip or .tar.gz")
    namespace = await _upload_namespace(actor, request.namespace)
    files = await asyncio.to_thread(read_archive, request.archive)
    slug = request.name or await asyncio.to_thread(_called, files)
    if not slug:
        message = "SKILL.md, or the manifest of the plugin, gives no name."
        raise InvalidInput(message, field="name", fix="add one, or give the skill's name with the archive")
    source = source_of(request.source)
    done = await upload_files(actor, files, namespace=namespace, slug=slug, source=source, kind=request.kind)
    identity = upload_identity(namespace, slug)
    told = outcome_view(done, await _version_note(identity, files))
    return await _with_page(actor, told, source, identity.url, "")


def _called(files: tuple[SkillFile, ...]) -> str:
    """What an upload is called by itself."""
    if kind_of(files) is Kind.SKILL:
        return declared_slug(files) or ""
    plugin = read_plugin(files)
    return slugify(plugin.name) if plugin is not None and plugin.name else ""


async def _version_note(identity: Identity, files: tuple[SkillFile, ...]) -> str | None:
    """Which number these files get, where it is not the one in their front matter. One that is too low ends the run."""
    skill = (await place_of(identity)).skill
    if skill is None or kind_of(files) is Kind.PLUGIN:
        return None
    declared = read_manifest(skill_file_of(files).data).version
    if declared is None or skill.current_digest == digest_of_files(files):
        return None
    with suppress(LowerVersion):
        return numbering.version_note(number_after(skill.versions, declared)[1]) or None
    return None


async def upload_files(
    actor: Principal,
    files: tuple[SkillFile, ...],
    *,
    namespace: str = "",
    slug: str,
    source: EntryPoint,
    kind: Kind | None = None,
) -> Submitted:
    """The same without an archive, for clients that send files one by one."""
    UPLOAD.admit(actor)
    return await submit_upload(
        files,
        namespace=await _upload_namespace(actor, namespace),
        slug=slug,
        source=source,
        by=submitted_by(actor),
        kind=kind,
    )


def upload_namespace_for(actor: Principal, wanted: str) -> str:
    """Where an upload goes, without `upload~`: where it says, where the token belongs, or to the account's own."""
    bound = uploader_of(actor.namespace or "")
    namespace = (uploader_of(wanted) or wanted) or bound or actor.account or LOCAL_NAMESPACE
    return upload_identity(namespace, "any").owner


async def _upload_namespace(actor: Principal, wanted: str) -> str:
    """The same, where the actor is an author of it; the operator chooses any."""
    namespace = upload_namespace_for(actor, wanted)
    if actor.operator:
        await _hold_name(actor, namespace)
        return namespace
    name = upload_namespace(namespace)
    role = None if actor.account is None else await role_in(actor.account, name, actor.groups)
    if role is None or role.rank < NamespaceRole.AUTHOR.rank:
        message = f"Only authors of the namespace {name} may upload into it."
        raise NotPermitted(message, namespace=name, fix=f"ask an owner of {name} to make you an author")
    return namespace


async def _hold_name(actor: Principal, namespace: str) -> None:
    """Give an upload namespace that is nobody's a record, so that nobody can become the account of its name."""
    if namespace == LOCAL_NAMESPACE or (await read_user(namespace))[0] is not None:
        return

    async def decide(known: Namespace) -> NamespaceChange | None:
        return None if known.released else NamespaceChange(msgspec.structs.replace(known, released=True))

    name = upload_namespace(namespace)
    await change_namespace(
        name, decide, AuditNote("namespace made", name, actor.actor, "the operator uploads there")
    )


async def _path_of(repo_url: str, name: str, by: SubmittedBy) -> str:
    """The folder of a skill that is known by name only; a look into the repository finds it."""
    found = await discovery.discover(repo_url, by=by)
    wanted = slugify(name)
    whole = [skill for skill in found.skills if skill.part_of is None]
    parts = [skill for skill in found.skills if skill.part_of is not None]
    for skills, by_name in ((whole, False), (whole, True), (parts, False), (parts, True)):
        named = {one.path: one.name or "" if by_name else one.path.rpartition("/")[2] for one in skills}
        paths = [path for path, text in named.items() if slugify(text) == wanted]
        if len(paths) == 1:
            return paths[0]
        if paths:
            raise InvalidInput(
                f"{name!r} may be {', '.join(paths[:10])}.", field="skillPath", fix="give the folder"
            )
    if len(whole) == 1 and whole[0].path == "":
        return ""
    raise NoSkillFound(f"There is no skill {name!r} in {repo_url}.", field="skillName")


def source_of(text: str | None) -> EntryPoint:
    """What clients call themselves; an unknown word is the API."""
    known = {source.value: source for source in EntryPoint}
    return known.get((text or "").lower(), EntryPoint.API)


def outcome_view(done: Submitted, version_note: str | None = None) -> PlaceOutcome:
    """The outcome in the members that clients look for."""
    record = done.submission
    submission_id = record.id if record else None
    return PlaceOutcome(
        id=submission_id,
        submission_id=submission_id,
        state=record.state.value if record else None,
        skill_name=record.skill_name if record else None,
        skill_path=record.skill_path if record else None,
        repo_url=record.repo_url if record else None,
        created_at=iso_time(record.created_at) if record else None,
        duplicate=done.outcome is IntakeOutcome.DUPLICATE,
        already_verified=done.outcome is IntakeOutcome.ALREADY_VERIFIED,
        requeued=done.outcome is IntakeOutcome.REQUEUED,
        blocked=done.outcome is IntakeOutcome.BLOCKED,
        reason=done.reason or None,
        name_note=name_note(record.skill_name, record.declared_name) if record else None,
        version_note=version_note,
        page=f"/submissions/{submission_id}" if submission_id else None,
    )


async def _with_page(
    actor: Principal, outcome: PlaceOutcome, source: EntryPoint, repo_url: str, path: str
) -> PlaceOutcome:
    """What is blocked and never had a submission gets a page all the same, which says why."""
    if outcome.page is not None:
        return outcome
    named = msgspec.structs.replace(outcome, repo_url=repo_url, skill_path=path)
    return msgspec.structs.replace(outcome, page=await page_for(actor, [_handed_in(named)], source))


def _handed_in(outcome: PlaceOutcome) -> HandedIn:
    """As the hand-in keeps it."""
    return HandedIn(
        outcome=outcome.outcome,
        submission_id=outcome.id,
        repo_url=outcome.repo_url or "",
        skill_path=outcome.skill_path or "",
        reason=outcome.error or outcome.reason or "",
    )


def settled_view(settled: SettledPlace) -> PlaceOutcome:
    done, error = settled.submitted, settled.error
    if done is not None and done.submission is not None:
        return outcome_view(done)
    if done is not None:
        named = {"repo_url": settled.repo_url, "skill_path": settled.skill_path}
        return msgspec.structs.replace(outcome_view(done), **named)
    return PlaceOutcome(
        repo_url=settled.repo_url,
        skill_path=settled.skill_path,
        error=as_written(error.in_words, wire_names(SubmitSkill)) if error else "not submitted",
        code=error.code if error else None,
    )


def _status_of(outcome: PlaceOutcome) -> int:
    """201 where a submission was created; of a repository, where anything began."""
    if outcome.results:
        began = any(one.id and not (one.duplicate or one.already_verified) for one in outcome.results)
        return 201 if began else 200
    return 201 if outcome.outcome == IntakeOutcome.CREATED.value else 200


_ERRORS = (
    NotPermitted,
    QuotaExceeded,
    LimitExceeded,
    NoSkillFound,
    InvalidManifest,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)

SUBMIT = action_for(
    submit,
    submissions_calls.SUBMIT,
    right=Right.ANYONE,
    errors=_ERRORS,
    allowance=Allowance.SUBMISSIONS,
    status=201,
    status_of=_status_of,
    others={200: PlaceOutcome},
    summary="Submit a skill or plugin, or every one of a repository",
    about="201: a new submission or run of at least one. 200: `duplicate`, `alreadyVerified`, `requeued` or "
    "`blocked` says what it was instead. 422: there is no SKILL.md, and no manifest of a plugin.",
    command="submit",
    mcp="submit_skill",
    for_ci=True,
)
SUBMIT_MANY = action(
    submit_many,
    "submission.submit-many",
    f"{SUBMISSIONS}/bulk",
    right=Right.ANYONE,
    errors=_ERRORS,
    allowance=Allowance.SUBMISSIONS,
    summary="Submit many skills at once",
    command="",
)
DISCOVER = action(
    discover,
    "submission.discover",
    f"{SUBMISSIONS}/discover",
    right=Right.ANYONE,
    errors=_ERRORS,
    allowance=Allowance.DISCOVERIES,
    summary="List the skills and plugins of a repository without submitting any",
    command="",
)
UPLOAD = action_for(
    upload,
    submissions_calls.UPLOAD,
    right=Right.SIGNED_IN,
    scope=TokenScope.SUBMIT,
    errors=_ERRORS,
    allowance=Allowance.SUBMISSIONS,
    most_body=DEFAULT_LIMITS.bytes_total,
    status=201,
    status_of=_status_of,
    others={200: PlaceOutcome},
    summary="Upload an archive of one skill",
    about="The body is the archive: a zip, tar or tar.gz, at most 20 MiB, also unpacked. The skill belongs to the "
    "account's own namespace.",
    command="submit",
)

"""Submitting: the one write path into the queue, whoever calls. Submitting the same place again is the same
submission, so a retried request, a crawler and an impatient author can do no harm."""

import enum

import msgspec

from vskill_platform.domain import submission
from vskill_platform.domain.content import (
    DEFAULT_LIMITS,
    ContentLimits,
    SkillFile,
    check_files,
    digest_of_files,
    pack,
    skill_file_of,
)
from vskill_platform.domain.identity import Identity, normalise, submission_id, upload_identity
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.naming import slug_of
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Rerun, Source, Step, Submission
from vskill_platform.env import Env
from vskill_platform.intake.manifest import read_manifest
from vskill_platform.store.blocklist import why_blocked
from vskill_platform.submission_store import (
    Change,
    create_submission,
    next_run,
    read_submission,
    update_submission,
)
from vskill_platform.worker_context import require_env


class Outcome(enum.StrEnum):
    """What submitting a place led to."""

    CREATED = "created"
    #: It is on its way already; new content will be looked at.
    DUPLICATE = "duplicate"
    #: These very bytes are published.
    ALREADY_VERIFIED = "already verified"
    #: A new run has begun.
    REQUEUED = "requeued"
    BLOCKED = "blocked"


class Submitted(msgspec.Struct, frozen=True):
    """The outcome, and the record it is about; None only where a place that never had one is blocked."""

    outcome: Outcome
    submission: Submission | None
    reason: str = ""


class Request(msgspec.Struct, frozen=True):
    """A place to verify, already normalised."""

    identity: Identity
    repo_url: str
    skill_name: str
    actor: str
    source: Source = Source.API
    submitter: str | None = None
    #: The content digest of uploaded bytes that are kept already.
    upload: str | None = None
    priority: int = 0


async def submit_repository(
    repo_url: str,
    skill_path: str = "",
    *,
    source: Source = Source.API,
    submitter: str | None = None,
) -> Submitted:
    """Submit the skill at one place of a repository."""
    identity = normalise(repo_url, skill_path)
    actor = f"user:{submitter}" if submitter else "system"
    return await submit(Request(identity, identity.url, slug_of(identity), actor, source, submitter))


async def submit_upload(
    files: tuple[SkillFile, ...],
    *,
    namespace: str,
    slug: str,
    source: Source = Source.CLI,
    submitter: str | None = None,
    limits: ContentLimits = DEFAULT_LIMITS,
) -> Submitted:
    """Submit files: checked at the door, kept by digest, then named by a record."""
    check_files(files, limits)
    read_manifest(skill_file_of(files).data)
    identity = upload_identity(namespace, slug)
    digest = digest_of_files(files)
    await require_env("blobs").blobs.put(digest, pack(files))
    actor = f"user:{submitter}" if submitter else "system"
    return await submit(Request(identity, identity.url, slug_of(identity), actor, source, submitter, digest))


async def submit(request: Request) -> Submitted:
    """Create the place's submission, or bring the one that is there up to date. Idempotent."""
    env = require_env("kv")
    number = submission_id(request.identity)
    reason = await why_blocked(request.identity, (request.skill_name,), request.upload)
    if reason is not None:
        return await _blocked(number, reason)
    created = await create_submission(_first(env, number, request))
    if created is not None:
        return Submitted(Outcome.CREATED, created)
    return await _again(env, number, request)


async def _blocked(number: str, reason: str) -> Submitted:
    found = await read_submission(number)
    return Submitted(Outcome.BLOCKED, found[0] if found else None, reason)


def _first(env: Env, number: str, request: Request) -> Submission:
    return submission.create(
        submission_id=number,
        identity=request.identity,
        repo_url=request.repo_url,
        skill_name=request.skill_name,
        step=Step(env.clock.new_id(), env.kv.now(), request.actor, "submitted"),
        source=request.source,
        submitter=request.submitter,
        upload=request.upload,
        priority=request.priority,
    )


async def _again(env: Env, number: str, request: Request) -> Submitted:
    """Submitted once more: what that means depends on where the submission stands at that moment."""
    event_id = env.clock.new_id()
    outcome = Outcome.DUPLICATE
    seen: Submission | None = None

    async def decide(record: Submission) -> Change | None:
        nonlocal outcome, seen
        seen = record
        outcome, change = _renewed(env, record, request, event_id)
        return change

    written = await update_submission(number, decide, event_id=event_id)
    return Submitted(outcome, written or seen)


def _renewed(env: Env, record: Submission, request: Request, event_id: str) -> tuple[Outcome, Change | None]:
    if record.state.ends_run:
        return _after_end(env, record, request, event_id)
    now = env.kv.now()
    if record.claim is None and record.state is State.RECEIVED:
        renewed = submission.refresh(record, now=now, submitter=request.submitter, upload=request.upload)
        return Outcome.DUPLICATE, Change(renewed, (submission_send(record.id, record.run),))
    # A worker is at it, or a reviewer's approval is about to be published: what they do stands, and the next run
    # looks at what was submitted now.
    expected = record.rerun_requested.upload if record.rerun_requested else record.upload
    if request.upload is not None and request.upload == expected:
        return Outcome.DUPLICATE, None
    rerun = Rerun(now, request.submitter, request.upload)
    return Outcome.DUPLICATE, Change(submission.request_rerun(record, rerun))


def _after_end(
    env: Env, record: Submission, request: Request, event_id: str
) -> tuple[Outcome, Change | None]:
    unchanged = request.upload is not None and request.upload == record.digest
    if unchanged and record.state is State.PUBLISHED:
        return Outcome.ALREADY_VERIFIED, None
    if unchanged and record.state is State.NEEDS_REVIEW:
        return Outcome.DUPLICATE, None
    step = Step(event_id, env.kv.now(), request.actor, "submitted again")
    return Outcome.REQUEUED, next_run(record, step, submitter=request.submitter, upload=request.upload)

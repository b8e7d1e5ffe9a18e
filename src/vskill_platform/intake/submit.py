"""Submitting: the one write path into the queue for all callers. It is idempotent per place, so a retried request, a
crawler and an impatient author can do no harm."""

import asyncio
import enum

import msgspec

from vskill_core.content import (
    DEFAULT_LIMITS,
    ContentLimits,
    SkillFile,
    digest_of_files,
)
from vskill_core.errors import (
    ContentDamaged,
    InvalidManifest,
)
from vskill_core.identity import Identity, normalise, submission_id, upload_identity
from vskill_core.kind import Kind, kind_of, require_content
from vskill_core.naming import slug_of
from vskill_core.publisher import Publisher
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import Namespace, Quotas
from vskill_platform.domain.people.refusal import ANONYMOUS
from vskill_platform.domain.submissions import attempts, submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint, Rerun, Step, Submission
from vskill_platform.intake import admission
from vskill_platform.intake.moves import settled_place
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.sources.contract import Place, Repositories, Sources
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.people.source_credentials import find_credential, sources_for
from vskill_platform.store.recall.blocklist import why_blocked
from vskill_platform.store.skills.quotas import admit_submission
from vskill_platform.store.skills.skills import place_of
from vskill_platform.store.stored_content import keep_content, read_content
from vskill_platform.store.tasks import assert_held
from vskill_platform.submission_store import (
    RecordChange,
    create_submission,
    next_run,
    read_submission,
    update_submission,
)
from vskill_platform.worker_context import Env, require_env
from vskill_scan.plugins.completed import complete
from vskill_scan.reading.manifest import admit_skill, read_manifest


class IntakeOutcome(enum.StrEnum):
    """What submitting a place led to."""

    CREATED = "created"
    #: It is being verified already; new content will be looked at.
    DUPLICATE = "duplicate"
    #: Exactly this content is published.
    ALREADY_VERIFIED = "already verified"
    #: A new run has begun.
    REQUEUED = "requeued"
    BLOCKED = "blocked"


class Submitted(msgspec.Struct, frozen=True):
    """The outcome and its record; None only if the place is blocked and never had a record."""

    outcome: IntakeOutcome
    submission: Submission | None
    reason: str = ""


#: Why a run begins for content that was verified before.
DAMAGED = "submitted again: the stored files were damaged"


class Request(msgspec.Struct, frozen=True):
    """A place to verify, already normalised."""

    identity: Identity
    source: EntryPoint = EntryPoint.API
    by: admission.SubmittedBy = admission.NOBODY
    #: The content digest of uploaded bytes that are kept already.
    upload: str | None = None
    #: The name in the front matter, where it is known.
    declared_name: str | None = None
    #: What was seen at this place; None: not looked at yet.
    place: Place | None = None
    #: Its namespace has a credential for it, and whoever submits it acts for the namespace.
    with_credential: bool = False
    #: What a maintainer wants it published as; None: as before, or by its files.
    kind: Kind | None = None
    #: The task that brought the files: a worker that has lost it submits older ones than the next worker did.
    task: Task | None = None

    @property
    def commit(self) -> str | None:
        return self.place.commit if self.place else None

    @property
    def publisher(self) -> Publisher | None:
        return self.by.ci.publisher if self.by.ci else None

    @property
    def actor(self) -> str:
        if self.publisher is not None:
            return self.publisher.actor
        if self.by.follow:
            return f"follow:{self.by.follow}"
        return f"user:{self.by.account}" if self.by.account else "system"

    @property
    def names(self) -> tuple[str, str | None]:
        """Names that the blocklist may know the skill by."""
        return slug_of(self.identity), self.declared_name


async def submit_repository(
    repo_url: str,
    skill_path: str = "",
    *,
    source: EntryPoint = EntryPoint.API,
    by: admission.SubmittedBy = admission.NOBODY,
    kind: Kind | None = None,
) -> Submitted:
    """Submit what is at exactly one place of a repository. NoSkillFound, SourceGone and SourceUnavailable say why
    nothing was written."""
    return await submit(Request(normalise(repo_url, skill_path), source, by, kind=kind))


async def submit_upload(
    files: tuple[SkillFile, ...],
    *,
    namespace: str,
    slug: str,
    source: EntryPoint = EntryPoint.CLI,
    by: admission.SubmittedBy = admission.NOBODY,
    limits: ContentLimits = DEFAULT_LIMITS,
    kind: Kind | None = None,
) -> Submitted:
    """Submit files: check them, keep them by digest, then write the record that names them."""
    identity = upload_identity(namespace, slug)
    require_content(files, "among the uploaded files")
    known = (await place_of(identity)).skill
    meant = kind or (known.kind if known else kind_of(files))
    files = await asyncio.to_thread(complete, files, slug_of(identity), meant)
    admit_skill(files, slug_of(identity), limits)
    digest = digest_of_files(files)
    await keep_content(digest, files)
    return await submit(Request(identity, source, by, digest, kind=kind))


async def submit(request: Request) -> Submitted:
    """Create the place's submission, or update the existing one. Idempotent.

    A blocked place is refused before its host is asked; a place that moved is checked under both names.
    """
    env = require_env("kv")
    refused = await _refusal(request)
    if refused is None:
        asked, request = request, await _admit(request)
        refused = None if request == asked else await _refusal(request)
    if refused is not None:
        return refused
    number = submission_id(request.identity)
    event_id = env.clock.new_id()

    async def prepare() -> RecordChange:
        belonging = await belonging_of(request.identity)
        record = msgspec.structs.replace(_first(env, number, request, event_id), audience=belonging.audience)
        counted = await _count(belonging.namespace, number, request)
        return RecordChange(record, (belonging.asserted, *counted, *_audited(number, request)))

    created = await create_submission(prepare)
    if created is not None:
        return Submitted(IntakeOutcome.CREATED, created)
    return await _again(env, number, request)


async def _refusal(request: Request) -> Submitted | None:
    """The answer if the place is blocked; raises if they may not submit it."""
    closed = await admission.is_closed(request.identity, request.by)
    if request.kind is not None:
        await admission.require_maintainer(request.identity, request.by)
    reason = await _why_blocked(request)
    if closed:
        sources = require_env("sources").sources
        repositories = _repositories_in(sources, request) if request.place is None else None
        await admission.refuse_closed(
            request.identity, repositories.inspect if repositories else None, request.by
        )
    return None if reason is None else await _refuse_blocked(submission_id(request.identity), reason)


def _repositories_in(sources: Sources, request: Request) -> Repositories | None:
    """The source that can inspect its place before the run; None for an upload."""
    is_upload = request.upload is not None or request.identity.is_upload
    return sources if isinstance(sources, Repositories) and not is_upload else None


async def _admit(request: Request) -> Request:
    """Require that a repository's place holds a skill or plugin (A17). The record notes the commit where it was seen,
    so that the run verifies that one. If the source cannot inspect, the run checks."""
    may_use = request.upload is None and await admission.may_use_credential(request.identity, request.by)
    repositories = _repositories_in(await sources_for(request.identity, with_credential=may_use), request)
    if repositories is None:
        return request
    place = request.place or await repositories.inspect(request.identity, request.by.commit)
    await admission.require_open(request.identity, place.identity, request.by)
    identity = await settled_place(request.identity, place.identity)
    name = request.declared_name or declared_name(place)
    if identity.key == request.identity.key:
        identity = request.identity
    elif may_use:
        may_use = await admission.may_use_credential(identity, request.by)
    has_credential = may_use and await find_credential(identity) is not None
    return msgspec.structs.replace(
        request, identity=identity, declared_name=name, place=place, with_credential=has_credential
    )


def declared_name(place: Place) -> str | None:
    """The name in the front matter; None if SKILL.md is invalid, which the run will explain, and of a plugin."""
    if place.kind is Kind.PLUGIN:
        return None
    try:
        return read_manifest(place.skill_md, slug_of(place.identity)).name
    except InvalidManifest:
        return None


async def _why_blocked(request: Request) -> str | None:
    """Why the submitted place, or where it is now, is blocked."""
    reason = await why_blocked(request.identity, request.names, request.upload)
    moved = request.place.identity if request.place else request.identity
    if reason is None and moved.key != request.identity.key:
        reason = await why_blocked(moved, request.names, request.upload)
    return reason


async def _refuse_blocked(number: str, reason: str) -> Submitted:
    found = await read_submission(number)
    return Submitted(IntakeOutcome.BLOCKED, found[0] if found else None, reason)


def _first(env: Env, number: str, request: Request, event_id: str) -> Submission:
    record = submission.create(
        submission_id=number,
        identity=request.identity,
        repo_url=request.identity.url,
        skill_name=slug_of(request.identity),
        step=Step(event_id, env.kv.now(), request.actor, "submitted"),
        source=request.source,
        submitter=request.by.account,
        upload=request.upload,
    )
    return _at_commit(record, request)


def _is_kind_known(record: Submission, request: Request) -> bool:
    """Whether it is said already, or not said, what it is to be published as."""
    return request.kind in (None, record.kind)


def _audited(number: str, request: Request) -> tuple[Put, ...]:
    """The audit entry of whoever submitted; none where the registry looks again by itself."""
    is_stranger = request.actor == "system" and not request.by.operator
    if is_stranger and require_env("kv").origin is None:
        return ()
    by, details = ANONYMOUS if is_stranger else request.actor, {"place": request.identity.key}
    return record_audit("submit", number, by=by, reason="submitted", details=details)


async def _count(namespace: Namespace, number: str, request: Request) -> tuple[Operation, ...]:
    """Operations that count a submission that begins a run; raises if a quota forbids it. Empty for a place that has a
    record, because no run begins here then."""
    if request.by.operator or namespace.quotas == Quotas() or await read_submission(number) is not None:
        return ()
    *_, skill, _ = await place_of(request.identity)
    return await admit_submission(namespace, is_new=skill is None)


def _at_commit(record: Submission, request: Request) -> Submission:
    return msgspec.structs.replace(
        record,
        commit=request.commit,
        declared_name=request.declared_name,
        publisher=request.publisher,
        with_credential=record.with_credential or request.with_credential,
        kind=request.kind or record.kind,
    )


async def _again(env: Env, number: str, request: Request) -> Submitted:
    """Submit an existing place again; the effect depends on the submission's state."""
    event_id = env.clock.new_id()
    outcome = IntakeOutcome.DUPLICATE
    seen: Submission | None = None

    async def decide(record: Submission) -> RecordChange | None:
        nonlocal outcome, seen
        seen = record
        outcome, change = _renew(env, record, request, event_id)
        if outcome is IntakeOutcome.ALREADY_VERIFIED and await _is_damaged(record):
            outcome, change = _start_again(env, record, request, event_id, DAMAGED)
        if change is None:
            return None
        counted: tuple[Operation, ...] = ()
        if outcome is IntakeOutcome.REQUEUED and not request.by.operator:
            namespace = (await belonging_of(request.identity)).namespace
            counted = await admit_submission(namespace, is_new=False)
        held = () if request.task is None else (await assert_held(request.task),)
        return RecordChange(change.record, (*change.operations, *counted, *held, *_audited(number, request)))

    written = await update_submission(number, decide, event_id=event_id)
    if written is None and seen is not None and _waits(seen):
        # Its message may have been lost. A run has at most one live message, so sending it again is harmless (B6).
        await env.kv.commit([seen.message])
    return Submitted(outcome, written or seen)


def _renew(
    env: Env, record: Submission, request: Request, event_id: str
) -> tuple[IntakeOutcome, RecordChange | None]:
    if record.state.ends_run:
        return _after_end(env, record, request, event_id)
    now = env.kv.now()
    if _waits(record) and _expects(record, request) and _due_afresh(record, now):
        return IntakeOutcome.DUPLICATE, None
    # What a CI job submitted runs as its job said, whoever submits the place meanwhile.
    if _waits(record) and not _is_displaced(record.publisher, request):
        renewed = submission.refresh(record, now=now, submitter=request.by.account, upload=request.upload)
        change = RecordChange(_at_commit(renewed, request), (record.message,))
        return IntakeOutcome.DUPLICATE, change
    # A worker has it, or a reviewer's approval is about to be published: this run goes on, and the next one verifies
    # what was submitted now, unless this run already does.
    if _expects(record, request) or (
        record.rerun_requested is not None and _is_displaced(record.rerun_requested.publisher, request)
    ):
        return IntakeOutcome.DUPLICATE, None
    rerun = Rerun(now, request.by.account, request.upload, publisher=request.publisher)
    again = submission.request_rerun(record, rerun)
    private = record.with_credential or request.with_credential
    told = {"with_credential": private, "kind": request.kind or record.kind}
    return IntakeOutcome.DUPLICATE, RecordChange(msgspec.structs.replace(again, **told))


def _is_displaced(publisher: Publisher | None, request: Request) -> bool:
    """Whether this would take the place of what a CI job submitted, and is no CI job's."""
    return publisher is not None and request.publisher is None


def _is_vouched(publisher: Publisher | None, request: Request) -> bool:
    """Whether what the request's job would prove is proved already, by the same workflow at the same commit."""
    wanted = request.publisher
    return wanted is None or (
        publisher is not None and (publisher.workflow, publisher.commit) == (wanted.workflow, wanted.commit)
    )


def _waits(record: Submission) -> bool:
    return record.claim is None and record.state is State.RECEIVED


def _due_afresh(record: Submission, now: int) -> bool:
    """Whether a worker would take it now as if it had just been submitted."""
    return record.attempts.failed == 0 and attempts.claimable(record, now)


def _after_end(
    env: Env, record: Submission, request: Request, event_id: str
) -> tuple[IntakeOutcome, RecordChange | None]:
    unchanged = _is_unchanged(record, request) and _is_vouched(record.publisher, request)
    unchanged = unchanged and _is_kind_known(record, request)
    if unchanged and record.state is State.PUBLISHED:
        return IntakeOutcome.ALREADY_VERIFIED, None
    if unchanged and record.state is State.NEEDS_REVIEW:
        return IntakeOutcome.DUPLICATE, None
    return _start_again(env, record, request, event_id, "submitted again")


def _start_again(
    env: Env, record: Submission, request: Request, event_id: str, reason: str
) -> tuple[IntakeOutcome, RecordChange]:
    step = Step(event_id, env.kv.now(), request.actor, reason)
    change = next_run(record, step, submitter=request.by.account, upload=request.upload)
    return IntakeOutcome.REQUEUED, RecordChange(_at_commit(change.record, request), change.operations)


async def _is_damaged(record: Submission) -> bool:
    """Whether the stored files that were verified are damaged: then the next run fetches them again."""
    try:
        await read_content(record.digest or "")
    except ContentDamaged:
        return True
    return False


def _is_unchanged(record: Submission, request: Request) -> bool:
    """Whether the ended run has verified exactly what is submitted: for a repository, the same commit. If another
    commit changed only other files, the next run finds that out."""
    if request.upload is not None:
        return request.upload == record.digest
    return request.commit is not None and request.commit == record.commit


def _expects(record: Submission, request: Request) -> bool:
    """Whether the current or the next requested run verifies what is submitted anyway."""
    if not _is_kind_known(record, request):
        return False
    if request.upload is not None:
        expected = record.rerun_requested.upload if record.rerun_requested else record.upload
        return request.upload == expected
    if not _is_vouched(record.publisher, request) or (request.with_credential and not record.with_credential):
        return False
    return record.rerun_requested is None and request.commit is not None and request.commit == record.commit

"""All reads and writes of submissions (US-001, US-002): the one write path of their records.

Functions find the store through the worker context, so they work the same in a batch, in a scheduled job and in a web
request. They use the engine's bulk reads and indexes; for an engine that can only `get`, the contract's defaults read
concurrently, bounded and settled. Both give the same answer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import chain

import msgspec

from vskill_core.errors import Conflict, InvalidInput, NotFound
from vskill_core.identity import Identity
from vskill_core.publisher import Publisher
from vskill_platform.domain import keys
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, Audiences
from vskill_platform.domain.skills.listing import About
from vskill_platform.domain.skills.numbering import listed_number
from vskill_platform.domain.skills.skill import PublishedSkillSummary
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import STUCK_STATES, State
from vskill_platform.domain.submissions.submission import STUCK_THRESHOLD_MS, Step, Submission
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS, parse
from vskill_platform.ledger.kv.contract import PAGE, iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Capability, EntryPage, JoinedPage, Operation, Put
from vskill_platform.ledger.kv.query import Between, Condition, In, Is
from vskill_platform.records import Skips, decode, persist, readable
from vskill_platform.worker_context import Env, require_env

# What the requirements name.


class StuckSubmission(msgspec.Struct, frozen=True):
    """A submission that has been in one stuckable state for too long."""

    id: str
    state: State
    repo_url: str
    skill_name: str
    skill_path: str
    updated_at: int
    stuck_for_ms: int
    #: Who may read it; None if the record has no audience that we understand.
    audience: str | None = PUBLIC


class _StuckFields(msgspec.Struct, frozen=True):
    """The fields that the stuck report needs: any record that has them is reported, even if the rest is malformed."""

    id: str
    state: State
    updated_at: int
    repo_url: str = ""
    skill_name: str = ""
    skill_path: str = ""
    audience: object = PUBLIC


class _SummaryVersion(msgspec.Struct, frozen=True):
    """What a list needs of a version."""

    number: str = ""
    status_at: int = 0


class _SummaryFields(msgspec.Struct, frozen=True):
    """What a list needs of a skill record."""

    name: str | None = None
    repo_url: str | None = None
    description: str | None = None
    current_version: str | None = None
    certification: str | None = None
    updated_at: int = 0
    identity: Identity | None = None
    current_digest: str | None = None
    current_artifact: Artifact | None = None
    about: About = About()
    listed_as: dict[str, str] = {}
    withdrawn: bool = False
    versions: tuple[_SummaryVersion, ...] = ()


_KNOWN_STATES: frozenset[str] = frozenset(State)
#: A page of them at once.
_summaries = msgspec.json.Decoder(list[tuple[str, _SummaryFields]])


async def get_submissions_fresh(ids: Iterable[str]) -> list[Submission]:
    """The records as they are now, in the order of the ids; what is missing, failed or malformed is skipped,
    counted and logged. For the system itself, which reads everything."""
    return await get_submissions(ids, audiences=EVERYTHING)


async def get_submissions(ids: Iterable[str], *, audiences: Audiences) -> list[Submission]:
    """The same for a reader: what these audiences may not read is missing."""
    env = require_env("kv")
    wanted = [keys.sub(submission_id) for submission_id in dict.fromkeys(ids)]
    if not wanted:
        return []
    skips = Skips("get_submissions_fresh")
    settled = await env.kv.get_many(wanted)
    skips.missing(settled.missing)
    skips.failed(settled.failed)
    there = {key: entry for key, entry in settled.found.items() if readable(entry, audiences)}
    skips.missing(tuple(key for key in settled.found if key not in there))
    found = [skips.decode(there[key], Submission) for key in wanted if key in there]
    skips.report(env)
    return [record for record in found if record is not None]


async def get_stuck_submissions(*, threshold_ms: int = STUCK_THRESHOLD_MS) -> list[StuckSubmission]:
    """Submissions that have been in a stuckable state for the threshold or longer, longest first.

    A record is skipped as malformed if we cannot tell whether it is stuck (no known state; stuckable without a time),
    or if it is stuck but lacks a reported field. Other records are not checked further.
    This is only a report: recovery and health use the claim and the next attempt time instead.
    """
    env = require_env("kv")
    now = env.kv.now()
    skips = Skips("get_stuck_submissions")
    indexed = Capability.INDEXES in env.kv.capabilities
    find = _stuck_by_index if indexed else _stuck_by_reading
    found = await find(env, skips, now - threshold_ms)
    skips.report(env)
    return [_stuck_view(fields, now) for fields in found]


async def _stuck_by_index(env: Env, skips: Skips, latest: int) -> list[_StuckFields]:
    """Cost is proportional to the stuck and malformed records, not to the total."""
    stuckable = In(tuple(sorted(STUCK_STATES)))
    found: list[_StuckFields | None] = []
    since: dict[str, Condition] = {"state": stuckable, "updated_at": Between(most=latest)}
    async for page in _select_pages(env, since, "updated_at"):
        skips.failed(page.failed)
        found += [skips.decode(entry, _StuckFields) for entry in page.items]
    timeless: dict[str, Condition] = {"state": stuckable, "updated_at": Is(None)}
    for malformed in (_select_pages(env, timeless, "key"), iter_unreadable_pages(env)):
        async for page in malformed:
            skips.failed(page.failed)
            for entry in page.items:
                skips.add("malformed", entry.key)
    return [fields for fields in found if fields is not None]


async def _stuck_by_reading(env: Env, skips: Skips, latest: int) -> list[_StuckFields]:
    """Read every record, concurrently: for engines without an index."""
    state_of, time_of = SUBMISSIONS.fields["state"], SUBMISSIONS.fields["updated_at"]
    found: list[_StuckFields] = []
    async for page in iterate_pages(env.kv, SUBMISSIONS.prefix):
        skips.failed(page.failed)
        for entry in page.items:
            record = parse(entry.value)
            state, updated_at = state_of.of(record), time_of.of(record)
            if state in _KNOWN_STATES - STUCK_STATES:
                continue
            if state not in STUCK_STATES or not isinstance(updated_at, int):
                skips.add("malformed", entry.key)
            elif updated_at <= latest and (fields := skips.decode(entry, _StuckFields)) is not None:
                found.append(fields)
    return sorted(found, key=lambda fields: (fields.updated_at, fields.id))


async def enumerate_published_skills(page: int = PAGE) -> list[PublishedSkillSummary]:
    """Every published skill, of every audience: for the operator's export. Readers get `iter_published_skills`."""
    return [summary async for summaries in _summary_pages(page) for summary in summaries]


async def iter_published_skills(
    page: int = PAGE, *, audiences: Audiences, under: str = ""
) -> AsyncIterator[PublishedSkillSummary]:
    """Every published skill of these audiences whose name begins with `under`, in name order, a page at a time; nothing
    else is read."""
    env = require_env("kv")
    skips = Skips("iter_published_skills")
    after: str | None = None
    while True:
        found = await env.kv.select(SKILLS.prefix, audiences=audiences, under=under, after=after, limit=page)
        skips.failed(found.failed)
        for entry in found.items:
            fields = skips.decode(entry, _SummaryFields)
            if fields is not None and not fields.withdrawn:
                yield _summary(entry.key, fields)
        after = found.after
        if after is None:
            break
    skips.report(env)


async def _summary_pages(page: int) -> AsyncIterator[list[PublishedSkillSummary]]:
    """Aliases are left out before anything is read."""
    env = require_env("kv")
    skips = Skips("enumerate_published_skills")
    start: str | None = None
    async for joined in env.kv.joined_pages(SKILLS.prefix, exclude=SKILLS.exclude, page=page):
        fields = _decoded_at_once(joined)
        if fields is None:
            fields = await _decoded_one_by_one(env, skips, start, joined.after, page)
        else:
            skips.failed(joined.failed)
        yield [_summary(key, found) for key, found in fields if not found.withdrawn]
        start = joined.after
    skips.report(env)


def _decoded_at_once(joined: JoinedPage) -> list[tuple[str, _SummaryFields]] | None:
    """None where one of the page's records is malformed."""
    try:
        fields = _summaries.decode(joined.pairs)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields if len(fields) == joined.count else None


async def _decoded_one_by_one(
    env: Env, skips: Skips, start: str | None, end: str | None, page: int
) -> list[tuple[str, _SummaryFields]]:
    """Read the page again record by record, to leave out only what is malformed.

    Reads up to the page's last key rather than the same number of records: newly published ones would push the last
    records out, and the next page begins after that key.
    """
    found: list[tuple[str, _SummaryFields]] = []
    while True:
        entries = await env.kv.scan(SKILLS.prefix, after=start, limit=page, exclude=SKILLS.exclude)
        skips.failed({key: why for key, why in entries.failed.items() if end is None or key <= end})
        for entry in entries.items:
            if end is not None and entry.key > end:
                return found
            fields = skips.decode(entry, _SummaryFields)
            if fields is not None:
                found.append((entry.key, fields))
        start = entries.after
        if start is None or start == end:
            return found


def _stuck_view(fields: _StuckFields, now: int) -> StuckSubmission:
    return StuckSubmission(
        id=fields.id,
        state=fields.state,
        repo_url=fields.repo_url,
        skill_name=fields.skill_name,
        skill_path=fields.skill_path,
        updated_at=fields.updated_at,
        stuck_for_ms=now - fields.updated_at,
        audience=fields.audience if isinstance(fields.audience, str) else None,
    )


def _summary(key: str, fields: _SummaryFields) -> PublishedSkillSummary:
    slug = key.removeprefix(SKILLS.prefix)
    return PublishedSkillSummary(
        slug=slug,
        name=fields.name or slug,
        repo_url=fields.repo_url or "",
        description=fields.description or "",
        current_version=fields.current_version,
        certification=fields.certification,
        updated_at=fields.updated_at,
        identity=fields.identity,
        current_digest=fields.current_digest,
        current_artifact=fields.current_artifact,
        about=fields.about,
        listed_as=fields.listed_as,
        listed_version=_listed_version(fields),
    )


def _listed_version(fields: _SummaryFields) -> str | None:
    if not fields.versions:
        return fields.current_version
    last = fields.versions[-1]
    return listed_number(
        last.number, fields.current_version, status_at=last.status_at, updated_at=fields.updated_at
    )


# Other reads.


class SubmissionCounts(msgspec.Struct, frozen=True):
    """How many submissions there are, by state: the one definition of every number that people see."""

    by_state: dict[State, int]
    #: Records with an unknown state, or that cannot be decoded.
    unreadable: int = 0

    @property
    def total(self) -> int:
        return sum(self.by_state.values()) + self.unreadable

    @property
    def active(self) -> int:
        """Those that are worked on, or will be as soon as possible."""
        return sum(count for state, count in self.by_state.items() if state.moving)


async def read_submission(submission_id: str) -> tuple[Submission, int] | None:
    """The record and its version, or None if there is none. For stores and workers, which change records regardless of
    their readers; code that shows one to a reader calls `get_submission`."""
    entry = await require_env("kv").kv.get(keys.sub(submission_id))
    return None if entry is None else (decode(entry, Submission), entry.version)


async def get_submission(submission_id: str, *, audiences: Audiences) -> Submission:
    """The record, or NotFound. Anybody can compute a place's id, so a record that these audiences may not read gives
    the same error as a missing one, before it is decoded."""
    entry = readable(await require_env("kv").kv.get(keys.sub(submission_id)), audiences)
    if entry is None:
        raise no_submission(submission_id)
    return decode(entry, Submission)


def no_submission(submission_id: str) -> NotFound:
    return NotFound(f"There is no submission {submission_id}.", submission=submission_id)


async def get_run(submission_id: str, run: int, *, audiences: Audiences) -> Submission:
    """An earlier run as it ended, or the current one. A reader of the submission may read its runs, whatever
    audience it had then."""
    current = await get_submission(submission_id, audiences=audiences)
    if current.run == run:
        return current
    entry = await require_env("kv").kv.get(keys.subrun(submission_id, str(run)))
    if entry is None:
        raise NotFound(f"{submission_id} has no run {run}.", submission=submission_id, run=run)
    return decode(entry, Submission)


async def count_submissions(*, audiences: Audiences) -> SubmissionCounts:
    """Exact counts of what these audiences may read; the engine updates them in the same write as the records. A failed
    read raises."""
    counts = await require_env("kv").kv.count_by(SUBMISSIONS.prefix, "state", audiences=audiences)
    known = {state: counts.get(state.value, 0) for state in State}
    return SubmissionCounts(known, sum(counts.values()) - sum(known.values()))


async def iter_unreadable_pages(env: Env) -> AsyncIterator[EntryPage]:
    """Records under `sub:` without a known state, found by index, so the cost is proportional to their number."""
    for state in await env.kv.count_by(SUBMISSIONS.prefix, "state", audiences=EVERYTHING):
        if state not in _KNOWN_STATES:
            async for page in _select_pages(env, {"state": Is(state), "updated_at": Is(None)}, "key"):
                yield page
            async for page in _select_pages(env, {"state": Is(state)}, "updated_at"):
                yield page


async def _select_pages(env: Env, where: dict[str, Condition], order_by: str) -> AsyncIterator[EntryPage]:
    after: str | None = None
    while True:
        page = await env.kv.select(
            SUBMISSIONS.prefix, audiences=EVERYTHING, where=where, order_by=order_by, after=after
        )
        yield page
        after = page.after
        if after is None:
            return


# Writes.


class RecordChange(msgspec.Struct, frozen=True):
    """A record's next form, and what must be committed together with it."""

    record: Submission
    operations: tuple[Operation, ...] = ()


#: Gets the current record and returns its change; None leaves it. Called again after a conflict.
Decide = Callable[[Submission], Awaitable[RecordChange | None]]


async def create_submission(prepare: Callable[[], Awaitable[RecordChange]]) -> Submission | None:
    """Store the first record of a place, its message and further operations in one commit; None if the place has a
    record already. `prepare` is called again after a conflict."""
    env = require_env("kv")

    async def write() -> Submission | None:
        change = await prepare()
        record = change.record
        put = Put(record.key, msgspec.json.encode(record), ABSENT)
        try:
            await env.kv.commit([put, record.message, *change.operations])
        except Conflict:
            found = await read_submission(record.id)
            if found is None:
                # The conflicting record is gone, or another key of the commit has changed: `persist` tries again.
                raise
            return record if found[0].wrote(record.history[0].id) else None
        return record

    created = await persist(write)
    if created is not None:
        env.metrics.transitions.labels(State.RECEIVED).inc()
    return created


async def update_submission(submission_id: str, decide: Decide, *, event_id: str) -> Submission | None:
    """Change a record by compare-and-swap; the record as written, None if left as it is.

    `event_id` is the id of the history event that the change adds: finding it there after an unknown outcome
    is success.
    """
    first_run: int | None = None

    async def write() -> Submission | None:
        nonlocal first_run
        found = await read_submission(submission_id)
        if found is None:
            raise no_submission(submission_id)
        record, version = found
        first_run = first_run or record.run
        if await was_written(record, event_id, first_run):
            return record
        change = await decide(record)
        if change is None:
            return None
        stored, operations = stored_form(change, version, event_id)
        await commit_change(operations, record, change.record, stored)
        return stored

    return await persist(write)


async def commit_change(operations: Sequence[Operation], before: Submission, *after: Submission) -> int:
    """Commit, and count the steps in the metrics."""
    version = await require_env("kv").kv.commit(operations)
    count_steps(before, *after)
    return version


def count_steps(before: Submission, *after: Submission) -> None:
    """Count every step that a commit added, and how long the state before it lasted. `after` is the new record, or both
    records if a run ended and the next one began."""
    metrics = require_env("metrics").metrics
    last = before.history[-1]
    for event in chain.from_iterable(record.history for record in after):
        if event.seq > last.seq:
            metrics.transitions.labels(event.to).inc()
            metrics.stage_duration.labels(last.to).observe((event.at - last.at) / 1000)
            last = event


async def was_written(record: Submission, event_id: str, since_run: int) -> bool:
    """Whether the record, or a run that ended since, has this event: then it was written, whatever the outcome looked
    like."""
    if record.wrote(event_id):
        return True
    for run in range(since_run, record.run):
        entry = await require_env("kv").kv.get(keys.subrun(record.id, str(run)))
        if entry is not None and decode(entry, Submission).wrote(event_id):
            return True
    return False


def stored_form(
    change: RecordChange, version: int, event_id: str
) -> tuple[Submission, tuple[Operation, ...]]:
    """What is written: the record, or the next run's record if this run ends with a rerun request."""
    record = change.record
    if record.rerun_requested is not None and record.state.ends_run:
        rerun = record.rerun_requested
        now = require_env("kv").kv.now()
        reason = rerun.reason or "submitted again during the last run"
        step = Step(f"{event_id}-rerun", now, rerun.actor or "system", reason)
        following = next_run(
            record, step, submitter=rerun.submitter, upload=rerun.upload, publisher=rerun.publisher
        )
        change = RecordChange(following.record, (*following.operations, *change.operations))
    put = Put(change.record.key, msgspec.json.encode(change.record), version)
    return change.record, (put, *change.operations)


def next_run(
    ended: Submission,
    step: Step,
    *,
    submitter: str | None,
    upload: str | None,
    publisher: Publisher | None = None,
) -> RecordChange:
    """The next run, with the operations that move the ended one to `subrun:` and send the message."""
    record = submission.start_run(ended, step, submitter=submitter, upload=upload, publisher=publisher)
    kept = msgspec.structs.replace(ended, rerun_requested=None)
    operations = (
        Put(keys.subrun(ended.id, str(ended.run)), msgspec.json.encode(kept)),
        record.message,
    )
    return RecordChange(record, operations)


def require_reason(reason: str) -> str:
    """Every decision that a person makes carries a reason."""
    if not reason.strip():
        raise InvalidInput("A reason is needed.", field="reason", fix="say in a few words why")
    return reason

"""Reports: what users say is wrong with a published skill, at `report:{id}`, and what a reviewer decided about it.

A reporter has at most one open report about a skill: `open_report:{skill}:{reporter}` is written and removed in the
same commits, and is also how open reports are found and counted. A reader of the skill may hear of a report about
it; only reviewers list them, and they read everything.
"""

import enum
from collections.abc import Sequence

import msgspec

from vskill_core.errors import Conflict, InvalidInput, NotFound, TransitionError
from vskill_core.findings import Severity
from vskill_core.identity import has_control_characters
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget
from vskill_platform.domain.people.namespace import PUBLIC, Audiences
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Step, Submission
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import (
    Skips,
    decode,
    decode_readable,
    entries_of,
    persist,
    read_entries,
    read_record,
)
from vskill_platform.store.by_time import newest_keys
from vskill_platform.store.people.audit import AuditNote, commit_audited, record_audit
from vskill_platform.store.recall.blocklist import audience_of_block, block_writes
from vskill_platform.store.skills.skills import find_by_name, get_version
from vskill_platform.submission_store import (
    RecordChange,
    count_steps,
    read_submission,
    require_reason,
    stored_form,
)
from vskill_platform.worker_context import require_env

MOST_REASON = 2_000
MOST_REPORTER = 120


class ReportCategory(enum.StrEnum):
    """What kind of trouble it is."""

    MALWARE = "malware"
    VULNERABILITY = "vulnerability"
    IMPERSONATION = "impersonation"
    SPAM = "spam"
    LICENCE = "licence"
    OTHER = "other"


class ReportStatus(enum.StrEnum):
    """Where a report stands."""

    OPEN = "open"
    UPHELD = "upheld"
    DISMISSED = "dismissed"


class ReportDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a reviewer made of it."""

    #: That of its audit entry.
    id: str
    by: str
    at: int
    #: Never empty.
    reason: str
    #: What was blocked with it, as people write it.
    blocked: str = ""


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `report:{id}`."""

    id: str
    #: The skill's canonical name.
    skill: str
    reason: str
    category: ReportCategory
    #: The actor: `user:<name>` or `admin:<name>`
    reporter: str
    at: int
    #: None: the skill as such.
    version: str | None = None
    status: ReportStatus = ReportStatus.OPEN
    decision: ReportDecision | None = None


class Filed(msgspec.Struct, frozen=True):
    """The report; `new` is false where the reporter had an open one already, which stays as it is."""

    report: Report
    new: bool


class ReportPage(msgspec.Struct, frozen=True):
    """A page of reports; `cursor` asks for the next one. `skipped` ones are in the log by key."""

    items: tuple[Report, ...]
    cursor: str | None = None
    skipped: int = 0


class _Open(msgspec.Struct, frozen=True):
    """The record at `open_report:{skill}:{reporter}`."""

    report: str


async def file_report(
    name: str,
    *,
    reporter: str,
    reason: str,
    category: ReportCategory = ReportCategory.OTHER,
    version: str | None = None,
    audiences: Audiences,
    by: str = "",
) -> Filed:
    """Report a published skill that a reader of these audiences may read, by canonical or flat name, or one version of
    it. In the same commit, an update of it that waits by a rule of the policy goes to a reviewer. `by` is what the
    audit names if the reporter is an address."""
    published = await find_by_name(name, audiences=audiences)
    if version is not None:
        await get_version(published.canonical, version)
    report = _report(published, reporter, reason, category, version)
    slot, env = keys.open_report(report.skill, report.reporter), require_env("kv")
    entry_id = env.clock.new_id()
    filed: list[Operation] = [
        Put(keys.report(report.id), msgspec.json.encode(report), ABSENT),
        Put(slot, msgspec.json.encode(_Open(report.id)), ABSENT),
        *_audit_report(report, by or reporter, entry_id),
    ]

    async def write() -> Filed:
        update = await _stop_update(published, report, entry_id)
        try:
            await env.kv.commit([*filed, *update.operations])
        except Conflict:
            entry = await env.kv.get(slot)
            if entry is None:
                raise
            known = await get_report(decode(entry, _Open).report)
            return Filed(known, known.id == report.id)
        if update.steps:
            count_steps(*update.steps)
        return Filed(report, new=True)

    return await persist(write)


def _audit_report(report: Report, by: str, entry_id: str) -> tuple[Put, ...]:
    details = {"skill": report.skill, "category": report.category.value}
    return record_audit(
        "report filed", report.id, by=by, reason=report.reason, details=details, entry_id=entry_id
    )


class _StoppedUpdate(msgspec.Struct, frozen=True):
    """An update that a report sends to a reviewer: its record before and after; empty where none waits."""

    operations: tuple[Operation, ...] = ()
    steps: tuple[Submission, ...] = ()


async def _stop_update(published: PublishedSkill, report: Report, entry_id: str) -> _StoppedUpdate:
    found = None if published.submission is None else await read_submission(published.submission)
    # The history is public: it does not say who reports.
    step = Step(entry_id, report.at, "system", "")
    change = None if found is None else stop_wait(found[0], step, report.category)
    if found is None or change is None:
        return _StoppedUpdate()
    stored, operations = stored_form(change, found[1], entry_id)
    return _StoppedUpdate(operations, (found[0], stored))


def stop_wait(record: Submission, step: Step, category: ReportCategory) -> RecordChange | None:
    """A report sends what waits by a rule of the policy to a reviewer; None for everything else. The reporter's words
    are in the audit entry of the step, and not in its public history."""
    if record.state is not State.COOLDOWN:
        return None
    told = f"somebody reported it ({category.value}); a reviewer decides"
    decision = msgspec.structs.replace(record.decision or RecordedDecision(told), reason=told)
    public = msgspec.structs.replace(step, reason=told)
    return RecordChange(submission.move(record, State.NEEDS_REVIEW, public, decision=decision))


async def get_report(report_id: str) -> Report:
    return (await _read(report_id))[0]


async def list_reports(
    status: ReportStatus | None = ReportStatus.OPEN,
    *,
    skill: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> ReportPage:
    """Open ones skill by skill; with another status, or None for all, the latest first (a page may hold fewer)."""
    if status is ReportStatus.OPEN:
        return await _open_reports(skill, cursor, limit)
    page = await newest_keys(keys.report.prefix, before=cursor, limit=limit)
    reports, skipped = await _load(page.keys)
    chosen = tuple(one for one in reports if status in (None, one.status) and skill in (None, one.skill))
    return ReportPage(chosen, page.before, skipped)


async def decide_report(
    report_id: str,
    status: ReportStatus,
    *,
    by: str,
    reason: str,
    block: BlockTarget | None = None,
    severity: Severity = Severity.HIGH,
    audience: str = PUBLIC,
) -> Report:
    """Uphold or dismiss an open report, in one commit with the block that upholding may add. The block is effective
    at once; `reapply_blocklist` takes down what is live. `audience` is that of the skill."""
    env = require_env("kv")
    _check_decision(status, block)
    decision = ReportDecision(env.clock.new_id(), by, env.kv.now(), reason, str(block) if block else "")
    details: dict[str, str] = {}

    async def write() -> tuple[Report, list[Operation]]:
        report, version = await _read(report_id)
        if report.status is not ReportStatus.OPEN:
            raise TransitionError(f"The report is already {report.status.value}.", report=report_id)
        details.update(skill=report.skill, **({"blocked": decision.blocked} if block else {}))
        decided = msgspec.structs.replace(report, status=status, decision=decision)
        operations: list[Operation] = [
            Put(keys.report(report_id), msgspec.json.encode(decided), version),
            Delete(keys.open_report(report.skill, report.reporter)),
        ]
        if block is not None:
            operations += await block_writes(await _entry(report, block, severity, decision, audience))
        return decided, operations

    note = AuditNote(f"report {status.value}", report_id, by, reason, details)
    return await commit_audited(note, write, entry_id=decision.id)


def _report(
    published: PublishedSkill, reporter: str, reason: str, category: ReportCategory, version: str | None
) -> Report:
    env = require_env("kv")
    reason = require_reason(reason).strip()
    if len(reason) > MOST_REASON:
        raise InvalidInput(
            f"The reason has {len(reason)} characters.", field="reason", fix=f"use at most {MOST_REASON}"
        )
    if has_control_characters(reason.replace("\n", " ").replace("\t", " ")):
        raise InvalidInput("The reason has control characters.", field="reason", fix="remove them")
    if not reporter.strip() or len(reporter) > MOST_REPORTER or has_control_characters(reporter):
        raise InvalidInput("The reporter is not valid.", field="reporter", fix="sign in, or give a name")
    return Report(env.clock.new_id(), published.canonical, reason, category, reporter, env.kv.now(), version)


def _check_decision(status: ReportStatus, block: BlockTarget | None) -> None:
    if status is ReportStatus.OPEN:
        raise InvalidInput(
            "A decision must uphold or dismiss the report.", field="status", fix="uphold or dismiss it"
        )
    if block is not None and status is not ReportStatus.UPHELD:
        raise InvalidInput(
            "A dismissed report cannot block anything.", field="block", fix="uphold it, or block nothing"
        )


async def _entry(
    report: Report, target: BlockTarget, severity: Severity, decision: ReportDecision, audience: str
) -> BlockEntry:
    return BlockEntry(
        target=target,
        severity=severity,
        reason=decision.reason,
        discovered_by=decision.by,
        discovered_at=decision.at,
        updated_at=decision.at,
        threat_type=report.category.value,
        evidence=(keys.report(report.id),),
        skill_name=report.skill,
        audience=await audience_of_block(target, audience),
        origin=audience,
    )


async def _read(report_id: str) -> tuple[Report, int]:
    report, version = await read_record(keys.report(report_id), Report)
    if report is None:
        raise NotFound(f"There is no report {report_id}.", report=report_id)
    return report, version


async def _open_reports(skill: str | None, cursor: str | None, limit: int) -> ReportPage:
    prefix = keys.open_report.prefix if skill is None else keys.open_report.under(skill)
    page = await require_env("kv").kv.scan(prefix, after=cursor, limit=limit)
    slots = decode_readable(entries_of(page), _Open, "list_reports")
    reports, skipped = await _load([keys.report(slot.report) for slot in slots])
    still_open = tuple(report for report in reports if report.status is ReportStatus.OPEN)
    return ReportPage(still_open, page.after, skipped + len(page.items) - len(slots))


async def _load(wanted: Sequence[str]) -> tuple[list[Report], int]:
    """The reports in this order, and how many of them are missing or malformed."""
    stored = await read_entries(wanted)
    skips = Skips("list_reports")
    skips.missing(tuple(key for key in wanted if key not in stored))
    reports = skips.decode_all((stored[key] for key in wanted if key in stored), Report)
    skips.report(require_env("log"))
    return reports, skips.count

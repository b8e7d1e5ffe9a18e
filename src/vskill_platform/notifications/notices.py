"""Notices: what others are told. A notice's id comes from its source (a history event, a revocation's serial, a report
or an alert), so the same decision is the same notice, however often it is found."""

import enum
import hashlib
from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

import msgspec

from vskill_core.findings import Severity
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.skills.skill import PublishedSkill, Revocation, RevocationKind, steps_by_kind
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import ASKED, Event, Submission
from vskill_platform.store.review.reports import Report

Data = TypeVar("Data", bound=msgspec.Struct)

#: How the ids of notices about alerts begin.
_ALERT = "alert-"


class NoticeType(enum.StrEnum):
    """What can be subscribed to."""

    SUBMISSION_DECIDED = "submission.decided"
    SKILL_PUBLISHED = "skill.published"
    SKILL_BLOCKED = "skill.blocked"
    #: A published version was blocked, taken down or deleted.
    SKILL_WITHDRAWN = RevocationKind.WITHDRAWN.value
    SKILL_RESTORED = RevocationKind.RESTORED.value
    SKILL_YANKED = RevocationKind.YANKED.value
    #: A submission waits for a reviewer.
    REVIEW_WAITING = "review.waiting"
    #: Somebody reported a published skill.
    REPORT_FILED = "report.filed"
    #: A reviewer upheld or dismissed a report.
    REPORT_DECIDED = "report.decided"
    #: Something is wrong that an operator must look at.
    ALERT_FIRED = "alert.fired"
    ALERT_ENDED = "alert.ended"


class NoticeOf(msgspec.Struct, Generic[Data], frozen=True):
    """The body of a delivery."""

    #: Made of the event, revocation, report or alert, with the type behind it: receivers drop doubles by it.
    id: str
    type: NoticeType
    at: int
    data: Data


class NoticeData(msgspec.Struct, frozen=True, rename="camel"):
    """A decision, for webhooks and mail."""

    submission_id: str
    run: int
    state: State
    reason: str
    repo_url: str
    skill_name: str
    skill_path: str
    digest: str | None
    rule_ids: tuple[str, ...]
    #: The published skill's name and version, where there is one.
    skill: str | None
    version: str | None


class RecalledVersion(msgspec.Struct, frozen=True, rename="camel"):
    """One version that was withdrawn or restored."""

    version: str
    digest: str
    content_hash: str
    #: blocked, taken-down, yanked or deleted; None: it is live again
    status: RevokedStatus | None
    reason: str
    threat_type: str
    severity: Severity | None


class RecallData(msgspec.Struct, frozen=True):
    """Versions of a skill that were withdrawn or restored together, for webhooks."""

    skill: str
    serial: int
    versions: tuple[RecalledVersion, ...]
    #: What to install now; None where no version is live.
    replacement: str | None


class ReportData(msgspec.Struct, frozen=True, rename="camel"):
    """A report, for webhooks; who filed it is for reviewers to see."""

    report_id: str
    skill: str
    version: str | None
    category: str
    reason: str
    #: open, upheld or dismissed, as it is when this is sent
    status: str


class AlertData(msgspec.Struct, frozen=True):
    """An alert, for webhooks."""

    code: str
    #: what it is about, where there can be several: the job's name
    subject: str
    text: str
    since: int
    #: the section of the registry's documents that says what to do, as a path
    remedy: str = ""


Notice: TypeAlias = NoticeOf[NoticeData]
RecallNotice: TypeAlias = NoticeOf[RecallData]
ReportNotice: TypeAlias = NoticeOf[ReportData]
#: One firing is told once, and so is its end: the id includes when the alert began.
AlertNotice: TypeAlias = NoticeOf[AlertData]


def report_notices(report: Report) -> Iterator[ReportNotice]:
    category, status = report.category.value, report.status.value
    data = ReportData(report.id, report.skill, report.version, category, report.reason, status)
    filed, decided = NoticeType.REPORT_FILED, NoticeType.REPORT_DECIDED
    yield ReportNotice(f"{report.id}.{filed.value}", filed, report.at, data)
    if report.decision is not None:
        yield ReportNotice(f"{report.id}.{decided.value}", decided, report.decision.at, data)


def alert_notice(kind: NoticeType, at: int, data: AlertData) -> AlertNotice:
    about = hashlib.sha256(data.subject.encode()).hexdigest()[:12]
    return AlertNotice(f"{_ALERT}{data.code}-{about}-{data.since}.{kind.value}", kind, at, data)


def is_alert_id(notice_id: str) -> bool:
    return notice_id.startswith(_ALERT)


def recall_id(event: Revocation, kind: RevocationKind) -> str:
    return f"revocation-{event.serial}.{kind.value}"


def recall_notices(event: Revocation, skill: PublishedSkill) -> Iterator[RecallNotice]:
    for kind, steps in steps_by_kind(event).items():
        versions = tuple(msgspec.convert(step, RecalledVersion, from_attributes=True) for step in steps)
        data = RecallData(event.skill, event.serial, versions, skill.current_version)
        yield RecallNotice(recall_id(event, kind), NoticeType(kind.value), event.at, data)


def notices_of(record: Submission) -> Iterator[Notice]:
    for event in record.history:
        for kind in _types(event):
            yield Notice(f"{event.id}.{kind.value}", kind, event.at, _data(record, event))


def _types(event: Event) -> tuple[NoticeType, ...]:
    state = event.to
    if state is State.COOLDOWN and event.source is not state:
        return (NoticeType.SUBMISSION_DECIDED,)
    if not state.ends_run:
        return ()
    if event.source is state and event.actor.startswith("user:"):
        # The author answered a reviewer.
        return (NoticeType.REVIEW_WAITING,)
    if event.reason.startswith(ASKED):
        return (NoticeType.SUBMISSION_DECIDED,)
    more = {
        State.PUBLISHED: NoticeType.SKILL_PUBLISHED,
        State.BLOCKED: NoticeType.SKILL_BLOCKED,
        State.NEEDS_REVIEW: NoticeType.REVIEW_WAITING,
    }
    return (NoticeType.SUBMISSION_DECIDED, *((more[state],) if state in more else ()))


def _data(record: Submission, event: Event) -> NoticeData:
    return NoticeData(
        submission_id=record.id,
        run=record.run,
        state=event.to,
        reason=event.reason,
        repo_url=record.repo_url,
        skill_name=record.skill_name,
        skill_path=record.skill_path,
        digest=record.digest,
        rule_ids=record.decision.rule_ids if record.decision else (),
        skill=record.published.removeprefix("skill:") if record.published else None,
        version=record.published_version,
    )

"""Reports: anybody says what is wrong with a published skill; reviewers list reports, uphold one, with a block where it
is needed, or dismiss it. What waits by a rule of the policy, an update of the skill too, goes to a reviewer by one."""

import enum
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, SkillName, Wire
from vskill_client.wire.submissions import SUBMISSIONS, SubmissionRequest, SubmissionView
from vskill_core.errors import NotFound, TransitionError
from vskill_core.findings import Severity
from vskill_platform.actions.action import Allowance, Cursor, PageSize, Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.recall.blocklist import DEFAULT_SEVERITY, BlockReach, reached_target
from vskill_platform.actions.submissions.submissions import object_of, show_changed
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.people.refusal import ANONYMOUS
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.review.reports import (
    ReportCategory,
    ReportStatus,
    decide_report,
    file_report,
    get_report,
    list_reports,
    stop_wait,
)
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.submission_store import RecordChange

REPORTS = "/api/v1/reports"

ReportId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
#: What a report may be about, as forms offer it.
REPORT_KINDS = tuple(kind.value for kind in ReportCategory)


class WhichReports(enum.StrEnum):
    """Which reports are listed."""

    OPEN = "open"
    UPHELD = "upheld"
    DISMISSED = "dismissed"
    ALL = "all"


class FileReport(ActionRequest, frozen=True, kw_only=True):
    """What is wrong with a skill."""

    skill: SkillName
    #: what is wrong
    reason: Reason
    #: the kind of problem
    category: ReportCategory = ReportCategory.OTHER
    #: one version; the skill as such where it is left out
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=80)] | None = None


class ReportSubmission(SubmissionRequest, frozen=True, kw_only=True):
    """What is wrong with a skill that is not published yet."""

    #: what is wrong; only reviewers read it
    reason: Reason
    #: the kind of problem
    category: ReportCategory = ReportCategory.OTHER


class FiledReport(Wire, frozen=True):
    """The report, as it is kept."""

    id: str
    skill: str
    category: str
    status: str
    version: str | None
    at: str
    #: false: there is an open one of yours already, which stays as it is
    new: bool


class ListReports(ActionRequest, frozen=True, kw_only=True):
    """Which reports, and which page of them."""

    #: only reports with this status
    status: WhichReports = WhichReports.OPEN
    #: only about this skill, by its full name
    skill: SkillName | None = None
    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 50


class UpholdReport(ActionRequest, frozen=True, kw_only=True):
    """The reporter is right."""

    report_id: ReportId
    #: why; kept with the report and in the audit
    reason: Reason
    #: what is blocked with it, in the same commit
    block: BlockReach = BlockReach.NOTHING
    #: of the block
    severity: Severity = DEFAULT_SEVERITY


class DismissReport(ActionRequest, frozen=True, kw_only=True):
    """Nothing is wrong with the skill."""

    report_id: ReportId
    #: why; kept with the report and in the audit
    reason: Reason


class ReportDecisionView(Wire, frozen=True):
    """What a reviewer made of a report."""

    by: str
    at: str
    reason: str
    #: what was blocked with it; empty where nothing was
    blocked: str


class ReportView(Wire, frozen=True):
    """A report, as reviewers see it."""

    id: str
    skill: str
    #: null where it is about the skill as such
    version: str | None
    category: str
    status: str
    reporter: str
    reason: str
    at: str
    #: null while it is open
    decision: ReportDecisionView | None


class ReportList(Wire, frozen=True):
    """A page of reports."""

    reports: tuple[ReportView, ...]
    #: asks for the next page; null on the last
    after: str | None
    #: records that could not be read; the log names them
    skipped: int


async def file(actor: Principal, request: FileReport) -> FiledReport:
    """The audit entry is in the commit that keeps the report. Whoever is not signed in is told from others by the
    address that they come from."""
    is_nobody = actor.account is None and not actor.operator
    filed = await file_report(
        request.skill,
        reporter=f"user:{actor.address or 'anonymous'}" if is_nobody else actor.actor,
        reason=request.reason,
        category=request.category,
        version=request.version,
        audiences=audiences_of(actor),
        by=ANONYMOUS if is_nobody else "",
    )
    return FiledReport.of(filed.report, new=filed.new)


async def report_submission(
    services: Services, actor: Principal, request: ReportSubmission
) -> SubmissionView:
    async def decide(record: Submission, step: Step) -> RecordChange:
        change = stop_wait(record, step, request.category)
        if change is None:
            message = (
                "Only what waits by a rule can be reported here. Report a published skill on its own page."
            )
            raise TransitionError(message, submission=record.id)
        return change

    return await show_changed(services, actor, request.submission_id, "report", request.reason, decide)


def _status_of(filed: FiledReport) -> int:
    return 201 if filed.new else 200


async def show_reports(request: ListReports) -> ReportList:
    status = None if request.status is WhichReports.ALL else ReportStatus(request.status.value)
    page = await list_reports(status, skill=request.skill, cursor=request.after, limit=request.limit)
    return ReportList(tuple(ReportView.of(report) for report in page.items), page.cursor, page.skipped)


async def uphold(actor: Principal, request: UpholdReport) -> ReportView:
    report = await get_report(request.report_id)
    target, audience = None, PUBLIC
    if request.block is not BlockReach.NOTHING:
        published = await get_skill(report.skill)
        target, audience = await reached_target(request.block, published, report.version), published.audience
    decided = await decide_report(
        report.id,
        ReportStatus.UPHELD,
        by=actor.actor,
        reason=request.reason,
        block=target,
        severity=request.severity,
        audience=audience,
    )
    if target is not None:
        await reapply_blocklist(judge_again=request_rescan)
    return ReportView.of(decided)


async def dismiss(actor: Principal, request: DismissReport) -> ReportView:
    decided = await decide_report(
        request.report_id, ReportStatus.DISMISSED, by=actor.actor, reason=request.reason
    )
    return ReportView.of(decided)


FILE = action(
    file,
    "report.file",
    "/api/v1/skills/{skill}/reports",
    right=Right.ANYONE,
    errors=(NotFound,),
    allowance=Allowance.REPORTS,
    status=201,
    status_of=_status_of,
    others={200: FiledReport},
    summary="Report a skill",
    about="An update of it that waits by a rule of the policy goes to a reviewer. If you already have an open report "
    "about the skill, it is kept unchanged.",
)
REPORT_SUBMISSION = action(
    report_submission,
    "submission.report",
    f"{SUBMISSIONS}/{{submission_id}}/report",
    right=Right.READER,
    acts_on=object_of,
    scope=TokenScope.SUBMIT,
    errors=(NotFound, TransitionError),
    allowance=Allowance.REPORTS,
    summary="Report a submission that waits by a rule of the policy",
    about="It goes to a reviewer, who reads your reason. A published skill is reported with `report file`.",
)
UPHOLD = action(
    uphold,
    "report.uphold",
    f"{REPORTS}/{{report_id}}/uphold",
    right=Right.REVIEWER,
    errors=(NotFound, TransitionError),
    summary="Uphold a report",
    about="With `block`, the target is blocked in the same commit, and live versions are taken down.",
)
DISMISS = action(
    dismiss,
    "report.dismiss",
    f"{REPORTS}/{{report_id}}/dismiss",
    right=Right.REVIEWER,
    errors=(NotFound, TransitionError),
    summary="Dismiss a report",
)
FILED = action(
    show_reports,
    "report.list",
    REPORTS,
    right=Right.REVIEWER,
    summary="List reports: open ones by skill, others the latest first",
)

"""What reviewers make of reports: list them, uphold one, with a block where it is needed, or dismiss it."""

import enum
from typing import Annotated

import msgspec

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.blocklist import DEFAULT_SEVERITY, BlockReach, reached_target
from vskill_platform.actions.checks import ActionRequest, Cursor, PageSize, Reason, SkillName
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.wire import Wire, iso_time
from vskill_platform.domain.errors import NotFound, TransitionError
from vskill_platform.domain.scan import Severity
from vskill_platform.domain.token import TokenScope
from vskill_platform.rescan import request_rescan
from vskill_platform.store.blocklist import reapply_blocklist
from vskill_platform.store.reports import Report, ReportStatus, decide_report, get_report, list_reports
from vskill_platform.store.skills import get_skill

REPORTS = "/api/v1/reports"

ReportId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class WhichReports(enum.StrEnum):
    """Which reports are listed."""

    OPEN = "open"
    UPHELD = "upheld"
    DISMISSED = "dismissed"
    ALL = "all"


class ListReports(ActionRequest, frozen=True, kw_only=True):
    """Which reports, and which page of them."""

    status: WhichReports = WhichReports.OPEN
    #: only about this skill, by its full name
    skill: SkillName | None = None
    #: the `after` of the page before
    after: Cursor | None = None
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


async def show_reports(_services: Services, _actor: Principal, request: ListReports) -> ReportList:
    status = None if request.status is WhichReports.ALL else ReportStatus(request.status.value)
    page = await list_reports(status, skill=request.skill, cursor=request.after, limit=request.limit)
    return ReportList(tuple(map(report_view, page.items)), page.cursor, page.skipped)


async def uphold(_services: Services, actor: Principal, request: UpholdReport) -> ReportView:
    report = await get_report(request.report_id)
    target = None
    if request.block is not BlockReach.NOTHING:
        target = await reached_target(request.block, await get_skill(report.skill), report.version)
    decided = await decide_report(
        report.id,
        ReportStatus.UPHELD,
        by=actor.actor,
        reason=request.reason,
        block=target,
        severity=request.severity,
    )
    if target is not None:
        await reapply_blocklist(judge_again=request_rescan)
    return report_view(decided)


async def dismiss(_services: Services, actor: Principal, request: DismissReport) -> ReportView:
    decided = await decide_report(
        request.report_id, ReportStatus.DISMISSED, by=actor.actor, reason=request.reason
    )
    return report_view(decided)


def report_view(report: Report) -> ReportView:
    made = report.decision
    decision = None
    if made is not None:
        decision = ReportDecisionView(made.by, iso_time(made.at), made.reason, made.blocked)
    return ReportView(
        id=report.id,
        skill=report.skill,
        version=report.version,
        category=report.category.value,
        status=report.status.value,
        reporter=report.reporter,
        reason=report.reason,
        at=iso_time(report.at),
        decision=decision,
    )


_NO_TOOL = Missing("people decide about reports")

UPHOLD = Action(
    name="report.uphold",
    run=uphold,
    request=UpholdReport,
    answer=ReportView,
    path=f"{REPORTS}/{{report_id}}/uphold",
    right=Right.REVIEWER,
    scope=TokenScope.REVIEW,
    errors=(NotFound, TransitionError),
    summary="Uphold a report",
    about="With `block`, what it names is blocked in the same commit, and live versions are taken down.",
    tag="reports",
    page="/admin/reports/{report_id}/uphold",
    command="report uphold",
    mcp=_NO_TOOL,
)
DISMISS = Action(
    name="report.dismiss",
    run=dismiss,
    request=DismissReport,
    answer=ReportView,
    path=f"{REPORTS}/{{report_id}}/dismiss",
    right=Right.REVIEWER,
    scope=TokenScope.REVIEW,
    errors=(NotFound, TransitionError),
    summary="Dismiss a report",
    tag="reports",
    page="/admin/reports/{report_id}/dismiss",
    command="report dismiss",
    mcp=_NO_TOOL,
)
FILED = Action(
    name="report.list",
    run=show_reports,
    request=ListReports,
    answer=ReportList,
    method="GET",
    path=REPORTS,
    right=Right.REVIEWER,
    scope=TokenScope.REVIEW,
    summary="List reports: open ones by skill, others the latest first",
    tag="reports",
    page="/admin/reports",
    command="report list",
    mcp=_NO_TOOL,
)

ACTIONS = (UPHOLD, DISMISS, FILED)

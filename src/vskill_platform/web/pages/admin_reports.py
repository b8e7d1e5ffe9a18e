"""What users say is wrong with published skills, and what a reviewer makes of it."""

import enum

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Asked
from vskill_platform.domain.blocklist import BlockTarget, digest_target, name_target, place_target
from vskill_platform.domain.errors import InvalidInput
from vskill_platform.domain.scan import Severity
from vskill_platform.store.blocklist import reapply_blocklist
from vskill_platform.store.reports import Report, ReportStatus, decide_report, get_report, list_reports
from vskill_platform.store.skills import get_skill, get_version
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import acting, admin_page, choice_of, reason_of, require_confirmed
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/reports"
PAGE = 50
BLOCKS = ("nothing", "place", "version", "name")


class Which(enum.StrEnum):
    """Which reports are listed."""

    OPEN = "open"
    UPHELD = "upheld"
    DISMISSED = "dismissed"
    ALL = "all"


class ReportsQuery(Asked, frozen=True):
    """Which reports, and which page of them."""

    status: Which = Which.OPEN
    after: str | None = None


async def reports(request: Request) -> Response:
    asked = query_of(request, ReportsQuery)
    status = None if asked.status is Which.ALL else ReportStatus(asked.status.value)
    found = await list_reports(status, cursor=asked.after, limit=PAGE)
    return admin_page(
        request,
        "reports.html",
        found=found,
        which=asked.status.value,
        choices=tuple(one.value for one in Which),
        blocks=BLOCKS,
        is_first=asked.after is None,
    )


@acting(LIST)
async def uphold(request: Request) -> Response:
    """The reporter is right; what is blocked with it is blocked in the same commit."""
    report = await get_report(request.path_params["report_id"])
    wanted = await choice_of(request, "block", BLOCKS)
    target = await _target(report, wanted)
    if target is not None:
        await require_confirmed(request)
    decided = await decide_report(
        report.id,
        ReportStatus.UPHELD,
        by=principal_of(request).actor,
        reason=await reason_of(request),
        block=target,
        severity=Severity.HIGH,
    )
    if target is None:
        return see_other(request, LIST, f"The report about {decided.skill} is upheld.")
    await reapply_blocklist()
    return see_other(request, LIST, f"The report about {decided.skill} is upheld, and {target} is blocked.")


@acting(LIST)
async def dismiss(request: Request) -> Response:
    decided = await decide_report(
        request.path_params["report_id"],
        ReportStatus.DISMISSED,
        by=principal_of(request).actor,
        reason=await reason_of(request),
    )
    return see_other(request, LIST, f"The report about {decided.skill} is dismissed.")


async def _target(report: Report, wanted: str) -> BlockTarget | None:
    if wanted == "nothing":
        return None
    skill = await get_skill(report.skill)
    if wanted == "place":
        return place_target(skill.identity)
    if wanted == "name":
        return name_target(skill.name)
    number = report.version or skill.current_version
    if number is None:
        raise InvalidInput("No version is live", field="block", fix="block the place instead")
    return digest_target((await get_version(report.skill, number)).digest)


ENDPOINTS = (
    page(LIST, reports, guard=Guard.REVIEWER, query=ReportsQuery),
    form(f"{LIST}/{{report_id}}/uphold", uphold, guard=Guard.REVIEWER, scope="review"),
    form(f"{LIST}/{{report_id}}/dismiss", dismiss, guard=Guard.REVIEWER, scope="review"),
)

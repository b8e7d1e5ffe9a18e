"""What users say is wrong with published skills, and what a reviewer makes of it."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.recall.blocklist import BlockReach
from vskill_platform.actions.review.reports import DISMISS, FILED, UPHOLD, ListReports, WhichReports
from vskill_platform.actions.wire import Asked
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, admin_page, form, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page, query_of

LIST = "/admin/reports"


class ReportsQuery(Asked, frozen=True):
    """Which reports, and which page of them."""

    status: WhichReports = WhichReports.OPEN
    skill: str | None = None
    after: str | None = None


async def reports(request: Request) -> Response:
    asked = query_of(request, ReportsQuery)
    wanted = ListReports(status=asked.status, skill=asked.skill, after=asked.after)
    return admin_page(
        request,
        "reports.html",
        found=await FILED(services_of(request), principal_of(request), wanted),
        which=asked.status.value,
        skill=asked.skill,
        choices=tuple(one.value for one in WhichReports),
        is_first=asked.after is None,
    )


async def uphold(request: Request) -> Response:
    if await text_of(request, "block") not in ("", BlockReach.NOTHING.value):
        await require_confirmed(request)
    decided = await act_by_form(request, UPHOLD)
    blocked = decided.decision.blocked if decided.decision else ""
    told = f"The report about {decided.skill} is upheld{f', and {blocked} is blocked' if blocked else ''}."
    return see_other(request, LIST, told)


ENDPOINTS = (
    page(LIST, reports, action=FILED, query=ReportsQuery),
    form(f"{LIST}/{{report_id}}/uphold", UPHOLD, at=LIST, view=uphold),
    form(
        f"{LIST}/{{report_id}}/dismiss",
        DISMISS,
        lambda decided, _: f"The report about {decided.skill} is dismissed.",
        at=LIST,
    ),
)

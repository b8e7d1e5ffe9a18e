"""What users say is wrong with published skills, and what a reviewer makes of it."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.recall.blocklist import BlockReach
from vskill_platform.actions.review.reports import DISMISS, FILED, UPHOLD, WhichReports
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, answer_page, form, require_confirmed

LIST = "/admin/reports"


async def uphold(request: Request) -> Response:
    if await text_of(request, "block") not in ("", BlockReach.NOTHING.value):
        await require_confirmed(request)
    decided = await act_by_form(request, UPHOLD)
    blocked = decided.decision.blocked if decided.decision else ""
    told = f"The report about {decided.skill} is upheld{f', and {blocked} is blocked' if blocked else ''}."
    return see_other(request, LIST, told)


ENDPOINTS = (
    answer_page(LIST, "reports.html", ("status", "skill", "after"), found=FILED, choices=list(WhichReports)),
    form(f"{LIST}/{{report_id}}/uphold", UPHOLD, at=LIST, view=uphold),
    form(
        f"{LIST}/{{report_id}}/dismiss",
        DISMISS,
        lambda decided, _: f"The report about {decided.skill} is dismissed.",
        at=LIST,
    ),
)

"""The admin area's front page: is everything well, what waits for a person, what do the jobs do; and the list of all
areas."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.operation.queue import STATUS
from vskill_platform.actions.operation.system import SHOW_OVERVIEW, read_overview
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import admin_page
from vskill_platform.web.pages.operation import admin_queue, admin_system
from vskill_platform.web.pages.people import admin_access, admin_accounts
from vskill_platform.web.pages.recall import admin_blocklist
from vskill_platform.web.pages.review import admin_reports, admin_review, admin_rules, policy
from vskill_platform.web.pages.skills import admin_collections, admin_skills
from vskill_platform.web.routing import page


async def dashboard(request: Request) -> Response:
    reader = principal_of(request)
    found = await read_overview(services_of(request))
    return admin_page(
        request,
        "dashboard.html",
        health=found.health,
        overview=found.answer,
        shows_queue=STATUS.allows(reader),
    )


ENDPOINTS = (
    page("/admin", dashboard, action=SHOW_OVERVIEW),
    *admin_review.ENDPOINTS,
    *admin_rules.ENDPOINTS,
    *policy.ENDPOINTS,
    *admin_reports.ENDPOINTS,
    *admin_blocklist.ENDPOINTS,
    *admin_skills.ENDPOINTS,
    *admin_collections.ENDPOINTS,
    *admin_queue.ENDPOINTS,
    *admin_accounts.ENDPOINTS,
    *admin_access.ENDPOINTS,
    *admin_system.ENDPOINTS,
)

"""The admin area's front page: is everything well, what waits for a person, what do the jobs do; and the list of all
areas."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.domain.states import State
from vskill_platform.queue.health import queue_health
from vskill_platform.store.reports import list_reports
from vskill_platform.web.pages import (
    admin_accounts,
    admin_blocklist,
    admin_bulk,
    admin_collections,
    admin_queue,
    admin_reports,
    admin_review,
    admin_skills,
    admin_suppressions,
    admin_system,
)
from vskill_platform.web.pages.acting import admin_page
from vskill_platform.web.principal import Guard
from vskill_platform.web.routing import page
from vskill_platform.worker_context import require_env

#: Of the open reports, how many are counted for the front page.
MOST_COUNTED = 100


async def dashboard(request: Request) -> Response:
    env = require_env("kv")
    health = await queue_health()
    reports = await list_reports(limit=MOST_COUNTED)
    return admin_page(
        request,
        "dashboard.html",
        health=health,
        waiting=health.counts.by_state[State.NEEDS_REVIEW],
        open_reports=len(reports.items),
        more_reports=reports.cursor is not None,
        depth=await env.broker.depth(),
    )


ENDPOINTS = (
    page("/admin", dashboard, guard=Guard.REVIEWER),
    *admin_review.ENDPOINTS,
    *admin_reports.ENDPOINTS,
    *admin_blocklist.ENDPOINTS,
    *admin_suppressions.ENDPOINTS,
    *admin_skills.ENDPOINTS,
    *admin_collections.ENDPOINTS,
    *admin_queue.ENDPOINTS,
    *admin_bulk.ENDPOINTS,
    *admin_accounts.ENDPOINTS,
    *admin_system.ENDPOINTS,
)

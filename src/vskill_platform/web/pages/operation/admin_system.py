"""The installation itself: webhooks, the audit, the settings without their secrets, and where everything is kept."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.operation.audit import READ_AUDIT, ReadAudit
from vskill_platform.actions.operation.system import SHOW_SETTINGS, SHOW_STORAGE, ReadSettings, ReadStorage
from vskill_platform.actions.telling.webhooks import (
    ADD_WEBHOOK,
    LIST_WEBHOOKS,
    REMOVE_WEBHOOK,
    ListWebhooks,
    NewWebhook,
)
from vskill_platform.actions.wire import Asked
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.web.pages.acting import act_by_form, admin_page, form
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page, query_of

WEBHOOKS = "/admin/webhooks"
EVENTS = tuple(kind.value for kind in NoticeType)


class AuditQuery(Asked, frozen=True):
    """Which page of the audit."""

    before: str | None = None


async def webhooks(request: Request) -> Response:
    return await _webhooks(request)


async def _webhooks(request: Request, made: NewWebhook | None = None) -> Response:
    return admin_page(
        request,
        "webhooks.html",
        201 if made else 200,
        hooks=(await LIST_WEBHOOKS(services_of(request), principal_of(request), ListWebhooks())).webhooks,
        events=EVENTS,
        made=made,
    )


async def add(request: Request) -> Response:
    """Its secret is shown once, by this answer."""
    made = await act_by_form(request, ADD_WEBHOOK)
    return await _webhooks(request, made)


async def audit(request: Request) -> Response:
    before = query_of(request, AuditQuery).before
    found = await READ_AUDIT(services_of(request), principal_of(request), ReadAudit(before=before))
    return admin_page(request, "audit.html", found=found, is_first=before is None)


async def settings(request: Request) -> Response:
    found = await SHOW_SETTINGS(services_of(request), principal_of(request), ReadSettings())
    return admin_page(request, "settings.html", settings=found.settings)


async def storage(request: Request) -> Response:
    found = await SHOW_STORAGE(services_of(request), principal_of(request), ReadStorage())
    return admin_page(request, "storage.html", found=found)


ENDPOINTS = (
    page(WEBHOOKS, webhooks, action=LIST_WEBHOOKS),
    form(f"{WEBHOOKS}/add", ADD_WEBHOOK, at=WEBHOOKS, view=add),
    form(f"{WEBHOOKS}/remove", REMOVE_WEBHOOK, "The webhook was removed.", at=WEBHOOKS, confirm=True),
    page("/admin/audit", audit, action=READ_AUDIT, query=AuditQuery),
    page("/admin/settings", settings, action=SHOW_SETTINGS),
    page("/admin/storage", storage, action=SHOW_STORAGE),
)

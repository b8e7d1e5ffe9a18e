"""Stored content, for operators: what is damaged, since when, and its repair."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.operation.content import REPAIR_CONTENT, SHOW_CONTENT, ReadContent
from vskill_platform.web.pages.acting import admin_page, form
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page

PLACE = "/admin/content"


async def content(request: Request) -> Response:
    found = await SHOW_CONTENT(services_of(request), principal_of(request), ReadContent())
    return admin_page(request, "content.html", found=found)


ENDPOINTS = (
    page(PLACE, content, action=SHOW_CONTENT),
    form(
        f"{PLACE}/repair",
        REPAIR_CONTENT,
        "The repair was asked for; reload this page to see how it ended.",
        at=PLACE,
    ),
)

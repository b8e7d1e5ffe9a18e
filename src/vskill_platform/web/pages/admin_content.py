"""Stored content, for operators: what is damaged, since when, and its repair."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.content import REPAIR_CONTENT, SHOW_CONTENT, ReadContent
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page

PLACE = "/admin/content"


async def content(request: Request) -> Response:
    found = await SHOW_CONTENT(services_of(request), principal_of(request), ReadContent())
    return admin_page(request, "content.html", found=found)


@acting(PLACE)
async def repair(request: Request) -> Response:
    await act_by_form(request, REPAIR_CONTENT)
    return see_other(request, PLACE, "The repair was asked for; reload this page to see how it ended.")


ENDPOINTS = (
    page(PLACE, content, action=SHOW_CONTENT),
    form(f"{PLACE}/repair", repair, action=REPAIR_CONTENT),
)

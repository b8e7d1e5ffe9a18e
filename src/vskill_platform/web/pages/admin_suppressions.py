"""Suppressed rules: the list, and the forms that suppress a rule for one content and let it count again."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.suppressions import SUPPRESS, SUPPRESSED, UNSUPPRESS, ListSuppressions
from vskill_platform.actions.wire import Asked
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, back_of
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/suppressions"


class SuppressionsQuery(Asked, frozen=True):
    """Which page of the list."""

    after: str | None = None


async def list_rules(request: Request) -> Response:
    after = query_of(request, SuppressionsQuery).after
    found = await SUPPRESSED(services_of(request), principal_of(request), ListSuppressions(after=after))
    return admin_page(request, "suppressions.html", found=found, is_first=after is None)


@acting(LIST)
async def suppress(request: Request) -> Response:
    done = await act_by_form(request, SUPPRESS)
    told = f"{done.suppression.rule} no longer counts for this content."
    if done.new_runs:
        told += " It is being judged again."
    return see_other(request, await back_of(request, LIST), told)


@acting(LIST)
async def unsuppress(request: Request) -> Response:
    done = await act_by_form(request, UNSUPPRESS)
    told = f"{done.suppression.rule} counts again."
    if done.rescans:
        told += f" {', '.join(done.rescans)} is being judged again."
    return see_other(request, await back_of(request, LIST), told)


ENDPOINTS = (
    page(LIST, list_rules, action=SUPPRESSED, query=SuppressionsQuery),
    form(f"{LIST}/add", suppress, action=SUPPRESS),
    form(f"{LIST}/remove", unsuppress, action=UNSUPPRESS),
)

"""Suppressed rules: the list, and the forms that suppress a rule for one content and let it count again."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.verdicts.suppressions import (
    SUPPRESS,
    SUPPRESSED,
    UNSUPPRESS,
    ListSuppressions,
    SuppressionChange,
)
from vskill_platform.actions.wire import Asked
from vskill_platform.web.pages.acting import admin_page, form
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page, query_of

LIST = "/admin/suppressions"


class SuppressionsQuery(Asked, frozen=True):
    """Which page of the list."""

    after: str | None = None


async def list_rules(request: Request) -> Response:
    after = query_of(request, SuppressionsQuery).after
    found = await SUPPRESSED(services_of(request), principal_of(request), ListSuppressions(after=after))
    return admin_page(request, "suppressions.html", found=found, is_first=after is None)


def told_suppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} no longer counts for this content."
    return f"{told} It is being judged again." if done.new_runs else told


def told_unsuppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} counts again."
    return f"{told} {', '.join(done.rescans)} is being judged again." if done.rescans else told


ENDPOINTS = (
    page(LIST, list_rules, action=SUPPRESSED, query=SuppressionsQuery),
    form(f"{LIST}/add", SUPPRESS, told_suppressed, at=LIST),
    form(f"{LIST}/remove", UNSUPPRESS, told_unsuppressed, at=LIST),
)

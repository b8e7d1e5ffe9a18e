"""Admin pages for the blocklist: what must not be published."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.blocklist import BLOCK, BLOCKS, LIFT, ListBlocks
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.scan import Severity
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, back_of, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/blocklist"


class BlocklistQuery(Asked, frozen=True):
    """A form that another page has filled in."""

    kind: TargetKind = TargetKind.PLACE
    target: str = ""


async def entries(request: Request) -> Response:
    asked = query_of(request, BlocklistQuery)
    found = await BLOCKS(services_of(request), principal_of(request), ListBlocks())
    return admin_page(
        request,
        "blocklist.html",
        entries=found.entries,
        severities=tuple((severity.value, severity.value) for severity in Severity),
        kind=asked.kind.value,
        target=asked.target,
    )


@acting(LIST)
async def block(request: Request) -> Response:
    await require_confirmed(request)
    done = await act_by_form(request, BLOCK)
    told = f"Blocked: {done.entry.kind} {done.entry.target}. {hits_in_words(done.submissions, done.versions)}"
    return see_other(request, await back_of(request, LIST), told)


def hits_in_words(submissions: tuple[str, ...], versions: int) -> str:
    """How much an entry hits."""
    if not submissions and not versions:
        return "It hits nothing yet."
    return f"It hits {_count(len(submissions), 'submission')} and {_count(versions, 'published version')}."


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@acting(LIST)
async def lift(request: Request) -> Response:
    await require_confirmed(request)
    done = await act_by_form(request, LIFT)
    told = f"No longer blocked: {done.kind} {done.target}. Submissions that no other entry blocks run again."
    if done.versions:
        told += f" {_count(done.versions, 'version')} came back: {', '.join(done.skills[:5])}."
    return see_other(request, LIST, told)


ENDPOINTS = (
    page(LIST, entries, action=BLOCKS, query=BlocklistQuery),
    form(f"{LIST}/add", block, action=BLOCK),
    form(f"{LIST}/lift", lift, action=LIFT),
)

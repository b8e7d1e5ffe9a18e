"""The blocklist: what nobody may publish."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Asked
from vskill_platform.domain.blocklist import BlockEntry, TargetKind, parse_target
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.scan import Severity
from vskill_platform.store.blocklist import add_block, list_blocks, reapply_blocklist, remove_block
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import acting, admin_page, choice_of, reason_of, require_confirmed
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

LIST = "/admin/blocklist"
KINDS = tuple(kind.value for kind in TargetKind)
SEVERITIES = tuple(severity.value for severity in Severity)


class BlocklistQuery(Asked, frozen=True):
    """A form that another page has filled in."""

    kind: TargetKind = TargetKind.PLACE
    target: str = ""


async def entries(request: Request) -> Response:
    asked = query_of(request, BlocklistQuery)
    found = sorted(await list_blocks(), key=lambda entry: -entry.discovered_at)
    return admin_page(
        request,
        "blocklist.html",
        entries=found,
        kinds=KINDS,
        severities=SEVERITIES,
        kind=asked.kind.value,
        target=asked.target,
    )


@acting(LIST)
async def block(request: Request) -> Response:
    """Effective at once; what is queued or live already is ended before the page says so."""
    kind = await choice_of(request, "kind", KINDS)
    severity = Severity(await choice_of(request, "severity", SEVERITIES))
    target = parse_target(kind, await text_of(request, "target"))
    reason = await reason_of(request)
    await require_confirmed(request)
    now = require_env("kv").kv.now()
    await add_block(BlockEntry(target, severity, reason, principal_of(request).actor, now, now))
    await reapply_blocklist()
    return see_other(request, LIST, f"Blocked: {target}.")


@acting(LIST)
async def lift(request: Request) -> Response:
    """By the stored target, not by what a person wrote for it."""
    kind = TargetKind(await choice_of(request, "kind", KINDS))
    value = await text_of(request, "value")
    target = next(
        (one.target for one in await list_blocks() if one.target.kind is kind and one.target.value == value),
        None,
    )
    reason = await reason_of(request)
    await require_confirmed(request)
    actor = principal_of(request).actor
    if target is None or not await remove_block(target, by=actor, reason=reason):
        raise NotFound("There is no such entry any more.")
    await reapply_blocklist()
    return see_other(request, LIST, f"No longer blocked: {target}. What no other entry hits runs again.")


ENDPOINTS = (
    page(LIST, entries, guard=Guard.REVIEWER, query=BlocklistQuery),
    form(f"{LIST}/add", block, guard=Guard.REVIEWER, scope="review"),
    form(f"{LIST}/lift", lift, guard=Guard.REVIEWER, scope="review"),
)

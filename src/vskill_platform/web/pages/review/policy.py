"""The policy: the page on which everybody reads what is in force and what skills are compared with, and the admin page
on which it is set."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, TransitionError
from vskill_platform.actions.verdicts.memory import SHOW_MEMORY
from vskill_platform.actions.verdicts.policy import CHECK_POLICY, SET_POLICY, SHOW_POLICY
from vskill_platform.actions.verdicts.policy_trials import RESCAN_BY_POLICY, TRY_POLICY
from vskill_platform.domain.verdicts.policy import LONGEST_TEXT
from vskill_platform.web.auth import see_other, text_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import act_by_form, admin_page, form
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

PATH = "/policy"
ADMIN = "/admin/policy"
_SET = (
    "The policy is set. It counts for every decision from now on; what is live stays as it is, and you can "
    "have a reviewer look at it below."
)


async def show(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    found = await SHOW_POLICY(services, reader, NoParameters())
    memory = await SHOW_MEMORY(services, reader, NoParameters())
    return render(request, "policy.html", found=found, memory=memory)


async def edit(request: Request, **shown: object) -> Response:
    found = await SHOW_POLICY(services_of(request), principal_of(request), NoParameters())
    unless = {"text": found.text, "problem": "", "since": "90d", "asked": ""}
    made = dict.fromkeys(("checked", "trial", "rescans"))
    return admin_page(request, "policy.html", found=found, **{**unless, **made, **shown})


async def _sent(request: Request) -> str:
    return await text_of(request, "text", 10 * LONGEST_TEXT)


async def check(request: Request) -> Response:
    """The page again with the text that was sent, and what is wrong with it."""
    try:
        checked = await act_by_form(request, CHECK_POLICY)
    except InvalidInput as error:
        return await edit(request, text=await _sent(request), problem=error.in_words)
    return await edit(request, text=checked.text, checked=checked)


async def try_text(request: Request) -> Response:
    """The page again, with what the text would have done."""
    since = await text_of(request, "since") or "90d"
    try:
        trial = await act_by_form(request, TRY_POLICY)
    except InvalidInput as error:
        return await edit(request, text=await _sent(request), problem=error.in_words, since=since)
    asked = await text_of(request, "after")
    return await edit(request, text=await _sent(request), trial=trial, since=since, asked=asked)


async def set_text(request: Request) -> Response:
    """A text that is refused stays in the form."""
    try:
        await act_by_form(request, SET_POLICY)
    except (InvalidInput, TransitionError) as error:
        return await edit(request, text=await _sent(request), problem=error.in_words)
    return see_other(request, ADMIN, _SET)


async def rescan(request: Request) -> Response:
    """The page again, with what was asked for and where the next request goes on."""
    rescans = await act_by_form(request, RESCAN_BY_POLICY)
    return await edit(request, rescans=rescans)


ENDPOINTS = (
    page(PATH, show, action=SHOW_POLICY, shows=("memory.show",)),
    page(ADMIN, edit, action=SET_POLICY, shows=("policy.check",)),
    form(f"{ADMIN}/check", CHECK_POLICY, at=ADMIN, view=check),
    form(f"{ADMIN}/try", TRY_POLICY, at=ADMIN, view=try_text),
    form(f"{ADMIN}/rescan", RESCAN_BY_POLICY, at=ADMIN, view=rescan),
    form(ADMIN, SET_POLICY, at=ADMIN, view=set_text),
)

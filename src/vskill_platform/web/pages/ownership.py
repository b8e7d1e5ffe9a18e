"""What owners do on pages: claim a repository, check the claim and hand the repository over on the account's page;
withdraw versions, bring them back and delete the skill on the skill's page."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.action import Allowance
from vskill_platform.actions.owners import CHECK, CLAIM, TRANSFER
from vskill_platform.actions.versions import DELETE, UNYANK, YANK
from vskill_platform.domain.errors import SourceUnavailable
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.account import account_page
from vskill_platform.web.pages.acting import act_by_form, acting, back_of, require_confirmed
from vskill_platform.web.routing import form

ACCOUNT = "/account"
_SKILL = "/skills/{owner}/{repo}/{slug}"


@acting(ACCOUNT)
async def claim(request: Request) -> Response:
    claimed = await act_by_form(request, CLAIM)
    return await account_page(request, claimed=claimed)


@acting(ACCOUNT)
async def check(request: Request) -> Response:
    try:
        proved = await act_by_form(request, CHECK)
    except SourceUnavailable as error:
        return see_other(request, ACCOUNT, error.in_words, "bad")
    return see_other(
        request, ACCOUNT, f"{proved.url} is yours now. You may withdraw versions and delete skills."
    )


@acting(ACCOUNT)
async def transfer(request: Request) -> Response:
    await require_confirmed(request)
    moved = await act_by_form(request, TRANSFER)
    to = await text_of(request, "to")
    return see_other(request, ACCOUNT, f"{moved.url} now belongs to {to}.")


@acting("/skills")
async def yank(request: Request) -> Response:
    state = await act_by_form(request, YANK, skill=_skill(request))
    current = (
        f"Version {state.current_version} is current." if state.current_version else "No version is left."
    )
    done = f"Version {await text_of(request, 'version')} is withdrawn. {current}"
    return see_other(request, await back_of(request, _page(request)), done)


@acting("/skills")
async def unyank(request: Request) -> Response:
    await act_by_form(request, UNYANK, skill=_skill(request))
    done = f"Version {await text_of(request, 'version')} can be installed again."
    return see_other(request, await back_of(request, _page(request)), done)


@acting("/skills")
async def delete(request: Request) -> Response:
    await require_confirmed(request)
    await act_by_form(request, DELETE, skill=_skill(request))
    return see_other(
        request, _page(request), "The skill is deleted. Submit it again to publish a new version."
    )


def _skill(request: Request) -> str:
    parts = request.path_params
    return f"{parts['owner']}/{parts['repo']}/{parts['slug']}"


def _page(request: Request) -> str:
    return f"/skills/{quote(_skill(request))}"


ENDPOINTS = (
    form("/account/claim", claim, action=CLAIM, allowance=Allowance.DISCOVERIES),
    form("/account/check", check, action=CHECK, allowance=Allowance.DISCOVERIES),
    form("/account/transfer", transfer, action=TRANSFER),
    form(f"{_SKILL}/yank", yank, action=YANK),
    form(f"{_SKILL}/unyank", unyank, action=UNYANK),
    form(f"{_SKILL}/delete", delete, action=DELETE),
)

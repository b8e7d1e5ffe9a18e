"""What owners do on pages: claim a repository, check the claim and hand the repository over on the account's page;
withdraw versions, bring them back and delete the skill on the skill's page."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import SourceUnavailable
from vskill_platform.actions.people.owners import CHECK, CLAIM, TRANSFER
from vskill_platform.actions.skills.versions import DELETE, UNYANK, YANK
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, form
from vskill_platform.web.pages.people.account import ACCOUNT, account_page
from vskill_platform.web.pages.skills.admin_skills import SKILL_PAGE, told_state


async def claim(request: Request) -> Response:
    claimed = await act_by_form(request, CLAIM)
    return await account_page(request, claimed=claimed)


async def check(request: Request) -> Response:
    try:
        proved = await act_by_form(request, CHECK)
    except SourceUnavailable as error:
        return see_other(request, ACCOUNT, error.in_words, "bad")
    return see_other(
        request, ACCOUNT, f"{proved.url} is yours now. You may withdraw versions and delete skills."
    )


ENDPOINTS = (
    form("/account/claim", CLAIM, at=ACCOUNT, view=claim),
    form("/account/check", CHECK, at=ACCOUNT, view=check),
    form(
        "/account/transfer",
        TRANSFER,
        lambda moved, asked: f"{moved.url} now belongs to {asked.to}.",
        at=ACCOUNT,
        confirm=True,
    ),
    form(
        f"{SKILL_PAGE}/yank",
        YANK,
        lambda state, asked: told_state(state, f"Version {asked.version} is withdrawn."),
        at=SKILL_PAGE,
    ),
    form(
        f"{SKILL_PAGE}/unyank",
        UNYANK,
        lambda _, asked: f"Version {asked.version} can be installed again.",
        at=SKILL_PAGE,
    ),
    form(
        f"{SKILL_PAGE}/delete",
        DELETE,
        "The skill is deleted. Submit it again to publish a new version.",
        at=SKILL_PAGE,
        confirm=True,
    ),
)

"""What owners do on pages: claim a repository, check the claim and hand the repository over on the account's page;
withdraw versions, bring them back and delete the skill on the skill's page."""

from vskill_core.errors import SourceUnavailable
from vskill_platform.actions.people.owners import CHECK, CLAIM, TRANSFER
from vskill_platform.actions.skills.versions import DELETE, UNYANK, YANK
from vskill_platform.web.pages.acting import form
from vskill_platform.web.pages.people.account import ACCOUNT, PAGE
from vskill_platform.web.pages.skills.admin_skills import SKILL_PAGE, told_state

ENDPOINTS = (
    form("/account/claim", CLAIM, at=ACCOUNT, shown_by=PAGE),
    form(
        "/account/check",
        CHECK,
        lambda proved, _: f"{proved.url} is yours now. You may withdraw versions and delete skills.",
        at=ACCOUNT,
        tells=(SourceUnavailable,),
    ),
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

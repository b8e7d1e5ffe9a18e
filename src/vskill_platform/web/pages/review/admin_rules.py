"""How often each rule fired here, and how often reviewers agreed with it."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES, ListRuleFigures
from vskill_platform.web.pages.acting import admin_page
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page


async def rules(request: Request) -> Response:
    found = await RULE_FIGURES(services_of(request), principal_of(request), ListRuleFigures())
    return admin_page(request, "rules.html", found=found)


ENDPOINTS = (page("/admin/rules", rules, action=RULE_FIGURES),)

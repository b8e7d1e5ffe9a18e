"""The page that shows two skills side by side. Without both names it is a form that asks for them."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.errors import Ambiguous, InvalidInput, NotFound
from vskill_platform.actions.verdicts.comparison import COMPARE, CompareSkills, SkillComparison
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

Name = Annotated[str, msgspec.Meta(max_length=400)]


class CompareQuery(Asked, frozen=True):
    """Two skills; the page asks for those that are not named."""

    a: Name = ""
    b: Name = ""


async def compare(request: Request) -> Response:
    asked = query_of(request, CompareQuery)
    found: SkillComparison | None = None
    problem, status = "", 200
    if asked.a.strip() and asked.b.strip():
        try:
            wanted = CompareSkills(a=asked.a, b=asked.b)
            found = await COMPARE(services_of(request), principal_of(request), wanted)
        except (NotFound, Ambiguous, InvalidInput) as error:
            problem, status = error.in_words, error.status
    names = [one.display_name or one.skill_slug for one in (found.a, found.b)] if found else []
    return render(request, "compare.html", status, asked=asked, found=found, names=names, problem=problem)


ENDPOINTS = (page("/compare", compare, action=COMPARE, query=CompareQuery),)

"""How addresses name skills. A canonical name is three segments; any other name is one, encoded where it has a `/` in
it. Both forms lead to the same views."""

from typing import Any

from starlette.requests import Request

from vskill_client.wire.skills import SKILLS
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.exchange import principal_of
from vskill_platform.web.routing import Endpoint, View, get

CANONICAL = f"{SKILLS}/{{owner}}/{{repo}}/{{slug}}"
ANY_NAME = f"{SKILLS}/{{name}}"


def both(suffix: str, view: View, **declared: Any) -> tuple[Endpoint, ...]:
    """The same reading of a skill for both forms of its name."""
    return tuple(get(name + suffix, view, tag="skills", **declared) for name in (CANONICAL, ANY_NAME))


def asked_name(request: Request) -> str:
    parts = request.path_params
    if "name" in parts:
        return str(parts["name"])
    return f"{parts['owner']}/{parts['repo']}/{parts['slug']}"


async def asked_skill(request: Request) -> PublishedSkill:
    return await find_skill(principal_of(request), asked_name(request))

"""Admin pages for published skills: take one down, restore it, or take a short name from it."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_client.wire.skills import SkillState
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN
from vskill_platform.actions.skills.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.skills.names import RELEASE_NAME
from vskill_platform.web.exchange import principal_of
from vskill_platform.web.pages.acting import admin_page, form
from vskill_platform.web.routing import page, query_of

LIST = "/admin/skills"
PAGE = 30
SKILL_PAGE = "/skills/{owner}/{repo}/{slug}"


class AdminSkillsQuery(Asked, frozen=True):
    """A search, or a page of what was published last. Withdrawn skills are found by searching."""

    q: str = ""
    after: str | None = None


async def skills(request: Request) -> Response:
    asked, reader = query_of(request, AdminSkillsQuery), principal_of(request)
    after = None
    if asked.q.strip():
        items = (await search_catalogue(reader, asked.q, limit=PAGE)).items
    else:
        found = await list_catalogue(reader, after=asked.after, limit=PAGE)
        items, after = found.items, found.after
    return admin_page(request, "skills.html", items=items, after=after, asked=asked)


def told_state(state: SkillState, done: str) -> str:
    """That something was done to a skill or a version, and which version is current now."""
    left = f"Version {state.current_version} is current." if state.current_version else "No version is left."
    return f"{done} {left}"


ENDPOINTS = (
    page(LIST, skills, action=TAKE_DOWN, query=AdminSkillsQuery),
    form(
        f"{SKILL_PAGE}/take-down",
        TAKE_DOWN,
        lambda state, _: told_state(state, f"{state.skill} is taken down."),
        at=SKILL_PAGE,
        confirm=True,
    ),
    form(
        f"{SKILL_PAGE}/restore",
        RESTORE,
        lambda state, _: told_state(state, f"{state.skill} is back."),
        at=SKILL_PAGE,
    ),
    form(
        f"{SKILL_PAGE}/release-name",
        RELEASE_NAME,
        lambda freed, _: (
            f"{freed.skill} no longer holds {freed.released}. It is listed as {freed.listed_as}."
        ),
        at=SKILL_PAGE,
        confirm=True,
    ),
)

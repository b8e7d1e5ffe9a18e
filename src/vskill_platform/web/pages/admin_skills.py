"""Admin pages for published skills: take one down, restore it, or take a short name from it."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.names import RELEASE_NAME
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.takedowns import RESTORE, TAKE_DOWN
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, back_of, require_confirmed
from vskill_platform.web.principal import principal_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/skills"
PAGE = 30


class AdminSkillsQuery(Asked, frozen=True):
    """A search, or a page of what was published last. Withdrawn skills are found by searching."""

    q: str = ""
    after: str | None = None


async def skills(request: Request) -> Response:
    asked = query_of(request, AdminSkillsQuery)
    items, after = await _find_skills(principal_of(request), asked)
    return admin_page(
        request, "skills.html", items=items, after=after, q=asked.q, is_first=asked.after is None
    )


async def _find_skills(
    reader: Principal, asked: AdminSkillsQuery
) -> tuple[tuple[PublishedSkill, ...], str | None]:
    if asked.q.strip():
        return (await search_catalogue(reader, asked.q, limit=PAGE)).items, None
    page = await list_catalogue(reader, after=asked.after, limit=PAGE)
    return page.items, page.after


@acting("/skills")
async def take_down(request: Request) -> Response:
    await require_confirmed(request)
    state = await act_by_form(request, TAKE_DOWN, skill=_skill(request))
    left = f"Version {state.current_version} is current." if state.current_version else "No version is left."
    return see_other(request, await back_of(request, _page(request)), f"{state.skill} is taken down. {left}")


@acting("/skills")
async def restore(request: Request) -> Response:
    state = await act_by_form(request, RESTORE, skill=_skill(request))
    done = f"{state.skill} is back. Version {state.current_version} is current."
    return see_other(request, await back_of(request, _page(request)), done)


@acting("/skills")
async def release_name(request: Request) -> Response:
    await require_confirmed(request)
    freed = await act_by_form(request, RELEASE_NAME, skill=_skill(request))
    done = f"{freed.skill} no longer holds {freed.released}. It is listed as {freed.listed_as}."
    return see_other(request, await back_of(request, _page(request)), done)


def _skill(request: Request) -> str:
    parts = request.path_params
    return f"{parts['owner']}/{parts['repo']}/{parts['slug']}"


def _page(request: Request) -> str:
    return f"/skills/{quote(_skill(request))}"


_SKILL = "/skills/{owner}/{repo}/{slug}"

ENDPOINTS = (
    page(LIST, skills, action=TAKE_DOWN, query=AdminSkillsQuery),
    form(f"{_SKILL}/take-down", take_down, action=TAKE_DOWN),
    form(f"{_SKILL}/restore", restore, action=RESTORE),
    form(f"{_SKILL}/release-name", release_name, action=RELEASE_NAME),
)

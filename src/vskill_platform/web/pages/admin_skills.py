"""Published skills, for whoever takes one down or brings it back."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Asked
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.store.catalogue import list_skills, search_skills
from vskill_platform.store.withdrawals import restore, take_down
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import acting, admin_page, back_of, reason_of, require_confirmed
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/skills"
PAGE = 30


class SkillsQuery(Asked, frozen=True):
    """A search, or a page of what was published last. Withdrawn skills are found by searching."""

    q: str = ""
    after: str | None = None


async def skills(request: Request) -> Response:
    asked = query_of(request, SkillsQuery)
    items, after = await _found(asked)
    return admin_page(
        request, "skills.html", items=items, after=after, q=asked.q, is_first=asked.after is None
    )


async def _found(asked: SkillsQuery) -> tuple[tuple[PublishedSkill, ...], str | None]:
    if asked.q.strip():
        return (await search_skills(asked.q, limit=PAGE)).items, None
    page = await list_skills(after=asked.after, limit=PAGE)
    return page.items, page.after


@acting(LIST)
async def withdraw(request: Request) -> Response:
    canonical, number = await _subject(request)
    reason = await reason_of(request)
    await require_confirmed(request)
    await take_down(canonical, number, by=principal_of(request).actor, reason=reason)
    done = f"{canonical} {number or '(all versions)'} is taken down."
    return see_other(request, await back_of(request, LIST), done)


@acting(LIST)
async def bring_back(request: Request) -> Response:
    canonical, number = await _subject(request)
    reason = await reason_of(request)
    await restore(canonical, number, by=principal_of(request).actor, reason=reason)
    return see_other(request, await back_of(request, LIST), f"{canonical} {number or ''} is back.")


async def _subject(request: Request) -> tuple[str, str | None]:
    """The skill, and the version where it is not all of them."""
    return await text_of(request, "skill", 400), await text_of(request, "version", 100) or None


ENDPOINTS = (
    page(LIST, skills, guard=Guard.ADMIN, query=SkillsQuery),
    form(f"{LIST}/take-down", withdraw, guard=Guard.ADMIN, scope="admin"),
    form(f"{LIST}/restore", bring_back, guard=Guard.ADMIN, scope="admin"),
)

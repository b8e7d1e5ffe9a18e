"""Admin pages for published skills (take one down, restore it, or take a short name from it) and for collections:
curated lists that an organisation adds as a marketplace."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_client.wire.skills import SkillState
from vskill_core.plural import counted
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN
from vskill_platform.actions.skills.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    DELETE_COLLECTION,
    REMOVE_SKILLS,
    measure_contexts,
    read_collections,
)
from vskill_platform.actions.skills.versions import RELEASE_NAME
from vskill_platform.web.exchange import principal_of, public_address, services_of
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
    left = f"Version {state.current_version} is current." if state.current_version else "No version is left."
    return f"{done} {left}"


COLLECTIONS = "/admin/collections"
#: Of English text, by the tokenizers of most models.
CHARACTERS_PER_TOKEN = 4


async def collections(request: Request) -> Response:
    found = await read_collections(services_of(request), principal_of(request))
    return admin_page(
        request,
        "collections.html",
        items=found.items,
        skipped=found.skipped,
        characters=await measure_contexts(principal_of(request), found.items),
        per_token=CHARACTERS_PER_TOKEN,
        base=public_address(request),
    )


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
    page(COLLECTIONS, collections, action=CREATE_COLLECTION, shows=("skill.lock", "bundle.make")),
    form(
        f"{COLLECTIONS}/create",
        CREATE_COLLECTION,
        lambda made, _: f"The collection {made.name} was created. It is empty.",
        at=COLLECTIONS,
    ),
    form(
        f"{COLLECTIONS}/add",
        ADD_SKILLS,
        lambda now, _: f"{now.name} has {counted(len(now.skills), 'skill')}.",
        at=COLLECTIONS,
    ),
    form(
        f"{COLLECTIONS}/remove",
        REMOVE_SKILLS,
        lambda now, asked: f"{', '.join(asked.skills)} is no longer in {now.name}.",
        at=COLLECTIONS,
    ),
    form(
        f"{COLLECTIONS}/delete",
        DELETE_COLLECTION,
        lambda _, asked: f"The collection {asked.name} was deleted.",
        at=COLLECTIONS,
        confirm=True,
    ),
)

"""The catalogue as a reader sees it: lists, search and counts of the published skills that the reader may read."""

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import Wire
from vskill_client.wire.skills import (
    SKILLS,
    NarrowSkills,
    Paging,
    SearchAnswer,
    SearchSkills,
    SearchText,
    SkillCard,
    SkillLimit,
)
from vskill_platform.actions.action import Keep, Services, action, action_for
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import current_blocklist, leave_out_blocked
from vskill_platform.actions.skills.skill_views import card
from vskill_platform.domain.skills.catalogue import Facets, Filter, SkillHits, SkillPage, Sort
from vskill_platform.domain.skills.listing import OTHER
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, PublishedSkillSummary
from vskill_platform.store.skills import catalogue
from vskill_platform.submission_store import enumerate_published_skills, iter_published_skills

SkillCursor = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class ListSkills(NarrowSkills, frozen=True, kw_only=True):
    """Narrows and orders the list; the next page is asked for with `after`."""

    #: the order of the list
    sort: Sort = Sort.UPDATED
    #: the `after` of the page before
    after: SkillCursor | None = None
    #: how many to show on a page
    limit: SkillLimit = 30


class CountSkills(NarrowSkills, frozen=True, kw_only=True):
    """All listed skills, or those that a search and filters leave."""

    #: only what a search for these words finds
    q: SearchText = ""


class SkillsAnswer(Wire, frozen=True):
    """A page of the catalogue."""

    skills: tuple[SkillCard, ...]
    pagination: Paging
    #: records that could not be read and are missing here
    unreadable: int = 0


class FacetsAnswer(Wire, frozen=True):
    """How many listed skills each filter leaves; of a search and beside other filters, up to 1,000 are counted."""

    total: int
    category: dict[str, int]
    certification: dict[str, int]
    trust: dict[str, int]
    agent: dict[str, int]
    licence: dict[str, int]
    without: dict[str, int]
    provenance: dict[str, int]
    min_installs: dict[str, int]
    min_age: dict[str, int]
    #: more skills fit than were counted
    truncated: bool = False


def filters_of(request: NarrowSkills) -> Filter:
    return Filter(**{name: getattr(request, name) for name in Filter.__struct_fields__})


async def list_skills(services: Services, reader: Principal, request: ListSkills) -> SkillsAnswer:
    page = await list_catalogue(
        reader, filters_of(request), sort=request.sort, after=request.after, limit=request.limit
    )
    blocklist = await current_blocklist(services)
    shown = tuple(card(one, blocklist) for one in page.items if not blocklist.hits_skill(one))
    return SkillsAnswer(shown, Paging(page.after is not None, page.after, request.limit), page.unreadable)


async def search_skills(services: Services, reader: Principal, request: SearchSkills) -> SearchAnswer:
    found = await search_catalogue(reader, request.q, filters_of(request), limit=request.limit)
    blocklist = await current_blocklist(services)
    cards = [card(one, blocklist) for one in found.items]
    shown = tuple(sorted(cards, key=lambda one: (one.is_blocked, one.is_withdrawn)))
    paging = Paging(found.truncated, None, request.limit)
    return SearchAnswer(
        shown, paging, len(shown), found.truncated, found.unreadable, found.did_you_mean or None
    )


async def count_skills(reader: Principal, request: CountSkills) -> FacetsAnswer:
    found = await count_catalogue(reader, request.q, filters_of(request))
    return FacetsAnswer(**msgspec.structs.asdict(found))


# The same as records, for entry points that show skills in a form of their own.


async def list_catalogue(
    reader: Principal,
    filters: Filter | None = None,
    *,
    sort: Sort = Sort.UPDATED,
    after: str | None = None,
    limit: int = 30,
) -> SkillPage:
    """A page of the skills with a live version, also of those that were blocked a moment ago."""
    return await catalogue.list_skills(filters, sort, after, limit, audiences=audiences_of(reader))


async def list_unblocked(
    services: Services,
    reader: Principal,
    filters: Filter | None = None,
    *,
    sort: Sort = Sort.UPDATED,
    after: str | None = None,
    limit: int = 30,
) -> SkillPage:
    """A page of the list without what was blocked a moment ago and is about to be taken down."""
    found = await list_catalogue(reader, filters, sort=sort, after=after, limit=limit)
    return msgspec.structs.replace(found, items=await leave_out_blocked(services, found.items))


async def list_front_page(
    services: Services, reader: Principal, limit: int
) -> tuple[tuple[PublishedSkill, ...], ...]:
    """What is installed most, what is new, and the most installed certified skill, without what was blocked a moment
    ago: one look for all."""
    certified = Filter(certification=Certification.CERTIFIED)
    pages = (
        await list_catalogue(reader, sort=Sort.INSTALLS, limit=limit),
        await list_catalogue(reader, sort=Sort.NEWEST, limit=limit),
        await list_catalogue(reader, certified, sort=Sort.INSTALLS, limit=1),
    )
    shown = await leave_out_blocked(services, [one for found in pages for one in found.items])
    names = {one.canonical for one in shown}
    return tuple(tuple(one for one in found.items if one.canonical in names) for found in pages)


async def list_related(
    reader: Principal, skill: PublishedSkill, limit: int
) -> tuple[tuple[PublishedSkill, ...], tuple[PublishedSkill, ...]]:
    """Other skills of the same owner, and skills of others on the same topic, the most installed first; more than are
    shown. Only what the reader may read, also what was blocked a moment ago: whoever shows them leaves that out."""
    topic = skill.listing.category if skill.listing else OTHER
    by_owner = await list_catalogue(
        reader, Filter(owner=skill.owner), sort=Sort.INSTALLS, limit=2 * limit + 1
    )
    own = tuple(one for one in by_owner.items if one.canonical != skill.canonical)
    if topic == OTHER:
        return own, ()
    by_topic = await list_catalogue(reader, Filter(category=topic), sort=Sort.INSTALLS, limit=4 * limit)
    return own, tuple(one for one in by_topic.items if one.owner != skill.owner)


async def search_catalogue(
    reader: Principal, text: str, filters: Filter | None = None, *, limit: int = 30
) -> SkillHits:
    """The skills that have these words, blocked and withdrawn ones too."""
    return await catalogue.search_skills(text, filters, limit, audiences=audiences_of(reader))


async def count_catalogue(reader: Principal, text: str = "", filters: Filter | None = None) -> Facets:
    if text.strip():
        return await catalogue.count_found(text, filters, audiences=audiences_of(reader))
    if filters is not None and filters != Filter():
        return await catalogue.count_listed(filters, audiences=audiences_of(reader))
    return await catalogue.count_facets(audiences=audiences_of(reader))


def iterate_catalogue(reader: Principal, under: str = "") -> AsyncIterator[PublishedSkillSummary]:
    """Every skill with a live version whose name begins so, in the order of its name, a page of records at a time."""
    return iter_published_skills(audiences=audiences_of(reader), under=under)


async def enumerate_catalogue(reader: Principal) -> list[PublishedSkillSummary]:
    """The same all at once; the operator's export holds every skill, whoever may read it."""
    if reader.operator:
        return await enumerate_published_skills()
    return [summary async for summary in iterate_catalogue(reader)]


LIST_SKILLS = action(
    list_skills,
    "skill.list",
    SKILLS,
    right=Right.READER,
    keep=Keep.UNTIL_CHANGE,
    summary="List published skills",
    mcp="search_skills",
)
SEARCH_SKILLS = action_for(
    search_skills,
    skills_calls.SEARCH_SKILLS,
    right=Right.READER,
    keep=Keep.UNTIL_CHANGE,
    summary="Search skills by words",
    about="Blocked and withdrawn skills are included, marked and listed last.",
    command="search",
    mcp="search_skills",
)
COUNT_SKILLS = action(
    count_skills,
    "skill.facets",
    f"{SKILLS}/facets",
    method="GET",
    right=Right.READER,
    keep=Keep.UNTIL_CHANGE,
    summary="Count published skills by what they can be filtered by",
    command="",
)

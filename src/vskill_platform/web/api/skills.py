"""Reading the catalogue: lists, search, facets, one skill, its versions."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Asked, Wire, encode
from vskill_platform.domain import keys
from vskill_platform.domain.skill import PublishedSkill, SkillVersion
from vskill_platform.records import Skips, decode
from vskill_platform.store import catalogue
from vskill_platform.store.catalogue import Filter, Sort
from vskill_platform.web.api.names import SKILLS, asked_name, asked_skill, both, find_skill
from vskill_platform.web.api.skill_views import (
    SkillAnswer,
    SkillCard,
    VersionsAnswer,
    card,
    detail,
    version_views,
)
from vskill_platform.web.kept import Again, Answer, kept_of, last_change
from vskill_platform.web.responses import public_json
from vskill_platform.web.routing import get, query_of
from vskill_platform.worker_context import require_env

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=100)]
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Narrowed(Asked, frozen=True):
    """Which skills; all of them where nothing is given."""

    category: Text | None = None
    certification: Literal["SCANNED", "VERIFIED", "CERTIFIED"] | None = None
    trust: Literal["T0", "T1", "T2", "T3", "T4"] | None = None
    agent: Text | None = None
    owner: Text | None = None
    licence: Text | None = None

    @property
    def filters(self) -> Filter:
        return Filter(self.category, self.certification, self.trust, self.agent, self.owner, self.licence)


class SkillsQuery(Narrowed, frozen=True):
    """Narrows and orders the list; the next page is asked for with `after`."""

    sort: Sort = Sort.UPDATED
    after: Cursor | None = None
    limit: Limit = 30


class SkillSearch(Narrowed, frozen=True):
    """Every word must occur; the last one may be the beginning of a word."""

    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    limit: Limit = 20


class Paging(Wire, frozen=True):
    """Where this page stands."""

    has_more: bool
    #: give it back as `after` for the next page
    after: str | None = None
    limit: int = 0


class SkillsAnswer(Wire, frozen=True):
    """A page of the catalogue."""

    skills: tuple[SkillCard, ...]
    pagination: Paging
    #: records that could not be read and are missing here
    unreadable: int = 0


class SearchAnswer(Wire, frozen=True):
    """What was found, best first; what is blocked or withdrawn last."""

    results: tuple[SkillCard, ...]
    pagination: Paging
    #: how many are in `results`; more exist where `truncated` says so
    total: int
    truncated: bool
    unreadable: int = 0


class FacetsAnswer(Wire, frozen=True):
    """How many listed skills there are of each kind; exact."""

    total: int
    category: dict[str, int]
    certification: dict[str, int]
    trust: dict[str, int]
    agent: dict[str, int]
    licence: dict[str, int]


async def list_view(request: Request) -> Response:
    query = query_of(request, SkillsQuery)

    async def make() -> bytes:
        page = await catalogue.list_skills(query.filters, query.sort, query.after, query.limit)
        blocklist = await kept_of(request).blocklist()
        shown = tuple(card(one, blocklist) for one in page.items if not blocklist.hits_skill(one))
        paging = Paging(page.after is not None, page.after, query.limit)
        return encode(SkillsAnswer(shown, paging, page.unreadable))

    return await while_unchanged(request, make)


async def search_view(request: Request) -> Response:
    query = query_of(request, SkillSearch)

    async def make() -> bytes:
        found = await catalogue.search_skills(query.q, query.filters, query.limit)
        blocklist = await kept_of(request).blocklist()
        cards = [card(one, blocklist) for one in found.items]
        shown = tuple(sorted(cards, key=lambda one: (one.is_blocked, one.is_withdrawn)))
        paging = Paging(found.truncated, None, query.limit)
        return encode(SearchAnswer(shown, paging, len(shown), found.truncated, found.unreadable))

    return await while_unchanged(request, make)


async def facets_view(request: Request) -> Response:
    async def make() -> bytes:
        found = await catalogue.facets()
        return encode(FacetsAnswer(found.total, **msgspec.structs.asdict(found)))

    return await while_unchanged(request, make)


async def while_unchanged(request: Request, make: Callable[[], Awaitable[bytes]]) -> Response:
    """An answer that is the same until anything in the store changes."""
    kept = kept_of(request)
    key = (request.scope["path"], request.scope["query_string"])
    seen = await last_change()
    return Again(kept.answer(key, seen) or kept.keep(key, await make(), seen), request)


async def detail_view(request: Request) -> Response:
    name = asked_name(request)
    if name.count("/") != 2:
        name = (await find_skill(name)).canonical
    return Again(await _detail(request, name), request)


async def _detail(request: Request, name: str) -> Answer:
    """Kept while nothing in the store has changed, or else neither the skill's record nor the blocklist has."""
    kept = kept_of(request)
    key = ("skill", name)
    seen = await last_change()
    known = kept.answer(key, seen)
    if known is not None:
        return known
    blocklist = await kept.blocklist()
    entry = await require_env("kv").kv.get(keys.skill(name))
    mark = None if entry is None else (entry.version, blocklist.version)
    known = None if mark is None else kept.same(key, mark, seen)
    if known is not None:
        return known
    skill = await find_skill(name) if entry is None else decode(entry, PublishedSkill)
    gone = skill.current_digest is None or bool(blocklist.hits_skill(skill))
    content = "" if gone else await kept.skill_md(skill.current_digest or "")
    return kept.keep(key, encode(SkillAnswer(detail(skill, blocklist, content))), seen, mark)


async def versions_view(request: Request) -> Response:
    skill = await asked_skill(request)
    records = await version_records(skill)
    return public_json(request, encode(VersionsAnswer(skill.canonical, version_views(skill, records))))


async def version_records(skill: PublishedSkill) -> dict[str, SkillVersion]:
    """The immutable records by number; what cannot be read is left out, counted and logged."""
    env = require_env("kv")
    wanted = {keys.version(skill.canonical, ref.number): ref.number for ref in skill.versions}
    settled = await env.kv.get_many(wanted)
    skips = Skips("skill_versions")
    skips.missing(settled.missing)
    skips.failed(settled.failed)
    found = {wanted[key]: skips.decode(entry, SkillVersion) for key, entry in settled.found.items()}
    skips.report(env)
    return {number: record for number, record in found.items() if record is not None}


ENDPOINTS = (
    get(
        SKILLS,
        list_view,
        query=SkillsQuery,
        answer=SkillsAnswer,
        tag="skills",
        summary="List published skills",
    ),
    get(
        f"{SKILLS}/search",
        search_view,
        query=SkillSearch,
        answer=SearchAnswer,
        tag="skills",
        summary="Search skills by words",
        about="Blocked and withdrawn skills are found too, marked as such and last.",
    ),
    get(
        f"{SKILLS}/facets",
        facets_view,
        answer=FacetsAnswer,
        tag="skills",
        summary="Count published skills by kind",
    ),
    *both(
        "",
        detail_view,
        answer=SkillAnswer,
        problems=(404,),
        tag="skills",
        summary="Read one skill",
        about="A flat name that several skills have is a 404 with the header `X-Legacy-Ambiguous: true`.",
    ),
    *both(
        "/versions",
        versions_view,
        answer=VersionsAnswer,
        problems=(404,),
        tag="skills",
        summary="List the versions of a skill, newest first",
    ),
)

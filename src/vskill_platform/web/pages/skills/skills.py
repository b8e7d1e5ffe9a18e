"""The list of skills: facets as links, sorting, pages, and a search that answers while one types.

Every view of the list is an address. Without scripts the search is a form; with them the same address is asked for
with the header that says that only the results are wanted.
"""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlencode

import msgspec
import re2
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_client.wire.skills import AgeChoice, InstallsChoice, LackNames, OwnerChoice
from vskill_core.capability import Lack
from vskill_core.errors import Ambiguous, InvalidInput, NotFound
from vskill_platform.actions.recall.blocklist_reads import BlockView
from vskill_platform.actions.skills.catalogue import count_catalogue, list_unblocked, search_catalogue
from vskill_platform.actions.skills.skill_names import leave_out_blocked
from vskill_platform.actions.verdicts.skill_security import COMPARE, CompareSkills, SkillComparison
from vskill_platform.domain.skills.catalogue import OFFERED, Facets, Filter, Sort, count_rows, counted_values
from vskill_platform.domain.skills.listing import OTHER
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.kept import answer_recently
from vskill_platform.web.pages.recall.revocations import find_unpublished
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

PATH = "/skills"
PAGE_SIZE = 30
#: Blocks of what was never published that a search shows.
MOST_BLOCKED = 3
#: A facet with many values shows these many.
MOST_VALUES = 12
#: How old the counts beside the list may be.
FACETS_AGE_S = 3.0

Word = Annotated[str, msgspec.Meta(max_length=200)]

SORTS = {Sort.UPDATED: "Recently updated", Sort.NEWEST: "Newest", Sort.INSTALLS: "Most installed"}
#: Each facet's title, in the order of the page, and how a choice of it is said.
FACETS: dict[str, tuple[str, Callable[[str], str]]] = {
    "without": ("What it needs", lambda value: Lack(value).words.capitalize()),
    "category": ("Category", str),
    "licence": ("Licence", str),
    "agent": ("Agent", str),
    "provenance": ("Owner", lambda _: "Verified owner"),
    "min_installs": ("Installs", lambda value: f"{int(value):,} or more"),
    "min_age": ("Age", lambda value: f"{value} days or more"),
    "certification": ("Certification", str.capitalize),
    "trust": ("Trust", str),
}

#: What people search for in words though a filter finds it.
_WISHED = {
    "network": Lack.NETWORK,
    "internet": Lack.NETWORK,
    "secret": Lack.SECRETS,
    "install": Lack.INSTALLS,
    "script": Lack.SCRIPTS,
}
_WISH = re2.compile(
    r"(?i)(?:\b(?:and|that|which|has|with|needs?|uses?|touches) )*"
    rf"\b(?:(?:no|without)(?: any)? ({'|'.join(_WISHED)})\w*(?: (?:access|found|steps?)\b)?|offline\b)"
)


class SkillsQuery(Asked, frozen=True):
    """What a list is asked for; an empty value, as a form sends it, is none."""

    q: Word = ""
    category: Word = ""
    certification: Word = ""
    trust: Word = ""
    agent: Word = ""
    owner: Word = ""
    licence: Word = ""
    without: LackNames = ""
    provenance: OwnerChoice | None = None
    min_installs: InstallsChoice | None = None
    min_age: AgeChoice | None = None
    sort: Sort = Sort.UPDATED
    after: Annotated[str, msgspec.Meta(max_length=2000)] = ""

    @property
    def filters(self) -> Filter:
        names = Filter.__struct_fields__
        return Filter(**{name: getattr(self, name) or None for name in names})

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """What narrows the list: each choice with its facet."""
        given = [(name, getattr(self, name)) for name in (*FACETS, "owner") if getattr(self, name)]
        return [(name, one) for name, value in given for one in _chosen_values(name, value)]

    def toggle(self, name: str, value: str) -> "SkillsQuery":
        """With this choice, or without it where it is chosen; another choice begins at the first page."""
        now = _chosen_values(name, getattr(self, name) or "")
        others = [one for one in now if one != value] if name == "without" else []
        joined = ",".join(others if value in now else [*others, value])
        return msgspec.structs.replace(self, after="", **{name: joined})

    def parameters(self, **changes: object) -> dict[str, str]:
        """What an address of the list says, with something changed."""
        given = {**msgspec.structs.asdict(self), **changes}
        if given["sort"] == Sort.UPDATED:
            given["sort"] = ""
        written = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return {name: str(given[field]) for field, name in written if given[field]}

    def address(self, **changes: object) -> str:
        """The list with something changed, from its first page."""
        text = urlencode(self.parameters(**{"after": "", **changes}), safe=",")
        return f"{PATH}?{text}" if text else PATH


def _chosen_values(name: str, value: str) -> list[str]:
    return (value.split(",") if name == "without" else [value]) if value else []


class OfferedFilters(msgspec.Struct, frozen=True):
    """The filters that a search asks for in words."""

    names: str
    #: The other words of the search.
    words: str
    address: str


def offer_filters(asked: SkillsQuery) -> OfferedFilters | None:
    """The filters that the words of a search ask for."""
    text = " ".join(asked.q.replace(",", " ").split())
    wished = dict.fromkeys(_WISHED[(found[1] or "network").casefold()] for found in _WISH.finditer(text))
    if not wished:
        return None
    words = " ".join(_WISH.sub(" ", text).split())
    without = ",".join(dict.fromkeys((*_chosen_values("without", asked.without), *wished)))
    names = " and ".join(f"“{one.words.capitalize()}”" for one in wished)
    return OfferedFilters(names, words, asked.address(q=words, without=without))


class DroppedFilter(msgspec.Struct, frozen=True):
    """A filter that leaves nothing, with what is found without it."""

    name: str
    address: str
    count: int


class Results(msgspec.Struct, frozen=True):
    """What the list shows."""

    items: tuple[PublishedSkill, ...]
    #: The address of the next page.
    next: str = ""
    truncated: bool = False
    unreadable: int = 0
    #: what the search finds on the blocklist that was never published
    blocked: tuple[BlockView, ...] = ()
    #: What was probably meant, where little was found.
    did_you_mean: str = ""


async def skills(request: Request) -> Response:
    asked = query_of(request, SkillsQuery)
    results = await _results(request, asked)
    counts = await _counts(request, asked, results)
    shown = {
        "asked": asked,
        "results": results,
        # Each with the address that does without it.
        "chosen": [(_name_choice(*one), asked.toggle(*one).address()) for one in asked.chosen],
        "offered": offer_filters(asked),
        "dropped": await _find_dropped(request, asked) if not results.items else (),
        "sorts": SORTS,
        "groups": [(name, title, _choices(asked, name, counts)) for name, (title, _) in FACETS.items()],
        "counts": counts,
        "is_partial": request.headers.get("hx-request-type") == "partial",
    }
    if shown["is_partial"]:
        answer = render(request, "skills_results.html", **shown)
    else:
        # How many there are in all is not worth a question of its own beside a search or filters.
        is_whole = not asked.q.strip() and not asked.chosen
        answer = render(request, "skills.html", **shown, total=counts.total if is_whole else 0)
    # The same address has two answers, and no cache may mix them up.
    answer.headers["vary"] = "HX-Request-Type"
    return answer


async def recent_facets(request: Request) -> Facets:
    """The counts beside a list; they may be a few seconds behind it."""
    reader = principal_of(request)
    return await answer_recently(request, "facets", FACETS_AGE_S, lambda: count_catalogue(reader))


async def _counts(request: Request, asked: SkillsQuery, results: Results) -> Facets:
    """The counts beside the results: of what the search and the filters leave, or of all skills."""
    if asked.filters == Filter() and not asked.q.strip():
        return await recent_facets(request)
    if asked.filters == Filter() and not results.truncated:
        return count_rows(map(counted_values, results.items), Filter())
    return await count_catalogue(principal_of(request), asked.q, asked.filters)


async def _results(request: Request, asked: SkillsQuery) -> Results:
    services, reader = services_of(request), principal_of(request)
    if asked.q.strip():
        hits = await search_catalogue(reader, asked.q, asked.filters, limit=PAGE_SIZE)
        allowed = {one.canonical for one in await leave_out_blocked(services, hits.items)}
        # What is blocked is shown as it will be listed once the pass over the blocklist has come by: withdrawn.
        withdrawn = {"certification": None, "listing": None}
        shown = tuple(
            one if one.canonical in allowed else msgspec.structs.replace(one, **withdrawn)
            for one in hits.items
        )
        # Where something was found, the whole blocklist is looked at only if this process has read it.
        looks = not hits.items or services.kept.blocklist is not None
        blocked = tuple((await find_unpublished(request, asked.q))[:MOST_BLOCKED]) if looks else ()
        return Results(
            shown,
            truncated=hits.truncated,
            unreadable=hits.unreadable,
            blocked=blocked,
            did_you_mean=hits.did_you_mean,
        )
    found = await list_unblocked(
        services, reader, asked.filters, sort=asked.sort, after=asked.after or None, limit=PAGE_SIZE
    )
    following = asked.address(after=found.after) if found.after else ""
    return Results(found.items, following, unreadable=found.unreadable)


def _name_choice(name: str, value: str) -> str:
    title, say = FACETS.get(name, ("Owner", str))
    return say(value) if name in ("without", "provenance") else f"{title}: {say(value)}"


async def _find_dropped(request: Request, asked: SkillsQuery) -> list[DroppedFilter]:
    """The filters of an empty list without which there is something, what is left most first."""
    found = []
    for name, value in asked.chosen:
        without = asked.toggle(name, value)
        counts = await count_catalogue(principal_of(request), asked.q, without.filters)
        if counts.total:
            found.append(DroppedFilter(_name_choice(name, value), without.address(), counts.total))
    return sorted(found, key=lambda one: -one.count)


def _choices(asked: SkillsQuery, name: str, counts: Facets) -> list[dict[str, object]]:
    """The values of a facet, each as a link that sets it, or takes it away where it is set. The most frequent come
    first, what fits no category last; what is chosen is always among them."""
    now = [value for chosen, value in asked.chosen if chosen == name]
    found: dict[str, int] = getattr(counts, name)
    ranked = list(found.items())
    if name not in OFFERED:
        ranked.sort(key=lambda pair: (pair[0] not in now, pair[0] == OTHER, -pair[1], pair[0]))
    return [
        {
            "text": FACETS[name][1](value),
            "count": count,
            # More have it than were counted.
            "is_least": counts.truncated,
            "address": asked.toggle(name, value).address(),
            "chosen": value in now,
        }
        for value, count in ranked[:MOST_VALUES]
    ]


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


ENDPOINTS = (
    page(PATH, skills, query=SkillsQuery, shows=("skill.list", "skill.search", "skill.facets")),
    page("/compare", compare, action=COMPARE, query=CompareQuery),
)

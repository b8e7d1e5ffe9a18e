"""What lists of published skills are asked for and what they give: filters, orders, pages, hits and counts."""

import enum
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from vskill_platform.domain.skills.skill import PublishedSkill

Value = str | int | None


class Filter(msgspec.Struct, frozen=True):
    """What a list is narrowed to; None does not narrow."""

    category: str | None = None
    certification: str | None = None
    trust: str | None = None
    agent: str | None = None
    owner: str | None = None
    licence: str | None = None


class Sort(enum.StrEnum):
    """The order of a list, always the greatest first."""

    UPDATED = "updated"
    NEWEST = "newest"
    INSTALLS = "installs"


class SkillPage(msgspec.Struct, frozen=True):
    """Some skills of a list, and the cursor to go on from."""

    items: tuple[PublishedSkill, ...]
    after: str | None = None
    #: Records that were skipped because they cannot be read.
    unreadable: int = 0


class SkillHits(msgspec.Struct, frozen=True):
    """What a search found, best first; what cannot be installed any more comes last."""

    items: tuple[PublishedSkill, ...]
    truncated: bool = False
    unreadable: int = 0
    #: what was probably meant, where little was found; what fits that is among the items
    did_you_mean: str = ""


def prefer_established(skills: Sequence[PublishedSkill]) -> tuple[PublishedSkill, ...]:
    """The same order, but of skills with one name the one that holds it comes first, then the oldest. So a newcomer
    that copies a name stands behind, on every engine."""
    same: dict[str, list[PublishedSkill]] = {}
    for skill in skills:
        same.setdefault(skill.name.lower(), []).append(skill)
    ordered = {name: iter(sorted(found, key=_establishment)) for name, found in same.items()}
    return tuple(next(ordered[skill.name.lower()]) for skill in skills)


def _establishment(skill: PublishedSkill) -> tuple[bool, int, str]:
    return skill.name.lower() not in skill.listed_as.values(), skill.created_at, skill.canonical


class Facets(msgspec.Struct, frozen=True):
    """How many listed skills there are of each kind: of all exactly, of a search up to the most that it counts."""

    #: of those that every filter leaves
    total: int
    category: dict[str, int]
    certification: dict[str, int]
    trust: dict[str, int]
    agent: dict[str, int]
    licence: dict[str, int]
    #: more skills fit than were counted
    truncated: bool = False


#: What is counted.
FACETS = ("category", "certification", "trust", "agent", "licence")
#: What counting a search needs to know of each skill.
COUNTED_BY = (*FACETS, "owner")


def count_rows(rows: Iterable[Sequence[Value]], filters: Filter, *, truncated: bool = False) -> Facets:
    """The counts of what a search found, given as values of `COUNTED_BY`: of each facet among what the other filters
    leave, so that another value of it can be chosen. What cannot be installed has no category, and is not counted."""
    chosen = {name: value for name, value in msgspec.structs.asdict(filters).items() if value is not None}
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    total = 0
    for row in rows:
        found = dict(zip(COUNTED_BY, row, strict=True))
        if found["category"] is None:
            continue
        differing = {name for name, value in chosen.items() if found[name] != value}
        total += not differing
        for name in FACETS:
            if differing <= {name}:
                counts[name][str(found[name])] += 1
    return facets_of([dict(counts[name]) for name in FACETS], total, truncated=truncated)


def counted_values(skill: PublishedSkill) -> tuple[str | None, ...]:
    """A skill's values of `COUNTED_BY`."""
    if skill.listing is None:
        return (None,) * len(COUNTED_BY)
    listing = skill.listing
    return (
        listing.category,
        skill.certification,
        listing.trust_tier,
        listing.agent,
        listing.licence,
        skill.owner,
    )


def facets_of(counts: Sequence[dict[str, int]], total: int, *, truncated: bool = False) -> Facets:
    """Counts in the order of `FACETS`."""
    category, certification, trust, agent, licence = counts
    return Facets(total, category, certification, trust, agent, licence, truncated)

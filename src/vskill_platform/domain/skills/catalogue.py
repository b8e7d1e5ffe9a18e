"""What lists of published skills are asked for and what they give: filters, orders, pages, hits and counts."""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import msgspec

from vskill_core.capability import Lack
from vskill_platform.domain.skills.listing import AGE_DAYS, join_lacks
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.trust import INSTALL_STEPS, Provenance

Value = str | int | None

#: Everything that a version can be without, as `Listing.without` says it.
_LACKING = tuple(
    str(join_lacks(some)) for number in range(1, len(Lack) + 1) for some in combinations(Lack, number)
)
_STEPS = {"min_installs": INSTALL_STEPS, "min_age": AGE_DAYS}
#: The facets that are not chosen by the values that skills have, with what can be chosen.
OFFERED: Mapping[str, tuple[str, ...]] = {
    "without": tuple(Lack),
    "provenance": (Provenance.VERIFIED.value,),
    **{name: tuple(map(str, steps)) for name, steps in _STEPS.items()},
}


class Filter(msgspec.Struct, frozen=True):
    """What a list is narrowed to; None does not narrow."""

    category: str | None = None
    certification: str | None = None
    trust: str | None = None
    agent: str | None = None
    owner: str | None = None
    licence: str | None = None
    #: `Lack`s, separated by commas
    without: str | None = None
    provenance: str | None = None
    #: one of the steps, or more
    min_installs: str | None = None
    min_age: str | None = None

    def values(self) -> dict[str, tuple[str, ...]]:
        given = msgspec.structs.asdict(self)
        return {name: _fitting(name, value) for name, value in given.items() if value is not None}


def _fitting(name: str, value: str) -> tuple[str, ...]:
    if name == "without":
        return tuple(one for one in _LACKING if set(value.split(",")) <= set(one.split(",")))
    if name in _STEPS:
        return tuple(str(step) for step in _STEPS[name] if step >= int(value))
    return (value,)


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
    """How many listed skills each choice leaves: of all exactly, of a search or a narrowed list up to the most that are
    counted."""

    #: of those that every filter leaves
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


#: What is counted.
FACETS = Facets.__struct_fields__[1:-1]
#: What counting a search needs to know of each skill.
COUNTED_BY = (*FACETS, "owner")


def count_rows(rows: Iterable[Sequence[Value]], filters: Filter, *, truncated: bool = False) -> Facets:
    """The counts of what was found, given as values of `COUNTED_BY`: of each facet among what the other filters leave,
    so that another value of it can be chosen. What cannot be installed has no category, and is not counted."""
    chosen = filters.values()
    counts: dict[str, Counter[str | None]] = {name: Counter() for name in FACETS}
    total = 0
    for row in rows:
        found = dict(zip(COUNTED_BY, row, strict=True))
        if found["category"] is None:
            continue
        differing = {name for name, values in chosen.items() if found[name] not in values}
        total += not differing
        for name in FACETS:
            if differing <= {name}:
                counts[name][None if found[name] is None else str(found[name])] += 1
    return facets_of(counts, total, filters, truncated=truncated)


def counted_values(skill: PublishedSkill) -> tuple[str | None, ...]:
    shown = skill.listing
    if shown is None:
        return (None,) * len(COUNTED_BY)
    about = (shown.category, skill.certification, shown.trust_tier, shown.agent, shown.licence)
    return (*about, shown.without, shown.provenance, shown.min_installs, shown.min_age, skill.owner)


def facets_of(
    counts: Mapping[str, Mapping[str | None, int]], total: int, filters: Filter, *, truncated: bool = False
) -> Facets:
    choices = {name: _choices(name, counts[name], filters) for name in FACETS}
    return Facets(total=total, **choices, truncated=truncated)


def _choices(name: str, counts: Mapping[str | None, int], filters: Filter) -> dict[str, int]:
    """What may be without several things is chosen one by one, so each choice is counted with those before it."""
    if name not in OFFERED:
        return {value: n for value, n in counts.items() if value is not None}
    before = f"{filters.without}," if name == "without" and filters.without else ""
    summed = {
        choice: sum(counts.get(value, 0) for value in _fitting(name, before + choice))
        for choice in OFFERED[name]
    }
    return {choice: n for choice, n in summed.items() if n}

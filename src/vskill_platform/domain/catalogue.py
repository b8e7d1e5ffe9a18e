"""What lists of published skills are asked for and what they give: filters, orders, pages, hits and counts."""

import enum
from collections.abc import Sequence

import msgspec

from vskill_platform.domain.skill import PublishedSkill


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
    """How many listed skills there are of each kind; exact, kept by the engine."""

    category: dict[str, int]
    certification: dict[str, int]
    trust: dict[str, int]
    agent: dict[str, int]
    licence: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.category.values())

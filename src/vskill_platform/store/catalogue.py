"""The marketplace's lists: skills with a live version, filtered, sorted, searched and counted by the engine itself.

There is no index of our own to lose or to lag behind (A1, A12): every answer is a question over the skill
records, one round trip each, whatever their number.
"""

import enum

import msgspec

from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.entries import Entry
from vskill_platform.kv.query import Condition, Is
from vskill_platform.records import Skips
from vskill_platform.worker_context import require_env


class Filter(msgspec.Struct, frozen=True):
    """What a list is narrowed to; None does not narrow."""

    category: str | None = None
    certification: str | None = None
    trust: str | None = None
    agent: str | None = None
    owner: str | None = None
    licence: str | None = None

    def conditions(self) -> dict[str, Condition]:
        given = msgspec.structs.asdict(self)
        return {name: Is(value) for name, value in given.items() if value is not None}


class Sort(enum.StrEnum):
    """The order of a list, always the greatest first."""

    UPDATED = "updated"
    NEWEST = "newest"
    INSTALLS = "installs"


_ORDERS = {Sort.UPDATED: "listed_at", Sort.NEWEST: "first_at", Sort.INSTALLS: "installs"}


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


async def list_skills(
    filters: Filter | None = None, sort: Sort = Sort.UPDATED, after: str | None = None, limit: int = 30
) -> SkillPage:
    env = require_env("kv")
    page = await env.kv.select(
        SKILLS.prefix,
        where=(filters or Filter()).conditions(),
        order_by=_ORDERS[sort],
        descending=True,
        after=after,
        limit=limit,
    )
    skips = Skips("list_skills")
    skips.failed(page.failed)
    items = _decoded(page.items, skips)
    skips.report(env)
    return SkillPage(items, page.after, len(page.items) - len(items))


async def search_skills(text: str, filters: Filter | None = None, limit: int = 30) -> SkillHits:
    env = require_env("kv")
    found = await env.kv.search(SKILLS.prefix, text, where=(filters or Filter()).conditions(), limit=limit)
    skips = Skips("search_skills")
    items = _decoded(found.items, skips)
    skips.report(env)
    shown = sorted(items, key=lambda skill: skill.listing is None)
    return SkillHits(tuple(shown), found.truncated, len(found.items) - len(items))


async def facets() -> Facets:
    """Every facet's counts. Withdrawn skills have none of these facts, so they are not counted."""
    counted = await require_env("kv").kv.count_all(SKILLS.prefix)
    return Facets(
        **{
            name: {value: n for value, n in counted[name].items() if value is not None}
            for name in Facets.__struct_fields__
        }
    )


def _decoded(entries: tuple[Entry, ...], skips: Skips) -> tuple[PublishedSkill, ...]:
    found = (skips.decode(entry, PublishedSkill) for entry in entries)
    return tuple(skill for skill in found if skill is not None)

"""The marketplace's lists: skills with a live version, filtered, sorted, searched and counted by the engine itself.

There is no index of our own to lose or to lag behind (A1, A12): every answer is a question over the skill
records, one round trip each, whatever their number. Every one of them says for which audiences it is asked, and finds
the skills of those only.
"""

import msgspec

from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.catalogue import Facets, Filter, SkillHits, SkillPage, Sort, prefer_established
from vskill_platform.domain.names import holder_for
from vskill_platform.domain.naming import hyphenate
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.entries import Entry
from vskill_platform.kv.query import Condition, Is
from vskill_platform.records import Skips
from vskill_platform.store.names import read_name
from vskill_platform.store.skills import read_skills
from vskill_platform.worker_context import require_env

_ORDERS = {Sort.UPDATED: "listed_at", Sort.NEWEST: "first_at", Sort.INSTALLS: "installs"}


async def list_skills(
    filters: Filter | None = None,
    sort: Sort = Sort.UPDATED,
    after: str | None = None,
    limit: int = 30,
    *,
    audiences: Audiences,
) -> SkillPage:
    env = require_env("kv")
    page = await env.kv.select(
        SKILLS.prefix,
        audiences=audiences,
        where=_conditions(filters),
        order_by=_ORDERS[sort],
        descending=True,
        after=after,
        limit=limit,
    )
    skips = Skips("list_skills")
    skips.failed(page.failed)
    items = _decode_all(page.items, skips)
    skips.report(env)
    return SkillPage(items, page.after, len(page.items) - len(items))


async def search_skills(
    text: str, filters: Filter | None = None, limit: int = 30, *, audiences: Audiences
) -> SkillHits:
    env = require_env("kv")
    found = await env.kv.search(
        SKILLS.prefix, text, audiences=audiences, where=_conditions(filters), limit=limit
    )
    skips = Skips("search_skills")
    items = _decode_all(found.items, skips)
    skips.report(env)
    unreadable = len(found.items) - len(items)
    if found.truncated and filters is None:
        items = await _with_holder(text, items, audiences)
    shown = sorted(prefer_established(items), key=lambda skill: skill.listing is None)
    return SkillHits(tuple(shown), found.truncated, unreadable)


async def _with_holder(
    text: str, items: tuple[PublishedSkill, ...], audiences: Audiences
) -> tuple[PublishedSkill, ...]:
    """Many newcomers that copy a name must not push its holder out of the answer."""
    holder = holder_for(await read_name(hyphenate(text) or "-"), audiences)
    if holder is None or any(one.canonical == holder.canonical for one in items):
        return items
    found = await read_skills([holder.canonical], audiences=audiences)
    return (*found.values(), *items[: len(items) - len(found)])


async def count_facets(*, audiences: Audiences) -> Facets:
    """Every facet's counts. Withdrawn skills have none of these facts, so they are not counted."""
    names = Facets.__struct_fields__
    counted = await require_env("kv").kv.count_all(SKILLS.prefix, audiences=audiences)
    return Facets(
        **{name: {value: n for value, n in counted[name].items() if value is not None} for name in names}
    )


def _conditions(filters: Filter | None) -> dict[str, Condition]:
    given = msgspec.structs.asdict(filters or Filter())
    return {name: Is(value) for name, value in given.items() if value is not None}


def _decode_all(entries: tuple[Entry, ...], skips: Skips) -> tuple[PublishedSkill, ...]:
    found = (skips.decode(entry, PublishedSkill) for entry in entries)
    return tuple(skill for skill in found if skill is not None)

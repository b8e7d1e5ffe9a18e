"""The marketplace's lists: skills with a live version, filtered, sorted, searched and counted by the engine itself.

There is no index of our own that could be lost or lag behind (A1, A12): every answer is one query over the skill
records, in one round trip. Every query names its audiences, and finds only their skills.
"""

from collections.abc import Mapping

import msgspec

from vskill_core.naming import hyphenate
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.catalogue import (
    COUNTED_BY,
    Facets,
    Filter,
    SkillHits,
    SkillPage,
    Sort,
    count_rows,
    counted_values,
    facets_of,
    prefer_established,
)
from vskill_platform.domain.skills.known_words import KnownWords
from vskill_platform.domain.skills.names import holder_for
from vskill_platform.domain.skills.ranking import score
from vskill_platform.domain.skills.search import finding_query, holds_any, replace_words, wanted_terms
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import Entry, SearchCandidate
from vskill_platform.ledger.kv.query import Condition, In, Is, in_order
from vskill_platform.records import Skips
from vskill_platform.store.skills.names import read_name
from vskill_platform.store.skills.skills import read_skills
from vskill_platform.store.skills.vocabulary import read_known_words
from vskill_platform.worker_context import require_env

#: How many results of the engine a search ranks, and how many it counts.
MOST_CANDIDATES, MOST_COUNTED = 300, 1_000
#: How many of the best results are read, so that the holder of a shared name is among them.
MOST_READ = 50
#: The fields needed to rank and count the candidates of a search.
_NEEDED = ("weight", *COUNTED_BY)

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
    """The best matches of the words or, if nothing matches, of the words that were probably meant."""
    env = require_env("kv")
    where = _conditions(filters)
    found = await _find(text, where, audiences, max(limit, MOST_CANDIDATES))
    wanted = [one.key for one in found.ranked[: max(limit, MOST_READ)]]
    settled = await env.kv.get_many(wanted)
    skips = Skips("search_skills")
    skips.failed(settled.failed)
    items = _decode_all(in_order(settled, wanted, SKILLS, audiences), skips)
    if len(found.ranked) > len(wanted) and not where:
        items = await _with_holder(text, items, audiences)
    skips.report(env)
    is_truncated = found.truncated or len(found.ranked) > limit
    return SkillHits(prefer_established(items)[:limit], is_truncated, skips.count, found.meant)


class _Ranked(msgspec.Struct, frozen=True):
    """The candidates of a search, best first."""

    ranked: list[SearchCandidate]
    truncated: bool
    #: the text that was probably meant, where these are its candidates
    meant: str = ""


async def _find(
    text: str, where: Mapping[str, Condition], audiences: Audiences, most: int = MOST_COUNTED
) -> _Ranked:
    known = await read_known_words()
    found = await _search(text, known, where, audiences, most)
    meant = known.correct(text)
    if not meant or any(holds_any(meant, one.texts) for one in found.ranked):
        return found
    corrected = replace_words(text, meant)
    again = await _search(corrected, known, where, audiences, most)
    return msgspec.structs.replace(again, meant=corrected) if again.ranked else found


async def _search(
    text: str, known: KnownWords, where: Mapping[str, Condition], audiences: Audiences, most: int
) -> _Ranked:
    terms = wanted_terms(text, known)
    found = await require_env("kv").kv.search(
        SKILLS.prefix,
        finding_query(terms, known),
        audiences=audiences,
        where=where,
        fields=_NEEDED,
        limit=most,
    )

    def place(one: SearchCandidate) -> tuple[bool, float, int, str]:
        weight, category, *_ = one.values
        return category is None, -score(one.texts, terms), -int(weight or 0), one.key

    return _Ranked(sorted(found.items, key=place), found.truncated)


async def _with_holder(
    text: str, items: tuple[PublishedSkill, ...], audiences: Audiences
) -> tuple[PublishedSkill, ...]:
    """Add the holder of the name, which many copies of the name could otherwise push out."""
    holder = holder_for(await read_name(hyphenate(text) or "-"), audiences)
    if holder is None or any(one.canonical == holder.canonical for one in items):
        return items
    found = await read_skills([holder.canonical], audiences=audiences)
    return (*found.values(), *items[: len(items) - len(found)])


async def count_facets(*, audiences: Audiences) -> Facets:
    """Every facet's counts. Withdrawn skills have none of these facts, so they are not counted."""
    counted = await require_env("kv").kv.count_all(SKILLS.prefix, audiences=audiences)
    return facets_of(
        counted, sum(n for value, n in counted["category"].items() if value is not None), Filter()
    )


async def count_listed(filters: Filter, *, audiences: Audiences) -> Facets:
    """The counts of a narrowed list, of the most recent where there are too many to count."""
    page = await list_skills(filters, limit=MOST_COUNTED, audiences=audiences)
    return count_rows(map(counted_values, page.items), filters, truncated=page.after is not None)


async def count_found(text: str, filters: Filter | None = None, *, audiences: Audiences) -> Facets:
    """The counts of what a search finds, up to the most that an engine gives; then it says so."""
    found = await _find(text, {}, audiences)
    rows = (one.values[1:] for one in found.ranked)
    return count_rows(rows, filters or Filter(), truncated=found.truncated)


def _conditions(filters: Filter | None) -> dict[str, Condition]:
    given = (filters or Filter()).values()
    return {name: Is(values[0]) if len(values) == 1 else In(values) for name, values in given.items()}


def _decode_all(entries: tuple[Entry, ...], skips: Skips) -> tuple[PublishedSkill, ...]:
    return tuple(skips.decode_all(entries, PublishedSkill))

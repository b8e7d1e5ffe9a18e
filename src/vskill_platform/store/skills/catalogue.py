"""The marketplace's lists: skills with a live version, filtered, sorted, searched and counted by the engine itself.

There is no index of our own to lose or to lag behind (A1, A12): every answer is a question over the skill
records, one round trip each, whatever their number. Every one of them says for which audiences it is asked, and finds
the skills of those only.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

import msgspec
import structlog

from vskill_core.errors import StoreTimeout
from vskill_core.naming import hyphenate
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.skills.catalogue import (
    COUNTED_BY,
    FACETS,
    Facets,
    Filter,
    SkillHits,
    SkillPage,
    Sort,
    count_rows,
    counted_values,
    facets_of,
)
from vskill_platform.domain.skills.names import holder_for
from vskill_platform.domain.skills.ranking import rank
from vskill_platform.domain.skills.search import Loosening, telling_words, wanted_words
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import Entry, Found
from vskill_platform.ledger.kv.query import Condition, Is
from vskill_platform.records import Skips
from vskill_platform.store.skills.names import read_name
from vskill_platform.store.skills.skills import read_skills
from vskill_platform.store.skills.vocabulary import read_speller
from vskill_platform.worker_context import require_env

#: What a search takes from the engine to be ranked.
MOST_CANDIDATES = 300
#: Fewer hits than this are few: other words are tried too.
FEW = 3
#: As many words as say little one by one.
PAIR = 2
#: How long other words are tried; what is found by then is the answer.
FURTHER_S = 2.0

_log = structlog.get_logger(__name__)
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
    text: str,
    filters: Filter | None = None,
    limit: int = 30,
    *,
    audiences: Audiences,
    further_s: float = FURTHER_S,
) -> SkillHits:
    """What fits the words. Where little does, what fits the words that were probably meant, or most of the words,
    stands behind it: a suggestion adds and never takes away. Where the store has no time for suggestions, the answer is
    what fits the words, and says that there may be more."""
    env = require_env("kv")
    skips = Skips("search_skills")
    where = _conditions(filters)
    most = max(limit, MOST_CANDIDATES)
    found = await _search(text, where, audiences, most)
    items = _decode_all(found.items, skips)
    if found.truncated and not where:
        items = await _with_holder(text, items, audiences)
    ranked, meant, is_cut = rank(items, text), "", False
    if len(found.items) < FEW:
        speller = await read_speller()
        meant = speller.correct(text)
        known = speller.loosen(meant or text)
        more: list[Entry] = []
        try:
            async with asyncio.timeout(further_s):
                async for entries in _search_further(text, meant, known, found, where, audiences):
                    more += entries
        except (StoreTimeout, TimeoutError):
            is_cut = True
            _log.warning("search cut short", words=len(known.weights), found=len(found.items) + len(more))
        further = rank(_decode_all(tuple(more), skips), meant or text, known.weights)
        ranked, meant = (*ranked, *further), meant if further else ""
    skips.report(env)
    is_truncated = found.truncated or is_cut or len(ranked) > limit
    return SkillHits(ranked[:limit], is_truncated, skips.count, meant)


async def _search(
    text: str,
    where: Mapping[str, Condition],
    audiences: Audiences,
    most: int = MOST_CANDIDATES,
    *,
    loosely: Loosening | None = None,
) -> Found:
    return await require_env("kv").kv.search(
        SKILLS.prefix, text, audiences=audiences, where=where, limit=most, loosely=loosely
    )


async def _search_further(
    text: str,
    meant: str,
    known: Loosening,
    found: Found,
    where: Mapping[str, Condition],
    audiences: Audiences,
) -> AsyncIterator[list[Entry]]:
    """What fits a corrected text, then most of the words by their weight, without what was found already."""
    seen = {entry.key for entry in found.items}
    count = len(found.items)
    if meant:
        entries = (await _search(meant, where, audiences)).items
        count += len(entries)
        yield _without(entries, seen)
    # One of two words alone says little: that is looked for only where there is nothing else.
    is_long = len(telling_words(wanted_words(meant or text))) > PAIR
    if not count or (is_long and count < FEW):
        yield _without((await _search(meant or text, where, audiences, loosely=known)).items, seen)


def _without(entries: Iterable[Entry], seen: set[str]) -> list[Entry]:
    """Those that were not seen, which are seen now."""
    new = [entry for entry in entries if entry.key not in seen]
    seen.update(entry.key for entry in new)
    return new


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
    counted = await require_env("kv").kv.count_all(SKILLS.prefix, audiences=audiences)
    known = [{value: n for value, n in counted[name].items() if value is not None} for name in FACETS]
    return facets_of(known, sum(known[0].values()))


async def count_found(text: str, filters: Filter | None = None, *, audiences: Audiences) -> Facets:
    """The counts of what a search finds, up to the most that an engine gives; then it says so."""
    found = await require_env("kv").kv.search_values(SKILLS.prefix, text, COUNTED_BY, audiences=audiences)
    if len(found.rows) >= FEW:
        return count_rows(found.rows, filters or Filter(), truncated=found.truncated)
    hits = await search_skills(text, limit=MOST_CANDIDATES, audiences=audiences)
    return count_rows(map(counted_values, hits.items), filters or Filter(), truncated=hits.truncated)


def _conditions(filters: Filter | None) -> dict[str, Condition]:
    given = msgspec.structs.asdict(filters or Filter())
    return {name: Is(value) for name, value in given.items() if value is not None}


def _decode_all(entries: tuple[Entry, ...], skips: Skips) -> tuple[PublishedSkill, ...]:
    return tuple(skips.decode_all(entries, PublishedSkill))

"""The words of public skills, by which a search suggests what was meant. A job writes them; a search reads them where
it finds little, and a process keeps them until they change."""

from collections import Counter

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.domain.errors import CursorGone
from vskill_platform.domain.spelling import Speller, Vocabulary, count_words, vocabulary_of
from vskill_platform.records import decode
from vskill_platform.submission_store import iter_published_skills
from vskill_platform.worker_context import require_env

EVERY_MS = 1_800_000
#: More different words than this are cut to the frequent ones on the way, so that the job needs little memory.
_MOST_COUNTED = 200_000


async def follow_words(after: str | None) -> str:
    """Make the vocabulary anew where a skill has changed since a cursor; the cursor to go on from."""
    kv = require_env("kv").kv
    cursor = await kv.change_cursor()
    try:
        unchanged = after is not None and not (await kv.changes(keys.SKILL, after=after, limit=1)).items
    except CursorGone:
        unchanged = False
    if not unchanged:
        await write_vocabulary()
    return cursor


async def write_vocabulary() -> None:
    """Count the words of every public skill that can be installed, and write them where they differ."""
    counts: Counter[str] = Counter()
    async for skill in iter_published_skills(audiences=PUBLIC_ONLY):
        count_words(counts, (skill.canonical, skill.name, skill.description))
        if len(counts) > _MOST_COUNTED:
            counts = Counter(dict(counts.most_common(_MOST_COUNTED // 2)))
    kv = require_env("kv").kv
    value = msgspec.json.encode(vocabulary_of(counts))
    known = await kv.get(keys.CONTROL_VOCABULARY)
    if known is None or known.value != value:
        await kv.put(keys.CONTROL_VOCABULARY, value)


async def read_speller() -> Speller:
    """What the last vocabulary knows; nothing before the first."""
    env = require_env("kv")
    entry = await env.kv.get(keys.CONTROL_VOCABULARY)
    version = 0 if entry is None else entry.version
    known = env.kept.speller
    if known is None or known[0] != version:
        words = Vocabulary() if entry is None else decode(entry, Vocabulary)
        known = env.kept.speller = (version, Speller(words))
    return known[1]

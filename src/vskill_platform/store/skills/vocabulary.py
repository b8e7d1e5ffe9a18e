"""The words of public skills, by which a search suggests what was meant. A job writes them; a search reads them where
it finds little, and a process keeps them until they change."""

from collections import Counter

import msgspec

from vskill_core.errors import CursorGone
from vskill_platform.domain import keys
from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.domain.skills.spelling import Speller, Vocabulary, count_words, vocabulary_of
from vskill_platform.records import decode
from vskill_platform.submission_store import iter_published_skills
from vskill_platform.worker_context import require_env

EVERY_MS = 60_000
#: Making it reads every skill, so it rests the longer the more there are: a minute for 3,000, half an hour for 100,000.
REST_MS_EACH = 18
LONGEST_REST_MS = 1_800_000
#: More different words than this are cut to the frequent ones on the way, so that the job needs little memory.
_MOST_COUNTED = 200_000


class VocabularyProgress(msgspec.Struct, frozen=True):
    """What the job keeps from one run to the next."""

    #: Where the changes of skills are followed from.
    cursor: str | None = None
    #: Not made anew before then.
    rests_until: int = 0


async def follow_words(progress: VocabularyProgress) -> VocabularyProgress:
    """Make the vocabulary anew where a skill has changed, unless it was made a moment ago."""
    kv = require_env("kv").kv
    # A longer rest was noted before the clock was put back.
    if 0 < progress.rests_until - kv.now() <= LONGEST_REST_MS:
        return progress
    cursor = await kv.change_cursor()
    if progress.cursor is not None and not await _has_changed(progress.cursor):
        return msgspec.structs.replace(progress, cursor=cursor)
    counted = await write_vocabulary()
    return VocabularyProgress(cursor, kv.now() + min(counted * REST_MS_EACH, LONGEST_REST_MS))


async def _has_changed(since: str) -> bool:
    try:
        return bool((await require_env("kv").kv.changes(keys.skill.prefix, after=since, limit=1)).items)
    except CursorGone:
        return True


async def write_vocabulary() -> int:
    """Count the words of every public skill that can be installed, and write them where they differ; the number of
    skills."""
    counts: Counter[str] = Counter()
    skills = 0
    async for skill in iter_published_skills(audiences=PUBLIC_ONLY):
        skills += 1
        count_words(counts, (skill.canonical, skill.name, skill.description))
        if len(counts) > _MOST_COUNTED:
            counts = Counter(dict(counts.most_common(_MOST_COUNTED // 2)))
    kv = require_env("kv").kv
    value = msgspec.json.encode(vocabulary_of(counts))
    known = await kv.get(keys.CONTROL_VOCABULARY)
    if known is None or known.value != value:
        await kv.put(keys.CONTROL_VOCABULARY, value)
    return skills


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

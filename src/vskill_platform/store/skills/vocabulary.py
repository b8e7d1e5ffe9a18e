"""The words of public skills, by which a search weighs words and suggests what was meant. A job writes them; every
search uses them, and a process keeps them for some seconds."""

import msgspec

from vskill_core.errors import CursorGone
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.skills.known_words import KnownWords, Vocabulary, WordCounts
from vskill_platform.records import decode
from vskill_platform.submission_store import iter_published_skills
from vskill_platform.worker_context import require_env

EVERY_MS = 60_000
#: Making it reads every skill, so the pause grows with their number: a minute for 3,000, half an hour for 100,000.
REST_MS_EACH = 18
LONGEST_REST_MS = 1_800_000
#: How long a process uses what it has read.
KEPT_MS = 10_000
#: Format version; a new number makes the job rebuild it at once.
_FORM = 2


class VocabularyProgress(msgspec.Struct, frozen=True):
    """What the job keeps from one run to the next."""

    #: Cursor in the changes of skills.
    cursor: str | None = None
    #: Not rebuilt before this time.
    rests_until: int = 0
    #: Its format version.
    form: int = 0


async def follow_words(progress: VocabularyProgress) -> VocabularyProgress:
    """Rebuild the vocabulary if a skill has changed, unless it was rebuilt recently."""
    kv = require_env("kv").kv
    # A longer pause was noted before the clock went back, and does not count.
    if progress.form == _FORM and 0 < progress.rests_until - kv.now() <= LONGEST_REST_MS:
        return progress
    cursor = await kv.change_cursor()
    if progress.form == _FORM and progress.cursor is not None and not await _has_changed(progress.cursor):
        return msgspec.structs.replace(progress, cursor=cursor)
    counted = await write_vocabulary()
    return VocabularyProgress(cursor, kv.now() + min(counted * REST_MS_EACH, LONGEST_REST_MS), _FORM)


async def _has_changed(since: str) -> bool:
    try:
        return bool((await require_env("kv").kv.changes(keys.skill.prefix, after=since, limit=1)).items)
    except CursorGone:
        return True


async def write_vocabulary() -> int:
    """Count the words of every public, installable skill, and write them if they changed; the number of skills."""
    env = require_env("kv")
    counts = WordCounts()
    async for skill in iter_published_skills(audiences=PUBLIC_ONLY):
        counts.add((skill.canonical, skill.name, skill.description))
    value = msgspec.json.encode(counts.vocabulary())
    known = await env.kv.get(keys.CONTROL_VOCABULARY)
    if known is None or known.value != value:
        await env.kv.put(keys.CONTROL_VOCABULARY, value)
        env.kept.known_words = None
    return counts.skills


async def read_known_words() -> KnownWords:
    """The words of the last vocabulary; empty before the first."""
    env = require_env("kv")
    now, kept = env.kv.now(), env.kept.known_words
    if kept is None or not 0 <= kept[0] - now <= KEPT_MS:
        entry = await env.kv.get(keys.CONTROL_VOCABULARY)
        version = 0 if entry is None else entry.version
        if kept is not None and kept[1] == version:
            known = kept[2]
        else:
            known = KnownWords(Vocabulary() if entry is None else decode(entry, Vocabulary))
        kept = env.kept.known_words = (now + KEPT_MS, version, known)
    return kept[2]

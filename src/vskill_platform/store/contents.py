"""Who may read content by its digest. Facts about content are stored by digest alone, so a reader gets them only if
they may read a skill or submission that holds it."""

from vskill_platform.domain.audience import EVERYTHING, Audiences
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Is
from vskill_platform.records import entries_of, readable
from vskill_platform.worker_context import require_env


async def may_read_content(digest: str, audiences: Audiences) -> bool:
    """Whether a reader of these audiences may read a skill or a submission that holds this content now. Always two
    reads, so that timing reveals nothing."""
    skills, submissions = await find_holders(digest)
    return any(readable(entry, audiences) for entry in (*skills, *submissions))


async def find_holders(digest: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """The skills whose current version has this content, and the submissions that hold it now."""
    kv = require_env("kv").kv
    skills = await kv.select(SKILLS.prefix, audiences=EVERYTHING, where={"current_digest": Is(digest)})
    submissions = await kv.select(SUBMISSIONS.prefix, audiences=EVERYTHING, where={"digest": Is(digest)})
    return entries_of(skills), entries_of(submissions)

"""Which contents are owed an external scan: a scheduled job that follows the published skills.

It follows the records, not an event of the publish, so a worker that dies in between loses nothing. After a start, a
gap in the changes, or a change of the analysers it walks over all skills once; then it follows changes. It asks for a
few at a time, so that fresh submissions do not wait behind analysers.
"""

import msgspec

from vskill_core.errors import CursorGone
from vskill_platform.domain.keys import is_alias
from vskill_platform.domain.operation.task import TaskState, task_key
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.skill import PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.external_scan.contract import is_wanted
from vskill_platform.external_scan.dispatch import ANALYSERS, provider_names, request_scans
from vskill_platform.ledger.kv.collections import SKILLS, TASKS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, Is
from vskill_platform.records import decode_readable, entries_of
from vskill_platform.store.external_scans import EXTERNAL_SCAN
from vskill_platform.worker_context import require_env

#: At most this many analyses are under way at once.
MOST_OPEN = 8
#: If more tasks of any kind are due, no more analyses are asked for.
MOST_DUE = 200
#: Skills or changes looked at in one step.
STEP = 100


class LookPosition(msgspec.Struct, frozen=True):
    """Where the last look ended."""

    #: The analysers of that time, as one text; None before the first look.
    providers: str | None = None
    #: All changes up to here are seen, once the walk is over.
    cursor: str | None = None
    #: The last skill of the walk over all of them; None: the walk is over.
    walked_to: str | None = None


async def request_due_scans(position: LookPosition, step: int = STEP) -> LookPosition:
    """Ask for missing scans, as far as there is room; returns the next position."""
    names = await provider_names()
    if position.cursor is None or position.providers != " ".join(names):
        position = await _begin(names)
    room = await _room() if names else 0
    while room > 0 and position.walked_to is not None:
        position, room = await _walk(position, room, step)
    if room > 0:
        position = await _follow(position, room, step)
    return position


async def _begin(names: tuple[str, ...]) -> LookPosition:
    """Start a walk at the first skill, and note the cursor from which changes are followed afterwards."""
    env = require_env("kv")
    missing = [
        kind.name for kind in ANALYSERS if kind.name not in names and is_wanted(kind.name, env.settings)
    ]
    if missing:
        effect = "their reports are not shown beside the verdict"
        env.log.warning("degraded mode: analysers not installed", missing=missing, effect=effect)
    return LookPosition(" ".join(names), await env.kv.change_cursor(), "")


async def _room() -> int:
    """How many more analyses may start. Claimed tasks and those due soon count; waiting for a callback does not."""
    kv = require_env("kv").kv
    soon = Between(most=kv.now() + CLAIM_MS)
    page = await kv.select(
        TASKS.prefix,
        audiences=EVERYTHING,
        where={"state": Is(TaskState.ACTIVE.value), "due_at": soon},
        order_by="due_at",
        limit=MOST_DUE,
    )
    ours = sum(entry.key.startswith(task_key(EXTERNAL_SCAN, "")) for entry in page.items)
    return 0 if page.after is not None else MOST_OPEN - ours


async def _walk(position: LookPosition, room: int, step: int) -> tuple[LookPosition, int]:
    """A step over the skills in the order of their keys."""
    kv = require_env("kv").kv
    page = await kv.scan(SKILLS.prefix, after=position.walked_to or None, limit=step, exclude=SKILLS.exclude)
    for entry in entries_of(page):
        if room <= 0:
            return position, room
        room -= await _request(entry)
        position = msgspec.structs.replace(position, walked_to=entry.key)
    return msgspec.structs.replace(position, walked_to=page.after), room


async def _follow(position: LookPosition, room: int, step: int) -> LookPosition:
    """Skills that changed since the last look."""
    kv = require_env("kv").kv
    while room > 0:
        try:
            page = await kv.changes(SKILLS.prefix, after=position.cursor, limit=step)
        except CursorGone:
            return msgspec.structs.replace(position, cursor=None)
        for change in page.items:
            if room <= 0:
                return position
            entry = None if change.deleted or is_alias(change.key) else await kv.get(change.key)
            room -= await _request(entry) if entry is not None else 0
            position = msgspec.structs.replace(position, cursor=change.cursor)
        position = msgspec.structs.replace(position, cursor=page.after or position.cursor)
        if len(page.items) < step:
            return position
    return position


async def _request(entry: Entry) -> int:
    """Ask for every live version of one skill; how many tasks that made."""
    skills = decode_readable([entry], PublishedSkill, "request_due_scans")
    live = [ref.digest for skill in skills for ref in skill.versions if ref.status is VersionStatus.LIVE]
    return sum([len(await request_scans(digest)) for digest in dict.fromkeys(live)])

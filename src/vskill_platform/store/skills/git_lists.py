"""Lists of skills as git repositories: the record of each, which moves by compare-and-swap, and its files in the
content store. The first reader that finds a list out of date makes it; of several at once, one record stays."""

from collections.abc import Awaitable, Callable

import msgspec

from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import ContentDamaged, CursorGone, Unsupported
from vskill_platform.domain import keys
from vskill_platform.domain.skills.git_list import GitList, ListMarks, ServedList, follow_list, must_check
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.records import decode, persist
from vskill_platform.store.stored_content import keep_content, verify_content
from vskill_platform.worker_context import require_env


class MadeList(msgspec.Struct, frozen=True):
    """A list that was made just now."""

    files: tuple[SkillFile, ...]
    changed_at: int
    message: str


async def current_list(
    scope: str, form: str, marks: ListMarks, make: Callable[[], Awaitable[MadeList]], *, is_lost: bool = False
) -> GitList:
    """The list to serve: the stored one, or a new one if something has changed and it is due. `marks` are current,
    except for the position of the last change. `is_lost`: the stored files cannot be read here."""
    env, key = require_env("kv"), keys.git_list(scope, form)

    async def write() -> GitList:
        entry = await env.kv.get(key)
        known = None if entry is None else decode(entry, GitList)
        now, interval_ms = env.kv.now(), env.settings.git_list_interval_ms
        if known is not None and is_lost and await read_list(known.served) is not None:
            # The previous holder of the lock has made it.
            return known
        if known is not None and not is_lost and not must_check(known, marks, now, interval_ms):
            return known
        # Read the cursor first: what changes meanwhile is in the next list.
        seen = msgspec.structs.replace(marks, seen=await _last_change())
        if known is not None and not is_lost and await _is_unchanged(known.marks, seen):
            served = known.served
        else:
            made = await make()
            served = ServedList(digest_of_files(made.files), made.changed_at, made.message)
            await keep_content(served.digest, made.files)
        following = follow_list(known, served, seen, now)
        version = ABSENT if entry is None else entry.version
        await env.kv.commit([Put(key, msgspec.json.encode(following), version)])
        return following

    entry = await env.kv.get(key)
    if entry is not None and not is_lost:
        known = decode(entry, GitList)
        if not must_check(known, marks, env.kv.now(), env.settings.git_list_interval_ms):
            return known
    # Concurrent requests wait for one list, and check again once they have the lock.
    async with env.kept.git_list_turn:
        return await persist(write)


async def read_list(served: ServedList) -> tuple[SkillFile, ...] | None:
    """Its files, every byte verified; None if they are missing or differ. That is not damage: a list can be made again,
    and processes may have separate content stores."""
    try:
        return await verify_content(await require_env("blobs").blobs.get(served.digest), served.digest)
    except ContentDamaged:
        return None


async def _last_change() -> str | None:
    try:
        return await require_env("kv").kv.change_cursor()
    except Unsupported:
        return None


async def _is_unchanged(known: ListMarks, now: ListMarks) -> bool:
    """Whether no skill has changed since these marks, nor anything else that a list is made of."""
    if known.seen is None or msgspec.structs.replace(known, seen=now.seen) != now:
        return False
    try:
        return not (await require_env("kv").kv.changes(SKILLS.prefix, after=known.seen, limit=1)).items
    except (CursorGone, Unsupported):
        return False

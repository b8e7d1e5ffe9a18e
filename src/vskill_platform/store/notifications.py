"""Notifications of accounts, at `inbox:{account}:{moment}`, and who watches what: `watches:{account}` lists it for the
account, and `watcher:{target}:{account}` finds the accounts that watch a skill or a namespace.

Whether an account may read what a notification is about is asked when it is shown, of the account as it is then.
"""

from collections.abc import Callable, Iterable

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.errors import InvalidInput, RecordMalformed
from vskill_platform.domain.notification import (
    KEPT_MS,
    MOST_WATCHED,
    AccountWatches,
    Notification,
    Topic,
    targets_for,
    with_watched,
    without_watched,
)
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.accounts import User, read_user
from vskill_platform.store.skills import read_skills
from vskill_platform.submission_store import get_submissions
from vskill_platform.worker_context import require_env

#: Unread ones are counted up to this many.
MOST_COUNTED = 100
#: Notifications that are written in one commit.
WRITTEN_AT_ONCE = 500

#: What only accounts hear of that read everything.
_OF_REVIEWERS = frozenset({Topic.REVIEWS, Topic.REPORTS})


class NotificationPage(msgspec.Struct, frozen=True):
    """Some notifications, the latest first; `after` asks for the next ones. A page may hold fewer than asked for."""

    items: tuple[Notification, ...]
    after: str | None = None


class _Watcher(msgspec.Struct, frozen=True):
    """The record at `watcher:{target}:{account}`."""

    since: int


# Telling.


async def tell(told: Iterable[tuple[str, Notification]]) -> None:
    """Show each on its account's page; once, however often it is told."""
    by_key = {keys.inbox(account, one.moment): one for account, one in told}
    names = list(by_key)
    for start in range(0, len(names), WRITTEN_AT_ONCE):
        await _write_new({key: by_key[key] for key in names[start : start + WRITTEN_AT_ONCE]})


async def _write_new(told: dict[str, Notification]) -> None:
    """Those that are not there yet, in one commit."""

    async def write() -> tuple[str, ...]:
        kv = require_env("kv").kv
        settled = await kv.get_many(told)
        for error in settled.failed.values():
            raise error
        puts = [_put_at(key, told[key], kv.now()) for key in settled.missing]
        if puts:
            await kv.commit(puts)
        return settled.missing

    for key in await persist(write):
        require_env("metrics").metrics.notifications.labels(topic=told[key].topic.value).inc()


def _put_at(key: str, notification: Notification, now: int) -> Put:
    value = msgspec.json.encode(msgspec.structs.replace(notification, told_at=now))
    return Put(key, value, ABSENT, quiet=True, ttl_ms=KEPT_MS)


async def find_submitter(name: str) -> list[str]:
    """The account of this name, if there is one that can be read."""
    skips = Skips("find_submitter")
    try:
        user, _ = await read_user(name)
    except RecordMalformed:
        user = None
        skips.add("malformed", keys.user(name))
    skips.report(require_env("kv"))
    return [] if user is None else [user.name]


async def find_watchers(canonical: str, at: int) -> list[str]:
    """The accounts that watched a skill or its namespace by then."""
    found: dict[str, None] = {}
    env, skips = require_env("kv"), Skips("find_watchers")
    for target in targets_for(canonical):
        async for page in iterate_pages(env.kv, keys.watchers_of(target)):
            for error in page.failed.values():
                raise error
            for entry in page.items:
                watcher = skips.decode(entry, _Watcher)
                if watcher is not None and watcher.since <= at:
                    found[keys.parse(entry.key).parts[1]] = None
    skips.report(env)
    return list(found)


async def find_accounts(topic: Topic) -> list[str]:
    """The accounts whose role hears of it."""
    found: list[str] = []
    env, skips = require_env("kv"), Skips("find_accounts")
    async for page in iterate_pages(env.kv, keys.USER):
        for error in page.failed.values():
            raise error
        for entry in page.items:
            user = skips.decode(entry, User)
            if user is not None and not user.disabled and _hears(user, topic):
                found.append(entry.key.removeprefix(keys.USER))
    skips.report(env)
    return found


def _hears(user: User, topic: Topic) -> bool:
    return user.reads_all or topic not in _OF_REVIEWERS


# Reading.


async def list_notifications(
    user: User, *, after: str | None = None, limit: int = 50, audiences: Audiences
) -> NotificationPage:
    """Those of an account that hears of them in its present role, and that readers of these audiences may read."""
    env = require_env("kv")
    place = None if after is None else keys.inbox(user.name, after)
    page = await env.kv.scan(keys.inbox_of(user.name), after=place, limit=limit)
    for error in page.failed.values():
        raise error
    skips = Skips("list_notifications")
    found = [skips.decode(entry, Notification) for entry in page.items]
    skips.report(env)
    last = keys.parse(page.items[-1].key).parts[1] if page.after is not None else None
    items = [one for one in found if one is not None and _hears(user, one.topic)]
    return NotificationPage(tuple(await _readable(items, audiences)), last)


async def _readable(items: Iterable[Notification], audiences: Audiences) -> list[Notification]:
    items = list(items)
    skills = await read_skills({one.skill for one in items if one.skill}, audiences=audiences)
    wanted = [one.submission for one in items if one.submission]
    submissions = {one.id for one in await get_submissions(wanted, audiences=audiences)}
    return [
        one
        for one in items
        if (not one.skill or one.skill in skills) and (not one.submission or one.submission in submissions)
    ]


async def count_unread(user: User, *, audiences: Audiences) -> int:
    """How many of the latest ones the account was told since it last marked them as read."""
    seen = (await read_watches(user.name))[0].seen_at
    page = await list_notifications(user, limit=MOST_COUNTED, audiences=audiences)
    return sum(one.is_unread(seen) for one in page.items)


async def read_watches(account: str) -> tuple[AccountWatches, int]:
    """The record and its version; an account that never watched anything has an empty one."""
    entry = await require_env("kv").kv.get(keys.watches(account))
    return (AccountWatches(), ABSENT) if entry is None else (decode(entry, AccountWatches), entry.version)


# Changing.


async def mark_read(account: str) -> None:
    """Everything that the account has been told until now."""
    now = require_env("kv").kv.now()
    await _change(account, lambda known: (msgspec.structs.replace(known, seen_at=now), ()))


async def watch(account: str, target: str) -> AccountWatches:
    """Tell the account of a skill or a namespace from now on."""
    now = require_env("kv").kv.now()

    def decide(known: AccountWatches) -> tuple[AccountWatches, tuple[Operation, ...]]:
        if target in known.watched:
            return known, ()
        if len(known.watched) >= MOST_WATCHED:
            raise InvalidInput(
                f"You watch {MOST_WATCHED} skills and namespaces already.",
                field="skill",
                fix="stop watching one first",
            )
        since = Put(keys.watcher(target, account), msgspec.json.encode(_Watcher(now)))
        return with_watched(known, target), (since,)

    return await _change(account, decide)


async def unwatch(account: str, target: str) -> AccountWatches:
    """Tell it nothing more of that; what it does not watch is no error."""
    return await _change(
        account, lambda known: (without_watched(known, target), (Delete(keys.watcher(target, account)),))
    )


async def _change(
    account: str, decide: Callable[[AccountWatches], tuple[AccountWatches, tuple[Operation, ...]]]
) -> AccountWatches:
    async def write() -> AccountWatches:
        known, version = await read_watches(account)
        changed, operations = decide(known)
        if changed != known or operations:
            put = Put(keys.watches(account), msgspec.json.encode(changed), version)
            await require_env("kv").kv.commit([put, *operations])
        return changed

    return await persist(write)

"""Notifications of accounts, at `inbox:{account}:{moment}`, and who watches what: `watches:{account}` lists it for the
account, and `watcher:{target}:{account}` finds the accounts that watch a skill or a namespace.

Every page shows the number of unread ones, so one scan must give it: the first record of an inbox says until when the
account has read, and each notification carries the audience of what it is about.

Whether the account may read what a notification is about is checked when it is shown.
"""

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

import msgspec

from vskill_core.errors import InvalidInput, RateLimited, RecordMalformed
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import task_key
from vskill_platform.domain.people.namespace import Audiences, may_read
from vskill_platform.domain.telling.notification import (
    DAY_MS,
    DIGEST_GRACE_MS,
    KEPT_MS,
    MOST_PROOFS,
    MOST_WATCHED,
    PROOF_MS,
    AccountChoices,
    MailProof,
    Notification,
    SeenUntil,
    Topic,
    moment_at,
    next_digest_at,
    targets_for,
    topics_heard,
    with_watched,
    without_watched,
)
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Entry, Operation, Put
from vskill_platform.records import (
    Skips,
    audience_of,
    decode,
    decode_readable,
    entries_of,
    iter_entries,
    persist,
    read_entries,
    read_record,
)
from vskill_platform.store.people.accounts import User, read_user
from vskill_platform.store.people.attempts import count_code_to
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.store.people.sign_in_rule import Standing, standing_in
from vskill_platform.store.skills.skills import read_skills
from vskill_platform.store.tasks import task_writes
from vskill_platform.submission_store import get_submissions
from vskill_platform.worker_context import require_env

#: Kinds of tasks: a mail about one thing, and an account's daily digest.
MAIL, DIGEST = "mail", "digest"
#: Unread ones are counted up to this many.
MOST_COUNTED = 100
#: Notifications that are written in one commit, or read at once for a daily mail.
WRITTEN_AT_ONCE = 500
#: Pages of notifications that are read for one page of readable ones.
MOST_PAGES = 10
#: What a daily mail counts; the list holds one more if there are more.
MOST_MAILED = 200
#: After this many notifications no more skills and submissions are read for one daily mail.
MOST_RESOLVED = 1_000


class NotificationPage(msgspec.Struct, frozen=True):
    """Some notifications, the latest first; `after` asks for the next ones."""

    items: tuple[Notification, ...]
    after: str | None = None


class Unread(msgspec.Struct, frozen=True):
    """How many of the latest ones are unread, and until when the account has read."""

    count: int
    seen_at: int


class _Watcher(msgspec.Struct, frozen=True):
    """The record at `watcher:{target}:{account}`."""

    since: int


# Telling.


class _Told(msgspec.Struct, frozen=True):
    """Something for one account."""

    account: str
    notification: Notification

    @property
    def key(self) -> str:
        return keys.inbox(self.account, self.notification.moment)


async def tell(told: Iterable[tuple[str, Notification]]) -> None:
    """Show each on its account's page, and request the daily mail of accounts with an address. Idempotent."""
    by_key = {one.key: one for one in (_Told(account, notification) for account, notification in told)}
    names = list(by_key)
    for start in range(0, len(names), WRITTEN_AT_ONCE):
        await _write_new([by_key[key] for key in names[start : start + WRITTEN_AT_ONCE]])


async def take_back(told: Iterable[tuple[str, Notification]]) -> None:
    """Remove notifications that no longer hold; those not mailed yet will not be mailed."""
    kv = require_env("kv").kv
    names = list(dict.fromkeys(keys.inbox(account, one.moment) for account, one in told))
    for start in range(0, len(names), WRITTEN_AT_ONCE):
        if there := await read_entries(names[start : start + WRITTEN_AT_ONCE]):
            await kv.commit([Delete(key) for key in there])


async def _write_new(told: Sequence[_Told]) -> None:
    """Write missing notifications, in one commit with the tasks of daily mail, so that neither is lost alone."""

    async def write() -> list[Notification]:
        env = require_env("kv")
        now = env.kv.now()
        due = next_digest_at(now)
        abouts = {one.key: about for one in told if (about := _key_about(one.notification))}
        wanted = {*abouts.values(), *(keys.watches(one.account) for one in told)}
        for one in told:
            wanted |= {one.key, task_key(DIGEST, f"{one.account}:{due}")}
        stored = await read_entries(wanted)
        skips = Skips("tell")
        writes: dict[str, Put] = {}
        new = [one for one in told if one.key not in stored]
        for one in new:
            entry = stored.get(keys.watches(one.account))
            choices = skips.decode(entry, AccountChoices) if entry else None
            writes[one.key] = _put_at(one, stored.get(abouts.get(one.key, "")), now)
            if choices is not None and choices.mail and env.settings.smtp_url:
                digest = _digest_task(one.account, due, now)
                writes[digest.key] = digest
        skips.report(env)
        if writes:
            await env.kv.commit([put for key, put in writes.items() if key not in stored])
        return [one.notification for one in new]

    for one in await persist(write):
        require_env("metrics").metrics.notifications.labels(topic=one.topic.value).inc()


def _digest_task(account: str, due: int, now: int) -> Put:
    """The task of a daily mail. It has no message, which would wait in the queue for a day: recovery sends one when the
    task is due."""
    subject = {"account": account, "until": str(due)}
    put, _ = task_writes(DIGEST, f"{account}:{due}", subject, now=now, delay_ms=due + DIGEST_GRACE_MS - now)
    return put


def _key_about(notification: Notification) -> str | None:
    """The record that a notification is about; an alert has none."""
    if notification.submission:
        return keys.sub(notification.submission)
    return keys.skill(notification.skill) if notification.skill else None


def _put_at(told: _Told, about: Entry | None, now: int) -> Put:
    audience = None if about is None else audience_of(about)
    kept = msgspec.structs.replace(told.notification, told_at=now, audience=audience)
    return Put(told.key, msgspec.json.encode(kept), ABSENT, quiet=True, ttl_ms=KEPT_MS)


async def find_account(name: str) -> list[str]:
    skips = Skips("find_account")
    try:
        user, _ = await read_user(name)
    except RecordMalformed:
        user = None
        skips.add("malformed", keys.user(name))
    skips.report(require_env("kv"))
    return [] if user is None else [user.name]


async def find_watchers(canonical: str, at: int) -> list[str]:
    """The accounts that watched a skill or its namespace by then."""
    watchers: dict[str, None] = {}
    skips = Skips("find_watchers")
    for target in targets_for(canonical):
        async for entry in iter_entries(keys.watcher.under(target)):
            watcher = skips.decode(entry, _Watcher)
            if watcher is not None and watcher.since <= at:
                watchers[keys.parse(entry.key).parts[1]] = None
    skips.report(require_env("log"))
    return list(watchers)


async def find_accounts(topic: Topic) -> list[str]:
    users = decode_readable([entry async for entry in iter_entries(keys.user.prefix)], User, "find_accounts")
    env, (access, _) = require_env("kv"), await read_access()
    counted = (standing_in(env.settings, access, user, env.kv.now(), by_token=True) for user in users)
    return [one.name for one in counted if one is not None and topic in topics_of(one)]


def topics_of(user: User | Standing) -> frozenset[Topic]:
    """The topics that an account is told of in its current role."""
    return topics_heard(reads_all=user.reads_all, operates=user.operates)


# Reading.


async def list_notifications(
    user: User, *, after: str | None = None, limit: int = 50, audiences: Audiences
) -> NotificationPage:
    """An account's notifications on its current role's topics that readers of these audiences may read.

    There is a next page only if another readable one was found, and its cursor is the last one shown: any other cursor
    would reveal that something happened that the account may not read.
    """
    topics = topics_of(user)
    found: list[Notification] = []
    place = None if after is None else keys.inbox(user.name, after)
    for _ in range(MOST_PAGES):
        told, place = await _scan_told(user.name, place, max(limit + 2, MOST_COUNTED))
        found += await _readable((one for one in told if one.topic in topics), audiences)
        if len(found) > limit:
            return NotificationPage(tuple(found[:limit]), found[limit - 1].moment)
        if place is None:
            break
    return NotificationPage(tuple(found))


async def _scan_told(account: str, place: str | None, limit: int) -> tuple[list[Notification], str | None]:
    """What the account was told, after this key, and the key to go on after."""
    page = await require_env("kv").kv.scan(keys.inbox.under(account), after=place, limit=limit)
    marker = keys.inbox_seen(account)
    entries = (entry for entry in entries_of(page) if entry.key != marker)
    return decode_readable(entries, Notification, "list_notifications"), page.after


async def list_for_digest(
    account: str, until: int, topics: Collection[Topic], *, audiences: Audiences
) -> list[Notification]:
    """What the account was told of these topics in the day until then, the latest first."""
    found: list[Notification] = []
    resolved = 0
    # Changes are followed for a week, so anything older was told before that day.
    last = keys.inbox(account, moment_at(until - 9 * DAY_MS))
    place: str | None = None
    while True:
        told, place = await _scan_told(account, place, WRITTEN_AT_ONCE)
        wanted = [one for one in told if one.topic in topics and until - DAY_MS <= one.told_at < until]
        resolved += len(wanted)
        found += await _readable(wanted, audiences)
        if place is None or place > last or len(found) > MOST_MAILED or resolved >= MOST_RESOLVED:
            return found[: MOST_MAILED + 1]


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


async def read_unread(account: str, topics: frozenset[Topic], *, audiences: Audiences) -> Unread:
    """How many of the latest notifications are unread, among those that readers of these audiences may read; by one
    read."""
    page = await require_env("kv").kv.scan(keys.inbox.under(account), limit=MOST_COUNTED + 1)
    entries = list(entries_of(page))
    seen_at = 0
    if entries and entries[0].key == keys.inbox_seen(account):
        seen_at = decode(entries.pop(0), SeenUntil).at
    unread = sum(
        one.is_unread(seen_at) and one.topic in topics and may_read(one.audience, audiences)
        for one in decode_readable(entries, Notification, "read_unread")
    )
    return Unread(unread, seen_at)


async def read_choices(account: str) -> tuple[AccountChoices, int]:
    """The record and its version; an account that never watched anything has an empty one."""
    choices, version = await read_record(keys.watches(account), AccountChoices)
    return choices or AccountChoices(), version


# Changing.


async def set_address(account: str, address: str) -> AccountChoices:
    """Mail a code to an address, which the account must enter to confirm it. An empty address ends all mail."""
    now = require_env("kv").kv.now()
    code = secrets.token_urlsafe(12)

    def decide(known: AccountChoices) -> tuple[AccountChoices, tuple[Operation, ...]]:
        if not address:
            return msgspec.structs.replace(known, mail="", proof=_spent(known.proof)), ()
        before = known.proof
        if before is None or not 0 <= now - before.since < PROOF_MS:
            before = MailProof("", "", now, 0, now)
        if before.tries >= MOST_PROOFS:
            wait_s = (before.since + PROOF_MS - now) // 1000 + 1
            message = f"{MOST_PROOFS} confirmation mails were sent for you within a day; try again tomorrow."
            raise RateLimited(message, retry_after_s=wait_s)
        proof = MailProof(address, code, before.since, before.tries + 1, now)
        subject = {"account": account, "proof": address}
        task = task_writes(MAIL, f"{account}:proof-{now}-{proof.tries}", subject, now=now)
        return msgspec.structs.replace(known, proof=proof), task

    return await _change(account, decide, (lambda: count_code_to(address)) if address else None)


async def confirm_address(account: str, code: str) -> AccountChoices:
    now = require_env("kv").kv.now()

    def decide(known: AccountChoices) -> tuple[AccountChoices, tuple[Operation, ...]]:
        proof = known.proof
        # As bytes: `compare_digest` takes only ASCII strings.
        fits = proof is not None and secrets.compare_digest(proof.code.encode(), code.encode())
        if proof is None or not proof.code or not fits or now >= proof.good_until:
            raise InvalidInput(
                "This code confirms no address.",
                field="code",
                fix="copy it from the latest mail, or ask anew",
            )
        return msgspec.structs.replace(known, mail=proof.address, proof=_spent(proof)), ()

    return await _change(account, decide)


def _spent(proof: MailProof | None) -> MailProof | None:
    """The proof without its code: only how many codes were requested, and since when."""
    return None if proof is None else msgspec.structs.replace(proof, address="", code="")


async def mark_read(account: str) -> None:
    kv = require_env("kv").kv
    seen = Put(keys.inbox_seen(account), msgspec.json.encode(SeenUntil(kv.now())), quiet=True)
    await persist(lambda: kv.commit([seen]))


async def watch(account: str, target: str) -> AccountChoices:
    now = require_env("kv").kv.now()

    def decide(known: AccountChoices) -> tuple[AccountChoices, tuple[Operation, ...]]:
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


async def unwatch(account: str, target: str) -> AccountChoices:
    """Stop watching; it is no error if the account does not watch the target."""
    return await _change(
        account, lambda known: (without_watched(known, target), (Delete(keys.watcher(target, account)),))
    )


async def _change(
    account: str,
    decide: Callable[[AccountChoices], tuple[AccountChoices, tuple[Operation, ...]]],
    count: Callable[[], Awaitable[Sequence[Operation]]] | None = None,
) -> AccountChoices:
    """`count` raises if this happened too often, and otherwise counts it in the same commit."""

    async def write() -> AccountChoices:
        known, version = await read_choices(account)
        changed, operations = decide(known)
        if changed != known or operations:
            put = Put(keys.watches(account), msgspec.json.encode(changed), version)
            counted = () if count is None else await count()
            await require_env("kv").kv.commit([put, *operations, *counted])
        return changed

    return await persist(write)

"""What a namespace uses of its quotas, at `usage:{namespace}:{skills, bytes, submissions or followed}`.

Skills and bytes are counted in managed namespaces: a skill in the commit that gives it the namespace's audience, each
further version in the commit that publishes it. Submissions are counted by the hour, where there is a quota of them.
"""

import math
from collections.abc import Iterable

import msgspec

from vskill_core.errors import QuotaExceeded, RateLimited
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC, Namespace, Quotas
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Operation, Put
from vskill_platform.records import decode, read_count, read_entries
from vskill_platform.store.skills.skills import read_versions
from vskill_platform.worker_context import require_env

HOUR_MS = 3_600_000
_ASK = "ask an admin of this registry for a larger quota"
_COUNTED = ("skills", "bytes")


class NamespaceUsage(msgspec.Struct, frozen=True):
    """What a namespace holds, and what was submitted to it in the running hour."""

    skills: int = 0
    bytes: int = 0
    submissions: int = 0


class SubmissionHour(msgspec.Struct, frozen=True):
    """The record at `usage:{namespace}:{submissions or followed}`: the hour that began with the first in it."""

    began: int
    count: int


class _Counters(msgspec.Struct, frozen=True):
    usage: NamespaceUsage
    #: When the hour of submissions began.
    began: int
    versions: dict[str, int]


async def read_usage(name: str) -> NamespaceUsage:
    return (await _read(name)).usage


async def admit_submission(namespace: Namespace, *, is_new: bool) -> tuple[Operation, ...]:
    """The operations to commit with a submission that begins a run. Raises RateLimited or QuotaExceeded if a quota
    already forbids it; `is_new` says that its place has no skill yet."""
    quotas = namespace.quotas
    if quotas == Quotas():
        return ()
    found = await _read(namespace.name)
    if is_new and quotas.skills is not None and found.usage.skills >= quotas.skills:
        raise _too_many(namespace.name, "skills", found.usage.skills, quotas.skills)
    if quotas.bytes is not None and found.usage.bytes >= quotas.bytes:
        raise _too_many(namespace.name, "bytes", found.usage.bytes, quotas.bytes)
    if quotas.submissions_per_hour is None:
        return ()
    most = quotas.submissions_per_hour
    if found.usage.submissions >= most:
        wait_s = math.ceil((found.began + HOUR_MS - require_env("kv").kv.now()) / 1000)
        message = f"{namespace.name} has a quota of {most} submissions an hour, and it is used up."
        raise RateLimited(
            message, retry_after_s=wait_s, fix=f"try again in {math.ceil(wait_s / 60)} minutes, or {_ASK}"
        )
    hour = SubmissionHour(found.began, found.usage.submissions + 1)
    key = keys.usage(namespace.name, "submissions")
    return (Put(key, msgspec.json.encode(hour), found.versions[key]),)


async def count_publication(
    namespace: Namespace, audience: str, before: PublishedSkill | None, added: SkillVersion | None
) -> tuple[Operation, ...]:
    """The operations to commit with a publication. Raises QuotaExceeded if it exceeds the namespace's quota."""
    if audience == PUBLIC:
        return ()
    size = 0 if added is None else size_of((added,))
    found = await _read(namespace.name) if namespace.quotas != Quotas() else None
    if found is not None:
        _require_room(namespace, found.usage, is_new=before is None, size=size)
    counts = {"bytes": size}
    if before is None or before.audience == PUBLIC:
        held = () if before is None else (await read_versions(before)).values()
        counts = {"skills": 1, "bytes": size + size_of(held)}
    operations = usage_writes(namespace.name, **counts)
    if found is None:
        return operations
    # Two concurrent publications must not both use the last of a quota.
    return (*(Assert(one.key, found.versions[one.key]) for one in operations), *operations)


def usage_writes(name: str, *, skills: int = 0, bytes: int = 0) -> tuple[Add, ...]:  # noqa: A002 - the quota's name
    counts = (("skills", skills), ("bytes", bytes))
    return tuple(Add(keys.usage(name, what), count) for what, count in counts if count)


def size_of(versions: Iterable[SkillVersion]) -> int:
    return sum(file.size for version in versions for file in version.manifest)


def _require_room(namespace: Namespace, usage: NamespaceUsage, *, is_new: bool, size: int) -> None:
    quotas = namespace.quotas
    if is_new and quotas.skills is not None and usage.skills >= quotas.skills:
        raise _too_many(namespace.name, "skills", usage.skills, quotas.skills)
    if size and quotas.bytes is not None and usage.bytes + size > quotas.bytes:
        raise _too_many(namespace.name, "bytes", usage.bytes, quotas.bytes)


def _too_many(name: str, what: str, used: int, quota: int) -> QuotaExceeded:
    message = f"{name} has a quota of {quota:,} {what} and uses {used:,}, so there is no room for this one."
    return QuotaExceeded(message, namespace=name, quota=quota, used=used, fix=_ASK)


async def _read(name: str) -> _Counters:
    kv = require_env("kv").kv
    wanted = {what: keys.usage(name, what) for what in (*_COUNTED, "submissions")}
    stored = await read_entries(wanted.values())
    counts = {what: read_count(stored.get(wanted[what])) for what in _COUNTED}
    entry = stored.get(wanted["submissions"])
    now = kv.now()
    hour = SubmissionHour(now, 0) if entry is None else decode(entry, SubmissionHour)
    # An hour that begins in the future is from before the store's clock went back.
    if not hour.began <= now < hour.began + HOUR_MS:
        hour = SubmissionHour(now, 0)
    versions = {key: stored[key].version if key in stored else ABSENT for key in wanted.values()}
    return _Counters(NamespaceUsage(**counts, submissions=hour.count), hour.began, versions)

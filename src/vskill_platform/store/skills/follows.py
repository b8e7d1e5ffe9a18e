"""Followed repositories, at `follow:{namespace}:{repository}`: what a maintainer chose, what the last check found, and
which folders were taken in. The checks are those of `stages.repo_check`."""

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from vskill_core.errors import InvalidInput, NotFound
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import namespace_of
from vskill_platform.domain.skills.upstream import LookState, Upstream
from vskill_platform.ledger.kv.entries import Delete, Operation, Put
from vskill_platform.records import decode_readable, iter_entries, persist, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.skills.quotas import HOUR_MS, SubmissionHour
from vskill_platform.store.tasks import assert_held
from vskill_platform.worker_context import require_env

#: Repositories that one namespace follows.
MOST_FOLLOWS = 500
#: Folders of one repository that are taken in.
MOST_FOLDERS = 500
#: Runs that all repositories of one namespace start in an hour.
RUNS_PER_HOUR = 400
#: How many refused folders, and folders that have gone, are kept for the page.
MOST_NAMED = 100


class Untaken(msgspec.Struct, frozen=True):
    """A folder that was not taken in, and why; the next check tries again."""

    path: str
    reason: str
    #: Only until the next hour.
    waits: bool = False


class FollowState(LookState, frozen=True, omit_defaults=True):
    """What checks found."""

    #: The head whose folders were all looked at; empty: look at them again.
    commit: str = ""
    #: By path, what the folder's files were when it was submitted last.
    taken: Mapping[str, str] = {}
    #: By path, since when the folder is not in the repository any more.
    gone: Mapping[str, int] = {}
    untaken: tuple[Untaken, ...] = ()


class Follow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record."""

    identity: Identity
    #: Empty: the default branch.
    branch: str = ""
    #: The folders that are taken in, with `*` for any characters; empty: all.
    folders: str = ""
    #: Who followed it, and when.
    by: str
    created_at: int = 0
    #: The id of its push webhook; empty where it has none.
    hook: str = ""
    state: FollowState = FollowState()

    @property
    def key(self) -> str:
        return _key(self.identity)

    def wants(self, path: str) -> bool:
        return not self.folders or fnmatch.fnmatchcase(path, self.folders)

    def is_same(self, other: "Follow") -> bool:
        """Whether what it asks for is the same."""
        return (self.created_at, self.branch, self.folders) == (other.created_at, other.branch, other.folders)


#: What somebody had looked at again and again.
Looked = TypeVar("Looked", Follow, Upstream)


def _key(identity: Identity) -> str:
    return keys.follow(namespace_of(identity), identity.repo_key)


async def read_follow(identity: Identity) -> tuple[Follow | None, int]:
    """The record and its version; ABSENT where the repository is not followed."""
    return await read_record(_key(identity), Follow)


async def follow_to_change(identity: Identity) -> tuple[Follow, int]:
    """The record and its version, or NotFound."""
    follow, version = await read_follow(identity)
    if follow is None:
        raise NotFound(f"{identity.url} is not followed.", repo=identity.repo_key)
    return follow, version


async def get_follow(identity: Identity) -> Follow:
    """The record, or NotFound."""
    return (await follow_to_change(identity))[0]


async def branch_of(identity: Identity) -> str:
    """The branch that everybody sees of a repository: the followed one, or the default branch."""
    follow, _ = await read_follow(identity)
    return "" if follow is None else follow.branch


async def list_follows(namespace: str) -> list[Follow]:
    """All of a namespace, by repository."""
    entries = [entry async for entry in iter_entries(keys.follow.under(namespace))]
    return decode_readable(entries, Follow, "list_follows")


async def put_follow(follow: Follow, reason: str) -> Follow:
    """Follow a repository from now on; or in another way, which looks at all its folders again."""
    namespace, now = namespace_of(follow.identity), require_env("kv").kv.now()

    async def put() -> tuple[Follow, list[Operation]]:
        known, version = await read_follow(follow.identity)
        if known is None and len(await list_follows(namespace)) >= MOST_FOLLOWS:
            message = f"{namespace} follows {MOST_FOLLOWS} repositories, which is the limit."
            raise InvalidInput(message, field="repo_url", fix="stop following one of them")
        made = msgspec.structs.replace(follow, created_at=now)
        if known is not None:
            state = msgspec.structs.replace(
                known.state,
                commit="",
                taken={path: files for path, files in known.state.taken.items() if follow.wants(path)},
                gone={path: since for path, since in known.state.gone.items() if follow.wants(path)},
            )
            made = msgspec.structs.replace(known, branch=follow.branch, folders=follow.folders, state=state)
        return made, [Put(made.key, msgspec.json.encode(made), version)]

    details = {"branch": follow.branch, "folders": follow.folders}
    note = AuditNote("repository followed", follow.identity.url, follow.by, reason, details)
    return await commit_audited(note, put)


async def remove_follow(identity: Identity, *, by: str, reason: str) -> None:
    """Follow it no longer; its skills stay. NotFound where it is not followed."""

    async def remove() -> tuple[None, list[Operation]]:
        follow = await get_follow(identity)
        hook = [Delete(keys.push_hook(follow.hook))] if follow.hook else []
        return None, [Delete(follow.key), *hook]

    await commit_audited(AuditNote("repository unfollowed", identity.url, by, reason), remove)


async def grant_runs(namespace: str, wanted: int, per_hour: int = RUNS_PER_HOUR) -> tuple[int, int]:
    """How many runs its followed repositories, or its upstream, may start now, which are counted, and when the next
    hour begins. What was counted outlives the follow."""
    key, now = keys.usage(namespace, "followed"), require_env("kv").kv.now()

    async def count() -> tuple[int, int]:
        known, version = await read_record(key, SubmissionHour)
        # An hour that begins in the future is from before the store's clock went back.
        hour = (
            known
            if known is not None and known.began <= now < known.began + HOUR_MS
            else SubmissionHour(now, 0)
        )
        granted = max(0, min(wanted, per_hour - hour.count))
        counted = SubmissionHour(hour.began, hour.count + granted)
        await require_env("kv").kv.commit([Put(key, msgspec.json.encode(counted), version)])
        return granted, hour.began + HOUR_MS

    return await persist(count)


async def keep_state(
    looked_at: Looked, change: Callable[[Any], LookState], *beside: Operation, held: Task | None = None
) -> bool:
    """Write what a look found, unless something else is asked for since; whether it was written. ClaimLost where the
    task that looked is another worker's by now."""

    async def write() -> bool:
        known, version = await read_record(looked_at.key, type(looked_at))
        if known is None or not known.is_same(looked_at):
            return False
        changed = msgspec.structs.replace(known, state=change(known.state))
        asserted: list[Operation] = [] if held is None else [await assert_held(held)]
        put = Put(known.key, msgspec.json.encode(changed), version)
        await require_env("kv").kv.commit([*asserted, put, *beside])
        return True

    return await persist(write)

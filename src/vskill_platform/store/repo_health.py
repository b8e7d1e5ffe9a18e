"""Repository health, at `repohealth:{host}/{owner}/{repo}`: is the source still there, did it move, how old is its
last commit, under which licence is it.

The record stays when a repository disappears or its host is down: it is marked, never deleted. The checks themselves
are tasks (`repo_check`).
"""

import enum

import msgspec

from vskill_core.errors import NotFound
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode_readable, entries_of, read_record
from vskill_platform.worker_context import require_env

_DAY_MS = 24 * 3_600_000
_HOUR_MS = 3_600_000


class Reach(enum.StrEnum):
    """What the last check found. Gone and unavailable are different things: the first is the host's answer, the
    second is that there was none."""

    REACHABLE = "reachable"
    #: The host says that there is no public repository at this address.
    GONE = "gone"
    UNAVAILABLE = "unavailable"

    @property
    def check_again_ms(self) -> int:
        """How long an answer of this kind is believed."""
        return _HOUR_MS if self is Reach.UNAVAILABLE else _DAY_MS


class StoredFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a reachable repository says about itself."""

    #: None: it has no commit.
    commit: str | None = None
    branch: str | None = None
    #: When its last commit says that it was made.
    committed_at: int | None = None
    #: An SPDX identifier, `NONE` or `NOASSERTION`; None: not known, since the files could not be read.
    licence: str | None = None
    licence_file: str | None = None
    #: The address that the host redirects to.
    moved_to: str | None = None
    #: None: not known. Plain git does not tell, so it is never said to be false.
    archived: bool | None = None


class RepoHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record: what the last check found, and what was known when the repository was last reached."""

    #: `host/owner/repo` as compared
    repo: str
    url: str
    status: Reach
    #: Since when every check has found this status.
    status_since: int
    checked_at: int
    #: Why, for people; empty where all is well.
    detail: str = ""
    #: As of `reached_at`.
    facts: StoredFacts = StoredFacts()
    #: When it was last reached; None: never.
    reached_at: int | None = None
    #: Since when the host says that it is gone; a host that is down in between does not change that.
    gone_since: int | None = None

    def due_at(self) -> int:
        return self.checked_at + self.status.check_again_ms


class Observation(msgspec.Struct, frozen=True):
    """What one check found."""

    status: Reach
    detail: str = ""
    #: Only of a reachable one.
    facts: StoredFacts = StoredFacts()


def renew_health(known: RepoHealth | None, identity: Identity, seen: Observation, now: int) -> RepoHealth:
    """The record after a check: a repository that is not reached keeps what was known of it."""
    before = known or RepoHealth(identity.repo_key, identity.url, seen.status, now, now)
    reached = seen.status is Reach.REACHABLE
    gone_since = before.gone_since
    if seen.status is Reach.GONE and gone_since is None:
        gone_since = now
    return RepoHealth(
        repo=before.repo,
        url=identity.url,
        status=seen.status,
        status_since=before.status_since if before.status is seen.status else now,
        checked_at=now,
        detail=seen.detail,
        facts=seen.facts if reached else before.facts,
        reached_at=now if reached else before.reached_at,
        gone_since=None if reached else gone_since,
    )


async def read_health(identity: Identity) -> tuple[RepoHealth | None, int]:
    """The record and its version; a repository that was never checked has the version ABSENT."""
    return await read_record(keys.repohealth(identity.repo_key), RepoHealth)


async def get_health(identity: Identity) -> RepoHealth:
    """The record, or NotFound: never checked is not the same as gone."""
    health, _ = await read_health(identity)
    if health is None:
        raise NotFound(f"{identity.url} has not been checked yet.", repo=identity.repo_key)
    return health


def health_write(health: RepoHealth, identity: Identity, version: int) -> Put:
    return Put(keys.repohealth(identity.repo_key), msgspec.json.encode(health), version)


class HealthPage(msgspec.Struct, frozen=True):
    """Records in the order of their repositories; `after` asks for the next page."""

    items: tuple[RepoHealth, ...]
    after: str | None = None
    skipped: int = 0


async def list_health(
    status: Reach | None = None, *, after: str | None = None, limit: int = 100
) -> HealthPage:
    """Repositories that were checked; with a status only those, so a page may hold fewer than the limit."""
    page = await require_env("kv").kv.scan(keys.repohealth.prefix, after=after, limit=limit)
    checked = decode_readable(entries_of(page), RepoHealth, "list_health")
    items = tuple(health for health in checked if status in (None, health.status))
    return HealthPage(items, page.after, len(page.items) - len(checked))

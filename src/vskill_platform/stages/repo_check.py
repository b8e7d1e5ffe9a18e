"""Looking after the repositories of published skills: each check is a task, asked for by the schedule, and writes
what it found to `store.repo_health`.

A check asks the host for the head and fetches only where that has moved. A head that is not the commit of a
published skill starts a new run of it; what is live stays live until that run publishes. Of a followed repository
`follow` takes in the folders. Its checks are spread over the day by its name, so that thousands do not come at once.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable

import msgspec

from vskill_core.errors import (
    InvalidInput,
    LimitExceeded,
    NoSkillFound,
    NotFound,
    RecordMalformed,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.canonical_names import canonical_name
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.domain.skills import licences
from vskill_platform.domain.skills.skill import PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.records import Skips, iter_entries, read_entries
from vskill_platform.sources.contract import Watchable
from vskill_platform.stages.follow import take_in
from vskill_platform.store.people.namespaces import require_as_open
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.repo_health import (
    Observation,
    Reach,
    RepoHealth,
    StoredFacts,
    health_write,
    read_health,
    renew_health,
)
from vskill_platform.store.skills.follows import Follow, read_follow
from vskill_platform.store.tasks import TaskEnd, ask_for
from vskill_platform.submission_store import RecordChange, next_run, update_submission
from vskill_platform.worker_context import require_env

REPO_CHECK = "repo_check"
#: How many checks may be under way: a third of what one worker has in flight, so that fresh submissions never wait
#: for them.
MOST_OUTSTANDING = 10
#: How many skills one tick looks at.
SKILLS_AT_ONCE = 500
#: A check that failed for a reason of its own is not asked for again before this.
AFTER_FAILURE_MS = 24 * 3_600_000
_DAY_MS = 24 * 3_600_000

#: Nothing that says anything about the repository itself.
_NOT_REACHED = (SourceUnavailable, Unsupported, InvalidInput)
NEW_COMMIT = "the repository has a new commit"


# Asking for checks.


class RepoCheckProgress(msgspec.Struct, frozen=True):
    """Where the schedule goes on, and which checks it has asked for that were not over when it last looked."""

    after: str | None = None
    outstanding: tuple[str, ...] = ()
    #: The same among followed repositories.
    follows_after: str | None = None


class _Published(msgspec.Struct, frozen=True):
    """What asking needs of a skill's record."""

    identity: Identity
    withdrawn: bool = False


async def ask_for_checks(progress: RepoCheckProgress, at_once: int = SKILLS_AT_ONCE) -> RepoCheckProgress:
    """Ask for the checks that are due among the next skills and followed repositories, as many as there is room for.

    Where there are more due than room, the next look begins at the same place, so none is passed over.
    """
    env = require_env("kv")
    outstanding = await _still_active(progress.outstanding)
    room = MOST_OUTSTANDING - len(outstanding)
    if room <= 0:
        return msgspec.structs.replace(progress, outstanding=outstanding)
    skips = Skips("ask_for_checks")
    page = await env.kv.scan(SKILLS.prefix, after=progress.after, limit=at_once, exclude=SKILLS.exclude)
    followed = await env.kv.scan(keys.follow.prefix, after=progress.follows_after, limit=at_once)
    skips.failed({**page.failed, **followed.failed})
    follows = {one.identity.repo_key: one for one in skips.decode_all(followed.items, Follow)}
    published = _repositories(skips.decode_all(page.items, _Published))
    due = await _due({**{one.repo_key: one for one in published}, **_places(follows)}, follows, skips)
    wanted = [one for one in due if one.repo_key not in outstanding]
    for identity in wanted[:room]:
        await ask_for_check(identity)
    skips.report(env)
    asked = tuple(one.repo_key for one in wanted[:room])
    if len(wanted) > room:
        return msgspec.structs.replace(progress, outstanding=(*outstanding, *asked))
    return RepoCheckProgress(page.after, (*outstanding, *asked), followed.after)


def _places(follows: dict[str, Follow]) -> dict[str, Identity]:
    return {repo: follow.identity for repo, follow in follows.items()}


async def ask_for_check(identity: Identity) -> Task:
    if identity.is_upload:
        raise InvalidInput("An upload has no repository to check.", field="repo_url", fix="name a repository")
    subject = {"host": identity.host, "owner": identity.owner, "repo": identity.repo}
    return await ask_for(REPO_CHECK, identity.repo_key, subject)


def _repositories(skills: Iterable[_Published]) -> list[Identity]:
    live = (one.identity for one in skills if not one.withdrawn and not one.identity.is_upload)
    return list({identity.repo_key: identity for identity in live}.values())


async def _still_active(repos: tuple[str, ...]) -> tuple[str, ...]:
    """A task whose read fails counts as active: unknown is not "over"."""
    settled = await require_env("kv").kv.get_many(task_key(REPO_CHECK, repo) for repo in repos)
    skips = Skips("ask_for_checks")
    over = set(settled.missing)
    for key, entry in settled.found.items():
        task = skips.decode(entry, Task)
        if task is None or not task.state.active:
            over.add(key)
    return tuple(repo for repo in repos if task_key(REPO_CHECK, repo) not in over)


async def _due(places: dict[str, Identity], follows: dict[str, Follow], skips: Skips) -> list[Identity]:
    """Never checked, or not for long enough. What cannot be read is left for the next pass, and said."""
    env, repositories = require_env("kv"), list(places.values())
    health = await env.kv.get_many(keys.repohealth(one.repo_key) for one in repositories)
    skips.failed(health.failed)
    due: list[Identity] = []
    for identity in repositories:
        key = keys.repohealth(identity.repo_key)
        known = skips.decode(health.found[key], RepoHealth) if key in health.found else None
        due_at = _due_at(known, follows.get(identity.repo_key)) if known is not None else None
        if key in health.missing or (due_at is not None and due_at <= env.kv.now()):
            due.append(identity)
    tasks = await env.kv.get_many(task_key(REPO_CHECK, one.repo_key) for one in due)
    skips.failed(tasks.failed)
    failed = {key for key, entry in tasks.found.items() if _failed_lately(skips.decode(entry, Task))}
    return [one for one in due if task_key(REPO_CHECK, one.repo_key) not in {*failed, *tasks.failed}]


def _due_at(known: RepoHealth, follow: Follow | None) -> int:
    """When a repository is to be checked again: a followed one at its own moment of the day, and when folders that
    wait go on."""
    if follow is None:
        return known.due_at()
    moment = int(hashlib.sha256(known.repo.encode()).hexdigest()[:8], 16) % _DAY_MS
    in_turn = known.checked_at + ((moment - known.checked_at) % _DAY_MS or _DAY_MS)
    return min(known.due_at(), in_turn, follow.state.go_on_at or in_turn)


def _failed_lately(task: Task | None) -> bool:
    now = require_env("kv").kv.now()
    return task is None or (task.state is TaskState.FAILED and task.updated_at + AFTER_FAILURE_MS > now)


# One check.


async def check_repository(task: Task) -> TaskEnd:
    """Look at one repository, start what its new commit asks for, and end with what was found."""
    subject = task.subject
    identity = Identity(subject["host"], subject["owner"], subject["repo"])
    known, version = await read_health(identity)
    runs = await read_runs(identity)
    follow, _ = await read_follow(identity)
    private = any(record.with_credential for record in runs.values())
    seen = await _observe(identity, known, with_credential=private or follow is not None)
    taken = frozenset[str]() if follow is None else await take_in(follow, seen)
    health = renew_health(known, identity, seen, require_env("kv").kv.now())
    started = 0
    if seen.status is Reach.REACHABLE and seen.facts.commit is not None:
        started = await start_runs(identity, seen.facts.commit, runs, but=taken)
    return TaskEnd(_outcome(health, started), (health_write(health, identity, version),))


async def _observe(identity: Identity, known: RepoHealth | None, *, with_credential: bool) -> Observation:
    try:
        sources = await sources_for(identity, with_credential=with_credential)
        if not isinstance(sources, Watchable):
            return Observation(Reach.UNAVAILABLE, "The configured source cannot look into repositories.")
        head = await sources.head(identity)
        await require_as_open(identity, head.identity)
    except SourceGone as error:
        return Observation(Reach.GONE, error.message)
    except NoSkillFound as error:
        return Observation(Reach.REACHABLE, error.message)
    except _NOT_REACHED as error:
        return Observation(Reach.UNAVAILABLE, error.message)
    moved = head.identity.url if head.identity.repo_key != identity.repo_key else None
    facts = StoredFacts(head.commit, head.branch, moved_to=moved)
    if known is not None and known.facts.commit == head.commit and known.facts.licence is not None:
        return Observation(Reach.REACHABLE, facts=_with_known(facts, known.facts))
    return await _look(sources, identity, facts)


def _with_known(facts: StoredFacts, known: StoredFacts) -> StoredFacts:
    """The commit is the one that was looked at before, so what it holds is known."""
    return msgspec.structs.replace(
        facts, committed_at=known.committed_at, licence=known.licence, licence_file=known.licence_file
    )


async def _look(sources: Watchable, identity: Identity, facts: StoredFacts) -> Observation:
    """What the files say. That they cannot be fetched does not make the repository unreachable."""
    try:
        look = await sources.look(identity, licences.FILES)
        await require_as_open(identity, look.identity)
    except (SourceGone, NoSkillFound, LimitExceeded, *_NOT_REACHED) as error:
        return Observation(Reach.REACHABLE, f"Its files could not be read: {error.message}", facts)
    licence, file = licences.recognise({**dict.fromkeys(look.unread, b""), **look.files})
    facts = msgspec.structs.replace(
        facts, commit=look.commit, committed_at=look.committed_at, licence=licence, licence_file=file
    )
    return Observation(Reach.REACHABLE, facts=facts)


def _outcome(health: RepoHealth, started: int) -> str:
    facts = health.facts
    parts = [health.status.value, health.detail]
    if health.status is Reach.REACHABLE and facts.commit is not None:
        parts.append(f"at {facts.commit[:12]}")
        parts.append(f"moved to {facts.moved_to}" if facts.moved_to else "")
    parts.append(f"{started} new runs" if started else "")
    return "; ".join(filter(None, parts))


# New commits.


async def read_runs(identity: Identity) -> dict[str, Submission]:
    """Each published submission of this repository, in the run that it is in. Read this before looking at the
    repository: what has been handed in since then may be newer than the commit that the look finds."""
    env = require_env("kv")
    skips = Skips("read_runs")
    named = [one.submission async for one in _published_of(identity, skips) if one.submission is not None]
    wanted = [keys.sub(one) for one in named]
    stored = await read_entries(wanted)
    for key in wanted:
        if key not in stored:
            skips.add("malformed", key)
    records = skips.decode_all(stored.values(), Submission)
    skips.report(env)
    return {record.id: record for record in records}


async def start_runs(
    identity: Identity, commit: str, runs: dict[str, Submission], *, but: frozenset[str] = frozenset()
) -> int:
    """A new run of every published submission of this repository that has not seen the commit and is still in the run
    that it was in before the commit was looked up, except in the folders `but`; how many."""
    env = require_env("kv")
    skips = Skips("start_runs")
    started = 0
    async for published in _published_of(identity, skips):
        run = runs.get(published.submission or "")
        if run is None or published.identity.path in but:
            continue
        try:
            started += await _start_run(published, commit, run.run)
        except (NotFound, RecordMalformed):
            skips.add("malformed", keys.sub(published.submission or published.canonical))
    skips.report(env)
    return started


async def _published_of(identity: Identity, skips: Skips) -> AsyncIterator[PublishedSkill]:
    beginning = keys.skill(canonical_name(identity, "-")).removesuffix("-")
    async for entry in iter_entries(beginning):
        published = skips.decode(entry, PublishedSkill)
        if published is not None and published.identity.repo_key == identity.repo_key:
            yield published


async def _start_run(published: PublishedSkill, commit: str, run: int) -> bool:
    """Only where that run rests as PUBLISHED with another commit. What was taken down is not brought back by
    a change elsewhere in its repository: that is a reviewer's to do."""
    if published.submission is None or published.withdrawn:
        return False
    env = require_env("kv")
    event_id = env.clock.new_id()
    # Of several versions with the same bytes the latest one counts.
    status = {ref.digest: ref.status for ref in published.versions}

    async def decide(record: Submission) -> RecordChange | None:
        taken_down = status.get(record.digest or "") is VersionStatus.TAKEN_DOWN
        at_rest = record.state is State.PUBLISHED and record.run == run
        if not at_rest or record.commit == commit or taken_down:
            return None
        step = Step(event_id, env.kv.now(), "system", NEW_COMMIT)
        change = next_run(record, step, submitter=None, upload=record.upload)
        return RecordChange(msgspec.structs.replace(change.record, commit=commit), change.operations)

    return await update_submission(published.submission, decide, event_id=event_id) is not None

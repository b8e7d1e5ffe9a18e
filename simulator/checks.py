"""What must hold at every single commit: the store that all processes share shows each one to a watcher, which
compares what was there with what is there now and stops the world at the first thing that may not be."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from simulator.clocks import StoreClock
from simulator.content import HOLDING_POLICY, PLACES, POLICIES, UPSTREAM_PLACES
from simulator.trace import Trace
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import targets_of
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import PUBLIC, Namespace, Visibility, audience_for, namespace_of
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    Revocation,
    VersionStatus,
    listed_version,
    newest_under_review,
    revoked_versions,
    status_of,
)
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    FAILED_DELAYS_MS,
    MAX_INTERRUPTED,
    UNAVAILABLE_MOST_MS,
    owed_violation,
    violation,
)
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.kv.collections import SKILLS, TASKS
from vskill_platform.ledger.kv.entries import Entry, Operation, Put
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.store.verdicts.policy import StoredPolicy

#: Two processes' ideas of the store's clock differ by no more.
SKEW_MS = 4_100
#: One commit writes at most "claim expired" and "attempt begins".
MOST_EVENTS = 2
FOREVER_MS = 10**15
#: A history takes some hundred.
MOST_STEPS = 3_000

LABELS = {place.id: place.label for place in (*PLACES, *UPSTREAM_PLACES)}


class Broken(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


def is_step(source: State, target: State) -> bool:
    """Whether a run may go this way. What waits for a worker or by a rule stays in its state when somebody asks for it
    now, and what waits for a reviewer when its author is asked or answers."""
    return may_move(source, target) or (
        source is target
        and source in {State.RECEIVED, State.COOLDOWN, State.NEEDS_REVIEW, State.AUTO_APPROVED}
    )


def require(holds: object, invariant: str, detail: object) -> None:
    if not holds:
        raise Broken(invariant, str(detail))


class WatchedStore(MemoryKV):
    """The memory engine, with a watcher at every commit."""

    def __init__(self, clock: StoreClock, queue: Broker, watcher: "Watcher") -> None:
        super().__init__(clock, queue)
        self._watcher = watcher

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        written = [one.key for one in operations if isinstance(one, Put)]
        before = {key: await self.get(key) for key in written}
        version = await super().commit(operations, urgent=urgent)
        await self._watcher.committed(self, before, operations)
        return version


class Watcher:
    """Checks each commit, and remembers what the checks at the end need."""

    def __init__(
        self,
        clock: StoreClock,
        trace: Trace,
        fail: Callable[[Broken], None],
        moment: Callable[[], int],
        on_step: Callable[[Submission, Event], None],
        on_task: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._trace = trace
        self._fail = fail
        self._moment = moment
        self._on_step = on_step
        self._on_task = on_task
        self._tokens: set[str] = set()
        self._steps = 0
        #: By submission and digest, a time before which nobody had seen the content.
        self._sights: dict[tuple[str, str], int] = {}
        #: By submission, the moment at which a block or a cancellation last ended a run.
        self.cleared: dict[str, int] = {}
        #: By namespace, since which moment it is shown to everybody or hidden, oldest first.
        self.shown: dict[str, list[tuple[int, bool]]] = {}
        #: By skill and number in lists, what can be installed.
        self._listed: dict[tuple[str, str], tuple[str | None, str | None]] = {}

    async def committed(
        self, store: MemoryKV, before: dict[str, Entry | None], operations: Sequence[Operation]
    ) -> None:
        puts = {one.key: one.value for one in operations if isinstance(one, Put)}
        try:
            for key, value in puts.items():
                await self._check(store, key, before[key], value, puts)
        except Broken as broken:
            self._fail(broken)

    async def _check(
        self, store: MemoryKV, key: str, old: Entry | None, value: bytes, puts: dict[str, bytes]
    ) -> None:
        if key.startswith(keys.sub.prefix):
            record = msgspec.json.decode(value, type=Submission)
            was = None if old is None else msgspec.json.decode(old.value, type=Submission)
            for written in self._check_submission(was, record, puts):
                await self._check_publication(store, written, puts)
        elif key.startswith((keys.subrun.prefix, keys.version.prefix)):
            require(old is None or old.value == value, "what is written once never changes", key)
        elif key.startswith(TASKS.prefix):
            task = msgspec.json.decode(value, type=Task)
            self._check_task(None if old is None else msgspec.json.decode(old.value, type=Task), task)
        elif key.startswith(keys.skill.prefix) and not keys.is_alias(key):
            skill = msgspec.json.decode(value, type=PublishedSkill)
            await self._check_skill(store, skill)
            was_skill = None if old is None else msgspec.json.decode(old.value, type=PublishedSkill)
            _check_revoked(was_skill, skill, puts)
            self._check_listed(skill)
        elif key.startswith(keys.revocation.prefix):
            await _check_serial(store, msgspec.json.decode(value, type=Revocation), old)
        elif key.startswith(keys.namespace.prefix):
            await self._check_namespace(store, msgspec.json.decode(value, type=Namespace))
        if key.startswith((keys.sub.prefix, keys.skill.prefix)) and not keys.is_alias(key):
            await self._check_audience(store, key, old, value)

    # Who may read.

    def check_shown(self, name: str, since: int) -> None:
        """A stranger who began to read then has seen something of this namespace."""
        history = self.shown.get(name, [])
        before = [open_to_all for moment, open_to_all in history if moment < since]
        was = before[-1] if before else True
        later = any(open_to_all for moment, open_to_all in history if moment >= since)
        self._trace.count("looks at what somebody hides" if history else "looks")
        if not (was or later):
            self._fail(Broken("no read that begins after the commit sees what is hidden", name))

    async def _check_namespace(self, store: MemoryKV, namespace: Namespace) -> None:
        """Once it is hidden, all that is in it carries its audience."""
        hidden = namespace.visibility not in (None, Visibility.PUBLIC)
        self.shown.setdefault(namespace.name, []).append((self._moment(), not hidden))
        if not hidden:
            return
        for key, owner, audience in await _audiences(store):
            inside = audience.startswith(f"ns:{namespace.name}")
            require(inside or owner != namespace.name, "what is hidden carries its audience", key)

    async def _check_audience(self, store: MemoryKV, key: str, old: Entry | None, value: bytes) -> None:
        """A record has the audience that its namespace has at that moment; one that is changed may keep its old one."""
        record = msgspec.json.decode(value, type=_Audience)
        name = namespace_of(record.identity)
        entry = await store.get(keys.namespace(name))
        namespace = None if entry is None else msgspec.json.decode(entry.value, type=Namespace)
        wanted = {audience_for(namespace, name)}
        if old is not None:
            wanted.add(msgspec.json.decode(old.value, type=_Audience).audience)
        require(
            record.audience in wanted, "a record has its namespace's audience", f"{key}: {record.audience}"
        )

    # Submissions.

    def _check_submission(
        self, old: Submission | None, new: Submission, puts: dict[str, bytes]
    ) -> list[Submission]:
        """Raises Broken; returns the records that became PUBLISHED in this commit."""
        now = self._clock.now()
        name = LABELS.get(new.id, new.id)
        problem = violation(new, now, FOREVER_MS)
        require(
            problem is None,
            "active has a claim or a next attempt, and rest has neither",
            f"{name}: {problem}",
        )
        require(not (new.claim and new.next_attempt_at), "claimed means no next attempt", name)
        require(new.upload or not new.identity.is_upload, "an upload's bytes are never forgotten", name)
        require(new.attempts.failed <= len(FAILED_DELAYS_MS) + 1, "failed attempts are limited", name)
        require(new.attempts.interrupted <= MAX_INTERRUPTED, "interruptions are limited", name)
        published: list[Submission] = []
        if old is None:
            first = new.history[0]
            created = (new.run, new.state, len(new.history), first.seq, first.source)
            require(
                created == (1, State.RECEIVED, 1, 1, None), "a submission begins at its beginning", created
            )
            self._note(name, first, new)
        elif new.run == old.run:
            published += self._extended(old, new, name)
        else:
            kept_value = puts.get(keys.subrun(new.id, str(old.run)))
            require(new.run == old.run + 1 and kept_value, "an ended run is kept when the next begins", name)
            assert kept_value is not None
            kept = msgspec.json.decode(kept_value, type=Submission)
            published += self._extended(old, kept, name)
            self._begun(kept, new, name)
        if old is not None:
            require(new.created_at >= old.created_at, "no foreign field is overwritten", name)
        self._check_claim(old, new, name, now)
        if new.digest is not None:
            self._sights.setdefault((new.id, new.digest), self._clock.earliest)
        for seen in old.first_seen if old is not None else ():
            known = {one.digest: one for one in new.first_seen}
            require(known.get(seen.digest, seen) == seen, "the first sight of a content never moves", name)
        return published

    def _extended(self, old: Submission, new: Submission, name: str) -> list[Submission]:
        """The same run goes on: its history only grows, by allowed steps."""
        known = len(old.history)
        require(
            new.history[:known] == old.history, "history only grows", f"{name}: {old.history} {new.history}"
        )
        added = new.history[known:]
        require(len(added) <= MOST_EVENTS, "one commit is one step", f"{name}: {added}")
        last = old.history[-1]
        for event in added:
            self._check_event(last, event, name)
            self._check_author(old, new, event, name)
            self._note(name, event, new)
            last = event
        require(new.state is last.to, "the state is the last event's", f"{name}: {new.state} after {last}")
        return [new] if added and new.state is State.PUBLISHED else []

    def _begun(self, kept: Submission, new: Submission, name: str) -> None:
        require(kept.state.ends_run, "only an ended run is followed by another", f"{name}: {kept.state}")
        first, last = new.history[0], kept.history[-1]
        facts = (len(new.history), first.seq - last.seq, first.source, first.to)
        require(
            facts == (1, 1, kept.state, State.RECEIVED),
            "a run begins where the last one ended",
            (name, facts),
        )
        require(first.at >= last.at and first.reason.strip(), "history is in order, with reasons", name)
        forgotten = not (last.to is State.DEQUEUED and first.id == f"{last.id}-rerun")
        require(forgotten, "cancelling forgets what was to run next", f"{name}: {last} {first}")
        self._note(name, first, new)

    def _check_event(self, last: Event, event: Event, name: str) -> None:
        require(event.seq == last.seq + 1, "history has no gap", f"{name}: {last} {event}")
        require(event.source is last.to, "each event begins where the last ended", f"{name}: {last} {event}")
        require(is_step(last.to, event.to), "only allowed steps", f"{name}: {last.to} to {event.to}")
        require(event.at >= last.at, "history is in order of time", f"{name}: {last} {event}")
        require(event.reason.strip(), "every event has a reason", f"{name}: {event}")
        overwritten = last.to.success and event.actor.startswith("worker:")
        require(not overwritten, "no success is overwritten by a worker", f"{name}: {event}")

    def _check_author(self, old: Submission, new: Submission, event: Event, name: str) -> None:
        """A worker writes only to what it holds, or takes up in this very commit."""
        if not event.actor.startswith("worker:"):
            return
        worker = event.actor.removeprefix("worker:")
        holder = new.claim if new.claim is not None and not _same_claim(old, new) else old.claim
        gave_up = new.attempts.interrupted > old.attempts.interrupted and new.claim is None
        allowed = gave_up or (holder is not None and holder.worker == worker)
        require(allowed, "only the holder of a claim works", f"{name}: {event}, held by {holder}")

    def _check_claim(self, old: Submission | None, new: Submission, name: str, now: int) -> None:
        if new.claim is None or (old is not None and _same_claim(old, new)):
            return
        require(new.claim.token not in self._tokens, "a claim's token is used once", f"{name}: {new.claim}")
        self._tokens.add(new.claim.token)
        if old is None:
            return
        horizon = CLAIM_MS if old.claim else UNAVAILABLE_MOST_MS
        due = old.claim.until if old.claim else old.next_attempt_at
        # The clock may have gone back since the taker looked at it, or just before: then it saw a deadline too far
        # ahead to be true, however near it is by now.
        latest = self._clock.lowest + horizon + CLOCK_SLACK_MS - SKEW_MS
        if old.state is State.COOLDOWN:
            latest = FOREVER_MS
        early = due is not None and self._clock.highest + SKEW_MS < due < latest
        require(not early, "nothing is taken up before it is due", f"{name}: due in {(due or 0) - now} ms")

    def _note(self, name: str, event: Event, record: Submission) -> None:
        self._steps += 1
        require(self._steps < MOST_STEPS, "nothing goes round in circles", f"{self._steps} steps")
        self._trace.count(f"step to {event.to}")
        self._trace.add(
            event.actor,
            "STEP",
            f"{name} run {record.run} #{event.seq} {event.source} -> {event.to}: {event.reason}",
        )
        if event.to in (State.BLOCKED, State.DEQUEUED):
            self.cleared[record.id] = self._moment()
        self._on_step(record, event)

    # Tasks.

    def _check_task(self, old: Task | None, new: Task) -> None:
        now, name = self._clock.now(), new.key
        if new.state.active:
            problem = owed_violation(new, new.state, now, FOREVER_MS)
            require(problem is None, "an active task has a claim or a next attempt", f"{name}: {problem}")
        else:
            require(new.claim is None and new.next_attempt_at is None, "a task that is over rests", name)
            require(new.outcome.strip(), "a task that is over says how it went", name)
        was = (0, True) if old is None else (old.run, old.state.active)
        goes_on = new.run == was[0] and was[1]
        require(goes_on or new.run == was[0] + 1, "a task goes on, or runs once more", f"{name}: {old} {new}")
        renewed = old is not None and old.claim and new.claim and old.claim.token == new.claim.token
        if new.claim is not None and not renewed:
            require(new.claim.token not in self._tokens, "a claim's token is used once", f"{name}")
            self._tokens.add(new.claim.token)
        if old is None or (old.run, old.state) != (new.run, new.state):
            self._trace.count(f"task {new.kind}: {new.state}")
            self._trace.add("task", "STEP", f"{name} run {new.run} {new.state}: {new.outcome}")
        self._on_task()

    # Skills.

    async def _check_publication(self, store: MemoryKV, record: Submission, puts: dict[str, bytes]) -> None:
        name = LABELS.get(record.id, record.id)
        value = puts.get(record.published or "")
        require(value is not None, "PUBLISHED and its skill are one commit", name)
        assert value is not None
        skill = msgspec.json.decode(value, type=PublishedSkill)
        numbers = (skill.current_digest, skill.current_version)
        wanted = (record.digest, record.published_version)
        require(numbers == wanted, "what was published is current", f"{name}: {numbers}, not {wanted}")
        require(skill.submission == record.id, "a skill knows its submission", name)
        for target in targets_of(skill.identity, (skill.name, skill.slug), record.digest):
            entry = await store.get(target.key)
            require(entry is None, "nothing blocked goes live", f"{name}: {target}")

        await self._check_wait(store, record, name)

    async def _check_wait(self, store: MemoryKV, record: Submission, name: str) -> None:
        """What no reviewer approved has waited for as long as the policy in force says, since it was first seen."""
        entry = await store.get(keys.CONTROL_POLICY)
        approved = record.approval is not None and record.approval.digest == record.digest
        if entry is None or approved or record.digest is None:
            return
        text = msgspec.json.decode(entry.value, type=StoredPolicy).text
        require(text != HOLDING_POLICY, "nothing is published that the policy holds", name)
        seen, wait = self._sights[record.id, record.digest], POLICIES[text]
        self._trace.count("published after a wait" if record.cooled_by else "published at once")
        over = self._clock.highest + SKEW_MS - seen - wait
        require(over >= 0, "no wait ends early", f"{name}: {over} ms")

    async def _check_skill(self, store: MemoryKV, skill: PublishedSkill) -> None:
        for ref in skill.versions:
            entry = await store.get(keys.version(skill.canonical, ref.number))
            require(entry is not None, "every version has its record", f"{skill.canonical} {ref.number}")
            gone = ref.status is VersionStatus.TAKEN_DOWN and ref.review is not None
            require(
                not gone, "nothing that was taken down is under review", f"{skill.canonical} {ref.number}"
            )
        if newest_under_review(skill) is not None:
            marked = await store.get(keys.review(skill.canonical)) is not None
            require(marked, "what is under review waits in the queue", skill.canonical)
        live = [ref for ref in skill.versions if ref.status is VersionStatus.LIVE]
        current = live[-1].digest if live else None
        require(skill.current_digest == current, "the newest live version is current", skill.canonical)
        numbers = [ref.number for ref in skill.versions]
        require(
            len(set(numbers)) == len(numbers),
            "a version's number is used once",
            f"{skill.canonical} {numbers}",
        )
        for earlier, later in pairwise(skill.versions):
            again = earlier.digest == later.digest and not earlier.owner_yanked and not later.owner_yanked
            require(not again, "one content in a row makes one version", f"{skill.canonical} {numbers}")

    def _check_listed(self, skill: PublishedSkill) -> None:
        """A number in lists means one thing for ever: clients that have it do not update."""
        if not skill.versions:
            return
        number, state = listed_version(skill), (skill.current_version, skill.current_digest)
        known = self._listed.setdefault((skill.canonical, number), state)
        require(
            known == state, "a number in lists is never used again", f"{skill.canonical} {number}: {state}"
        )


class _Audience(msgspec.Struct, frozen=True):
    identity: Identity
    audience: str = PUBLIC


async def _audiences(store: MemoryKV) -> list[tuple[str, str, str]]:
    """Of every skill and submission: its key, its namespace and its audience."""
    entries = [
        *(await store.scan(keys.sub.prefix)).items,
        *(await store.scan(keys.skill.prefix, exclude=SKILLS.exclude)).items,
    ]
    found = [(entry.key, msgspec.json.decode(entry.value, type=_Audience)) for entry in entries]
    return [(key, namespace_of(one.identity), one.audience) for key, one in found]


def _same_claim(old: Submission, new: Submission) -> bool:
    return old.claim is not None and new.claim is not None and old.claim.token == new.claim.token


def _check_revoked(old: PublishedSkill | None, new: PublishedSkill, puts: dict[str, bytes]) -> None:
    """A commit that withdraws or restores a version says so in an event of its own."""
    if old is None or revoked_versions(old) == revoked_versions(new):
        return
    events = [
        msgspec.json.decode(value, type=Revocation)
        for key, value in puts.items()
        if key.startswith(keys.revocation.prefix)
    ]
    known = {ref.number: status_of(ref) for ref in old.versions}
    wanted = {
        ref.number: status_of(ref) for ref in new.versions if status_of(ref) is not known.get(ref.number)
    }
    said = {step.version: step.status for event in events for step in event.steps}
    require(
        [event.skill for event in events] == [new.canonical] and said == wanted,
        "every withdrawal and restore has its event",
        f"{new.canonical}: {wanted}, events: {events}",
    )


async def _check_serial(store: MemoryKV, event: Revocation, old: Entry | None) -> None:
    """Each event has the next serial, in the commit that raises it."""
    entry = await store.get(keys.CONTROL_REVOCATIONS)
    serial = 0 if entry is None else int(entry.value)
    require(old is None and event.serial == serial, "the serial only grows, by one", f"{event} at {serial}")

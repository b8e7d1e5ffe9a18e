"""Numbers about the queue: what ended recently and how long it took, positions in the line, and how the judge is doing.
Read by the queue page, the API, alerts and metrics.

Decision: they are computed from the records, by index, each query bounded; no counters are kept beside them. A counter
per minute would be one row that every ending run has to write, a point of contention that PostgreSQL would serialise
on, and a second truth that could drift from the first. The cost: a submission that ran twice within the hour counts
once, with its latest run; and beyond `SAMPLE` ends the window gets shorter. Both are said where the numbers are shown:
`since` is the time from which nothing is missing.
"""

import bisect
import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from vskill_core.findings import JudgeStatus
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.submissions.states import ACTIVE_STATES, LINE_STATES, State
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import Entry, EntryPage
from vskill_platform.ledger.kv.query import Between, Condition, In
from vskill_platform.records import decode_readable, entries_of
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import require_env

HOUR_MS = 3_600_000
#: What the charts show.
HOURS_MS = 6 * HOUR_MS
#: Ends that are read for the charts.
SAMPLE = 1_000
#: The recent past from which the speed of the line is taken.
RATE_MS = 600_000
#: Beyond this many a position is "at least".
MOST_AHEAD = 1_000
#: Runs that are read for the judge's health, and how many of them, the latest that asked it, count.
ENDS_SAMPLE, ASKED = 100, 20

_RESTING = tuple(sorted(set(State) - ACTIVE_STATES))
_MOVING = tuple(sorted(state for state in State if state.moving))
#: Ends that are the work of the queue; cancelling is not.
_WORKED = frozenset(_RESTING) - {State.DEQUEUED}


# What ended lately.


class End(msgspec.Struct, frozen=True):
    """The end of a run."""

    at: int
    state: State
    #: From submitting to the machine's first decision; None where the history does not say.
    took_ms: int | None
    #: From when to when the attempt ran that led to that decision; None where no worker took it up.
    worked: tuple[int, int] | None = None
    #: From when to when its run was in the queue, until the machine's first decision.
    queued: tuple[int, int] | None = None


class Slot(msgspec.Struct, frozen=True):
    """One bar of a chart. A number that is not known is None."""

    start: int
    end: int
    count: int | None = None
    published: int | None = None
    p50_ms: int | None = None
    p95_ms: int | None = None
    #: In the queue at most.
    waiting: int | None = None


class QueueNow(msgspec.Struct, frozen=True):
    """What is in the queue now, waiting or with a worker."""

    count: int
    #: When those that came last came.
    entered: tuple[int, ...] = ()
    #: From here on none is missing in `entered`.
    since: int = 0


class Activity(msgspec.Struct, frozen=True, dict=True):
    """The ends of a window, oldest first."""

    ends: tuple[End, ...]
    #: From here on nothing is missing.
    since: int
    at: int
    #: More ended than are looked at, so the window is shorter than was asked for.
    truncated: bool = False
    #: None where nobody asked.
    queue: QueueNow | None = None

    @property
    def per_minute(self) -> float | None:
        """Ends per minute in the last ten minutes; None if none ended. An idle queue has few, however fast it is."""
        start = max(self.since, self.at - RATE_MS)
        worked = sum(end.at >= start and end.state in _WORKED for end in self.ends)
        span_ms = self.at - start
        return worked * 60_000 / span_ms if worked and span_ms > 0 else None

    @cached_property
    def ms_each(self) -> float | None:
        """How fast the line moves: time in which any worker was busy in the last ten minutes, per run that ended. Idle
        times and pauses do not count. None if none ended."""
        start = max(self.since, self.at - RATE_MS)
        spans = sorted(end.worked for end in self.ends if end.worked and end.worked[1] >= start)
        busy, until = 0, start
        for began, ended in spans:
            busy += max(ended - max(began, until), 0)
            until = max(until, ended)
        return max(busy, 1) / len(spans) if spans else None

    def took(self, share: float) -> int | None:
        return percentile([end.took_ms for end in self.ends if end.took_ms is not None], share)

    def most_waiting(self, start: int, end: int) -> int | None:
        """The maximum queue length between these times; None if not all of it is known."""
        if self.queue is None or end <= max(self.since, self.queue.since):
            return None
        times, depths = self._depths
        first = bisect.bisect_right(times, max(start, self.since, self.queue.since))
        last = bisect.bisect_left(times, end)
        return max(depths[first : max(last, first) + 1])

    @cached_property
    def _depths(self) -> tuple[list[int], list[int]]:
        """The times when the queue's length changed, and its length before the first and after each; computed backwards
        from the current length, the only one known."""
        queue = self.queue or QueueNow(0)
        spans = [end.queued for end in self.ends if end.queued]
        came = [(at, 1) for at in (*queue.entered, *(span[0] for span in spans))]
        steps = sorted([*came, *((span[1], -1) for span in spans)])
        depths = [queue.count]
        for _, step in reversed(steps):
            depths.append(depths[-1] - step)
        return [at for at, _ in steps], depths[::-1]

    def slots(self, width_ms: int, count: int) -> tuple[Slot, ...]:
        """The window cut into equal parts that end at round times, oldest first."""
        last = self.at - self.at % width_ms + width_ms
        starts = range(last - count * width_ms, last, width_ms)
        return tuple(self._slot(start, start + width_ms) for start in starts)

    def _slot(self, start: int, end: int) -> Slot:
        if start < self.since and end <= self.since:
            return Slot(start, end)
        inside = [one for one in self.ends if start <= one.at < end]
        took = [one.took_ms for one in inside if one.took_ms is not None]
        return Slot(
            start,
            end,
            count=len(inside),
            published=sum(one.state is State.PUBLISHED for one in inside),
            p50_ms=percentile(took, 0.50),
            p95_ms=percentile(took, 0.95),
            waiting=self.most_waiting(start, end),
        )


class _EndFields(msgspec.Struct, frozen=True):
    """What the statistics need of a record, whatever else it holds."""

    state: State
    updated_at: int
    history: tuple[Event, ...] = ()


async def recent_activity(window_ms: int = HOUR_MS, limit: int = SAMPLE, *, audiences: Audiences) -> Activity:
    """What ended within the window and these audiences may read, by one index query. A failed read raises."""
    now = require_env("kv").kv.now()
    page = await _select_latest(_RESTING, limit, audiences, since=now - window_ms)
    ended = decode_readable(page.items, _EndFields, "recent_activity")
    ends = sorted(map(_end, ended), key=lambda end: end.at)
    truncated = page.after is not None
    since = ends[0].at if truncated and ends else now - window_ms
    return Activity(tuple(ends), since, now, truncated)


async def recent_hours(limit: int = SAMPLE, *, audiences: Audiences) -> Activity:
    """What ended within the last hours, and what was in the queue meanwhile: two bounded questions to the index."""
    queue = await _read_queue_now(limit, audiences)
    return msgspec.structs.replace(await recent_activity(HOURS_MS, audiences=audiences), queue=queue)


async def _read_queue_now(limit: int, audiences: Audiences) -> QueueNow:
    page = await _select_latest(_MOVING, limit, audiences)
    active = decode_readable(page.items, _EndFields, "queue_now")
    entered = tuple(one.history[0].at if one.history else one.updated_at for one in active)
    if page.after is None:
        return QueueNow(len(active), entered)
    # Submissions beyond the page changed before its last one, so they came before it.
    count = (await count_submissions(audiences=audiences)).active
    return QueueNow(count, entered, active[-1].updated_at if active else require_env("kv").kv.now())


async def _select_latest(
    states: tuple[State, ...], limit: int, audiences: Audiences, since: int | None = None
) -> EntryPage:
    """Submissions in these states, those that changed last first. A read that fails raises."""
    where: dict[str, Condition] = {"state": In(states)}
    if since is not None:
        where["updated_at"] = Between(least=since)
    page = await require_env("kv").kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where=where,
        order_by="updated_at",
        descending=True,
        limit=limit,
    )
    entries_of(page)
    return page


def _end(fields: _EndFields) -> End:
    first = next((event for event in fields.history if not event.to.moving), None)
    if first is None:
        return End(fields.updated_at, fields.state, None)
    took = max(first.at - fields.history[0].at, 0)
    begun = [
        event.at for event in fields.history if event.to is State.TIER1_SCANNING and event.seq < first.seq
    ]
    worked = (begun[-1], first.at) if begun else None
    return End(fields.updated_at, fields.state, took, worked, (fields.history[0].at, first.at))


def percentile(values: Sequence[int], share: float) -> int | None:
    """The least value that this share of them does not exceed; None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


# The line.


class LinePosition(msgspec.Struct, frozen=True):
    """A place in the line of those that wait for a worker. Only those count that the reader may read, so that a place
    tells nothing about others."""

    #: From 1.
    place: int
    #: True if counting stopped at a limit: the place is a minimum.
    at_least: bool = False


class WaitingLine(msgspec.Struct, frozen=True):
    """Waiting submissions that are due, the next one first."""

    places: dict[str, int]
    truncated: bool
    at: int

    def position(self, record: Submission) -> LinePosition | None:
        """Its place; None where it does not wait, or waits for its next attempt."""
        if not waits(record, self.at):
            return None
        place = self.places.get(record.id)
        if place is not None:
            return LinePosition(place)
        return LinePosition(len(self.places), at_least=True) if self.truncated else None


def waits(record: Submission, now: int) -> bool:
    """Whether it is in the queue: unclaimed and due."""
    due = record.next_attempt_at
    return record.state in LINE_STATES and record.claim is None and due is not None and due <= now


async def waiting_line(limit: int = MOST_AHEAD, *, audiences: Audiences) -> WaitingLine:
    """The line of what these audiences may read, up to a limit, in the order in which its members were due."""
    now = require_env("kv").kv.now()
    ids, is_cut = await _read_line(now, limit, audiences)
    return WaitingLine({waiting: place for place, waiting in enumerate(ids, 1)}, is_cut, now)


async def position_of(
    record: Submission, limit: int = MOST_AHEAD, *, audiences: Audiences
) -> LinePosition | None:
    """The place of one submission in the line of what these audiences may read; reads only what is before it."""
    due = record.next_attempt_at
    if due is None or not waits(record, require_env("kv").kv.now()):
        return None
    ids, is_cut = await _read_line(due, limit, audiences)
    if record.id in ids:
        return LinePosition(ids.index(record.id) + 1)
    return LinePosition(len(ids) or 1, at_least=is_cut)


async def _read_line(due: int, limit: int, audiences: Audiences) -> tuple[list[str], bool]:
    """The ids of those that were due by then, in that order, and whether there are more than the limit."""
    page = await require_env("kv").kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where={"state": In(tuple(sorted(LINE_STATES))), "due_at": Between(most=due)},
        order_by="due_at",
        limit=limit,
    )
    return [entry.key.removeprefix(SUBMISSIONS.prefix) for entry in entries_of(page)], page.after is not None


# The latest runs.


class JudgeWatch(msgspec.Struct, frozen=True):
    """How the judge did in the latest runs that asked it, whichever process they ran in (B14)."""

    #: The latest run that has an answer of the judge; None where none of those looked at has.
    last_answer_at: int | None = None
    answered: int = 0
    #: It was asked and was down; of two judges, one was.
    failed: int = 0

    @property
    def failing(self) -> bool:
        """Three or more failures, and more than answers."""
        return self.failed >= 3 and self.failed > self.answered


class _JudgeFields(msgspec.Struct, frozen=True):
    judge_status: JudgeStatus = JudgeStatus.NONE
    second_judge_status: JudgeStatus = JudgeStatus.NONE

    @property
    def worst(self) -> JudgeStatus:
        """The worst status: with two judges, one that works does not make up for one that is down."""
        statuses = (self.judge_status, self.second_judge_status)
        return JudgeStatus.DOWN if JudgeStatus.DOWN in statuses else self.judge_status


class _JudgedFields(msgspec.Struct, frozen=True):
    updated_at: int
    evidence: _JudgeFields | None = None


class LatestEnds(msgspec.Struct, frozen=True):
    """When a run last ended, and how the judge did in those before."""

    #: None where none has ended.
    last_at: int | None
    judge: JudgeWatch


async def latest_ends(*, audiences: Audiences) -> LatestEnds:
    """By the records of the latest runs that ended and that these audiences may read."""
    entries = (await _select_latest(_RESTING, ENDS_SAMPLE, audiences)).items
    judged = decode_readable(entries, _JudgedFields, "latest_ends")
    return LatestEnds(_last_at(entries), _watch_judge(judged))


async def count_unjudged(*, audiences: Audiences) -> int:
    """How many of those that wait for a reviewer no judge was asked about, of the latest."""
    page = await _select_latest((State.NEEDS_REVIEW,), SAMPLE, audiences)
    waiting = decode_readable(page.items, _JudgedFields, "count_unjudged")
    return sum(one.evidence is not None and one.evidence.worst is JudgeStatus.NONE for one in waiting)


async def last_end_at(*, audiences: Audiences) -> int | None:
    """When a run last ended, of those that these audiences may read; None where none has."""
    return _last_at((await _select_latest(_RESTING, 1, audiences)).items)


def _last_at(entries: Sequence[Entry]) -> int | None:
    """By this one field alone: a run counts as ended even if the rest of its record is malformed."""
    found = SUBMISSIONS.fields["updated_at"].read(entries[0].value) if entries else None
    return found if isinstance(found, int) else None


def _watch_judge(latest_first: Iterable[_JudgedFields]) -> JudgeWatch:
    words = [(one.evidence, one.updated_at) for one in latest_first if one.evidence]
    answers = [at for one, at in words if one.judge_status is JudgeStatus.ANSWERED]
    latest = [one.worst for one, _ in words if one.worst is not JudgeStatus.NONE][:ASKED]
    return JudgeWatch(
        last_answer_at=max(answers, default=None),
        answered=latest.count(JudgeStatus.ANSWERED),
        failed=latest.count(JudgeStatus.DOWN),
    )

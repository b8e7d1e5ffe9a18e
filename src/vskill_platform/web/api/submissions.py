"""The API, version 1, as far as it goes today: queue health, counts, and one submission with its history."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform import submission_store
from vskill_platform.domain.states import Category, category_of
from vskill_platform.domain.submission import Attempts, Event, RecordedDecision, Submission
from vskill_platform.queue import health
from vskill_platform.submission_store import SubmissionCounts
from vskill_platform.web.responses import json_response
from vskill_platform.worker_context import require_env


class HistoryEvent(msgspec.Struct, frozen=True):
    """One step, as clients see it."""

    seq: int
    at: int
    source: str | None = msgspec.field(name="from")
    to: str
    actor: str
    reason: str


class SubmissionView(msgspec.Struct, frozen=True):
    """A submission, as clients see it. The claim's token is nobody's business."""

    id: str
    repo_url: str
    skill_name: str
    skill_path: str
    state: str
    category: str
    #: The state in words.
    meaning: str
    run: int
    source: str
    priority: int
    created_at: int
    updated_at: int
    next_attempt_at: int | None
    #: Which worker has it at the moment, and until when its claim lasts.
    worker: str | None
    claimed_until: int | None
    rerun_requested: bool
    attempts: Attempts
    decision: RecordedDecision | None
    commit: str | None
    digest: str | None
    published_skill: str | None
    published_version: str | None
    history: tuple[HistoryEvent, ...]


class StatsView(msgspec.Struct, frozen=True):
    """How many submissions there are."""

    total: int
    active: int
    by_state: dict[str, int]
    by_category: dict[str, int]
    #: Records that cannot be read; they count in the total.
    unreadable: int
    #: False: the numbers are exact. A failed count is a 503, never a smaller number.
    degraded: bool = False


async def queue_health(_request: Request) -> Response:
    """Computed by this process from the records; it needs no worker (B7)."""
    found = await health.queue_health()
    require_env("metrics").metrics.queue_violations.set(len(found.violations))
    return json_response(found)


async def submission_stats(_request: Request) -> Response:
    return json_response(stats_view(await submission_store.count_submissions()))


async def submission(request: Request) -> Response:
    record = await submission_store.get_submission(request.path_params["submission_id"])
    return json_response(submission_view(record))


def stats_view(counts: SubmissionCounts) -> StatsView:
    by_category = dict.fromkeys((category.value for category in Category), 0)
    for state, count in counts.by_state.items():
        by_category[category_of(state).value] += count
    return StatsView(
        total=counts.total,
        active=counts.active,
        by_state={state.value: count for state, count in counts.by_state.items()},
        by_category=by_category,
        unreadable=counts.unreadable,
    )


def submission_view(record: Submission) -> SubmissionView:
    claim = record.claim
    return SubmissionView(
        id=record.id,
        repo_url=record.repo_url,
        skill_name=record.skill_name,
        skill_path=record.skill_path,
        state=record.state.value,
        category=category_of(record.state).value,
        meaning=record.state.meaning,
        run=record.run,
        source=record.source.value,
        priority=record.priority,
        created_at=record.created_at,
        updated_at=record.updated_at,
        next_attempt_at=record.next_attempt_at,
        worker=claim.worker if claim else None,
        claimed_until=claim.until if claim else None,
        rerun_requested=record.rerun_requested is not None,
        attempts=record.attempts,
        decision=record.decision,
        commit=record.commit,
        digest=record.digest,
        published_skill=record.published,
        published_version=record.published_version,
        history=tuple(map(_event, record.history)),
    )


def _event(event: Event) -> HistoryEvent:
    return HistoryEvent(
        seq=event.seq,
        at=event.at,
        source=event.source.value if event.source else None,
        to=event.to.value,
        actor=event.actor,
        reason=event.reason,
    )

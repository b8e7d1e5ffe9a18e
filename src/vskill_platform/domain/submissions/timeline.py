"""What a submission's history says about time: how long it stood in which state.

Pure, over the record alone. The submission's page and the API read it; there is no second place where durations are
kept, so none can disagree with the history.
"""

import itertools

import msgspec

from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, Submission


class Stay(msgspec.Struct, frozen=True):
    """One step of the history, and how long the submission then stood in the state that it led to."""

    event: Event
    #: When the next step was taken; None while it still stands there.
    left_at: int | None
    #: Up to now where it still moves or waits for a person; None where a run is over and nothing runs on.
    duration_ms: int | None


def stays(record: Submission, now: int) -> tuple[Stay, ...]:
    ended = tuple(
        Stay(event, following.at, max(following.at - event.at, 0))
        for event, following in itertools.pairwise(record.history)
    )
    last = record.history[-1]
    open_ms = None if last.to.terminal else max(now - last.at, 0)
    return (*ended, Stay(last, None, open_ms))


def time_by_state(record: Submission, now: int) -> dict[State, int]:
    """Milliseconds of this run by state, in the order in which they were first entered."""
    total: dict[State, int] = {}
    for stay in stays(record, now):
        if stay.duration_ms is not None:
            total[stay.event.to] = total.get(stay.event.to, 0) + stay.duration_ms
    return total

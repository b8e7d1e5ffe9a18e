"""Durations: how long a submission stood where, from its history alone."""

import msgspec

from tests.support.records import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.domain.submissions.timeline import Stay, stays, time_by_state


def history(*steps: tuple[State, int]) -> Submission:
    events = tuple(
        Event(f"e{seq}", seq, at, to, "system", "because") for seq, (to, at) in enumerate(steps, 1)
    )
    return msgspec.structs.replace(submission(), state=steps[-1][0], history=events)


RECEIVED, SCANNING = State.RECEIVED, State.TIER1_SCANNING


def test_each_step_lasts_until_the_next_and_the_last_one_until_now():
    record = history((RECEIVED, 10), (SCANNING, 15), (RECEIVED, 40))
    first, second, third = record.history
    assert stays(record, 100) == (Stay(first, 15, 5), Stay(second, 40, 25), Stay(third, None, 60))
    assert time_by_state(record, 100) == {RECEIVED: 65, SCANNING: 25}


def test_what_is_over_runs_no_longer_and_what_waits_for_a_person_does():
    over = history((RECEIVED, 10), (State.DEQUEUED, 15))
    assert [stay.duration_ms for stay in stays(over, 100)] == [5, None]
    assert time_by_state(over, 100) == {RECEIVED: 5}
    waiting = history((SCANNING, 10), (State.NEEDS_REVIEW, 15))
    assert time_by_state(waiting, 100) == {SCANNING: 5, State.NEEDS_REVIEW: 85}


def test_a_clock_that_went_back_makes_no_negative_time():
    assert time_by_state(history((RECEIVED, 10), (SCANNING, 5)), 2) == {RECEIVED: 0, SCANNING: 0}

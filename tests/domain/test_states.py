"""The states: flags, sets derived from them, and the one table of moves, each over the whole enum."""

import pytest

from vskill_core.state_words import MEANING
from vskill_platform.domain.submissions.states import (
    ACTIVE_STATES,
    FLAGS,
    STUCK_STATES,
    TERMINAL_STATES,
    TRANSITIONS,
    Flag,
    State,
    StateCategory,
    category_of,
    may_move,
    may_start_run,
    states_in,
    states_with,
)

#: The table once more, row by row, as the design has it.
EXPECTED = {
    "RECEIVED": "TIER1_SCANNING NEEDS_REVIEW REJECTED BLOCKED DEQUEUED",
    "TIER1_SCANNING": "RECEIVED TIER2_SCANNING AUTO_APPROVED COOLDOWN TIER1_FAILED NEEDS_REVIEW REJECTED BLOCKED DEQUEUED",
    "TIER2_SCANNING": "RECEIVED AUTO_APPROVED COOLDOWN NEEDS_REVIEW REJECTED BLOCKED DEQUEUED",
    "AUTO_APPROVED": "PUBLISHED RECEIVED NEEDS_REVIEW BLOCKED REJECTED DEQUEUED",
    "COOLDOWN": "TIER1_SCANNING AUTO_APPROVED NEEDS_REVIEW REJECTED BLOCKED DEQUEUED",
    "NEEDS_REVIEW": "AUTO_APPROVED REJECTED BLOCKED RECEIVED DEQUEUED",
    "PUBLISHED": "BLOCKED NEEDS_REVIEW DEQUEUED",
    "TIER1_FAILED": "BLOCKED",
    "REJECTED": "BLOCKED",
    "BLOCKED": "",
    "DEQUEUED": "BLOCKED",
}


@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize("target", State)
def test_a_move_is_allowed_exactly_where_the_table_says(source, target):
    assert may_move(source, target) == (target.value in EXPECTED[source.value].split())


def test_every_state_has_flags_a_meaning_and_a_row():
    assert set(FLAGS) == set(MEANING) == set(TRANSITIONS) == set(State)
    assert all(state.meaning for state in State)


@pytest.mark.parametrize("state", State)
def test_a_state_is_active_or_waiting_for_a_person_or_terminal(state):
    kinds = [flag for flag in (Flag.ACTIVE, Flag.WAITING, Flag.TERMINAL) if flag in FLAGS[state]]
    assert len(kinds) == 1
    assert state.ends_run == (not state.active)
    assert may_start_run(state) == state.ends_run


def test_the_sets_are_those_of_the_flags():
    assert (states_with(Flag.ACTIVE), states_with(Flag.TERMINAL)) == (ACTIVE_STATES, TERMINAL_STATES)
    assert states_with(Flag.WAITING) == {State.NEEDS_REVIEW}
    assert ACTIVE_STATES == {s for s in State if s.active} == STUCK_STATES | {State.COOLDOWN}
    assert {s for s in State if s.moving} == STUCK_STATES
    assert {s for s in State if s.reviewable} == {State.NEEDS_REVIEW, State.COOLDOWN}
    assert {s for s in State if s.terminal} == TERMINAL_STATES
    assert {s for s in State if s.success} == {State.PUBLISHED}
    assert {s for s in State if s.failure} == {State.TIER1_FAILED, State.REJECTED, State.BLOCKED}


def test_C14_every_state_is_in_exactly_one_category():
    assert sorted(state for category in StateCategory for state in states_in(category)) == sorted(State)
    assert {category_of(state) for state in State} == set(StateCategory)


def test_E3_the_category_of_what_runs_holds_every_state_of_running_work():
    moving = states_in(StateCategory.RUNNING) | states_in(StateCategory.WAITING)
    assert moving == ACTIVE_STATES - states_in(StateCategory.COOLDOWN)


def test_every_state_has_a_name_for_people_and_no_two_share_one():
    labels = [state.label for state in State]
    assert len(set(labels)) == len(labels)
    assert not {label.upper() for label in labels} & {"RECEIVED", "TIER1_FAILED", "NEEDS_REVIEW", "DEQUEUED"}

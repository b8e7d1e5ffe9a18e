"""A hundred histories, or more by `make test-long`: every invariant holds, and they really went through what the simulator claims to do."""

import os
from collections import Counter

import pytest

from simulator.actors import WEIGHTS
from simulator.history import History
from simulator.plan import Fault
from vskill_platform.domain.submissions.states import State

pytestmark = pytest.mark.slow

SEEDS = range(int(os.environ.get("SEEDS", "100")))


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    """What all of them together went through. None breaks an invariant (D3, D14, D15, B5, B8 and the others)."""
    total: Counter[str] = Counter()
    broken: dict[int, str] = {}
    for seed in SEEDS:
        result = History(seed).run()
        total.update(result.counts)
        if result.broken is not None:
            broken[seed] = result.broken
    assert broken == {}
    return total


def test_every_kind_of_fault_happens(counts):
    assert [fault for fault in Fault if not counts[fault]] == []


def test_people_do_everything_that_they_can_do(counts):
    assert [what for what in WEIGHTS if not counts[f"act {what}"]] == []


def test_waits_end_are_reported_and_meet_other_policies(counts):
    reported = ("act report", "a report stopped an update")
    wanted = (*reported, "act set_policy", "published after a wait", "published at once")
    assert [what for what in wanted if not counts[what]] == []


def test_every_state_is_reached_and_every_state_of_rest_is_an_end(counts):
    assert [state for state in State if not counts[f"step to {state}"]] == []
    assert [state for state in State if state.ends_run and not counts[f"ended {state}"]] == []
    assert [state for state in State if state.active and counts[f"ended {state}"]] == []

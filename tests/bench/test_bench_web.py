"""The benchmark of the web at a tiny size: every kind of answer is there, and the round trips, which no machine's speed
changes, are within their limit. Nothing here looks at how long anything took."""

import contextlib

import pytest

from bench import web
from bench.scale import TINY
from bench.web import ANSWERS, COLD, HOME, WARM
from bench.workshop import open_workshop

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    with (
        contextlib.chdir(tmp_path_factory.mktemp("pages")),
        open_workshop(TINY, lambda _: None) as workshop,
    ):
        report = web.run(workshop)
    return report.figures, report.goals


def test_every_answer_is_timed_at_both_sizes_and_compared(measured):
    figures, goals = measured
    ms = {figure.name: figure.median for figure in figures if figure.unit == "ms"}
    assert len(ms) == 2 * len(ANSWERS)
    growth = {goal.name: goal.value for goal in goals if "÷ among" in goal.name}
    assert len(growth) == len(ANSWERS)
    few, many = TINY.skills, TINY.listed
    for name, value in growth.items():
        what = name.partition(":")[0]
        assert value == ms[f"{what} among {many:,}"] / ms[f"{what} among {few:,}"]


@pytest.mark.parametrize("one", ANSWERS, ids=lambda one: one.name)
def test_the_store_is_asked_few_times_with_nothing_kept_and_again(one, measured):
    trips = {figure.name: figure.median for figure in measured[0] if figure.unit == "round trips"}
    assert 1 <= trips[f"{one.name}, {WARM}"] <= one.most_trips
    assert one is HOME or 1 <= trips[f"{one.name}, {COLD}"] <= one.most_trips


def test_each_page_has_a_goal_for_its_round_trips(measured):
    goals = {goal.name: goal for goal in measured[1]}
    assert all(goals[f"{one.name}: store round trips"].met for one in ANSWERS)

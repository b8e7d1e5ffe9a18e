"""Numbers about the queue come from the records, are bounded, and are unknown rather than wrong."""

from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import msgspec
import pytest

from tests.support.envs import ENGINES, active_env, make_submission, open_test_env, put_record
from tests.support.faults import HookedKV
from tests.support.manual_clock import ManualClock
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, move
from vskill_platform.domain.submissions.timeline import stays, time_by_state
from vskill_platform.queue.control import Pause
from vskill_platform.queue.outlook import Outlook
from vskill_platform.store.submissions.statistics import (
    Activity,
    End,
    LinePosition,
    last_end_at,
    latest_ends,
    percentile,
    position_of,
    recent_activity,
    recent_hours,
    waiting_line,
)
from vskill_platform.web.charts import ceiling, installs_chart, latency_chart, queue_chart
from vskill_platform.web.render import UNKNOWN
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
MINUTE = 60_000


@pytest.fixture(params=ENGINES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Env]:
    async with open_test_env(request.param, tmp_path, clock=ManualClock(NOW)) as opened:
        yield opened


def ended(name: str, at: int, took_ms: int, state: State = State.PUBLISHED):
    """A run that took so long and ended then."""
    record = make_submission(name, at=at - took_ms)
    for number, to in enumerate((State.TIER1_SCANNING, State.AUTO_APPROVED, State.PUBLISHED), 2):
        record = move(record, to, Step(f"{name}-{number}", at, "worker:test", "made by a test"))
    return msgspec.structs.replace(record, state=state)


async def test_what_ended_within_the_hour_is_counted_with_its_duration(env: Env):
    for number in range(10):
        await put_record(env, ended(f"done-{number}", NOW - number * MINUTE, 1_000 * (number + 1)))
    await put_record(env, ended("long-ago", NOW - 61 * MINUTE, 1))
    await put_record(env, make_submission("waits", at=NOW))
    found = await recent_activity(audiences=EVERYTHING)
    assert len(found.ends) == 10
    assert (found.took(0.5), found.took(0.95)) == (5_000, 10_000)
    assert found.per_minute == 1.0
    assert not found.truncated
    assert found.since == NOW - 60 * MINUTE


async def test_beyond_the_sample_the_window_is_shorter_and_says_so(env: Env):
    for number in range(20):
        await put_record(env, ended(f"done-{number:02}", NOW - number * MINUTE, 1_000))
    found = await recent_activity(limit=5, audiences=EVERYTHING)
    assert found.truncated
    assert (len(found.ends), found.since) == (5, NOW - 4 * MINUTE)
    slots = found.slots(5 * MINUTE, 12)
    assert [slot.count for slot in slots[:10]] == [None] * 10, "unknown is not zero (C4)"
    assert sum(slot.count or 0 for slot in slots) == 5
    assert queue_chart(slots).rows[0].values == (UNKNOWN, UNKNOWN, UNKNOWN)


async def test_how_many_were_in_the_queue_follows_from_when_each_came_and_was_decided(env: Env):
    """The most of each span of time: one that came and went between two looks counts too."""
    await put_record(env, ended("quick", NOW - 20 * MINUTE, 1_000))
    await put_record(env, ended("slow", NOW - 10 * MINUTE, 50 * MINUTE))
    for number, minutes in enumerate((40, 2)):
        await put_record(env, make_submission(f"waits-{number}", at=NOW - minutes * MINUTE))
    found = await recent_hours(audiences=EVERYTHING)

    def most(start: int, end: int) -> int | None:
        return found.most_waiting(NOW - start * MINUTE, NOW - end * MINUTE)

    spans = ((90, 61), (90, 59), (59, 41), (45, 30), (30, 19), (19, 11), (9, 3), (9, 1), (1, -15))
    assert [most(*span) for span in spans] == [0, 1, 1, 2, 3, 2, 1, 2, 2]
    chart = queue_chart(found.slots(15 * MINUTE, 24))
    assert [row.values[2] for row in chart.rows[-6:]] == ["0", "1", "2", "3", "2", "2"]
    assert "At most 3 were in the queue at once." in chart.description
    assert most(8 * 60, 7 * 60) is None


async def test_a_long_queue_is_counted_and_looked_at_only_as_far_as_the_sample_goes(env: Env):
    for number in range(9):
        await put_record(env, make_submission(f"waits-{number}", at=NOW - number * MINUTE))
    found = await recent_hours(limit=3, audiences=EVERYTHING)
    spans = ((0, -1), (1, 0), (2, 1), (3, 2))
    assert [found.most_waiting(NOW - a * MINUTE, NOW - b * MINUTE) for a, b in spans] == [9, 8, 7, None]


async def test_C7_a_failed_read_is_an_error(env: Env):
    kv = HookedKV(env.kv)
    kv.failing = {"select"}
    with active_env(env, kv=kv):
        for ask in (recent_activity, recent_hours, waiting_line, latest_ends, last_end_at):
            with pytest.raises(StoreUnavailable):
                await ask(audiences=EVERYTHING)


async def test_a_record_of_another_age_is_counted_too(env: Env):
    """Whatever it lacks is unknown; it is not left out."""
    await env.kv.put("sub:old", msgspec.json.encode({"state": "PUBLISHED", "updated_at": NOW - 1}))
    found = await recent_activity(audiences=EVERYTHING)
    assert [(end.at, end.took_ms) for end in found.ends] == [(NOW - 1, None)]


async def test_the_line_is_in_the_order_of_when_its_members_were_due(env: Env):
    records = [make_submission(f"waits-{number}", at=NOW - 1_000 + number) for number in range(5)]
    for record in reversed(records):
        await put_record(env, record)
    later = msgspec.structs.replace(make_submission("later", at=NOW), next_attempt_at=NOW + 1)
    held = make_submission("held", at=NOW - 5_000, claimed_until=NOW + 10_000, state=State.TIER1_SCANNING)
    await put_record(env, later)
    await put_record(env, held)
    line = await waiting_line(audiences=EVERYTHING)
    assert [line.position(record) for record in records] == [LinePosition(place) for place in range(1, 6)]
    assert [await position_of(record, audiences=EVERYTHING) for record in records] == [
        LinePosition(place) for place in range(1, 6)
    ]
    for other in (later, held, make_submission("done", state=State.PUBLISHED)):
        assert line.position(other) is None
        assert await position_of(other, audiences=EVERYTHING) is None


async def test_a_position_beyond_what_is_counted_says_at_least(env: Env):
    records = [make_submission(f"waits-{number}", at=NOW - 1_000 + number) for number in range(5)]
    for record in records:
        await put_record(env, record)
    line = await waiting_line(limit=3, audiences=EVERYTHING)
    assert line.position(records[4]) == LinePosition(3, at_least=True)
    assert await position_of(records[4], limit=3, audiences=EVERYTHING) == LinePosition(3, at_least=True)
    assert await position_of(records[2], limit=3, audiences=EVERYTHING) == LinePosition(3)


async def test_one_whose_turn_came_since_it_was_read_stands_first(env: Env):
    """Its reader does not know yet that it left the line, in which nobody is before it."""
    record = make_submission("called", at=NOW - 1_000)
    await put_record(env, make_submission("called", at=NOW - 1_000, state=State.TIER1_SCANNING))
    assert await position_of(record, audiences=EVERYTHING) == LinePosition(1)


def activity(*spans: tuple[int, int]) -> Activity:
    """Runs that somebody worked on from then to then, in milliseconds before now."""
    ends = [End(NOW, State.PUBLISHED, 10, (NOW - began, NOW - ended)) for began, ended in spans]
    return Activity(tuple(ends), NOW - 60 * MINUTE, NOW)


def test_the_speed_of_the_line_is_that_of_the_times_in_which_somebody_worked():
    assert activity((100, 0)).ms_each == 100, "one short run on an idle registry"
    assert activity((400_000, 399_900), (200, 0)).ms_each == 150, "the idle time between them does not count"
    assert activity((100, 0), (100, 0), (100, 50)).ms_each == pytest.approx(100 / 3), "three side by side"
    assert activity((150, 50), (100, 0)).ms_each == 75, "the common time counts once"
    assert activity().ms_each is None
    assert activity((700_000, 650_000)).ms_each is None, "not lately"
    assert Activity((End(NOW, State.PUBLISHED, 10),), NOW - 60 * MINUTE, NOW).ms_each is None


def test_an_estimate_is_the_speed_and_the_rest_of_a_pause_or_nothing():
    moving = activity((100, 0))
    third = LinePosition(3)
    pause = Pause(NOW + 10 * MINUTE, "upgrade", "admin:me", NOW)
    assert Outlook(None, deserted=False, at=NOW).estimate_ms(third, moving) == 300
    assert Outlook(pause, deserted=False, at=NOW).estimate_ms(third, moving) == 10 * MINUTE + 300
    assert Outlook(None, deserted=True, at=NOW).estimate_ms(third, moving) is None, "nobody works"
    assert Outlook(None, deserted=False, at=NOW).estimate_ms(third, activity()) is None
    assert Outlook(None, deserted=False, at=NOW).estimate_ms(None, moving) is None
    assert Outlook(None, deserted=False, at=NOW).estimate_ms(third, None) is None


async def test_when_an_attempt_began_is_read_from_the_history(env: Env):
    record = make_submission("done", at=NOW - 9_000)
    for number, (to, at) in enumerate(
        [
            (State.TIER1_SCANNING, NOW - 8_000),
            (State.RECEIVED, NOW - 7_000),
            (State.TIER1_SCANNING, NOW - 2_000),
            (State.AUTO_APPROVED, NOW - 1_000),
            (State.PUBLISHED, NOW - 500),
        ]
    ):
        record = move(record, to, Step(f"e{number}", at, "worker:test", "made by a test"))
    await put_record(env, record)
    (end,) = (await recent_activity(audiences=EVERYTHING)).ends
    assert (end.took_ms, end.worked) == (8_500, (NOW - 2_000, NOW - 500)), "the attempt that decided"


async def test_the_time_that_a_reviewer_took_is_not_the_lines(env: Env):
    record = make_submission("reviewed", at=NOW - 400_000)
    for number, (to, at) in enumerate(
        [
            (State.TIER1_SCANNING, NOW - 300_200),
            (State.NEEDS_REVIEW, NOW - 300_000),
            (State.REJECTED, NOW - 100),
        ]
    ):
        record = move(record, to, Step(f"e{number}", at, "worker:test", "made by a test"))
    await put_record(env, record)
    assert (await recent_activity(audiences=EVERYTHING)).ms_each == 200


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([7], 0.5, 7),
        ([1, 2, 3, 4], 0.5, 2),
        (list(range(1, 101)), 0.95, 95),
        ([5, 1], 0.95, 5),
    ],
)
def test_percentiles_are_values_that_occurred(values: list[int], share: float, expected: int | None):
    assert percentile(values, share) == expected


def test_a_timeline_has_every_step_with_its_duration():
    record = ended("done", NOW, 5_000)
    found = stays(record, NOW + 10_000)
    assert [(stay.event.to, stay.duration_ms) for stay in found] == [
        (State.RECEIVED, 5_000),
        (State.TIER1_SCANNING, 0),
        (State.AUTO_APPROVED, 0),
        (State.PUBLISHED, None),
    ]
    assert time_by_state(record, NOW + 10_000) == {
        State.RECEIVED: 5_000,
        State.TIER1_SCANNING: 0,
        State.AUTO_APPROVED: 0,
    }
    waiting = make_submission("waits", at=NOW)
    assert stays(waiting, NOW + 7)[-1].duration_ms == 7


# Charts.


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 1), (1, 1), (3, 5), (11, 20), (50, 50), (51, 100), (7001, 10_000)]
)
def test_the_top_of_a_chart_is_a_round_number(value: int, expected: int):
    assert ceiling(value) == expected


def test_installs_are_counted_by_the_weeks_that_they_fell_into():
    """From Monday to Sunday; what is older than the chart is left out."""
    days = {"2026-11-16": 4, "2026-11-15": 2, "2026-11-09": 1, "2026-08-24": 5, "2026-08-23": 9}
    chart = installs_chart(days, date(2026, 11, 18))
    assert [row.values[0] for row in chart.rows] == ["5", *["0"] * 10, "3", "4"]
    assert (chart.rows[0].when, chart.rows[-1].when) == ("24 Aug", "16 Nov")
    assert "12 installs in the last 13 weeks." in chart.description
    assert installs_chart({}, date(2026, 11, 18)).empty


def test_charts_with_no_data_are_empty_and_whole():
    for slots in ((), Activity((), NOW - 60 * MINUTE, NOW).slots(5 * MINUTE, 12)):
        for chart in (queue_chart(slots), latency_chart(slots)):
            assert chart.empty
            assert len(chart.rows) == len(slots)


def test_a_chart_stays_in_its_box_and_leaves_gaps_where_nothing_is_known():
    ends = tuple(End(NOW - number * 10 * MINUTE, State.PUBLISHED, 100 * (number + 1)) for number in range(6))
    slots = Activity(ends, NOW - 60 * MINUTE, NOW).slots(5 * MINUTE, 12)
    throughput, latency = queue_chart(slots), latency_chart(slots)
    for bar in throughput.bars:
        assert bar.x >= 0 and bar.x + bar.width <= throughput.width
        assert bar.y >= 0 and bar.y + bar.height <= throughput.ground + 0.2
    assert sum(slot.count or 0 for slot in slots) == 6
    assert all(not line.pieces for line in latency.lines), "no line is drawn across a gap"
    assert all(len(line.marks) == 6 for line in latency.lines)

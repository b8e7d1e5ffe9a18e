"""The protocol between the benchmark and the queues: a tiny run of our own on every engine, each in a process of its
own, and what is said about queues that cannot be measured. Other people's queues are not needed here."""

import msgspec
import pytest

from bench.queue import RAW, UNIT, Row, goals, report, take_turns
from bench.queue_peers.registry import ON_FILES, ON_SERVERS, OWN, OWN_ON_SERVERS
from bench.queue_peers.runner import Drained, NotMeasured, Peer, Redelivery, drain
from bench.queue_peers.servers import open_servers
from bench.results import Figure
from bench.scale import TINY
from bench.workshop import Workshop

pytestmark = pytest.mark.slow

ABSENT = Peer("nobody's queue", "nobody", "SQLite", "a_package_that_nobody_has")
RAW_FIGURE = Figure.of(RAW, UNIT, [1.0])


def row(peer: Peer, per_second: float, leaks: int = 0) -> Row:
    return Row(peer, (Drained(100, 100 / per_second, 0.1, leaks),), "after 15 s")


@pytest.fixture(scope="module")
def servers():
    with open_servers() as opened:
        yield opened


@pytest.mark.parametrize("peer", [*OWN, OWN_ON_SERVERS[0], OWN_ON_SERVERS[3]], ids=lambda peer: peer.name)
def test_our_own_queue_runs_every_job_on_every_engine_and_leaks_nothing(peer, servers, tmp_path):
    found = drain(peer, servers, tmp_path, 40)
    assert (found.jobs, found.leaks) == (40, 0)
    assert found.seconds > 0 and found.cpu > 0
    assert not list(tmp_path.iterdir()), "a process leaves nothing behind"


def test_a_queue_that_is_not_installed_says_so(servers, tmp_path):
    with pytest.raises(NotMeasured, match="not installed"):
        drain(ABSENT, servers, tmp_path, 1)


def test_a_queue_that_breaks_says_how(servers, tmp_path):
    broken = msgspec.structs.replace(OWN[0], module="nobody")
    with pytest.raises(NotMeasured, match="nobody"):
        drain(broken, servers, tmp_path, 1)


def test_a_queue_that_was_not_measured_keeps_its_row_with_the_reason(servers, tmp_path):
    workshop = Workshop(tmp_path, TINY, lambda _: None)
    rows = take_turns(workshop, servers, [OWN[0], ABSENT])
    shown = report(60, rows, RAW_FIGURE)
    assert [cells[0] for cells in shown.tables[0].rows] == [OWN[0].name, ABSENT.name]
    assert "not installed" in shown.tables[0].rows[1][2]
    assert all(len(cells) == len(shown.tables[0].columns) for cells in shown.tables[0].rows)


def test_what_counts_on_an_engine_is_the_fastest_of_both_sides():
    rows = [row(OWN[0], 900), row(ON_FILES[0], 300), row(ON_FILES[1], 450), row(ON_FILES[2], 1_800)]
    values = {goal.name: goal.value for goal in goals(rows)}
    assert values["our fastest on SQLite ÷ huey, 10 threads"] == pytest.approx(2)
    assert values[
        "our fastest on SQLite ÷ huey, 1 thread, nothing flushed, which flushes nothing"
    ] == pytest.approx(0.5)


def test_ours_is_compared_with_those_whose_jobs_survive_a_kill_as_they_come():
    (goal, *_) = goals([row(OWN[0], 900), row(ON_SERVERS[0], 300)])
    assert goal.name.endswith("pgqueuer as it comes") and goal.value == pytest.approx(3)
    assert goal.limit == 3.0


def test_a_leak_of_ours_fails_the_run():
    assert not goals([row(OWN[0], 900, leaks=1)])[-1].met


def test_a_redelivery_is_told_in_words():
    assert (str(Redelivery(14.6, 75)), str(Redelivery(None, 75))) == ("after 15 s", "not within 75 s")

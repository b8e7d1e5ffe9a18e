"""Every benchmark runs at a tiny size and computes its ratios. Nothing here looks at how long anything took."""

import contextlib
import logging
from collections.abc import Iterator
from importlib.util import find_spec

import msgspec
import pytest
import structlog

from bench.render import to_json, to_markdown, verdict
from bench.results import Figure, Goal, Relation, Report, at_least, at_most
from bench.scale import FULL, QUICK, TINY
from bench.suite import BENCHES, Run, run_suite


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[Run]:
    """All of them once, in a folder of their own; the process's logging is as it was afterwards."""
    folder = tmp_path_factory.mktemp("bench")
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers, root.level
    with contextlib.chdir(folder):
        yield run_suite(BENCHES, TINY, lambda _: None)
    structlog.configure(**before)
    root.handlers = handlers
    root.setLevel(level)
    assert not list(folder.iterdir()), "a run leaves nothing behind"


@pytest.fixture
def reports(run) -> dict[str, Report]:
    return {report.name: report for report in run.reports}


@pytest.mark.parametrize("name", BENCHES)
def test_each_benchmark_runs_and_computes_what_it_claims(name, reports):
    report = reports[name]
    assert report.goals and report.figures
    assert all(goal.value >= 0 for goal in report.goals)
    assert all(figure.least <= figure.median <= figure.most for figure in report.figures)


def test_the_queue_is_compared_with_its_peers_and_with_labelled_references(reports):
    report = reports["queue"]
    medians = {figure.name: figure.median for figure in report.figures}
    ours = medians["vskill-platform on SQLite"]
    references = [goal for goal in report.goals if "reference" in goal.name]
    assert [goal.value for goal in references] == [ours / 3_800, ours / 2_900]
    assert all((goal.limit, goal.wish) == (3.0, 5.0) for goal in references)
    assert any("not from this run" in note for note in report.notes)


def test_what_counts_is_the_fastest_configuration_of_the_peer(reports):
    report = reports["queue"]
    medians = {figure.name: figure.median for figure in report.figures}
    peers = [value for name, value in medians.items() if name.startswith("huey")]
    assert bool(peers) == (find_spec("huey") is not None)
    if peers:
        assert report.goals[1].value == medians["vskill-platform on SQLite"] / max(peers)
    else:
        assert any("huey is not installed" in note for note in report.notes)


def test_the_path_publishes_everything_and_says_how_many_operations_shared_a_flush(reports):
    report = reports["path"]
    figures = {figure.name: figure.median for figure in report.figures}
    assert figures["operations that share one flush"] >= 1
    assert report.goals[0].value == report.figures[0].median > 0


def test_the_consumer_leaks_nothing_where_ordinary_workers_do(reports):
    leaks = {figure.name: figure.median for figure in reports["context"].figures}
    assert leaks["vskill-platform's consumer"] == 0
    assert leaks["asyncio workers that live on, 10 tasks"] == TINY.jobs - 10


def test_reads_are_compared_with_the_raw_engine_and_with_single_reads(reports):
    report = reports["reads"]
    ms = {figure.name: figure.median for figure in report.figures}
    assert report.goals[0].value == ms["enumerate_published_skills"] / ms["raw SQLite range scan, json.loads"]
    assert sum("at 10 ms" in name for name in ms) == 3


def test_a_run_is_written_as_a_page_and_as_json(run):
    page = to_markdown(run)
    assert all(f"## {name}" in page for name in BENCHES)
    assert f"SQLite {run.machine.sqlite}" in page
    plain = msgspec.json.decode(to_json(run))
    met = [goal["met"] for report in plain["reports"] for goal in report["goals"]]
    assert met == [goal.met for report in run.reports for goal in report.goals]
    assert plain["machine"]["fsync_us"][0] > 0


def test_a_page_says_that_others_kept_the_machine_busy(run):
    busy = msgspec.structs.replace(run.machine, cores=2, load_before=1.5)
    idle = msgspec.structs.replace(run.machine, cores=2, load_before=0.5)
    assert "kept this machine busy" in to_markdown(msgspec.structs.replace(run, machine=busy))
    assert "kept this machine busy" not in to_markdown(msgspec.structs.replace(run, machine=idle))


def test_goals_are_judged_on_the_right_side_of_their_limit():
    assert at_least("more", 3.0, 3.0).met and not at_least("more", 2.9, 3.0).met
    assert at_most("less", 2.0, 2.0).met and not at_most("less", 2.1, 2.0).met
    assert verdict(at_least("more", 4.0, 3.0, wish=5.0)) == "met, wish not"
    assert verdict(at_least("more", 5.0, 3.0, wish=5.0)) == "met, wish too"
    assert verdict(Goal("less", 9.0, Relation.AT_MOST, 2.0)) == "not met"


def test_a_figure_is_the_median_with_its_spread():
    assert Figure.of("f", "ms", [5.0, 1.0, 3.0]) == Figure("f", "ms", 3.0, 1.0, 5.0, 3)


def test_the_full_scale_is_what_the_claims_are_about():
    assert (FULL.messages, FULL.large, FULL.small, FULL.skills) == (10_000, 1_000_000, 10_000, 10_000)
    assert (FULL.stuck, FULL.slow_keys, FULL.jobs) == (100, 500, 10_000)
    assert QUICK.large == 10 * QUICK.small

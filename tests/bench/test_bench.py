"""Every benchmark runs at a tiny size and computes its ratios. Nothing here looks at how long anything took."""

import contextlib
import gc
from collections.abc import Iterator

import msgspec
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.render import section, with_sections, write_page
from bench.results import TIMES, Figure, Report, at_least, at_most
from bench.scale import FULL, QUICK, TINY
from bench.suite import BENCHES, Run, run_suite

pytestmark = pytest.mark.slow

#: The whole way with real git has no small size: the processes that it starts take longer than everything else
#: together. That of several processes has tests of its own.
SMALL = tuple(name for name in BENCHES if name not in {"path", "scale", "content"})


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[Run]:
    """All of them once, in a folder of their own."""
    folder = tmp_path_factory.mktemp("bench")
    # Garbage is collected before each measurement; to go through all that the tests hold takes longer than the rest.
    gc.freeze()
    with contextlib.chdir(folder):
        yield run_suite({name: BENCHES[name] for name in SMALL}, TINY, lambda _: None)
    gc.unfreeze()
    assert not list(folder.iterdir()), "a run leaves nothing behind"


@pytest.fixture
def reports(run) -> dict[str, Report]:
    return {report.name: report for report in run.reports}


@pytest.mark.parametrize("name", SMALL)
def test_each_benchmark_runs_and_computes_what_it_claims(name, reports):
    report = reports[name]
    assert report.goals and report.figures
    assert all(goal.value >= 0 for goal in report.goals)
    assert all(figure.least <= figure.median <= figure.most for figure in report.figures)


def test_reads_are_compared_with_the_raw_engine_and_with_single_reads(reports):
    report = reports["reads"]
    ms = {figure.name: figure.median for figure in report.figures}
    assert report.goals[0].value == ms["enumerate_published_skills"] / ms["raw SQLite range scan, json.loads"]


def test_a_run_is_written_as_a_page(run, tmp_path):
    write_page(run, tmp_path / "benchmarks.md")
    page = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert page == with_sections("", run)
    assert all(section(report, run) in page for report in run.reports)
    assert f"SQLite {run.machine.sqlite}" in page


def test_parts_that_are_measured_alone_take_the_place_of_the_earlier_ones_and_no_others(run):
    whole = with_sections("", run)
    (first, *_) = run.reports
    for title in ("Old figures", "New figures"):
        alone = msgspec.structs.replace(first, title=title)
        whole = with_sections(whole, msgspec.structs.replace(run, reports=(alone,), day="2030-01-02"))
    assert [whole.count(f"## {name}\n") for name in SMALL] == [1] * len(SMALL)
    assert whole.count("New figures.\n\n2030-01-02: ") == 1 and "Old figures" not in whole
    assert with_sections(whole, run) == with_sections("", run)


def test_a_benchmark_that_is_gone_leaves_the_page(run):
    assert "## pages" not in with_sections("# Benchmarks\n\n## pages\n\nOf old.\n", run)


def test_a_part_says_that_others_kept_the_machine_busy(run):
    busy = msgspec.structs.replace(run.machine, cores=2, load_before=1.5)
    idle = msgspec.structs.replace(run.machine, cores=2, load_before=0.5)
    assert "kept this machine busy" in with_sections("", msgspec.structs.replace(run, machine=busy))
    assert "kept this machine busy" not in with_sections("", msgspec.structs.replace(run, machine=idle))


def test_goals_are_judged_on_the_right_side_of_their_limit():
    assert at_least("more", 3.0, 3.0).met and not at_least("more", 2.9, 3.0).met
    assert at_most("less", 2.0, 2.0).met and not at_most("less", 2.1, 2.0).met


def test_only_a_full_run_fails_by_its_goals(monkeypatch, tmp_path):
    missed = Report("reads", "Reads", (), (at_least("more", 1.0, 2.0),), ())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(BENCHES, "reads", lambda _: missed)
    for options, code in ((["--only", "reads"], 1), (["--only", "reads", "--quick"], 0)):
        ended = CliRunner().invoke(main, options)
        assert ended.exit_code == code
        assert f"| more | ≥ 2{TIMES} | 1{TIMES} | not met |" in ended.stdout


def test_a_figure_is_the_median_with_its_spread():
    assert Figure.of("f", "ms", [5.0, 1.0, 3.0]) == Figure("f", "ms", 3.0, 1.0, 5.0, 3)


def test_the_full_scale_is_what_the_claims_are_about():
    assert (FULL.queue_messages, FULL.large, FULL.small, FULL.skills) == (10_000, 1_000_000, 10_000, 10_000)
    assert (FULL.stuck, FULL.backlog) == (100, 1_000)
    assert QUICK.large == 10 * QUICK.small

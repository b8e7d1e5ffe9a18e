"""Every benchmark runs at a tiny size and computes its ratios. Nothing here looks at how long anything took."""

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from bench.command import end
from bench.engine_reads import WAYS
from bench.render import pictures, to_json, verdict, with_sections, write_page
from bench.results import Figure, Goal, Relation, Report, at_least, at_most
from bench.scale import FULL, QUICK, TINY
from bench.suite import BENCHES, Run, run_suite
from tests.support.patience import PATIENCE_S
from tools.files import ROOT

pytestmark = pytest.mark.slow

#: The whole way with real git has no small size: the processes that it starts take longer than everything else
#: together. The web's has tests of its own.
SMALL = tuple(name for name in BENCHES if name not in {"path", "web"})


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


def test_a_small_run_says_whom_it_leaves_out_and_which_figures_are_references(reports):
    report = reports["queue"]
    ours = {figure.name: figure.median for figure in report.figures}["vskill-platform on SQLite"]
    references = [goal for goal in report.goals if "reference" in goal.name]
    assert [goal.value for goal in references] == [ours / 3_800, ours / 2_900]
    assert all((goal.limit, goal.wish) == (3.0, 5.0) for goal in references)
    assert any(
        "Left out" in note and "dramatiq" in note and "not from this run" in note for note in report.notes
    )


def test_the_consumer_leaks_nothing_where_ordinary_workers_do(reports):
    leaks = {figure.name: figure.median for figure in reports["context"].figures}
    assert leaks["vskill-platform's consumer"] == 0
    assert leaks["asyncio workers that live on, 10 tasks"] == TINY.jobs - 10


def test_reads_are_compared_with_the_raw_engine_and_with_single_reads(reports):
    report = reports["reads"]
    ms = {figure.name: figure.median for figure in report.figures}
    assert report.goals[0].value == ms["enumerate_published_skills"] / ms["raw SQLite range scan, json.loads"]


def test_every_engine_is_read_in_every_way_with_and_without_a_latency(reports):
    report = reports["engines"]
    names = {figure.name for figure in report.figures}
    wanted = {
        f"{engine} at {ms} ms, {way}" for engine in ("memory", "SQLite") for ms in (0, 10) for way in WAYS
    }
    assert names == wanted
    assert any("PostgreSQL is left out" in note for note in report.notes)


def test_a_run_is_written_as_a_page_and_as_json(run):
    page = with_sections("", run)
    assert all(f"## {name}" in page for name in SMALL)
    assert f"SQLite {run.machine.sqlite}" in page
    plain = msgspec.json.decode(to_json(run))
    met = [goal["met"] for report in plain["reports"] for goal in report["goals"]]
    assert met == [goal.met for report in run.reports for goal in report.goals]
    assert plain["machine"]["fsync_us"][0] > 0


def test_a_page_links_every_picture_that_is_written_beside_it_and_removes_old_ones(run, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "bench-of-old.svg").touch()
    (tmp_path / "images" / "else.svg").touch()
    write_page(run, tmp_path / "benchmarks.md")
    written = {path.name for path in (tmp_path / "images").iterdir()}
    assert written == {*pictures(run), "else.svg"}
    page = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert all(f"](images/{name})" in page for name in pictures(run))
    assert "bench-queue.svg" in written


def test_parts_that_are_measured_alone_take_the_place_of_the_earlier_ones_and_no_others(run):
    whole = with_sections("", run)
    (first, *_) = run.reports
    for name in (first.name, "labelled"):
        for title in ("Old figures", "New figures"):
            alone = msgspec.structs.replace(first, name=name, title=title)
            whole = with_sections(whole, msgspec.structs.replace(run, reports=(alone,), day="2030-01-02"))
    assert whole.count(f"## {first.name}\n") == whole.count("## labelled\n") == 1
    assert whole.count("New figures.\n\n2030-01-02: ") == 2 and "Old figures" not in whole
    assert whole.index("## labelled") > max(whole.index(f"## {name}") for name in SMALL)
    assert with_sections(whole, run) == with_sections(with_sections(whole, run), run)


def test_a_part_says_that_others_kept_the_machine_busy(run):
    busy = msgspec.structs.replace(run.machine, cores=2, load_before=1.5)
    idle = msgspec.structs.replace(run.machine, cores=2, load_before=0.5)
    assert "kept this machine busy" in with_sections("", msgspec.structs.replace(run, machine=busy))
    assert "kept this machine busy" not in with_sections("", msgspec.structs.replace(run, machine=idle))


def test_goals_are_judged_on_the_right_side_of_their_limit():
    assert at_least("more", 3.0, 3.0).met and not at_least("more", 2.9, 3.0).met
    assert at_most("less", 2.0, 2.0).met and not at_most("less", 2.1, 2.0).met
    assert verdict(at_least("more", 4.0, 3.0, wish=5.0)) == "met, wish not"
    assert verdict(at_least("more", 5.0, 3.0, wish=5.0)) == "met, wish too"
    assert verdict(Goal("less", 9.0, Relation.AT_MOST, 2.0)) == "not met"


def test_only_a_full_run_fails_by_its_goals(run):
    missed = Report("reads", "Reads", (), (at_least("more", 1.0, 2.0),), ())
    for quick, code in ((False, 1), (True, 0)):
        with pytest.raises(SystemExit) as ended:
            end(msgspec.structs.replace(run, reports=(missed,)), quick=quick)
        assert ended.value.code == code


def test_a_figure_is_the_median_with_its_spread():
    assert Figure.of("f", "ms", [5.0, 1.0, 3.0]) == Figure("f", "ms", 3.0, 1.0, 5.0, 3)


def test_the_full_scale_is_what_the_claims_are_about():
    assert (FULL.queue_messages, FULL.large, FULL.small, FULL.skills) == (10_000, 1_000_000, 10_000, 10_000)
    assert (FULL.stuck, FULL.slow_keys, FULL.jobs) == (100, 500, 10_000)
    assert QUICK.large == 10 * QUICK.small


WIDE = """
from bench.command import end, measured
from bench.results import Figure, Report, Table
from bench.scale import TINY

names = tuple("column " + "x" * 40 + str(number) for number in range(6))
report = Report("wide", "a wide one " + "t" * 300, (Figure("figure " + "y" * 90, "ms", 1, 1, 1),), (), ("note " + "z" * 300,),
    (Table(names, (tuple("cell " + "w" * 50 for _ in names),)),))
end(measured({"wide": lambda workshop: report}, TINY), quick=True)
"""


def test_a_table_in_a_pipe_is_as_wide_as_it_is(tmp_path):
    """Through a real pipe: no word is cut, and no cell goes over two lines."""
    done = subprocess.run(
        [sys.executable, "-c", WIDE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    lines = done.stdout.splitlines()
    assert f"wide: a wide one {'t' * 300}" in lines
    assert any(all(f"column {'x' * 40}{number}" in line for number in range(6)) for line in lines)
    assert any(line.count("cell " + "w" * 50) == 6 for line in lines)
    assert any("figure " + "y" * 90 in line for line in lines)
    assert f"  note {'z' * 300}" in lines

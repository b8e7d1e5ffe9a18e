"""Pictures of figures: valid SVG in which lengths, labels and colours say what was measured."""

from xml.etree import ElementTree as ET

import pytest

from bench.plots import file_part, plots_of, to_svg
from bench.results import Figure, Plot, Report, readable

SVG = "{http://www.w3.org/2000/svg}"
PLOT = Plot("speed", "Speed <of> & all", "messages/s")


def bars(figures: list[Figure], plot: Plot = PLOT) -> list[ET.Element]:
    return list(ET.fromstring(to_svg(plot, figures)).iter(f"{SVG}rect"))


def figure(name: str, median: float, unit: str = "messages/s") -> Figure:
    return Figure.of(name, unit, [median * 0.9, median, median * 1.2])


def test_bars_are_as_long_as_their_medians_and_ours_stand_out():
    ours, other = bars([figure("vskill-platform on SQLite", 400.0), figure("another", 100.0)])
    assert float(ours.get("width", "0")) == pytest.approx(4 * float(other.get("width", "0")), rel=0.01)
    assert (ours.get("class"), other.get("class")) == ("bar ours", "bar")


def test_a_wide_range_is_drawn_by_the_logarithm_and_says_so():
    text = to_svg(PLOT, [figure("a", 10.0), figure("b", 100.0), figure("c", 100_000.0)])
    assert "logarithmic scale" in text
    assert "logarithmic scale" not in to_svg(PLOT, [figure("a", 10.0), figure("b", 100.0)])


def test_every_bar_has_its_spread_unless_there_was_one_round():
    figures = [figure("a", 10.0), Figure.of("b", "messages/s", [5.0])]
    assert len(list(ET.fromstring(to_svg(PLOT, figures)).iter(f"{SVG}path"))) == 1


def test_names_are_escaped_and_said_to_those_who_cannot_see():
    root = ET.fromstring(to_svg(PLOT, [figure("<script>", 1.0), figure("b", 2.0)]))
    assert root.findtext(f"{SVG}title") == "Speed <of> & all"
    assert "<script>: 1" in (root.findtext(f"{SVG}desc") or "")


def test_colours_follow_a_dark_ground():
    assert "prefers-color-scheme: dark" in to_svg(PLOT, [figure("a", 1.0), figure("b", 2.0)])


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, 9_990.0], [0.001, 0.002]])
def test_nothing_and_very_little_can_be_drawn(values):
    assert len(bars([Figure.of(str(at), "messages/s", [value]) for at, value in enumerate(values)])) == 2


def test_a_report_without_pictures_gets_one_for_each_unit_that_two_figures_share():
    figures = (figure("a", 1.0), figure("b", 2.0), figure("c", 3.0, "ms"), figure("d", 4.0, "skills / CPU s"))
    plots = plots_of(Report("web", "", (*figures, figure("e", 5.0, "skills / CPU s")), ()))
    assert [plot.name for plot, _ in plots] == ["web-messages-s", "web-skills-cpu-s"]


def test_a_picture_of_some_figures_leaves_out_what_all_their_names_share():
    figures = (
        figure("memory at 0 ms, a", 1.0),
        figure("disk at 0 ms, a", 2.0),
        figure("disk at 10 ms, a", 3.0),
    )
    plot = Plot("engines", "", "messages/s", " at 0 ms")
    ((_, shown),) = plots_of(Report("engines", "", figures, (), plots=(plot,)))
    assert [one.name for one in shown] == ["memory, a", "disk, a"]


def test_a_unit_becomes_part_of_a_file_name():
    assert (file_part("skills / CPU s"), file_part("% of a core"), file_part("µ")) == (
        "skills-cpu-s",
        "of-a-core",
        "value",
    )


def test_a_time_that_nobody_reached_can_be_shown():
    assert readable(float("inf")) == "never"

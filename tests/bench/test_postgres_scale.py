"""The benchmark of PostgreSQL runs at a tiny size, its filled databases are what the product would have written, and
its plans read what is asked for. Nothing here looks at how long anything took."""

from collections import Counter

import pytest

from bench.postgres_plans import Plan, to_markdown
from bench.postgres_scale import Size, measure, shown_table
from bench.results import Figure, Report, at_most

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TINY = Size(small=500, large=5_000, stuck=20, rounds=1)


async def test_the_benchmark_fills_as_the_product_writes_and_asks_everything_of_both_sizes(tmp_path):
    """`measure` itself compares every count and sampled rows with what writes of the same records give."""
    said: list[str] = []
    outcome = await measure(TINY, tmp_path, said.append)
    assert any("8,000 records" in line for line in said), said
    names = [goal.name.partition(":")[0] for goal in outcome.report.goals]
    assert {"queue page, HTML", "stats", "stuck", "search, one hit", "list, a category"} <= set(names)
    assert len(outcome.report.figures) == 2 * len(names)
    assert set(outcome.plans.found) == {name for name, why in outcome.plans.because.items() if why}
    for name, (_, large) in outcome.plans.found.items():
        if "search" not in name:
            assert not any("Seq Scan on records" in line for line in large.lines), (name, large.lines)
    page = to_markdown(outcome.plans, "Some machine.", shown_table(outcome.report))
    assert page.count("```text") == 2 * len(outcome.plans.found)
    assert page.count("| stuck |") == 1


def test_pages_are_those_of_the_outermost_node():
    lines = (
        "Limit (actual rows=1)",
        "  Buffers: shared hit=3 read=4",
        "  ->  Scan",
        "        Buffers: shared hit=2",
    )
    assert Plan("", lines).pages == 7


def test_a_ratio_is_shown_beside_both_of_its_figures():
    figures = tuple(Figure.of(f"stuck, among {size}", "ms", [size / 10]) for size in (10, 20))
    shown = shown_table(Report("r", "t", figures, (at_most("stuck", 2.0, 3.0),)))
    assert "| stuck | 1.0 (1.0 to 1.0) | 2.0 (2.0 to 2.0) | 2.00 |" in shown
    assert Counter(shown)["\n"] == 2

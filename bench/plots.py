"""Bars with their spread as SVG, for a page of the documentation: no script, no library, readable on a light and on a
dark ground.

Each bar is a median; the thin line over it goes from the least to the most of the rounds. Where the largest is more
than 300 times the smallest, lengths follow the logarithm, and the picture says so.
"""

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

import msgspec

from bench.results import Figure, Plot, Report, readable

WIDTH = 900
_LABELS = 370
_RIGHT = 140
_ROW = 26
_BAR = 14
_TOP = 58
_BOTTOM = 34
#: Above this ratio of the largest to the smallest, bars follow the logarithm.
_LOGARITHMIC = 300.0
#: A label that is longer ends with dots; the table beside the picture has it whole.
_LONGEST = 54
#: A name with one of these in it is ours.
OURS = ("vskill-platform", "enumerate_published_skills", "our own")

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .bar { fill: #8c959f; }
  .ours { fill: #0969da; }
  .spread { stroke: #1f2328; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .bar { fill: #656c76; }
    .ours { fill: #4493f8; }
    .spread { stroke: #f0f6fc; }
  }
"""


class _Axis:
    """From a value to a place, either in proportion or by the logarithm."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        values = [value for figure in figures for value in (figure.median, figure.least) if value > 0]
        self.most = max(figure.most for figure in figures) or 1.0
        least = min(values, default=1.0)
        self.logarithmic = self.most / least > _LOGARITHMIC
        self._least = 10 ** math.floor(math.log10(least)) if self.logarithmic else 0.0
        self._room = WIDTH - _LABELS - _RIGHT

    def at(self, value: float) -> float:
        if not self.logarithmic:
            return _LABELS + self._room * value / self.most
        if value <= self._least:
            return float(_LABELS)
        return _LABELS + self._room * math.log(value / self._least) / math.log(self.most / self._least)

    @property
    def ticks(self) -> list[float]:
        """Round numbers along it: powers of ten, or about five steps."""
        if self.logarithmic:
            first, last = round(math.log10(self._least)), math.floor(math.log10(self.most))
            return [10.0**power for power in range(first, last + 1)]
        step = 10 ** math.floor(math.log10(self.most / 2))
        step *= next(times for times in (1, 2, 5, 10) if self.most / (step * times) <= 6)
        return [step * number for number in range(int(self.most / step) + 1)]


def plots_of(report: Report) -> tuple[tuple[Plot, tuple[Figure, ...]], ...]:
    """The pictures of a report with what they show; one where nothing can be compared is left out."""
    found = []
    for plot in report.plots or _usual(report):
        figures = tuple(
            figure for figure in report.figures if figure.unit == plot.unit and plot.among in figure.name
        )
        # What all of them have in their names stands in the picture's title.
        named = (msgspec.structs.replace(one, name=one.name.replace(plot.among, "")) for one in figures)
        if len(figures) > 1:
            found.append((plot, tuple(named)))
    return tuple(found)


def _usual(report: Report) -> tuple[Plot, ...]:
    """One for every unit."""
    units = [unit for unit, _ in groupby(sorted(figure.unit for figure in report.figures))]
    return tuple(
        Plot(
            report.name if len(units) == 1 else f"{report.name}-{file_part(unit)}",
            f"{report.name}: {unit}",
            unit,
        )
        for unit in units
    )


def file_part(text: str) -> str:
    """Of a unit, what may stand in a file's name."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in text.lower())
    return "-".join(words.split()) or "value"


def to_svg(plot: Plot, figures: Sequence[Figure]) -> str:
    """A picture that says what it shows to those who cannot see it as well."""
    axis = _Axis(figures)
    height = _TOP + _ROW * len(figures) + _BOTTOM
    said = "; ".join(f"{one.name}: {readable(one.median)}" for one in figures)
    scale = ", logarithmic scale" if axis.logarithmic else ""
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-labelledby="title about">'
        ),
        f'<title id="title">{escape(plot.title)}</title>',
        f'<desc id="about">{escape(plot.unit)}. {escape(said)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="12" y="24">{escape(plot.title)}</text>',
        f'<text class="quiet" x="12" y="44">{escape(plot.unit)}{scale}; bars are medians, lines the spread</text>',
        *_grid(axis, height),
        *(line for row, figure in enumerate(figures) for line in _bar(axis, row, figure)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(axis: _Axis, height: int) -> list[str]:
    lines = []
    for value in axis.ticks:
        x = axis.at(value)
        lines.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{height - _BOTTOM + 2}"/>'
        )
        lines.append(
            f'<text class="quiet" x="{x:.1f}" y="{height - 14}" text-anchor="middle">{readable(value)}</text>'
        )
    return lines


def _bar(axis: _Axis, row: int, figure: Figure) -> list[str]:
    middle = _TOP + _ROW * row + _ROW / 2
    kind = "bar ours" if any(name in figure.name for name in OURS) else "bar"
    long = max(axis.at(figure.median) - _LABELS, 1.0)
    least, most = axis.at(figure.least), axis.at(figure.most)
    name = figure.name if len(figure.name) <= _LONGEST else figure.name[: _LONGEST - 1] + "…"
    top, end = middle - _BAR / 2, max(most, _LABELS + long)
    lines = [
        f'<text x="{_LABELS - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="{kind}" x="{_LABELS}" y="{top:.1f}" width="{long:.1f}" height="{_BAR}" rx="2"/>',
        f'<text x="{end + 8:.1f}" y="{middle + 4:.1f}">{readable(figure.median)}</text>',
    ]
    if figure.most > figure.least:
        lines.append(
            f'<path class="spread" d="M{least:.1f} {middle:.1f}H{most:.1f}'
            f'M{least:.1f} {middle - 4:.1f}v8M{most:.1f} {middle - 4:.1f}v8"/>'
        )
    return lines

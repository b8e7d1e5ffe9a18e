"""Charts as geometry: from numbers to rectangles and lines in a fixed box, which a template writes as SVG.

Drawn by the server, so they need no script and are there in the first paint. A slot whose number is unknown is empty
and labelled as unknown; it is never drawn as zero (C4).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec

from vskill_platform.store.submissions.statistics import Slot
from vskill_platform.web.render import UNKNOWN, duration, number

WIDTH, HEIGHT = 600, 160
#: Room for the numbers at the left and the times below.
LEFT, BOTTOM, TOP = 44, 22, 8
#: What is left for the drawing.
_TALL = HEIGHT - BOTTOM - TOP
_GAP = 2
#: A time is written below every third slot of a few, and below every fourth of many.
_LABEL_EVERY = 3
_MANY = 20

_STEPS = (1, 2, 5)
#: A quarter of a year.
WEEKS = 13


class Bar(msgspec.Struct, frozen=True):
    """A rectangle; `known` false is a slot about which nothing is known."""

    x: float
    y: float
    width: float
    height: float
    text: str
    known: bool = True


class Label(msgspec.Struct, frozen=True):
    """Text at a place, such as a point of a line."""

    x: float
    y: float
    text: str


class ChartLine(msgspec.Struct, frozen=True):
    """A series: its points, and the pieces of line between points that follow each other."""

    name: str
    #: A class of the stylesheet.
    kind: str
    marks: tuple[Label, ...]
    #: `x,y x,y …`, one for each piece without a gap.
    pieces: tuple[str, ...]


class ChartRow(msgspec.Struct, frozen=True):
    """The same numbers for a table."""

    when: str
    values: tuple[str, ...]


class Chart(msgspec.Struct, frozen=True):
    """Everything that a template needs."""

    id: str
    title: str
    #: What it shows, in a sentence that holds the numbers that matter.
    description: str
    columns: tuple[str, ...]
    rows: tuple[ChartRow, ...]
    bars: tuple[Bar, ...] = ()
    #: What the bars show, where there are lines too.
    bars_name: str = ""
    lines: tuple[ChartLine, ...] = ()
    times: tuple[Label, ...] = ()
    levels: tuple[Label, ...] = ()
    #: There is nothing to draw, and what is said instead.
    empty: bool = False
    nothing: str = "No run ended in this period"
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    #: Where the ground line is.
    ground: int = HEIGHT - BOTTOM


def queue_chart(slots: Sequence[Slot]) -> Chart:
    """How many runs ended in each slot, and how many were in the queue at most."""
    waiting = [slot.waiting for slot in slots]
    peak = max((value or 0 for value in waiting), default=0)
    most = ceiling(max(peak, *(slot.count or 0 for slot in slots)) if slots else 0)
    bars = tuple(
        _bar(index, len(slots), slot.count, most, f"{_span(slot)}: {number(slot.count)} ended")
        for index, slot in enumerate(slots)
    )
    total = sum(slot.count or 0 for slot in slots)
    published = sum(slot.published or 0 for slot in slots)
    rows = tuple(
        ChartRow(_span(slot), (number(slot.count), number(slot.published), number(slot.waiting)))
        for slot in slots
    )
    line = _line("queue", "in the queue", waiting, most, slots, number)
    # An empty queue is a line at zero, without a mark for each slot.
    marks = tuple(mark for mark in line.marks if mark.y < HEIGHT - BOTTOM)
    return Chart(
        id="queue",
        title="The queue",
        description=f"{total:,} runs ended in the last six hours, {published:,} of them published. "
        f"At most {peak:,} were in the queue at once.",
        columns=("Time (UTC)", "Ended", "Published", "In the queue"),
        rows=rows,
        bars=bars,
        bars_name="ended",
        lines=(msgspec.structs.replace(line, marks=marks),),
        times=_times([_clock(slot.start) for slot in slots]),
        levels=_levels(most, lambda value: f"{value:,}"),
        empty=not total and not peak,
        nothing="Nothing was in the queue in this period",
    )


def latency_chart(slots: Sequence[Slot]) -> Chart:
    """From submitting to the first decision: half and 95 % of the runs of each slot stayed within these times."""
    worst = max((slot.p95_ms or 0 for slot in slots), default=0)
    most = ceiling(worst)
    series = (
        ("p50", "half within", [slot.p50_ms for slot in slots]),
        ("p95", "95 % within", [slot.p95_ms for slot in slots]),
    )
    lines = tuple(_line(kind, name, values, most, slots, duration) for kind, name, values in series)
    rows = tuple(ChartRow(_span(slot), (duration(slot.p50_ms), duration(slot.p95_ms))) for slot in slots)
    known = [slot.p95_ms for slot in slots if slot.p95_ms is not None]
    said = (
        f"95 % of a slot's runs were decided within {duration(max(known))} at worst."
        if known
        else "Nothing ended."
    )
    return Chart(
        id="latency",
        title="From submitting to the first decision",
        description=said,
        columns=("Time (UTC)", "Half within", "95 % within"),
        rows=rows,
        lines=lines,
        times=_times([_clock(slot.start) for slot in slots]),
        levels=_levels(most, duration),
        empty=not known,
    )


def installs_chart(days: Mapping[str, int], today: date) -> Chart:
    """Installs of the last weeks, each from Monday to Sunday; the last one is not over."""
    monday = today - timedelta(days=today.weekday())
    starts = [monday - timedelta(weeks=back) for back in reversed(range(WEEKS))]
    counts = dict.fromkeys(starts, 0)
    for day, count in days.items():
        when = date.fromisoformat(day)
        start = when - timedelta(days=when.weekday())
        if start in counts:
            counts[start] += count
    most = ceiling(max(counts.values()))
    bars = tuple(
        _bar(index, WEEKS, count, most, f"week of {_day(start)}: {number(count)}")
        for index, (start, count) in enumerate(counts.items())
    )
    total = sum(counts.values())
    return Chart(
        id="installs",
        title="Installs a week",
        description=f"{total:,} {'install' if total == 1 else 'installs'} in the last {WEEKS} weeks.",
        columns=("Week of", "Installs"),
        rows=tuple(ChartRow(_day(start), (number(count),)) for start, count in counts.items()),
        bars=bars,
        times=_times([_day(start) for start in starts]),
        levels=_levels(most, lambda value: f"{value:,}"),
        empty=not total,
        nothing="Nobody installed it in this period",
    )


def ceiling(value: int) -> int:
    """The next round number that is not smaller: 1, 2, 5, 10, 20 …"""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= value:
                return step * power
        power *= 10


def _bar(index: int, slots: int, value: int | None, most: int, text: str) -> Bar:
    step = (WIDTH - LEFT) / slots
    x, width = LEFT + index * step + _GAP / 2, step - _GAP
    if value is None:
        return Bar(_round(x), TOP, _round(width), _TALL, f"{text.rpartition(':')[0]}: {UNKNOWN}", known=False)
    height = value / most * _TALL
    return Bar(_round(x), _round(HEIGHT - BOTTOM - height), _round(width), _round(height), text)


def _line(
    kind: str,
    name: str,
    values: Sequence[int | None],
    most: int,
    slots: Sequence[Slot],
    show: Callable[[int], str],
) -> ChartLine:
    step = (WIDTH - LEFT) / max(len(values), 1)
    marks: list[Label] = []
    pieces: list[list[Label]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            pieces.append([])
            continue
        x, y = LEFT + (index + 0.5) * step, HEIGHT - BOTTOM - value / most * _TALL
        mark = Label(_round(x), _round(y), f"{_span(slots[index])}: {name} {show(value)}")
        marks.append(mark)
        pieces[-1].append(mark)
    drawn = tuple(" ".join(f"{one.x},{one.y}" for one in piece) for piece in pieces if len(piece) > 1)
    return ChartLine(name, kind, tuple(marks), drawn)


def _times(texts: Sequence[str]) -> tuple[Label, ...]:
    """What is written below the slots, so far apart that it can be read."""
    step = (WIDTH - LEFT) / max(len(texts), 1)
    every = _LABEL_EVERY + (len(texts) > _MANY)
    places = [LEFT + index * step for index in range(len(texts))]
    return tuple(
        Label(_round(x), HEIGHT - 6, text) for x, text in list(zip(places, texts, strict=True))[::every]
    )


def _levels(most: int, show: Callable[[int], str]) -> tuple[Label, ...]:
    values = (most, most // 2) if most > 1 else (most,)
    return tuple(
        Label(LEFT - 6, _round(HEIGHT - BOTTOM - value / most * _TALL), show(value)) for value in values
    )


def _span(slot: Slot) -> str:
    return f"{_clock(slot.start)} to {_clock(slot.end)}"


def _day(day: date) -> str:
    return f"{day.day} {day:%b}"


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M")


def _round(value: float) -> float:
    return round(value, 1)

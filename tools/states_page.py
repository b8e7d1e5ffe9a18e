"""The tables of `docs/reference/states.md` and its diagram `states.svg`, from the one table of
`domain/submissions/states.py`.

What every active state may do is drawn once, from the box around them all, so that the picture stays readable: those
arrows are found by looking at the table, and so is every other one.
"""

from collections.abc import Iterable, Iterator
from html import escape

import msgspec

from tools.tables import table
from vskill_platform.domain.submissions.states import (
    ACTIVE_STATES,
    FLAGS,
    TRANSITIONS,
    Flag,
    State,
    category_of,
    may_start_run,
)

PICTURE = "docs/reference/states.svg"

_WIDTH, _HEIGHT = 128, 36
_COLUMN, _MARGIN = 168, 40
_TOP, _BOTTOM = 150, 330


def flags() -> str:
    return table(
        ("state", "people read", "flags", "category", "meaning"),
        ((state, state.label, _flags(state), category_of(state), state.meaning) for state in State),
    )


def _flags(state: State) -> str:
    return ", ".join(one.name.lower() for one in Flag if one in FLAGS[state] and one.name)


def steps() -> str:
    return table(
        ("from", "to, within one run", "new run"),
        ((state, _targets(state), "yes" if may_start_run(state) else "no") for state in State),
    )


def _targets(state: State) -> str:
    return ", ".join(_ordered(TRANSITIONS[state])) or "none"


# The picture.


class _Place(msgspec.Struct, frozen=True):
    """The middle of a state's box."""

    x: int
    y: int


def _places() -> dict[State, _Place]:
    """What moves by itself above, with success at its end; where people and failures are, below."""
    above = [state for state in State if state.active] + [state for state in State if state.success]
    below = [state for state in State if state not in above]
    return {
        **{state: _Place(_x(number), _TOP) for number, state in enumerate(above)},
        **{state: _Place(_x(number), _BOTTOM) for number, state in enumerate(below)},
    }


def _x(column: int) -> int:
    return _MARGIN + _WIDTH // 2 + column * _COLUMN


def shared_targets() -> frozenset[State]:
    """Where every active state may go."""
    return frozenset.intersection(*(TRANSITIONS[state] for state in ACTIVE_STATES))


def picture() -> str:
    """The diagram; each arrow has an id, `FROM-TO`, or `active-TO` where it stands for all active states."""
    places = _places()
    width = max(place.x for place in places.values()) + _WIDTH // 2 + _MARGIN
    return "\n".join(
        [
            _OPENING.format(width=width, height=_BOTTOM + 150),
            '<title id="title">States of a submission and the steps between them</title>',
            _STYLE,
            *_arrows(places),
            _frame(places),
            *(_box(state, place) for state, place in places.items()),
            "</svg>\n",
        ]
    )


_OPENING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">'
_STYLE = """\
<style>
svg { background: #fff; color: #1c2330; font: 600 11px system-ui, sans-serif; }
rect { fill: #eef2f8; stroke: #55617a; } .frame { fill: none; stroke-dasharray: 3 4; }
.success { fill: #d8f0dd; } .failure { fill: #f8dcdc; } .waiting { fill: #fbeec9; }
path { fill: none; stroke: #55617a; stroke-width: 1.3; marker-end: url(#head); } .run { stroke-dasharray: 6 4; }
text { fill: currentColor; text-anchor: middle; } .note { font-weight: 400; }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 8 4 0 8z" style="fill:#55617a;stroke:none;marker-end:none"/></marker></defs>"""


def _arrows(places: dict[State, _Place]) -> Iterator[str]:
    shared = shared_targets()
    frame_bottom = _TOP + _HEIGHT // 2 + 22
    for state in _ordered(shared):
        end = places[state]
        from_x = min(end.x, _frame_right(places) - 16)
        yield _path(f"active-{state}", f"M{from_x} {frame_bottom}L{end.x} {end.y - _HEIGHT // 2 - 2}")
    for source in State:
        own = TRANSITIONS[source] - shared if source.active else TRANSITIONS[source]
        for target in _ordered(own):
            yield _path(f"{source}-{target}", _line(places[source], places[target]))
    last = places[max(places, key=lambda one: (places[one].y, places[one].x))]
    first = places[State.RECEIVED]
    left, low = 14, _BOTTOM + 132
    start = f"M{last.x} {last.y + _HEIGHT // 2}V{low}H{left}V{first.y}H{first.x - _WIDTH // 2 - 2}"
    yield _path("over-RECEIVED", start, "run")
    yield f'<text class="note" x="{(left + last.x) // 2}" y="{low - 6}">a new run, wherever the last one is over</text>'


def _line(start: _Place, end: _Place) -> str:
    """Side by side: straight. Further along a row: an arc outside of it. Between the rows: straight again."""
    half, edge = _WIDTH // 2, _HEIGHT // 2
    steps = (end.x - start.x) // _COLUMN
    if start.y == end.y and steps == 1:
        return f"M{start.x + half} {start.y}H{end.x - half - 2}"
    if start.y == end.y:
        up = -1 if start.y == _TOP else 1
        shift = 14 if steps > 0 else -14
        height = 26 + 20 * abs(steps)
        from_x, to_x, y = start.x + shift, end.x - shift, start.y + up * edge
        return f"M{from_x} {y}C{from_x} {y + up * height} {to_x} {y + up * height} {to_x} {y + up * 2}"
    down = 1 if end.y > start.y else -1
    shift = 30 if down < 0 else 0
    return f"M{start.x + shift} {start.y + down * edge}L{end.x + shift} {end.y - down * (edge + 2)}"


def _frame(places: dict[State, _Place]) -> str:
    active = [places[state] for state in ACTIVE_STATES]
    left = min(place.x for place in active) - _WIDTH // 2 - 12
    right = _frame_right(places)
    top = _TOP - _HEIGHT // 2 - 22
    return (
        f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" height="{_HEIGHT + 44}" rx="10"/>'
        f'<text class="note" x="{right - 30}" y="{top + 13}">active</text>'
    )


def _frame_right(places: dict[State, _Place]) -> int:
    return max(places[state].x for state in ACTIVE_STATES) + _WIDTH // 2 + 12


def _box(state: State, place: _Place) -> str:
    names = [one for one in ("success", "failure", "waiting") if Flag[one.upper()] in FLAGS[state]]
    left, top = place.x - _WIDTH // 2, place.y - _HEIGHT // 2
    return (
        f'<g id="{state}"><rect class="{" ".join(names)}" x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' rx="6"/><text x="{place.x}" y="{place.y + 4}">{escape(state)}</text></g>'
    )


def _path(name: str, line: str, kind: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f'<path id="{name}"{marked} d="{line}"/>'


def _ordered(states: Iterable[State]) -> list[State]:
    wanted = set(states)
    return [state for state in State if state in wanted]

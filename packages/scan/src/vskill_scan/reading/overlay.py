"""Gives stretches of text another role or polarity than the pieces that were cut there, in one pass over
both."""

from collections.abc import Iterable

import msgspec

from vskill_scan.model import Piece, TextRole


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """From where to where, and what is different there."""

    start: int
    end: int
    #: None keeps the piece's own
    role: TextRole | None = None
    warns: bool = False


def overlay(pieces: list[Piece], stretches: Iterable[Stretch]) -> list[Piece]:
    """The pieces with the stretches changed; where stretches overlap the one that begins first wins."""
    waiting = sorted(stretches, key=lambda stretch: stretch.start, reverse=True)
    if not waiting:
        return pieces
    result: list[Piece] = []
    for piece in pieces:
        at = piece.start
        while waiting and waiting[-1].start < piece.end:
            stretch = waiting[-1]
            low, high = max(at, stretch.start), min(piece.end, stretch.end)
            if low < high:
                if at < low:
                    result.append(_cut(piece, at, low))
                result.append(_change_piece(piece, low, high, stretch))
                at = high
            if stretch.end > piece.end:
                break
            waiting.pop()
        if at < piece.end:
            result.append(_cut(piece, at, piece.end))
    return result


def _cut(piece: Piece, start: int, end: int) -> Piece:
    return Piece(
        start,
        end,
        piece.role,
        piece.segment,
        piece.section,
        piece.warns_from,
        piece.about_from,
        piece.about_to,
    )


def _change_piece(piece: Piece, start: int, end: int, stretch: Stretch) -> Piece:
    changed = _cut(piece, start, end)
    changed.role = stretch.role or piece.role
    if changed.role is TextRole.LOAD:
        # It runs when the text is loaded, whatever the text says about it.
        changed.warns_from = changed.about_from = changed.about_to = -1
    if stretch.warns:
        changed.warns_from = start
    return changed

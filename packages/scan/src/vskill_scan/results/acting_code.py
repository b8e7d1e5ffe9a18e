"""The code of a text that a machine or an agent runs, and the comments in it."""

from collections.abc import Iterator

import msgspec

from vskill_core.capability import CapabilityContext
from vskill_scan.model import Layer, TextRole
from vskill_scan.results import capability_words as known


class ActingCode(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a layer that a machine or an agent runs."""

    start: int
    end: int
    language: str
    context: CapabilityContext


def acting_code(layer: Layer) -> Iterator[ActingCode]:
    """The code of a layer, in order. In prose it is what an agent is told to run."""
    if layer.decoded:
        if layer.roles.isdisjoint({TextRole.QUOTE, TextRole.DATA, TextRole.TEST}):
            yield ActingCode(0, len(layer.text), "bash", CapabilityContext.CODE)
        return
    in_prose = TextRole.FOLLOW in layer.roles
    loads = TextRole.LOAD in layer.roles
    end = 0
    for block in layer.blocks:
        if block.start < end:
            continue
        end = block.end
        context = CapabilityContext.CODE
        if in_prose and not (loads and layer.piece_at(block.start).role is TextRole.LOAD):
            context = CapabilityContext.INSTRUCTION
        yield ActingCode(block.start, block.end, block.language, context)


def comments_in(text: bytes, code: ActingCode) -> Iterator[tuple[int, int]]:
    pattern = known.COMMENTS.get(code.language, known.COMMENTS["other"])
    for token in pattern.finditer(text, code.start, code.end):
        first, second = token.span(1), token.span(2)
        if second != _NOWHERE:
            yield second
        elif first != _NOWHERE and not (code.language == "python" and _is_value(text, code.start, first[0])):
            yield first


_NOWHERE = (-1, -1)


def _is_value(text: bytes, start: int, offset: int) -> bool:
    """Whether a text on a line of its own continues the line before it; otherwise it is a comment."""
    before = text[max(start, offset - 200) : offset].rstrip()
    return before != b"" and before[-1] in known.CONTINUING

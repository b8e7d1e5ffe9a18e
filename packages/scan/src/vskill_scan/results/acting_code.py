"""The code of a text that a machine or an agent runs."""

from collections.abc import Iterator

import msgspec

from vskill_core.capability import CapabilityContext
from vskill_scan.model import Layer, TextRole


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

"""What the pool and its children say to each other: frames of MessagePack over a socket pair. Plain data only, so that
nothing that a skill contains can become an object on the other side.
"""

import struct

import msgspec

from vskill_scan.limits import Limits
from vskill_scan.rules.indicators import Indicators

HEADER = struct.Struct(">I")
#: A skill of 20 MB, with room; more is a mistake.
MOST_BYTES = 64 * 1024 * 1024


class Setup(msgspec.Struct, frozen=True):
    """The first thing that a child hears."""

    #: `module:function`, imported by the child
    check_manifest: str
    known_bad_digests: tuple[str, ...]
    indicators: Indicators
    limits: Limits
    #: of memory it may map
    memory_bytes: int
    #: patterns that another child compiled
    compiled: dict[str, bytes] | None = None


class ChildReady(msgspec.Struct, frozen=True):
    """The first thing that a child says."""

    ruleset: str
    #: patterns that it had to compile itself
    compiled: dict[str, bytes] | None = None


def frame(message: object) -> bytearray:
    """Into a bytearray: where memory is refused, `encode` itself ends the process (msgspec 0.22) and this raises."""
    framed = bytearray(HEADER.size)
    msgspec.msgpack.Encoder().encode_into(message, framed, HEADER.size)
    HEADER.pack_into(framed, 0, len(framed) - HEADER.size)
    return framed

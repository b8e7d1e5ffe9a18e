"""What the scanner's pool and its children say to each other before the first scan."""

import msgspec

from vskill_scan.limits import Limits
from vskill_scan.rules.indicators import Indicators


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

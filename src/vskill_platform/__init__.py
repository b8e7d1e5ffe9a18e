"""vskill-platform: a self-hosted registry that verifies agent skills before it lists them.

A skill is submitted, queued, fetched, scanned, judged, decided and published; the packages below are named
after that way, and imports run downwards only. ARCHITECTURE.md at the repository's root is the map.
"""

from vskill_core.release import __version__

__all__ = ["__version__"]

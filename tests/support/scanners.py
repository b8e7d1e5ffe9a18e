"""The scan engine as the contract's scanner, in this process: for tests of everything around the scanner. The product scans in
child processes (`tiers/pool.py`), where a scan that runs wild can be ended.
"""

from collections.abc import Collection, Sequence

from vskill_core.content import SkillFile
from vskill_core.findings import StaticReport
from vskill_scan.engine import Engine
from vskill_scan.rules.ruleset import Ruleset
from vskill_scan.rules.structure import CheckManifest

#: YARA's scanners must die in the thread that made them, and what an environment leaves behind may be collected in any
#: thread: so the engines of environments are kept.
_KEPT: list[Engine] = []


class InlineScanner:
    """Scans in this process, one skill at a time, in the thread that asks."""

    def __init__(self, engine: Engine) -> None:
        _KEPT.append(engine)
        self._engine = engine
        self.ruleset = engine.version

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        return self._engine.scan(files)


def structure_scanner(
    check_manifest: CheckManifest, known_bad_digests: Collection[str] = ()
) -> InlineScanner:
    """Structure and known digests only, ready at once."""
    return InlineScanner(Engine(Ruleset((), known_skills=known_bad_digests), check_manifest))

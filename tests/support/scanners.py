"""The scan engine as the contract's scanner, in this process: for tests of everything around the scanner. The product scans in
child processes (`scan/pool.py`), where a scan that runs wild can be ended.
"""

from collections.abc import Collection, Sequence

from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.scan import StaticReport
from vskill_platform.scan.engine import Engine
from vskill_platform.scan.limits import DEFAULT_LIMITS, Limits
from vskill_platform.scan.ruleset import Ruleset
from vskill_platform.scan.structure import CheckManifest


class InlineScanner:
    """Scans in this process, one skill at a time, in the thread that asks: YARA's scanners belong to one."""

    def __init__(
        self,
        ruleset: Ruleset,
        check_manifest: CheckManifest,
        known_bad_digests: Collection[str] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._engine = Engine(ruleset, check_manifest, known_bad_digests, limits)

    @property
    def ruleset(self) -> str:
        return self._engine.version

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        return self._engine.scan(files)


def structure_scanner(
    check_manifest: CheckManifest, known_bad_digests: Collection[str] = ()
) -> InlineScanner:
    """Structure and known digests only, ready at once."""
    return InlineScanner(Ruleset((), known_skills=known_bad_digests), check_manifest)

"""What the pipeline asks of a scanner and of a judge. Engines stand beside this file."""

from collections.abc import Sequence
from typing import Protocol

from vskill_core.content import SkillFile
from vskill_core.findings import JudgeReport, StaticReport


class Scanner(Protocol):
    """Tier 1. An error of its own is a report with that status, and never clean; Shortage says that this machine could
    not run it."""

    @property
    def ruleset(self) -> str:
        """The version of the rules, part of every report and of the cache's key."""
        ...

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport: ...


class Judge(Protocol):
    """Tier 2. A judge that errs answers "down", never a verdict."""

    async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport: ...

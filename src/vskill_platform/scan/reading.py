"""From a skill's files to the texts that are scanned: tells text from binary, reads large files in windows, and opens
archives in memory under limits. What it could not read it lists as a problem, so that the scan is not called clean.
"""

from collections.abc import Iterator, Sequence

import msgspec

from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.identity import SKILL_FILE
from vskill_platform.domain.scan import Finding
from vskill_platform.scan.limits import Budget
from vskill_platform.scan.normal import decoded


class Source(msgspec.Struct, frozen=True):
    """One text, or something to say about a file that is none."""

    path: str
    text: str | None = None
    finding: Finding | None = None
    #: SKILL.md names it, so the agent will look at it
    referenced: bool = False
    #: the line of the file at which the text begins
    first_line: int = 1


class Reading:
    """Reads one skill, and remembers how much of it was seen."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._limits = budget.limits
        self.problems: list[str] = []
        self.sampled: list[str] = []
        self.files_scanned = 0
        self.bytes_scanned = 0

    def sources(self, files: Sequence[SkillFile]) -> Iterator[Source]:
        skill_md = next((file.data for file in files if file.path == SKILL_FILE), b"")
        for file in files:
            if self.bytes_scanned + len(file.data) > self._limits.skill_bytes:
                self.problems.append(f"{file.path}: the skill is larger than {self._limits.skill_bytes} bytes")
                continue
            self.files_scanned += 1
            text = decoded(file.data)
            self.bytes_scanned += len(file.data)
            yield Source(file.path, text, referenced=file.path.encode() in skill_md)

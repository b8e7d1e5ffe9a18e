"""From a skill's files to the texts that are scanned: tells text from binary, reads every text whole, and opens
archives in memory under limits. What it could not read it remembers, so that the scan is not called clean.
"""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_core.identity import SKILL_FILE
from vskill_scan.limits import Budget
from vskill_scan.reading.archives import UNREADABLE, TooMuch, archive_type, members
from vskill_scan.reading.languages import is_named_text
from vskill_scan.reading.visible_text import decode_text
from vskill_scan.rules import structure

#: Files that a report names as not read; one is enough to make the scan incomplete.
MOST_PROBLEMS = 20


class ReadText(msgspec.Struct, frozen=True):
    """One text, or something to say about a file that is none."""

    path: str
    text: str | None = None
    findings: tuple[Finding, ...] = ()
    #: SKILL.md or a part of a plugin names it, so the agent will look at it
    referenced: bool = False


class Reading:
    """Reads one skill, and remembers how much of it was seen."""

    def __init__(self, budget: Budget, known_files: Collection[str] = ()) -> None:
        """`known_files` are the hashes of files that the operator has listed."""
        self._budget = budget
        self._known_files = known_files
        self._limits = budget.limits
        self._obeyed: Collection[str] = ()
        #: by folder, the SKILL.md that sends the agent to files in it
        self._leading: dict[str, bytes] = {}
        self._unpacked = 0
        #: the file that is being read
        self.path = ""
        #: what was not read whole, by path, with the reason
        self.unread: dict[str, str] = {}
        self.files_scanned = 0
        self.bytes_scanned = 0

    def sources(self, files: Sequence[SkillFile], obeyed: Collection[str] = ()) -> Iterator[ReadText]:
        """`obeyed` are the files of a plugin that an agent follows or a client starts."""
        self._obeyed = frozenset((SKILL_FILE, *obeyed))
        self._leading = {
            file.path.removesuffix(SKILL_FILE): file.data for file in files if file.path in self._obeyed
        }
        for file in files:
            self.path = file.path
            if self.bytes_scanned + self._unpacked + len(file.data) > self._limits.skill_bytes:
                self.problem(
                    file.path, f"not read: the skill is larger than {self._limits.skill_bytes} bytes"
                )
                continue
            self.files_scanned += 1
            yield from self._read(file.path, file.data, depth=0)

    def _read(self, path: str, data: bytes, depth: int) -> Iterator[ReadText]:
        self.path = path
        self._budget.check()
        listed = structure.listed_files(path, data, self._known_files)
        yield ReadText(path, findings=(*listed, *structure.binary_findings(path, data)))
        kind = archive_type(path, data)
        if kind:
            self._count(len(data), depth)
            yield from self._members(kind, path, data, depth)
            return
        yield self._text(path, data, depth)

    def _members(self, kind: str, path: str, data: bytes, depth: int) -> Iterator[ReadText]:
        if depth >= self._limits.archive_depth:
            self.problem(path, "not opened: archives lie too deep in each other")
            return
        room = self._limits.skill_bytes - self.bytes_scanned - self._unpacked
        try:
            for name, content in members(kind, data, self._limits, room):
                yield from self._read(f"{path}!{name}", content, depth + 1)
        except TooMuch as error:
            self.problem(path, f"not fully opened: {error}")
        except UNREADABLE as error:
            if kind == "zip" or "tar" in path or path.endswith(".tgz"):
                self.problem(path, f"cannot be opened as an archive: {type(error).__name__}")

    def _text(self, path: str, data: bytes, depth: int) -> ReadText:
        self._count(len(data), depth)
        referenced = path in self._obeyed or self._is_named(path)
        text = decode_text(data, named_text=is_named_text(path, data))
        return ReadText(path, text, referenced=referenced)

    def _is_named(self, path: str) -> bool:
        """Whether the SKILL.md of a folder around a file names it."""
        folders = [path[: at + 1] for at, sign in enumerate(path) if sign == "/"]
        for folder in ("", *folders):
            if path[len(folder) :].encode("utf-8", "replace") in self._leading.get(folder, b""):
                return True
        return False

    def _count(self, size: int, depth: int) -> None:
        if depth:
            self._unpacked += size
        else:
            self.bytes_scanned += size

    def problem(self, path: str, what: str) -> None:
        """Something of the skill that was not looked at."""
        if len(self.unread) < MOST_PROBLEMS:
            self.unread.setdefault(path, what)

"""What changed between two versions: unified diffs made under limits, so that no content can keep us busy.

A file that is too large, or not text, is listed as changed, without a diff. Large diffs are made in a thread, one at a
time.
"""

import asyncio
import difflib
from collections.abc import Sequence

from vskill_client.wire.base import Wire
from vskill_core.content import SkillFile

#: Per file and side; difflib's worst case grows with the square of the lines.
MOST_LINES = 1_500
MOST_BYTES = 200_000
#: Of all patches of one comparison together.
MOST_PATCHES = 1_000_000
#: Below this, diffing takes less time than handing it to a thread.
INLINE_BYTES = 8_000
CONTEXT = 3

TOO_LARGE = "too large to be shown"
NOT_TEXT = "not text"
EMPTY = "empty"
#: The usual mark after a last line without a line end.
_NO_END = "\n\\ No newline at end of file"


class FileChangeView(Wire, frozen=True):
    """What changed in one file."""

    filename: str
    #: added, removed or modified
    status: str
    additions: int
    deletions: int
    #: a unified diff; empty where `note` says why
    patch: str
    note: str


async def compare(
    before: Sequence[SkillFile], after: Sequence[SkillFile], turn: asyncio.Lock
) -> tuple[FileChangeView, ...]:
    """Every file that differs, by path."""
    size = sum(len(file.data) for file in (*before, *after))
    if size <= INLINE_BYTES:
        return compare_now(before, after)
    async with turn:
        return await asyncio.to_thread(compare_now, before, after)


def compare_now(before: Sequence[SkillFile], after: Sequence[SkillFile]) -> tuple[FileChangeView, ...]:
    old = {file.path: file for file in before}
    new = {file.path: file for file in after}
    left = MOST_PATCHES
    found = []
    for path in sorted(old.keys() | new.keys()):
        change = _change(path, old.get(path), new.get(path), left)
        if change is not None:
            left -= len(change.patch)
            found.append(change)
    return tuple(found)


def _change(path: str, old: SkillFile | None, new: SkillFile | None, left: int) -> FileChangeView | None:
    status = "added" if old is None else "removed" if new is None else "modified"
    if old is not None and new is not None and (old.data, old.mode) == (new.data, new.mode):
        return None
    before, after = _lines(old), _lines(new)
    if isinstance(before, str) or isinstance(after, str):
        note = before if isinstance(before, str) else str(after)
        return FileChangeView(path, status, 0, 0, "", note)
    names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
    lines = list(difflib.unified_diff(before, after, *names, n=CONTEXT, lineterm=""))
    additions = sum(line.startswith("+") for line in lines[2:])
    deletions = sum(line.startswith("-") for line in lines[2:])
    patch = "\n".join(lines) + "\n" if lines else ""
    if len(patch) > left:
        return FileChangeView(path, status, additions, deletions, "", TOO_LARGE)
    return FileChangeView(path, status, additions, deletions, patch, _note(old, new, patch))


def _lines(file: SkillFile | None) -> list[str] | str:
    """The lines of a text, or why there are none to show."""
    if file is None:
        return []
    if len(file.data) > MOST_BYTES:
        return TOO_LARGE
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        return NOT_TEXT
    if "\0" in text:
        return NOT_TEXT
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(last + _NO_END)
    return TOO_LARGE if len(lines) > MOST_LINES else lines


def _note(old: SkillFile | None, new: SkillFile | None, patch: str) -> str:
    if old is None or new is None:
        return "" if patch else EMPTY
    if old.mode == new.mode:
        return ""
    return f"mode changed from {old.mode} to {new.mode}"

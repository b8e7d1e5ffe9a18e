"""What changed between two versions, as a patch that other tools take."""

import subprocess

import pytest

from vskill_core.content import SkillFile
from vskill_platform.web.drawing.diffs import EMPTY, MOST_LINES, NOT_TEXT, TOO_LARGE, compare_now

PAIRS = {
    "a line": (b"one\ntwo\nthree\n", b"one\n2\nthree\n", (1, 1)),
    "added": (None, b"one\ntwo\n", (2, 0)),
    "removed": (b"one\ntwo\n", None, (0, 2)),
    "the last line ends now": (b"one\ntwo", b"one\ntwo\n", (1, 1)),
    "the last line ends no more": (b"one\ntwo\n", b"one\ntwo", (1, 1)),
    "neither ends": (b"one\ntwo", b"1\ntwo", (1, 1)),
    "carriage returns": (b"one\r\ntwo\r\n", b"one\r\n2\r\n", (1, 1)),
    "what other tools take for lines": ("a\u2028b\n".encode(), "a\u2028c\n".encode(), (1, 1)),
    "empty lines at the end": (b"one\n", b"one\n\n\n", (2, 0)),
}


def files(data: bytes | None) -> list[SkillFile]:
    return [] if data is None else [SkillFile("notes.md", "100644", data)]


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_git_makes_the_one_version_of_the_other_by_the_patch(name, tmp_path):
    before, after, counted = PAIRS[name]
    (change,) = compare_now(files(before), files(after))
    assert (change.additions, change.deletions) == counted
    place = tmp_path / "notes.md"
    if before is not None:
        place.write_bytes(before)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    apply = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, cwd=tmp_path, input=change.patch.encode(), check=True)
    assert (place.read_bytes() if place.exists() else None) == after


def test_what_is_no_text_or_too_long_is_said_to_have_changed():
    (binary,) = compare_now(files(b"\0"), files(b"\1"))
    (broken,) = compare_now(files(b"fine"), files(b"\xff"))
    (long,) = compare_now(files(b"a\n" * (MOST_LINES + 1)), files(b"b\n"))
    assert [one.note for one in (binary, broken, long)] == [NOT_TEXT, NOT_TEXT, TOO_LARGE]
    assert all(
        (one.patch, one.additions, one.status) == ("", 0, "modified") for one in (binary, broken, long)
    )


@pytest.mark.parametrize(("before", "after"), [(None, b""), (b"", None)])
def test_an_empty_file_that_came_or_went_is_said_to_be_empty(before, after):
    (change,) = compare_now(files(before), files(after))
    assert (change.patch, change.note) == ("", EMPTY)
    (grown,) = compare_now(files(b""), files(b"x\n"))
    assert grown.patch and not grown.note


def test_a_change_of_the_mode_alone_is_told():
    (change,) = compare_now(files(b"x\n"), [SkillFile("notes.md", "100755", b"x\n")])
    assert (change.patch, change.note) == ("", "mode changed from 100644 to 100755")
    assert compare_now(files(b"x\n"), files(b"x\n")) == ()

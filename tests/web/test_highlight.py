"""Colours for foreign code: nothing of a text is lost or added, whatever it holds, and nothing takes long."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.patience import PATIENCE_S
from tests.support.skills import OTHER_TEXT
from vskill_core.content import SkillFile
from vskill_platform.actions.review.evidence import ContentEvidence
from vskill_platform.web.drawing.colours import LANGUAGES, MOST_PIECES, colour
from vskill_platform.web.drawing.highlight import (
    CHARACTER_BYTES,
    MOST_CHARACTERS,
    MOST_KEPT_ONE,
    PIECE_BYTES,
    WAIT_S,
    CodePart,
    Highlighter,
    plain_lines,
    shorten,
)
from vskill_platform.web.pages.review import evidence
from vskill_platform.web.pages.skills.skill_files import MOST_SHOWN

PATHS = ("run.py", "run.sh", "run.js", "SKILL.md", "a.yaml", "a.json", "page.html", "Dockerfile")


@given(st.text(max_size=300).map(lambda text: text.encode(errors="replace").decode()), st.sampled_from(PATHS))
def test_the_pieces_together_are_the_text(text, path):
    lines = colour(path, text)
    assert lines is not None
    assert "\n".join("".join(piece for piece, _ in line) for line in lines) == text


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"], include_characters=" \n\t"), max_size=300))
def test_without_colours_the_lines_are_the_text_too(text):
    assert "\n".join("".join(piece for piece, _ in line) for line in plain_lines(text)) == text


@pytest.mark.parametrize(
    ("path", "text", "kinds"),
    [
        ("run.py", 'return "a" # why', {"return": "keyword", '"a"': "string", "# why": "comment"}),
        ("run.sh", "if true; then echo a; fi # now", {"if": "keyword", "# now": "comment"}),
        ("run.js", "const n = 42; // no", {"const": "keyword", "42": "number", "// no": "comment"}),
        ("tool", "#!/usr/bin/env python3\nimport os", {"import": "keyword"}),
        ("SKILL.md", "# Title\n", {"# Title": "keyword"}),
        ("settings.json", '{"a": 1}', {"1": "number"}),
    ],
)
def test_what_a_reader_looks_for_is_coloured(path, text, kinds):
    found = {piece: kind for line in colour(path, text) or () for piece, kind in line}
    assert {piece: found.get(piece) for piece in kinds} == kinds


def test_a_text_over_several_lines_keeps_its_colour():
    assert [line[-1][1] for line in colour("run.py", '"""one\ntwo\nthree"""') or ()] == ["string"] * 3


def test_no_block_in_markdown_shows_another_text():
    text = OTHER_TEXT.decode()
    lines = colour("SKILL.md", text)
    assert lines is not None
    assert "\n".join("".join(piece for piece, _ in line) for line in lines) == text


def test_a_lexer_that_makes_another_text_colours_nothing(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "http", "http")
    head, body = (
        "HTTP/1.1 200 OK\nContent-Type: application/x-pygments-tokens\n\n",
        "Token.Text\t'harmless\\n'\n",
    )
    assert colour("a.http", head.replace("x-pygments-tokens", "json") + "{}\n") is not None
    assert colour("a.http", head + body) is None


@pytest.mark.anyio
async def test_a_text_is_coloured_in_a_process_of_its_own_and_kept():
    highlighter = Highlighter(wait_s=PATIENCE_S)
    (first,) = await highlighter.highlight([("run.py", "import os\r\nx = 1")])
    assert shorten(first[0], 100) == (CodePart("import", "keyword"), CodePart(" os"))
    (again, other) = await highlighter.highlight([("run.py", "import os\r\nx = 1"), ("a.txt", "import os")])
    assert again is first
    assert other == ((("import os", ""),),)


@pytest.mark.anyio
async def test_what_lies_in_the_working_folder_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "pygments.py").write_text("raise SystemExit('not ours')\n")
    monkeypatch.chdir(tmp_path)
    ((line,),) = await Highlighter(wait_s=PATIENCE_S).highlight([("run.py", "import os")])
    assert line[0] == ("import", "keyword")


@pytest.mark.anyio
async def test_what_hides_in_a_text_is_shown():
    (lines,) = await Highlighter(wait_s=PATIENCE_S).highlight([("run.py", "a = 'b\u200bc'\n\x1b[0m\tx")])
    first, second = (shorten(line, 100) for line in lines)
    assert CodePart("<U+200B>", "hidden") in first
    assert CodePart("<U+001B>", "hidden") in second
    assert all("\u200b" not in part.text for part in first)


@pytest.mark.anyio
async def test_what_is_too_large_or_takes_too_long_is_shown_without_colours():
    """Each slash may begin a regular expression: looking for its end takes a time that grows with the square."""
    hostile = "/a" * 100_000
    calm = "x = 1"
    highlighter = Highlighter(wait_s=PATIENCE_S)
    found = await highlighter.highlight([("a.js", hostile), ("b.py", "y" * 500_000), ("c.py", calm)])
    assert ["".join(piece for piece, _ in lines[0]) for lines in found] == [hostile, "y" * 500_000, calm]
    assert found[2][0][-1] == ("1", "number")


def test_a_long_line_is_cut_where_it_says_so():
    line = (("abc", "string"), ("defg", ""))
    assert shorten(line, 7) == (CodePart("abc", "string"), CodePart("defg"))
    assert shorten(line, 5) == (
        CodePart("abc", "string"),
        CodePart("de"),
        CodePart("\N{HORIZONTAL ELLIPSIS}"),
    )


def test_only_the_end_of_a_line_hides_a_carriage_return():
    line = (("a\r", "string"), ("b\r\r", ""))
    hidden = CodePart("<U+000D>", "hidden")
    assert shorten(line, 9) == (CodePart("a", "string"), hidden, CodePart("b"), hidden)
    assert shorten((("ab\r", ""),), 2) == (CodePart("ab"),)


def test_the_largest_text_that_a_page_shows_is_kept():
    """However slow the machine is: on most, its colours would take longer than a page waits for them."""
    text = ("1" * (MOST_SHOWN // MOST_PIECES - 1) + "\n") * MOST_PIECES
    assert len(text) == MOST_SHOWN <= MOST_CHARACTERS
    assert colour("a.json", text, PATIENCE_S) is not None
    assert colour("a.json", text + "1", PATIENCE_S) is None, "it has a piece more than is kept"
    assert PIECE_BYTES * (1 + MOST_PIECES) + CHARACTER_BYTES * MOST_SHOWN <= MOST_KEPT_ONE


@pytest.mark.anyio
async def test_whose_turn_does_not_come_sees_the_text_without_colours():
    async with asyncio.timeout(WAIT_S / 2):
        (lines,) = await Highlighter(at_once=0).highlight([("run.py", "import os")])
    assert lines == ((("import os", ""),),)


def evidence_of(*files: SkillFile) -> ContentEvidence:
    return ContentEvidence(None, (), (), (), (), frozenset(), files, "", None)


@pytest.mark.anyio
async def test_what_hides_is_made_visible_only_where_it_is_shown():
    """A character that hides is a part of its own, so a file of nothing else must not become parts as a whole."""
    old, new = (SkillFile("a.txt", "100644", char * evidence.MOST_BYTES) for char in (b"\x01", b"\x02"))
    found = evidence_of(new)
    coloured = await evidence.colour_files(Highlighter(wait_s=PATIENCE_S), found, (old,), new)
    assert [len(line) for text in (coloured.submitted, coloured.live) for line in text["a.txt"]] == [1, 1]
    (shown,) = evidence.show_file(new, (), coloured.submitted["a.txt"]).lines
    assert len(shown.parts) == evidence.MOST_WIDTH + 1
    (difference,) = await evidence.compare(found, (old,), coloured)
    assert [len(line.parts) for line in difference.lines] == [1, *[evidence.MOST_FOUND_WIDTH + 1] * 2]


@pytest.mark.anyio
async def test_only_what_is_compared_is_coloured():
    long = SkillFile("long.py", "100644", b"x\n" * evidence.MOST_DIFF_LINES)
    many = [SkillFile(f"{n:03}.txt", "100644", b"x") for n in range(evidence.MOST_FILES + 50)]
    before = (SkillFile("SKILL.md", "100644", b"x"),)
    for files, count in (((long, many[0]), 1), (many, evidence.MOST_FILES)):
        found = evidence_of(*before, *files)
        coloured = await evidence.colour_files(Highlighter(wait_s=PATIENCE_S), found, before, None)
        assert len(coloured.submitted) == count

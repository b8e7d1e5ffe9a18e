"""Colours for foreign code: nothing of a text is lost or added, whatever it holds, and nothing takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.web.colours import colour
from vskill_platform.web.highlight import CodePart, Highlighter, plain_lines, shorten

PATHS = ("run.py", "run.sh", "run.js", "SKILL.md", "a.yaml", "a.json", "page.html", "Dockerfile")


@given(st.text(max_size=300).map(lambda text: text.encode(errors="replace").decode()), st.sampled_from(PATHS))
def test_the_pieces_together_are_the_text(text, path):
    lines = colour(path, text)
    assert lines is not None
    assert "\n".join("".join(piece for piece, _ in line) for line in lines) == text


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"], include_characters=" \n\t"), max_size=300))
def test_without_colours_the_lines_are_the_text_too(text):
    assert "\n".join("".join(part.text for part in line) for line in plain_lines(text)) == text


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


@pytest.mark.anyio
async def test_a_text_is_coloured_in_a_process_of_its_own_and_kept():
    highlighter = Highlighter()
    (first,) = await highlighter.highlight([("run.py", "import os\r\nx = 1")])
    assert first[0] == (CodePart("import", "keyword"), CodePart(" os"))
    (again, other) = await highlighter.highlight([("run.py", "import os\r\nx = 1"), ("a.txt", "import os")])
    assert again is first
    assert other == ((CodePart("import os"),),)


@pytest.mark.anyio
async def test_what_hides_in_a_text_is_shown():
    (lines,) = await Highlighter().highlight([("run.py", "a = 'b\u200bc'\n\x1b[0m\tx")])
    assert CodePart("<U+200B>", "hidden") in lines[0]
    assert CodePart("<U+001B>", "hidden") in lines[1]
    assert all("\u200b" not in part.text for part in lines[0])


@pytest.mark.anyio
async def test_what_is_too_large_or_takes_too_long_is_shown_without_colours():
    """Each slash may begin a regular expression: looking for its end takes a time that grows with the square."""
    hostile = "/a" * 100_000
    calm = "x = 1"
    highlighter = Highlighter()
    found = await highlighter.highlight([("a.js", hostile), ("b.py", "y" * 500_000), ("c.py", calm)])
    assert ["".join(part.text for part in lines[0]) for lines in found] == [hostile, "y" * 500_000, calm]
    assert found[2][0][-1] == CodePart("1", "number")


def test_a_long_line_is_cut_where_it_says_so():
    line = (CodePart("abc", "string"), CodePart("defg"))
    assert shorten(line, 7) == line
    assert shorten(line, 5) == (
        CodePart("abc", "string"),
        CodePart("de"),
        CodePart("\N{HORIZONTAL ELLIPSIS}"),
    )

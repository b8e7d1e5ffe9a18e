"""Cheap looks that come before costly ones: lines, fences, inline code, and patterns that were compiled before."""

import pytest

from vskill_scan.model import Layer
from vskill_scan.reading.outline import code_spans, fence_mark
from vskill_scan.rules.matcher import Matcher
from vskill_scan.rules.ruleset import Ruleset, read_rules

RULE = """\
family: exfiltration
rules:
  - {id: XX-001, version: 1, title: T, severity: high, kind: malice, why: w, remedy: r,
     match: MATCH, examples: {match: [a, b], near_miss: [c], benign: [d]}}
"""


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("```", ("```", "")),
        ("  ```` bash ", ("````", "bash ")),
        ("- ~~~ text", ("~~~", "text")),
        ("> ```sh", ("```", "sh")),
        ("``", ("", "")),
        ("```a`", ("", "")),
        (" " * 13 + "```", ("", "")),
        ("a ```", ("", "")),
    ],
)
def test_a_fence_begins_with_three_marks_and_nothing_before_them(line, begins):
    assert tuple(one.decode() for one in fence_mark(line.encode())) == begins


def test_lines_begin_where_the_text_says():
    text = b"\n".join(b"x" * (number % 7) for number in range(40))
    layer = Layer("a.md", text, [])
    for offset in range(len(text) + 1):
        place = layer.line_at(offset), layer.line_start(offset)
        assert place == (text[:offset].count(b"\n") + 1, text.rfind(b"\n", 0, offset) + 1)


def test_patterns_that_were_compiled_for_other_rules_are_not_used():
    first, second = (
        Matcher(Ruleset(read_rules("x.yaml", RULE.replace("MATCH", match).encode())))
        for match in ("{re: one}", "{re: two}")
    )
    assert not first.serialised().keys() & second.serialised().keys()


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a `b` c", ["`b`"]),
        ("`a` `b`", ["`a`", "`b`"]),
        ("``a ` b`` c", ["``a ` b``"]),
        ("``` a", []),
        ("`a\nb`", []),
        ("`` `a`", ["` `"]),
        ("``a`", ["`a`"]),
        ("`a``b`", ["`a`", "`b`"]),
        ("````x``", ["````x``"]),
    ],
)
def test_inline_code_stays_on_its_line(text, spans):
    data = text.encode()
    assert [data[start:end].decode() for start, end in code_spans(data)] == spans


def test_many_marks_on_one_line_take_linear_time():
    assert sum(1 for _ in code_spans(b"`" * 100_000)) < 100_000
    assert sum(1 for _ in code_spans(b"`a " * 50_000)) == 25_000

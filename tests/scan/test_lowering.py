"""A pattern written for lower case finds in a lower-case text what it finds in any case in the text itself."""

import pytest
import yara_x

from vskill_platform.scan.examples import cases, skill_of
from vskill_platform.scan.lowering import lower_pattern
from vskill_platform.scan.matcher import literal
from vskill_platform.scan.ruleset import bundled_rules


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("CLAUDE\\.md", "claude\\.md"),
        (r"\bA\S+\W\D\B", r"\ba\S+\W\D\B"),
        ("[A-Z][^A-Z][A-Za-z0-9_-]", "[a-z][^a-z][a-za-z0-9_-]"),
        (r"\x41\x27[\x41\x27]", r"a\x27[a\x27]"),
        ("[]A]", "[]a]"),
        ("(?m)^A(?:B|C)", "(?m)^a(?:b|c)"),
    ],
)
def test_letters_become_small_and_nothing_else_changes(pattern, expected):
    assert lower_pattern(pattern) == expected


@pytest.mark.parametrize("pattern", ["[A-z]", "[!-~]", "[+-_]", r"[\x20-\x7e]", "[0-Z]", "(?P<A>x)", "(?i)A"])
def test_a_pattern_whose_meaning_would_change_is_left_alone(pattern):
    assert lower_pattern(pattern) is None


def spots(pattern, text):
    rules = yara_x.compile(f"rule a {{ strings: $a = {pattern} condition: $a }}")
    return [
        (match.offset, match.length)
        for rule in yara_x.Scanner(rules).scan(text).matching_rules
        for match in rule.patterns[0].matches
    ]


def test_every_bundled_pattern_finds_the_same_in_the_examples_of_all_rules():
    """In the spelling of the examples, and in capitals."""
    rules = bundled_rules()
    examples = b"\n\n".join(file.data for case in cases(rules) for file in skill_of(case.example))
    text = examples + b"\n\n" + examples.upper()
    patterns = {leaf.pattern for leaf in rules.leaves if leaf.pattern and not leaf.condition.case}
    compared = 0
    for pattern in sorted(patterns):
        small = lower_pattern(pattern)
        assert small is not None, pattern
        found = spots(f"/{literal(pattern)}/ nocase", text)
        assert spots(f"/{literal(small)}/", text.lower()) == found, pattern
        compared += len(found)
    assert compared > 1000

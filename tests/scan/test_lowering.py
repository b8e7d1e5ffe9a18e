"""A pattern written for lower case finds in a lower-case text what it finds in any case in the text itself."""

import pytest
import yara_x

from vskill_scan.examples import cases, skill_of
from vskill_scan.rules.lowering import lower_pattern
from vskill_scan.rules.matcher import literal
from vskill_scan.rules.ruleset import bundled_rules


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


def spots(patterns, text):
    """Where each is found, by its number: all are searched for at once, since compiling one by one takes long."""
    source = "".join(
        f"rule a{number} {{ strings: $a = {pattern} condition: $a }}\n"
        for number, pattern in enumerate(patterns)
    )
    return {
        int(rule.identifier[1:]): [(match.offset, match.length) for match in rule.patterns[0].matches]
        for rule in yara_x.Scanner(yara_x.compile(source)).scan(text).matching_rules
    }


@pytest.mark.slow
def test_every_bundled_pattern_finds_the_same_in_the_examples_of_all_rules():
    """In the spelling of the examples, and in capitals."""
    rules = bundled_rules()
    examples = b"\n\n".join(file.data for case in cases(rules) for file in skill_of(case.example))
    text = examples + b"\n\n" + examples.upper()
    patterns = sorted({leaf.pattern for leaf in rules.leaves if leaf.pattern and not leaf.condition.case})
    lowered = [small for pattern in patterns if (small := lower_pattern(pattern)) is not None]
    assert len(lowered) == len(patterns)
    found = spots([f"/{literal(pattern)}/ nocase" for pattern in patterns], text)
    in_small = spots([f"/{literal(pattern)}/" for pattern in lowered], text.lower())
    for number, pattern in enumerate(patterns):
        assert in_small.get(number) == found.get(number), pattern
    assert sum(map(len, found.values())) > 1000

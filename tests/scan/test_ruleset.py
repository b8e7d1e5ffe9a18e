"""Rules as data: a bad one is refused by file, rule and field, and every change gives the set another name."""

import textwrap

import msgspec
import pytest

from vskill_scan.engine import Engine
from vskill_scan.examples import skill_of
from vskill_scan.model import ACTING, Polarity, TextRole, Unit
from vskill_scan.rules.ruleset import (
    Example,
    InvalidRule,
    Ruleset,
    load_rules,
    read_rules,
)

RULE = """\
family: download-and-run
rules:
  - id: XX-001
    version: 1
    title: A test
    severity: high
    kind: malice
    why: Because.
    remedy: Do not.
    match: {re: 'evil\\d+'}
    examples: {match: [evil1, evil2], near_miss: [evil], benign: [good]}
"""


def rules(text: str = RULE):
    return list(read_rules("x.yaml", text.encode()))


def changed(old: str, new: str) -> str:
    assert old in RULE
    return RULE.replace(old, new)


def test_a_rule_has_the_defaults_of_the_format():
    (rule,) = rules()
    assert rule.category == "download-and-run"
    assert set(rule.roles) == ACTING
    assert rule.polarity == (Polarity.NEUTRAL,)
    assert not rule.certain


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("severity: high", "severity: awful", "x.yaml XX-001 $.severity: Invalid enum value 'awful'"),
        ("kind: malice", "kin: malice", "x.yaml XX-001"),
        ("id: XX-001", "id: x1", "x.yaml x1 $.id: "),
        ("version: 1", "version: 0", "x.yaml XX-001 $.version"),
        ("{re: 'evil\\d+'}", "{}", "needs exactly one of re, fact"),
        ("{re: 'evil\\d+'}", "{re: a, fact: env.dump}", "needs exactly one of re, fact"),
        ("{re: 'evil\\d+'}", "{re: '\\Sevil\\\\A'}", "match: holds a capital letter"),
        ("{re: 'evil\\d+'}", "{any: [{re: a, case: true}, {re: bA}]}", "match[1]: holds a capital letter"),
        ("{re: 'evil\\d+'}", "{none: [{re: a}]}", "asks for nothing"),
        ("{re: 'evil\\d+'}", "{all: [{re: a}, {none: [{re: b}]}]}", "match[1]: asks for nothing"),
        ("{re: 'evil\\d+'}", "{any: [{re: a}, {any: [{none: [{re: b}]}]}]}", "match[1][0]: asks for nothing"),
        ("{re: 'evil\\d+'}", "{all: [{re: a}], none: [{none: [{re: b}]}]}", "match[1]: asks for nothing"),
        ("{re: 'evil\\d+'}", "{re: a, later: true}", "match: looks for all of something later"),
        (
            "{re: 'evil\\d+'}",
            "{any: [{re: a}, {all: [{re: b, later: true}]}]}",
            "match: looks for all of something later",
        ),
        ("{re: 'evil\\d+'}", "{re: a, check: luck}", "check: must stand beside 're' and be one of github"),
        ("{re: 'evil\\d+'}", "{fact: env.dumps}", "'env.dumps', which nothing reports"),
        ("{re: 'evil\\d+'}", "{fact: secret.read, to: a}", "is no attribute of secret.read; it has what"),
        ("{re: 'evil\\d+'}", "{any: [{all: [{re: a, fact: env.dump}]}]}", "match[0][0]"),
        ("match: [evil1, evil2]", "match: [evil1]", "examples.match: has 1; give at least 2"),
        ("near_miss: [evil]", "near_miss: []", "examples.near_miss: has 0"),
        ("benign: [good]", "benign: []", "examples.benign: has 0"),
        ("match: [evil1, evil2]", "match: [evil1, {SKILL.md: 1}]", "content must be text"),
        ("family: download-and-run", "family: none-such", "Invalid enum value 'none-such'"),
        ("family: download-and-run", "families: x", "needs the two fields"),
        ("title: A test", "title: A: test", "is not valid YAML"),
    ],
)
def test_a_bad_rule_is_refused_by_file_rule_and_field(old, new, said):
    with pytest.raises(InvalidRule) as caught:
        rules(changed(old, new))
    assert said in caught.value.message
    assert caught.value.message.startswith("x.yaml")


def test_a_pattern_that_cannot_be_compiled_names_its_rule():
    with pytest.raises(InvalidRule, match="XX-001: the pattern"):
        Engine(Ruleset(rules(changed("evil\\d+", "(?=evil)"))))


def test_an_id_used_twice_is_refused_across_files(tmp_path):
    (tmp_path / "a.yaml").write_text(RULE)
    (tmp_path / "b.yaml").write_text(RULE)
    with pytest.raises(InvalidRule, match=r"b.yaml XX-001 id: is used by another rule"):
        load_rules(tmp_path)


def test_the_set_is_named_after_all_that_is_in_it():
    first = Ruleset(rules()).version
    assert Ruleset(rules()).version == first
    assert Ruleset(rules(changed("evil\\d+", "evil\\d"))).version != first
    assert Ruleset(rules(changed("Because.", "Since."))).version != first
    assert Ruleset(()).version != first


def scanned(match: str, text: Example, **changes: object) -> list[tuple[str, int]]:
    """Ids of what a rule with that condition finds in a small skill."""
    (rule,) = rules(RULE.replace("{re: 'evil\\d+'}", "\n" + textwrap.indent(textwrap.dedent(match), " " * 6)))
    rule = msgspec.structs.replace(rule, **changes)
    return [(one.file, one.line) for one in Engine(Ruleset([rule])).scan(skill_of(text)).findings]


@pytest.mark.parametrize(
    ("within", "text", "found"),
    [
        ("line", "one and two", True),
        ("line", "one\nand two", False),
        ("sentence", "one and\ntwo.", True),
        ("sentence", "one is here. two is there.", False),
        ("segment", "one is here. two is there.", True),
        ("segment", "one\n\ntwo", False),
        ("segment", "- one\n- two", True),
        ("section", "one\n\ntwo", True),
        ("section", "## A\none\n## B\ntwo", False),
        ("file", "## A\none\n## B\ntwo", True),
        ("file", {"SKILL.md": "one", "b.md": "two"}, False),
    ],
)
def test_all_must_hold_within_one_unit(within, text, found):
    match = f"all: [{{re: '\\bone\\b'}}, {{re: '\\btwo\\b'}}]\nwithin: {within}"
    assert bool(scanned(match, text)) is found
    assert within in list(Unit)


def test_none_forbids_in_its_unit_only_and_in_any_role():
    match = "all: [{re: evil}]\nnone: [{re: sandbox}]\nwithin: segment"
    assert scanned(match, "evil\n\nevil in a `sandbox run`") == [("SKILL.md", 5)]


def test_a_nested_condition_may_have_a_smaller_unit():
    match = "all:\n  - {re: three}\n  - {all: [{re: one}, {re: two}], within: line}\nwithin: file"
    assert scanned(match, "three\n\none two")
    assert not scanned(match, "three\n\none\n\ntwo")


def test_a_leaf_counts_in_its_own_roles_and_files():
    match = "any: [{re: evil, roles: [code]}]"
    assert scanned(match, {"SKILL.md": "evil", "a.py": "evil()"}) == [("a.py", 1)]
    match = "any: [{re: evil, files: ['*.sh']}]"
    assert scanned(match, {"a.py": "evil()", "s/b.sh": "evil"}) == [("s/b.sh", 1)]


def test_polarity_decides_unless_the_rule_takes_both():
    text = "Never run evil here."
    assert not scanned("re: evil", text)
    assert scanned("re: evil", text, polarity=tuple(Polarity))


def test_roles_that_do_not_act_do_not_count_by_default():
    assert not scanned("re: evil", {"SKILL.md": "x", "tests/fixtures/a.md": "evil"})
    assert scanned("re: evil", {"SKILL.md": "x", "tests/fixtures/a.md": "evil"}, roles=(TextRole.TEST,))


def test_what_a_group_says_holds_for_all_that_is_in_it():
    group = "any: [{re: evil}, {roles: [test], any: [{re: odd}]}]"
    assert scanned(group, {"SKILL.md": "x", "tests/fixtures/a.md": "odd"})
    assert not scanned(group, {"SKILL.md": "x", "tests/fixtures/a.md": "evil"})
    assert not scanned(group, "odd")

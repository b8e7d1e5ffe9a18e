"""The policy: what its texts may say, what is wrong with them, and what its rules match."""

import itertools
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vskill_core.capability import CapabilityContext, CapabilityKind, SkillCapability
from vskill_core.errors import InvalidInput
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity
from vskill_core.identity import normalise
from vskill_platform.domain.signals import RuleEffect, Signal, SignalKind
from vskill_platform.domain.verdicts.expressions import LONGEST_EXPRESSION
from vskill_platform.domain.verdicts.facts import (
    MOST_FINDINGS,
    CapabilityFacts,
    CardFacts,
    Facts,
    FindingFacts,
    JudgeFacts,
    OwnerFacts,
    SignalFacts,
    SkillFacts,
)
from vskill_platform.domain.verdicts.policy import (
    LONGEST_REASON,
    LONGEST_TEXT,
    MOST_RULES,
    MOST_WAIT_MS,
    Preset,
    load_policy,
    match_rules,
)


def rule(when: str, then: object = "review", say: str = "", name: str = "mine") -> str:
    return msgspec.json.encode([{"name": name, "when": when, "then": then, "say": say}]).decode()


def policy(when: str, then: object = "review", say: str = "", **keys: object) -> str:
    """JSON is YAML."""
    return "\n".join([*(f"{key}: {value}" for key, value in keys.items()), f"rules: {rule(when, then, say)}"])


def matched(text: str, facts: Facts | None = None) -> list[tuple[str, str, str]]:
    found = match_rules(load_policy(text), facts or Facts())
    return [(one.name, one.then.value, one.reason) for one in found]


def host(value: str, **more: bool) -> CapabilityFacts:
    found = CapabilityFacts(value=value, file="SKILL.md", line=3, context="code", acts=True)
    return msgspec.structs.replace(found, **more)


# Texts.


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "{}", "rules: []", "trusted: [github.com/acme]"])
def test_a_text_without_rules_is_valid_and_matches_nothing(text):
    assert load_policy(text).rules == {} and matched(text) == []


BAD = {
    "syntax of yaml": ("rules:\n  - name: [", (3, 1), "not valid YAML"),
    "a tab": ("rules:\n\t- name: a", (2, 1), "not valid YAML"),
    "an alias": ("trusted: &a [github.com/acme]\nown_hosts: *a", (1, 10), "alias"),
    "two documents": ("rules: []\n---\nrules: []", (3, 1), "one document"),
    "no keys": ("- a", (1, 1), "Expected `object`"),
    "an unknown key": ("rules: []\ncolour: red", (1, 1), "unknown field `colour`"),
    "a key twice": ("rules: []\nrules: []", (2, 1), "there twice"),
    "too deep": ("rules: [[[[[1]]]]]", (1, 11), "nests deeper"),
    "an unknown preset": ("extends: closed", (1, 10), "closed"),
    "an owner without a host": ("trusted: [acme]", (1, 11), "matching regex"),
    "a host with a path": ("own_hosts: [a.example/x]", (1, 13), "matching regex"),
    "three judges": ("needs: {judges: 3}", (1, 17), "<= 2"),
    "an unknown effect": ('rules:\n  - name: a\n    when: "true"\n    then: allow', (4, 11), "allow"),
    "a wait without an end": (
        'rules:\n  - name: a\n    when: "true"\n    then: wait',
        (4, 11),
        "does not say how long",
    ),
    "a wait that is too long": (
        'rules:\n  - name: a\n    when: "true"\n    then: {wait: 31d}',
        (4, 18),
        "waits for 31d, and 30d are allowed",
    ),
    "a wait in minutes": (
        'rules:\n  - name: a\n    when: "true"\n    then: {wait: 90m}',
        (4, 18),
        "matching regex",
    ),
    "no wait at all": (
        'rules:\n  - name: a\n    when: "true"\n    then: {wait: 0h}',
        (4, 18),
        "matching regex",
    ),
    "another effect with a time": (
        'rules:\n  - name: a\n    when: "true"\n    then: {review: 3d}',
        (4, 11),
        "unknown field `review`",
    ),
    "no condition": ("rules:\n  - name: a\n    then: note", (2, 5), "missing required field `when`"),
    "a name in capitals": ('rules:\n  - name: A B\n    when: "true"\n    then: note', (2, 11), "matching"),
    "two rules of a name": (
        "rules:\n" + '  - name: a\n    when: "true"\n    then: note\n' * 2,
        (5, 11),
        "two rules a",
    ),
    "syntax of cel": (
        'rules:\n  - name: a\n    when: "skill.files >"\n    then: note',
        (3, 11),
        "not valid CEL",
    ),
    "an unknown fact": (
        "rules:\n  - name: a\n    when: owner.trustd\n    then: note",
        (3, 11),
        "no fact owner.trustd; the nearest is owner.trusted",
    ),
    "a fact of a list's entries": (
        "rules:\n  - name: a\n    when: card.hosts.exists(h, h.shel)\n    then: note",
        (3, 11),
        "no fact h.shel; the nearest is h.shell",
    ),
    "a wrong type": (
        "rules:\n  - name: a\n    when: skill.files > owner.name\n    then: note",
        (3, 11),
        "types do not fit",
    ),
    "no truth": (
        "rules:\n  - name: a\n    when: skill.files\n    then: note",
        (3, 11),
        "must be true or false",
    ),
    "an unknown fact in the sentence": (
        'rules:\n  - name: a\n    when: "true"\n    then: note\n    say: "by {owner.nam}"',
        (5, 10),
        "no fact owner.nam; the nearest is owner.name",
    ),
    "a bracket left open": (
        'rules:\n  - name: a\n    when: "true"\n    then: note\n    say: "by {owner.name"',
        (5, 10),
        "a { has no }",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_text_is_told_with_its_line_and_column(case):
    text, place, words = BAD[case]
    with pytest.raises(InvalidInput) as caught:
        load_policy(text)
    error = caught.value
    assert words in error.message
    assert (error.details["line"], error.details["column"]) == place, error.message
    assert error.message.startswith(f"Line {place[0]}, column {place[1]}: ") and error.fix


def many_rules(count: int) -> str:
    rules = [{"name": f"r{number}", "when": "true", "then": "note"} for number in range(count)]
    return f"rules: {msgspec.json.encode(rules).decode()}"


def nested_rule(number: int) -> str:
    when = "card.hosts.exists(a, card.files.exists(b, a.file == b.file))"
    return f"{{name: r{number}, when: '{when}', then: note}}"


NESTED = "card.hosts.exists(a, card.hosts.exists(b, "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#" * (LONGEST_TEXT + 1), f"{LONGEST_TEXT} are allowed"),
        (many_rules(MOST_RULES + 1), f"length <= {MOST_RULES}"),
        (many_rules(10_000), f"{LONGEST_TEXT} are allowed"),
        (policy("true" + " " * LONGEST_EXPRESSION), f"{LONGEST_EXPRESSION} are allowed"),
        (policy(f"{NESTED}card.hosts.exists(c, true)))"), "too many steps"),
        ("rules: [" + ", ".join(nested_rule(number) for number in range(20)) + "]", "too many steps"),
        (policy(f"[{'1,' * 400}1].exists(a, [{'1,' * 50}1].exists(b, a == b))"), "too many steps"),
        (policy(f"{NESTED}a.value + b.value == 'x'))"), "+ cannot stand"),
        (policy("card.hosts.exists(a, card.hosts.map(b, card.files).size() > 3)"), "map cannot stand"),
        (policy("card.hosts.exists(a, a.value.matches('a'))"), "use contains"),
        (policy("true", say="{card.hosts.map(one, card)}"), "a list of these"),
    ],
    ids=[
        *(
            "text",
            "rules",
            "ten thousand rules",
            "expression",
            "nesting",
            "many nested",
            "long literal",
            "sums",
        ),
        *("lists of lists", "patterns", "a long list"),
    ],
)
def test_what_a_text_may_cost_is_bounded(text, words):
    with pytest.raises(InvalidInput) as caught:
        load_policy(text)
    assert words in caught.value.message and len(caught.value.message) < 400


def test_as_many_rules_as_allowed_are_all_looked_at():
    assert len(matched(many_rules(MOST_RULES))) == MOST_RULES


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet="rules: -[]{}\"'namewhthsyo\n\t&*!|>#.()0", max_size=80))
def test_whatever_the_text_is_it_is_valid_or_refused(text):
    with suppress(InvalidInput):
        load_policy(text)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*"().[]!1/0+,h", "owner", "trusted", "&&", "||", "==", "'x'", "card", "hosts", "exists", "in"]
        )
    )
)
def test_whatever_an_expression_is_it_is_refused_or_matches_or_asks_for_a_reviewer(words):
    try:
        found = match_rules(load_policy(policy(" ".join(words), "note")), Facts())
    except InvalidInput:
        return
    assert all(one.then is (RuleEffect.REVIEW if one.failed else RuleEffect.NOTE) for one in found)


# Rules.


def test_every_rule_that_matches_is_told_in_order_with_its_sentence():
    text = """
rules:
  - {name: first, when: skill.first, then: review, say: "the first of {owner.name}, {skill.files} files"}
  - {name: no, when: owner.trusted, then: refuse, say: "never"}
  - {name: hosts, when: size(card.hosts) > 1, then: refuse, say: "it uses {card.hosts.map(h, h.value)}"}
  - {name: silent, when: "true", then: note}
"""
    facts = Facts(
        skill=SkillFacts(first=True, files=3),
        owner=OwnerFacts(name="acme"),
        card=CardFacts(hosts=(host("a.dev"), host("b.dev"))),
    )
    assert matched(text, facts) == [
        ("first", "review", "the first of acme, 3 files"),
        ("hosts", "refuse", "it uses a.dev, b.dev"),
        ("silent", "note", "the rule silent applies"),
    ]


def test_a_rule_that_waits_says_for_how_long():
    (waits,) = match_rules(load_policy(policy("true", {"wait": "36h"})), Facts())
    assert (waits.then, waits.wait_ms) == (RuleEffect.WAIT, 36 * 3_600_000)
    (longest,) = match_rules(load_policy(policy("true", {"wait": "30d"})), Facts())
    assert longest.wait_ms == MOST_WAIT_MS
    (reviews,) = match_rules(load_policy(policy("true", "review")), Facts())
    assert reviews.wait_ms == 0


@pytest.mark.parametrize("then", ["refuse", "review", {"wait": "3d"}, "note"])
@pytest.mark.parametrize("when", ["1 / skill.files > 0", "card.hosts[5].shell", "int(skill.licence) > 1"])
def test_a_rule_that_fails_asks_for_a_reviewer_whatever_it_would_do(when, then):
    ((name, effect, reason),) = matched(policy(when, then))
    assert (name, effect) == ("mine", "review")
    assert reason.startswith("rule mine could not be evaluated: ")


def test_a_sentence_that_fails_asks_for_a_reviewer_too():
    ((_, effect, reason),) = matched(policy("true", "note", "{card.hosts[0].value}"))
    assert effect == "review" and "could not be evaluated" in reason


def test_a_sentence_is_one_line_of_bounded_length():
    facts = Facts(skill=SkillFacts(description="a\nb\r\n" + "x" * 10_000))
    ((_, _, reason),) = matched(policy("true", "note", "{skill.description}"), facts)
    assert reason.startswith("a b x") and len(reason) == LONGEST_REASON


def test_what_extends_a_preset_adds_to_it_and_replaces_rules_of_the_same_name():
    text = "extends: open\n" + f"rules: {rule('false', name='copy')}"
    names = list(load_policy(text).rules)
    assert names == list(load_policy("extends: open").rules) and "copy" in names
    copied = Facts(signals=SignalFacts(copy="a copy", host="a host"))
    assert [name for name, _, _ in matched("extends: open", copied)] == ["copy", "host"]
    assert [name for name, _, _ in matched(text, copied)] == ["host"]


def test_the_digest_names_what_decides_and_not_how_it_is_written():
    one, other = load_policy("extends: open"), load_policy("# the same\nextends: open\n")
    assert one.digest == other.digest
    digests = {load_policy(f"extends: {preset}").digest for preset in Preset}
    assert len(digests | {one.digest, load_policy("").digest, load_policy("own_hosts: [a.b]").digest}) == 5


def test_owners_are_trusted_on_their_host_and_hosts_owned_below_a_domain():
    found = load_policy('trusted: [GitHub.com/Acme]\nown_hosts: ["*.corp.example", one.example]')
    assert found.trusts(normalise("https://github.com/acme/tools"))
    assert not found.trusts(normalise("https://gitlab.com/acme/tools"))
    assert [found.owns(one) for one in ("a.corp.example", "A.B.corp.example:8443", "one.example")] == [
        True
    ] * 3
    assert not any(map(found.owns, ("corp.example", "evilcorp.example", "two.one.example", "")))


# Presets.

ALL_SIGNALS = tuple(Signal(kind, f"said by {kind.value}") for kind in SignalKind)


@pytest.mark.parametrize("signals", [*itertools.combinations(ALL_SIGNALS, 1), ALL_SIGNALS, ()])
def test_open_sends_each_signal_to_a_reviewer_with_its_own_words_but_not_a_trusted_owners(signals):
    facts = Facts(signals=SignalFacts.of(signals))
    assert [reason for _, _, reason in matched("extends: open", facts)] == [one.reason for one in signals]
    trusted = msgspec.structs.replace(facts, owner=OwnerFacts(trusted=True))
    assert matched("extends: open", trusted) == []
    shown = [msgspec.structs.replace(one, holds=False) for one in signals]
    assert matched("extends: open", Facts(signals=SignalFacts.of(shown))) == []


STRANGER, VOUCHED = OwnerFacts(name="mia"), OwnerFacts(name="ann", vouched=True)
UNKNOWN, KNOWN = host("odd.dev", shell=True), host("github.com", shell=True, known=True)
SECRET = CapabilityFacts(value="API_KEY", acts=True)


@pytest.mark.parametrize(
    ("card", "name"),
    [
        (CardFacts(hosts=(UNKNOWN,)), "stranger-runs-from-unknown-host"),
        (CardFacts(hosts=(host("odd.dev"),), secrets=(SECRET,)), "stranger-sends-secrets"),
        (CardFacts(hosts=(host("odd.dev"),), persistence=(SECRET,)), "stranger-stays"),
        (CardFacts(unread=(SECRET,)), "stranger-unread"),
        (CardFacts(hosts=(KNOWN, host("odd.dev")), commands=(SECRET,), installs=(SECRET,)), None),
        (CardFacts(secrets=(SECRET,), persistence=(SECRET,), hosts=(KNOWN,)), None),
    ],
)
def test_guarded_holds_what_a_stranger_could_harm_with(card, name):
    found = [one for one, _, _ in matched("extends: guarded", Facts(owner=STRANGER, card=card))]
    assert found == ([] if name is None else [name])
    assert matched("extends: guarded", Facts(owner=VOUCHED, card=card)) == []


def used(use, **fields):
    return CapabilityFacts(value="odd.dev", acts=True, uses=(use,), **fields)


STORE = CapabilityFacts(value="SSH keys", acts=True)


@pytest.mark.parametrize(
    ("card", "name"),
    [
        (CardFacts(hosts=(used("runs"),)), "stranger-runs-download"),
        (CardFacts(hosts=(used("requires"),)), "stranger-requires"),
        (CardFacts(hosts=(used("sends"),), secrets=(STORE,)), "stranger-hands-over-secrets"),
        (CardFacts(hosts=(used("moves"),)), "stranger-hands-over-secrets"),
        (CardFacts(persistence=(used("starts"),)), "stranger-starts-by-itself"),
        (CardFacts(hosts=(used("runs", known=True), used("requires", known=True))), None),
        (CardFacts(hosts=(used("sends"),)), None),
        (CardFacts(hosts=(used("sends", known=True),), secrets=(STORE,)), None),
        (CardFacts(hosts=(used("sends"),), secrets=(CapabilityFacts(value=".env files", acts=True),)), None),
        (
            CardFacts(
                hosts=(used("sends"),),
                secrets=(CapabilityFacts(value="environment variable A_KEY", acts=True),),
            ),
            None,
        ),
        (CardFacts(persistence=(STORE,)), None),
    ],
)
@pytest.mark.parametrize("preset", ["open", "guarded", "strict"])
def test_every_preset_holds_four_combinations_of_a_stranger(preset, card, name):
    ours = {
        "stranger-runs-download",
        "stranger-requires",
        "stranger-hands-over-secrets",
        "stranger-starts-by-itself",
    }
    found = {one for one, _, _ in matched(f"extends: {preset}", Facts(owner=STRANGER, card=card))}
    assert found & ours == ({name} if name else set())
    assert not ours & {one for one, _, _ in matched(f"extends: {preset}", Facts(owner=VOUCHED, card=card))}


def test_guarded_holds_an_update_that_gains_it_whoever_the_owner_is_but_a_trusted_one():
    facts = Facts(owner=VOUCHED, gained=CardFacts(hosts=(UNKNOWN,), unread=(SECRET,)))
    assert [name for name, _, _ in matched("extends: guarded", facts)] == [
        "gained-unknown-host",
        "gained-unread",
    ]
    assert matched("extends: guarded", msgspec.structs.replace(facts, owner=OwnerFacts(trusted=True))) == []


@pytest.mark.parametrize("kind", [one.name for one in msgspec.structs.fields(CardFacts)])
def test_strict_holds_all_that_acts_and_that_nobody_has_read(kind):
    acts = CardFacts(**{kind: (SECRET,)})
    facts = Facts(owner=OwnerFacts(trusted=True, vouched=True), card=acts)
    assert [name for name, _, _ in matched("extends: strict", facts)] == ["acts-unread-by-anybody"]
    assert matched("extends: strict", msgspec.structs.replace(facts, judge=JudgeFacts(answered=1))) == []
    link = CardFacts(**{kind: (CapabilityFacts(value="x", context="link"),)})
    assert matched("extends: strict", Facts(owner=VOUCHED, card=link)) == []


# Facts.


def test_facts_hold_the_card_by_kind_and_the_worst_findings():
    card = [SkillCapability(kind, kind.value, "run.sh", 2) for kind in CapabilityKind]
    card.append(SkillCapability(CapabilityKind.HOST, "seen.dev", context=CapabilityContext.LINK))
    facts = CardFacts.of(card, frozenset({"seen.dev", "file"}))
    held = msgspec.structs.asdict(facts)
    assert [len(held[name]) for name in held] == [2] + [1] * 9
    assert [(one.value, one.known, one.acts) for one in facts.hosts] == [
        ("host", False, True),
        ("seen.dev", True, False),
    ]
    assert not facts.files[0].known
    low = [
        Finding(f"L-{n:03}", Severity.LOW, FindingCategory.INSTRUCTION, FindingKind.MALICE)
        for n in range(200)
    ]
    high = Finding("H-1", Severity.HIGH, FindingCategory.INSTRUCTION, FindingKind.MALICE)
    found = FindingFacts.all_of([*low, high])
    assert len(found) == MOST_FINDINGS and found[0].rule == "H-1"

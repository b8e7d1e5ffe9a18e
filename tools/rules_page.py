"""The rules of `docs/reference/rules.md`, from the scanner's own files, by family."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from tools.tables import table
from vskill_core.findings import FindingCategory
from vskill_scan.rules.ruleset import Example, TextRule, bundled_rules
from vskill_scan.rules.structure import RULES, Rule

#: Of an example; what is longer is cut, and says so.
LONGEST = 700

_LONG_WORD = re.compile(r"[\w/+.-]{16,}")


def render() -> str:
    """Every rule, by family."""
    return "\n".join([*_structural(RULES), *_families(bundled_rules().rules)])


def _structural(rules: Iterable[Rule]) -> Iterator[str]:
    yield "## structure and known content\n"
    rows = ((rule.id, _severity(rule), rule.kind, rule.why, rule.remedy) for rule in rules)
    yield table(("rule", "severity", "kind", "why it matters", "what to do"), rows) + "\n"


def _severity(rule: Rule) -> str:
    return f"{rule.severity}, certain" if rule.certain else rule.severity


def _families(rules: Iterable[TextRule]) -> Iterator[str]:
    ordered = sorted(rules, key=lambda rule: (rule.category, rule.id))
    for family, members in groupby(ordered, key=lambda rule: rule.category):
        yield f"## {family}\n"
        for rule in members:
            yield from _section(rule)


def _section(rule: TextRule) -> Iterator[str]:
    yield f"### {rule.id}: {rule.title}\n"
    certain = ", certain" if rule.certain else ""
    yield f"{rule.severity} {rule.kind}{certain}, version {rule.version}. {_line(rule.why)}\n"
    yield f"What to do: {_line(rule.remedy)}\n"
    if known := [*rule.references, *(f"originally {one}" for one in rule.originally)]:
        yield f"References: {', '.join(known)}.\n"
    yield from _shown("Finds", rule, rule.examples.match[0])
    yield from _shown("Does not find", rule, rule.examples.near_miss[0])


def _shown(title: str, rule: TextRule, example: Example) -> Iterator[str]:
    files = {"SKILL.md": example} if isinstance(example, str) else example
    for path, content in files.items():
        named = "" if isinstance(example, str) else f" (`{path}`)"
        text = content if isinstance(content, str) else content.decode("utf-8", "backslashreplace")
        if rule.category is FindingCategory.SECRET:
            # Whoever publishes this page would be told that it leaks a secret.
            text = _LONG_WORD.sub(lambda word: word[0][:6] + "[...]", text)
        yield f"{title}{named}:\n\n{_fenced(text)}\n"


def _fenced(text: str) -> str:
    # What cannot be seen is written out, so that the page itself hides nothing.
    visible = "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)
    cut = visible[:LONGEST] + ("\n[and more]" if len(visible) > LONGEST else "")
    mark = "`" * max(4, _longest_run(cut) + 1)
    return f"{mark}text\n{cut.rstrip()}\n{mark}"


def _longest_run(text: str) -> int:
    return max((len(list(run)) for mark, run in groupby(text) if mark == "`"), default=0)


def _line(text: str) -> str:
    return " ".join(text.split())

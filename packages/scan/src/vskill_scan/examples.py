"""A rule's examples as skills: what the tests of every rule are made of, and the quickest way to try a rule.

`python -m vskill_scan.examples [RULE-ID …]` says which examples do not do what they should.
"""

import sys
from collections.abc import Iterator

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_core.identity import SKILL_FILE
from vskill_scan.engine import Engine
from vskill_scan.rules.ruleset import Example, Ruleset, TextRule, load_rules

FRONT_MATTER = "---\nname: example\ndescription: An example of a skill.\n---\n"


class Case(msgspec.Struct, frozen=True):
    """One example with what is expected of it."""

    rule: TextRule
    #: `match`, `near_miss` or `benign`
    expected: str
    number: int
    example: Example

    @property
    def name(self) -> str:
        return f"{self.rule.id}-{self.expected}-{self.number}"

    @property
    def must_match(self) -> bool:
        return self.expected == "match"


def cases(ruleset: Ruleset) -> Iterator[Case]:
    for rule in ruleset.rules:
        for expected in ("match", "near_miss", "benign"):
            for number, example in enumerate(getattr(rule.examples, expected), start=1):
                yield Case(rule, expected, number, example)


def skill_of(example: Example) -> tuple[SkillFile, ...]:
    """The small skill that an example describes."""
    contents = {SKILL_FILE: example} if isinstance(example, str) else {SKILL_FILE: "# Example\n", **example}
    return tuple(SkillFile(path, "100644", _data(path, content)) for path, content in contents.items())


def _data(path: str, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    if path == SKILL_FILE and not data.startswith(b"---"):
        data = FRONT_MATTER.encode() + data
    return data


def find_in_case(engine: Engine, case: Case) -> tuple[Finding, ...]:
    """The findings of the case's own rule."""
    report = engine.scan(skill_of(case.example))
    if report.problem:
        raise AssertionError(f"{case.name}: {report.problem}")
    return tuple(finding for finding in report.findings if finding.rule_id == case.rule.id)


def main(wanted: list[str]) -> int:
    engine = Engine(load_rules())
    tried = wrong = 0
    for case in cases(engine.ruleset):
        if wanted and case.rule.id not in wanted:
            continue
        tried += 1
        findings = find_in_case(engine, case)
        if bool(findings) is not case.must_match:
            wrong += 1
            where = "; ".join(f"{one.file}:{one.line} {one.excerpt}" for one in findings)
            sys.stdout.write(f"{case.name}: {'found ' + where if findings else 'not found'}\n")
    sys.stdout.write(f"{tried} examples, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

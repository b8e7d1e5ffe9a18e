"""How often each rule of the scanner fired here, and how often reviewers agreed with it. Counts only, over everything:
they name no skill, and reviewers alone read them."""

from vskill_client.wire.base import NoParameters, Wire
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Right
from vskill_platform.store.verdicts.rule_figures import RuleFigures, read_rule_figures
from vskill_scan.rules import structure
from vskill_scan.rules.ruleset import bundled_rules


class RuleFigureView(Wire, frozen=True):
    """One rule, and what became of what it found."""

    rule: str
    #: what it looks for; empty for a rule that this release does not have
    title: str
    severity: str
    #: capability, mismatch or malice
    kind: str
    #: runs whose content it fired in; capabilities are not counted
    fired: int
    #: what it held and a reviewer rejected
    agreed: int
    #: what it held and a reviewer approved, or suppressed it for
    disagreed: int
    #: three or more decisions, and most of them against it
    mostly_wrong: bool


class RuleFiguresAnswer(Wire, frozen=True):
    """Those that are mostly wrong first, then those that fired most."""

    rules: tuple[RuleFigureView, ...]


async def list_rule_figures(_request: NoParameters) -> RuleFiguresAnswer:
    figures = await read_rule_figures()
    known = _known_rules()
    views = [
        _view(rule, known.get(rule, ("", "", "")), figures.get(rule, RuleFigures()))
        for rule in {*known, *figures}
    ]
    ordered = sorted(views, key=lambda one: (not one.mostly_wrong, -one.fired, -one.disagreed, one.rule))
    return RuleFiguresAnswer(tuple(ordered))


def _known_rules() -> dict[str, tuple[str, str, str]]:
    """Title, severity and kind of every rule that can hold a skill."""
    found = {rule.id: (rule.why, rule.severity.value, rule.kind.value) for rule in structure.RULES}
    found |= {rule.id: (rule.title, rule.severity.value, rule.kind.value) for rule in bundled_rules().rules}
    return {rule: facts for rule, facts in found.items() if facts[2] != "capability"}


def _view(rule: str, facts: tuple[str, str, str], figures: RuleFigures) -> RuleFigureView:
    title, severity, kind = facts
    return RuleFigureView(
        rule, title, severity, kind, figures.fired, figures.agreed, figures.disagreed, figures.is_mostly_wrong
    )


RULE_FIGURES = action(
    list_rule_figures,
    "rule.list",
    "/api/v1/rules",
    right=Right.REVIEWER,
    summary="List how often each rule fired here, and how often reviewers agreed",
    command="review rules",
)

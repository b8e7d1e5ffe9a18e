"""How urgent a review is, and what the queue of reviews says about it."""

from typing import Any

import msgspec
import pytest

from tests.support.records import submission
from vskill_core.findings import ScanStatus, Severity, Verdict
from vskill_platform.domain.evidence import Evidence, JudgeWord
from vskill_platform.domain.review.review_risk import ReviewRisk, RiskLevel, risk_of
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Appeal

UNSURE = JudgeWord("model", "rubric", Verdict.CONCERNS, 60)
APPEAL = Appeal("user:ann", 1_000, "it is clean", State.REJECTED)
YOUNG = Signal(SignalKind.PUBLISHER, "the owner is a day old")


def risk(*, digest: str = "d1", appeal: Appeal | None = None, **found: Any) -> ReviewRisk:
    """Of a submission of the content d1, with evidence about the content of a digest."""
    facts: dict[str, Any] = {"status": ScanStatus.COMPLETE, "verdict": Verdict.PASS, "score": 100, **found}
    return risk_of(submission(digest="d1", evidence=Evidence(digest, "rules-1", **facts), appeal=appeal))


@pytest.mark.parametrize(
    ("found", "level"),
    [
        ({}, RiskLevel.NOTHING_FOUND),
        ({"findings": {Severity.HIGH: 0, Severity.CRITICAL: 0}}, RiskLevel.NOTHING_FOUND),
        ({"findings": {Severity.LOW: 1}}, RiskLevel.DOUBT),
        ({"judge": UNSURE}, RiskLevel.DOUBT),
        ({"status": ScanStatus.TIMED_OUT}, RiskLevel.NOT_READ),
        ({"noticed": (YOUNG,)}, RiskLevel.SIGNAL),
        ({"findings": {Severity.HIGH: 1}, "malice": {Severity.HIGH: 1}}, RiskLevel.STRONG_MALICE),
        ({"findings": {Severity.CRITICAL: 1}}, RiskLevel.CRITICAL),
        ({"certain": 1}, RiskLevel.CERTAIN),
    ],
)
def test_one_fact_gives_its_level(found: dict[str, Any], level: RiskLevel) -> None:
    assert risk(**found).level is level


def test_the_gravest_fact_gives_the_level() -> None:
    found: dict[str, Any] = {
        "findings": {Severity.LOW: 3},
        "judge": UNSURE,
        "noticed": (YOUNG,),
        "certain": 1,
    }
    assert risk(**found).level is RiskLevel.CERTAIN


def test_a_high_mismatch_is_a_doubt_where_the_malice_is_counted_apart() -> None:
    assert risk(findings={Severity.HIGH: 1}, malice={Severity.HIGH: 0}).level is RiskLevel.DOUBT


def test_the_reasons_count_the_worst_findings_first_then_signals_the_scan_and_the_judge() -> None:
    found = risk(
        findings={Severity.LOW: 4, Severity.MEDIUM: 1, Severity.HIGH: 0, Severity.CRITICAL: 2},
        noticed=(YOUNG, YOUNG),
        status=ScanStatus.TIMED_OUT,
        judge=UNSURE,
        appeal=APPEAL,
    )
    counted = ("2 critical", "1 medium", "4 low")
    expected = (*counted, "2 signals", "scan timed out", "judge: concerns, 60", "appeal")
    assert found.reasons == expected


def test_signals_that_are_only_shown_do_not_count() -> None:
    copied = Signal(SignalKind.COPY, "it is a copy")
    noted = msgspec.structs.replace(copied, holds=False)
    assert risk(noticed=(noted,)) == ReviewRisk(RiskLevel.NOTHING_FOUND, ())
    assert risk(noticed=(noted, copied)) == ReviewRisk(RiskLevel.SIGNAL, ("1 signal",))


def test_one_signal_is_said_in_the_singular_and_a_complete_scan_not_at_all() -> None:
    assert risk(noticed=(YOUNG,)).reasons == ("1 signal",)


@pytest.mark.parametrize(("appeal", "reasons"), [(None, ()), (APPEAL, ("appeal",))])
def test_evidence_about_other_content_says_nothing(appeal: Appeal | None, reasons: tuple[str, ...]) -> None:
    expected = ReviewRisk(RiskLevel.NOTHING_FOUND, reasons)
    assert risk(digest="d0", certain=1, appeal=appeal) == expected
    assert risk_of(submission(digest="d1", appeal=appeal)) == expected


def test_every_signal_has_a_heading_and_says_what_the_author_can_do():
    assert SignalKind.COPY.advice == "If it is a fork, say in SKILL.md what you changed and of which skill."
    assert SignalKind.PUBLISHER.advice == "A reviewer looks at it; there is nothing that you must do."
    assert len({kind.heading for kind in SignalKind}) == len(SignalKind)

"""Words that claim no more than was done: of every report they say what was found, by which rules, and whether a judge
read the instructions."""

import itertools

import msgspec
import pytest

from vskill_core.capability import CapabilityContext, CapabilityKind, SkillCapability
from vskill_core.findings import (
    Coverage,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain.evidence import JudgeWord, JudgeWords
from vskill_platform.domain.verdicts.verdict_words import (
    NEVER_LOOKED_AT,
    NOT_JUDGED,
    Tone,
    words_for_blocked,
    words_for_scan,
)

RULES = "3-abcdef"
PASSED = JudgeWord("small-1", "r1", Verdict.PASS, 92)
JUDGED = JudgeWords(PASSED, JudgeStatus.ANSWERED)
NOBODY = JudgeWords()


def finding(kind: FindingKind, severity: Severity = Severity.MEDIUM) -> Finding:
    return Finding("EX-001", severity, FindingCategory.EXFILTRATION, kind)


def report(*kinds: FindingKind, status: ScanStatus = ScanStatus.COMPLETE, problem: str = "") -> StaticReport:
    return StaticReport(RULES, status, tuple(map(finding, kinds)), Coverage(3, 2), problem)


def test_nothing_found_is_said_as_that_and_that_no_judge_read_it() -> None:
    words = words_for_scan(report(FindingKind.CAPABILITY), NOBODY)
    assert words.summary == (
        "No known attack found by our rules (version 3). The instructions were not read by a judge."
    )
    assert words.tone is Tone.INFO
    assert words_for_scan(report(), JUDGED).tone is Tone.GOOD
    assert words.details == (NOT_JUDGED, "Our rules read 2 of 3 files.", NEVER_LOOKED_AT)


def test_what_could_not_be_read_stands_beside_the_number_of_files() -> None:
    card = (SkillCapability(CapabilityKind.UNREAD, "commands in .swift programs", "a.swift"),)
    words = words_for_scan(msgspec.structs.replace(report(), capabilities=card), NOBODY)
    said = (
        "Our rules read 2 of 3 files, but not all of what is in them: commands in .swift programs (a.swift)."
    )
    assert said in words.details
    many = tuple(SkillCapability(CapabilityKind.UNREAD, "PDF document", f"{one}.pdf") for one in "abcde")
    words = words_for_scan(msgspec.structs.replace(report(), capabilities=many), NOBODY)
    assert "PDF document (a.pdf), PDF document (b.pdf), PDF document (c.pdf), 2 more." in words.details[1]


def test_a_language_that_is_read_by_patterns_is_said_beside_the_number_of_files() -> None:
    said, context = "Go: read by patterns, the data flow is not followed", CapabilityContext.PATTERNS
    card = (SkillCapability(CapabilityKind.UNREAD, said, "a.go", context=context),)
    words = words_for_scan(msgspec.structs.replace(report(), capabilities=card), NOBODY)
    assert words.details == (NOT_JUDGED, "Our rules read 2 of 3 files.", f"{said}.", NEVER_LOOKED_AT)


def test_a_judge_is_named_with_its_score_and_with_what_it_did_not_see() -> None:
    assert (
        "A judge (small-1) read the instructions: pass, 92 of 100."
        in words_for_scan(report(), JUDGED).details
    )
    part = JudgeWord("small-1", "r1", Verdict.CONCERNS, 61, partial=True)
    assert words_for_scan(report(), JudgeWords(part, JudgeStatus.ANSWERED)).details[0] == (
        "A judge (small-1) read part of the instructions: concerns, 61 of 100."
    )
    down = words_for_scan(report(), JudgeWords(status=JudgeStatus.DOWN))
    assert down.details[0] == "The instructions were not read by a judge: it was unavailable."


def test_two_judges_are_both_named_and_one_that_is_down_is_said() -> None:
    failed = JudgeWord("large-2", "r1", Verdict.FAIL, 12)
    both = JudgeWords(failed, JudgeStatus.ANSWERED, PASSED, JudgeStatus.ANSWERED)
    assert words_for_scan(report(), both).details[0] == (
        "A judge (large-2) read the instructions: fail, 12 of 100. "
        "A second judge (small-1) read the instructions: pass, 92 of 100."
    )
    alone = JudgeWords(PASSED, JudgeStatus.ANSWERED, second_status=JudgeStatus.DOWN)
    assert words_for_scan(report(), alone).details[0].endswith("A second judge was unavailable.")


@pytest.mark.parametrize(
    ("kinds", "headline", "tone"),
    [
        ([FindingKind.MALICE], "Our rules (version 3) found 1 sign of an attack.", Tone.BAD),
        (
            [FindingKind.MALICE, FindingKind.MALICE, FindingKind.MISMATCH],
            "Our rules (version 3) found 2 signs of an attack and 1 mismatch.",
            Tone.BAD,
        ),
        (
            [FindingKind.MISMATCH],
            "Our rules (version 3) found 1 mismatch between what it says and what it does, and no known attack.",
            Tone.WARN,
        ),
    ],
)
def test_what_was_found_is_counted(kinds: list[FindingKind], headline: str, tone: Tone) -> None:
    words = words_for_scan(report(*kinds), NOBODY)
    assert (words.headline, words.tone) == (headline, tone)


@pytest.mark.parametrize("status", [one for one in ScanStatus if one is not ScanStatus.COMPLETE])
def test_a_scan_that_did_not_end_has_no_result(status: ScanStatus) -> None:
    words = words_for_scan(report(status=status, problem="big.bin is too large"), JUDGED)
    assert words.headline.endswith("big.bin is too large. It has no result.") and words.tone is Tone.WARN
    assert "No known attack" not in words.headline


def test_a_scan_that_ended_without_a_problem_to_name_says_how_it_ended() -> None:
    words = words_for_scan(report(status=ScanStatus.ERROR), NOBODY)
    assert words.headline == "The scan by our rules (version 3) failed. It has no result."


def test_the_version_of_the_rules_is_what_stands_before_the_first_hyphen() -> None:
    words = words_for_scan(StaticReport("3-abc-def"), NOBODY)
    assert words.headline == "No known attack found by our rules (version 3)."


def test_without_a_report_of_the_rules_the_judge_still_speaks() -> None:
    words = words_for_scan(None, JUDGED)
    assert words.summary == (
        "No report of our rules is stored. A judge (small-1) read the instructions: pass, 92 of 100."
    )
    down = words_for_scan(None, JudgeWords(status=JudgeStatus.DOWN))
    assert down.details == ("The instructions were not read by a judge: it was unavailable.",)


def test_a_block_and_a_taken_down_version_are_told_apart() -> None:
    assert words_for_blocked((), blocked=True).headline == "This skill is blocked."
    assert words_for_blocked((), blocked=False).headline == "This version was taken down."


def test_no_words_promise_anything_and_none_of_a_blocked_skill_say_that_it_passed() -> None:
    kinds = [(), (FindingKind.CAPABILITY,), (FindingKind.MISMATCH,), (FindingKind.MALICE,)]
    for found, status, judge in itertools.product(kinds, ScanStatus, (NOBODY, JUDGED)):
        words = words_for_scan(report(*found, status=status), judge)
        told = " ".join((words.headline, *words.details)).lower()
        assert not any(word in told for word in ("safe", "harmless", "clean", "does nothing", "no rule saw"))
        assert ("100" in told) is (judge is JUDGED)
    for blocked in (True, False):
        words = words_for_blocked(("it steals keys",), blocked=blocked)
        assert words.tone is Tone.BAD and "it steals keys" in words.summary
        assert "pass" not in words.summary and "No known attack" not in words.summary

"""Trust: the score's parts and the tiers, over every combination of facts."""

import itertools

import msgspec
import pytest

from vskill_core.findings import Verdict
from vskill_platform.domain.skills.trust import (
    PROVENANCE_POINTS,
    STATIC_POINTS,
    Provenance,
    TrustFacts,
    TrustTier,
    lacks_for_next_tier,
    trust_reasons,
    trust_score,
    trust_tier,
)

DAY = 24 * 3_600_000
#: no standing at all, so that the other parts can be seen alone
BARE = TrustFacts(open_reports=1, ever_blocked=True)
BEST = TrustFacts(
    static=Verdict.PASS,
    judge_score=100,
    judge_verdict=Verdict.PASS,
    provenance=Provenance.VERIFIED,
    age_ms=90 * DAY,
    installs=1000,
    reviewed=True,
)


def having(facts: TrustFacts, **changes: object) -> TrustFacts:
    return msgspec.structs.replace(facts, **changes)


def test_the_tables_cover_their_enums() -> None:
    assert set(STATIC_POINTS) == set(Verdict) and set(PROVENANCE_POINTS) == set(Provenance)


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        ({}, 0),
        ({"static": Verdict.PASS}, 30),
        ({"static": Verdict.CONCERNS}, 15),
        ({"static": Verdict.FAIL}, 0),
        ({"judge_score": 100}, 30),
        ({"judge_score": 85}, 26),
        ({"judge_score": 2}, 1),
        ({"judge_score": 28}, 8),
        ({"judge_score": 84}, 25),
        ({"judge_score": 1}, 0),
        ({"provenance": Provenance.VERIFIED}, 10),
        ({"reviewed": True}, 10),
        ({"provenance": Provenance.CONTRADICTED}, 0),
        ({"provenance": Provenance.CONTRADICTED, "static": Verdict.PASS}, 20),
        ({"age_ms": 18 * DAY - 1}, 0),
        ({"age_ms": 18 * DAY}, 1),
        ({"age_ms": 90 * DAY - 1}, 4),
        ({"age_ms": 90 * DAY}, 5),
        ({"age_ms": 900 * DAY}, 5),
        ({"installs": 0}, 0),
        ({"installs": 1}, 1),
        ({"installs": 99}, 3),
        ({"installs": 100}, 4),
        ({"installs": 5000}, 5),
        ({"open_reports": 0}, 5),
        ({"ever_blocked": False}, 5),
    ],
)
def test_each_part_of_the_score(changes: dict[str, object], points: int) -> None:
    assert trust_score(having(BARE, **changes)) == points


def test_the_best_skill_has_exactly_100_points_and_says_why() -> None:
    assert trust_score(BEST) == 100
    assert [(reason.points, reason.most, reason.text) for reason in trust_reasons(BEST)] == [
        (30, 30, "Our rules found no known attack"),
        (30, 30, "A judge read the instructions: 100 of 100"),
        (10, 10, "A reviewer or a trusted vendor vouches for it"),
        (10, 10, "Its submitter proved control of the repository"),
        (5, 5, "First published 90 or more days ago"),
        (5, 5, "Installed 1,000 times"),
        (5, 5, "No report about it is open"),
        (5, 5, "It was never blocked"),
    ]


def test_a_skill_of_which_nothing_good_is_known_says_that() -> None:
    assert [(reason.points, reason.text) for reason in trust_reasons(BARE)] == [
        (0, "Not scanned by our rules"),
        (0, "The instructions were not read by a judge"),
        (0, "No person has vouched for it"),
        (0, "Nobody has proved control of the repository"),
        (0, "First published recently"),
        (0, "Installed 0 times"),
        (0, "A report about it is open"),
        (0, "It was blocked or taken down before"),
    ]


@pytest.mark.parametrize(
    ("facts", "tier"),
    [
        (BEST, "T4"),
        (TrustFacts(), "T1"),
        (having(BARE, static=Verdict.CONCERNS), "T1"),
        (having(BEST, static=Verdict.FAIL), "T1"),
        (having(BARE, static=Verdict.PASS), "T1"),
        (having(BARE, static=Verdict.PASS, age_ms=18 * DAY - 1), "T1"),
        (having(BARE, static=Verdict.PASS, age_ms=18 * DAY), "T2"),
        (having(BARE, static=Verdict.PASS, reviewed=True), "T2"),
        (having(BARE, static=Verdict.PASS, provenance=Provenance.VERIFIED), "T2"),
        (having(BEST, judge_verdict=Verdict.FAIL), "T2"),
        (having(BARE, static=Verdict.PASS, judge_score=98), "T2"),
        (having(BARE, static=Verdict.PASS, judge_score=100), "T3"),
        (
            having(BARE, static=Verdict.PASS, judge_score=98, provenance=Provenance.VERIFIED, reviewed=True),
            "T3",
        ),
        (
            having(BARE, static=Verdict.PASS, judge_score=100, provenance=Provenance.VERIFIED, reviewed=True),
            "T4",
        ),
        (having(BEST, judge_score=None, judge_verdict=None), "T3"),
        (having(BEST, judge_score=79), "T3"),
        (having(BEST, judge_score=80), "T4"),
        (having(BEST, reviewed=False), "T3"),
        (having(BEST, provenance=Provenance.UNKNOWN), "T3"),
        (having(BEST, static=Verdict.CONCERNS, judge_score=80, age_ms=0, installs=0, open_reports=3), "T3"),
    ],
)
def test_tiers(facts: TrustFacts, tier: str) -> None:
    assert trust_tier(facts) == tier


ALL_FACTS = [
    TrustFacts(*parts)
    for parts in itertools.product(
        (None, *Verdict),
        (None, 0, 79, 80, 100),
        (None, *Verdict),
        Provenance,
        (0, 91 * DAY),
        (0, 1001),
        (0, 1),
        (False, True),
        (False, True),
    )
]


def test_score_and_tier_are_total_and_agree() -> None:
    for facts in ALL_FACTS:
        points, tier = trust_score(facts), trust_tier(facts)
        assert 0 <= points <= 100
        assert tier is not TrustTier.T0
        if tier in (TrustTier.T2, TrustTier.T3, TrustTier.T4):
            assert points >= 30 and facts.static in (Verdict.PASS, Verdict.CONCERNS)
        if tier in (TrustTier.T3, TrustTier.T4):
            assert points >= 60 and facts.judge_verdict is not Verdict.FAIL
        assert points == max(0, sum(reason.points for reason in trust_reasons(facts)))
        assert all(reason.points <= reason.most for reason in trust_reasons(facts))
        assert bool(lacks_for_next_tier(facts)) is (tier is not TrustTier.T4)
        if tier is TrustTier.T4:
            assert points >= 80 and facts.reviewed and facts.provenance is Provenance.VERIFIED


def test_every_tier_of_a_live_skill_is_reached() -> None:
    assert {trust_tier(facts) for facts in ALL_FACTS} == {*TrustTier} - {TrustTier.T0}


def test_two_new_skills_that_nobody_read_differ_by_what_is_known_of_them() -> None:
    """One figure that differs: by who proved the repository, by age, by installs, by who read it."""
    new = TrustFacts(static=Verdict.PASS)
    figures = {
        trust_score(facts)
        for facts in (
            new,
            having(new, installs=3),
            having(new, installs=20),
            having(new, age_ms=54 * DAY),
            having(new, provenance=Provenance.VERIFIED, installs=3),
            having(new, reviewed=True),
            having(new, judge_score=92),
            having(new, open_reports=2),
        )
    }
    assert len(figures) == 8


UNKNOWN_OWNER = "a judge or a reviewer who read it, proof of who controls the repository, or 18 days"


def test_the_reasons_say_that_no_judge_read_it_and_what_the_next_tier_needs() -> None:
    facts = TrustFacts(static=Verdict.PASS, provenance=Provenance.VERIFIED)
    texts = [reason.text for reason in trust_reasons(facts)]
    assert "The instructions were not read by a judge" in texts and "No person has vouched for it" in texts
    assert lacks_for_next_tier(facts) == ("60 points; it has 50",)
    assert lacks_for_next_tier(having(BEST, judge_score=None, reviewed=False)) == (
        "80 points; it has 60",
        "a judge's score of 80",
        "a reviewer or a trusted vendor who vouches for it",
    )
    assert lacks_for_next_tier(having(BARE, judge_verdict=Verdict.FAIL)) == (
        "30 points; it has 0",
        "a scan by the rules that it does not fail",
        UNKNOWN_OWNER,
    )
    assert lacks_for_next_tier(having(BEST, judge_verdict=Verdict.FAIL)) == ("a judge that does not fail it",)
    assert lacks_for_next_tier(having(BARE, static=Verdict.CONCERNS)) == (
        "30 points; it has 15",
        UNKNOWN_OWNER,
    )
    exactly_enough = having(BARE, judge_score=100)
    assert lacks_for_next_tier(exactly_enough) == ("a scan by the rules that it does not fail",)

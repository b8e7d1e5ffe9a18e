"""Trust: the score's parts and the tiers, over every combination of facts."""

import itertools

import msgspec
import pytest

from vskill_platform.domain.scan import Verdict
from vskill_platform.domain.trust import (
    PROVENANCE_POINTS,
    STATIC_POINTS,
    Provenance,
    TrustFacts,
    TrustTier,
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
    age_ms=91 * DAY,
    installs=101,
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
        ({"provenance": Provenance.VERIFIED}, 20),
        ({"provenance": Provenance.CONTRADICTED}, 0),
        ({"provenance": Provenance.CONTRADICTED, "static": Verdict.PASS}, 20),
        ({"age_ms": 90 * DAY}, 0),
        ({"age_ms": 90 * DAY + 1}, 5),
        ({"installs": 100}, 0),
        ({"installs": 101}, 5),
        ({"open_reports": 0}, 5),
        ({"ever_blocked": False}, 5),
    ],
)
def test_each_part_of_the_score(changes: dict[str, object], points: int) -> None:
    assert trust_score(having(BARE, **changes)) == points


def test_the_best_skill_has_exactly_100_points() -> None:
    assert trust_score(BEST) == 100


@pytest.mark.parametrize(
    ("facts", "tier"),
    [
        (BEST, "T4"),
        (TrustFacts(), "T1"),
        (having(BARE, static=Verdict.CONCERNS), "T1"),
        (having(BEST, static=Verdict.FAIL), "T1"),
        (having(BARE, static=Verdict.PASS), "T2"),
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
        (0, 101),
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
        if tier is TrustTier.T4:
            assert points >= 80 and facts.reviewed and facts.provenance is Provenance.VERIFIED


def test_every_tier_of_a_live_skill_is_reached() -> None:
    assert {trust_tier(facts) for facts in ALL_FACTS} == {*TrustTier} - {TrustTier.T0}

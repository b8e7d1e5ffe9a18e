"""How far a published skill can be trusted: a score from 0 to 100 and one of five tiers, from stored facts.

The catalogue and the pages show both; nothing is gated by them. Time comes in as an age, so the same facts
always give the same answer.
"""

import enum

import msgspec

from vskill_platform.domain.scan import Verdict

_DAY_MS = 24 * 3_600_000
#: each of the four parts of good standing
_STANDING = 5
_OLD_ENOUGH_MS = 90 * _DAY_MS
_ENOUGH_INSTALLS = 100
_T2_SCORE, _T3_SCORE, _T4_SCORE, _T4_JUDGE = 30, 60, 80, 80


class Provenance(enum.StrEnum):
    """Whether the submitter showed control of the repository."""

    VERIFIED = "verified"
    UNKNOWN = "unknown"
    CONTRADICTED = "contradicted"


class TrustTier(enum.StrEnum):
    """From blocked to reviewed by a person."""

    T0 = "T0"
    T1 = "T1"
    T2 = "T2"
    T3 = "T3"
    T4 = "T4"


STATIC_POINTS: dict[Verdict, int] = {Verdict.PASS: 30, Verdict.CONCERNS: 15, Verdict.FAIL: 0}
PROVENANCE_POINTS: dict[Provenance, int] = {
    Provenance.VERIFIED: 20,
    Provenance.UNKNOWN: 0,
    Provenance.CONTRADICTED: -10,
}


class TrustFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that the score and the tier are made of."""

    #: None: not scanned
    static: Verdict | None = None
    #: None: no judge has answered
    judge_score: int | None = None
    judge_verdict: Verdict | None = None
    provenance: Provenance = Provenance.UNKNOWN
    #: since the first version was published
    age_ms: int = 0
    installs: int = 0
    open_reports: int = 0
    #: at any time, whether or not it was lifted
    ever_blocked: bool = False
    #: reviewed by a person, or a trusted vendor's
    reviewed: bool = False


def trust_score(facts: TrustFacts) -> int:
    """Static, judge, provenance and standing, together from 0 to 100."""
    static = 0 if facts.static is None else STATIC_POINTS[facts.static]
    total = static + _judge_points(facts) + PROVENANCE_POINTS[facts.provenance] + _standing(facts)
    return max(0, total)


def trust_tier(facts: TrustFacts) -> TrustTier:
    """The highest tier whose conditions hold; each tier needs those below it. T0 is for whoever shows a skill that is
    blocked now: a blocked skill has no listing, and so no tier of its own.

    "Static passed" is read as "did not fail": with CONCERNS a skill is only published after a judge or a
    person looked at it, and it is certainly not unscanned.
    """
    points = trust_score(facts)
    if facts.static in (None, Verdict.FAIL) or points < _T2_SCORE:
        return TrustTier.T1
    if points < _T3_SCORE or facts.judge_verdict is Verdict.FAIL:
        return TrustTier.T2
    return TrustTier.T4 if _deserves_t4(facts, points) else TrustTier.T3


def _deserves_t4(facts: TrustFacts, points: int) -> bool:
    judged = facts.judge_score is not None and facts.judge_score >= _T4_JUDGE
    return points >= _T4_SCORE and judged and facts.provenance is Provenance.VERIFIED and facts.reviewed


def _judge_points(facts: TrustFacts) -> int:
    """Three tenths of the judge's score, halves rounded up, without floating point."""
    return 0 if facts.judge_score is None else (facts.judge_score * 3 + 5) // 10


def _standing(facts: TrustFacts) -> int:
    reasons = (
        facts.age_ms > _OLD_ENOUGH_MS,
        facts.installs > _ENOUGH_INSTALLS,
        facts.open_reports == 0,
        not facts.ever_blocked,
    )
    return _STANDING * sum(reasons)

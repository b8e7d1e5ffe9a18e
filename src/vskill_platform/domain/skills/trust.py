"""How far a published skill can be trusted: one figure from 0 to 100 with the reasons that it is made of, and one of
five tiers, from stored facts.

The catalogue and the pages show both; nothing is gated by them. Time comes in as an age, so the same facts
always give the same answer.
"""

import enum

import msgspec

from vskill_core.findings import Verdict

DAY_MS = 24 * 3_600_000
#: For each of: no open report, never blocked.
_STANDING = 5
#: A point for each step of age, up to five.
AGE_STEP_MS = 18 * DAY_MS
FULL_AGE_MS = 5 * AGE_STEP_MS
#: A point for each of these that the installs reach: anybody can count one, so they say little.
INSTALL_STEPS = (1, 10, 50, 100, 1000)
_REVIEWED = 10
_JUDGED = 30
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
    Provenance.VERIFIED: 10,
    Provenance.UNKNOWN: 0,
    Provenance.CONTRADICTED: -10,
}
_STATIC_WORDS: dict[Verdict, str] = {
    Verdict.PASS: "Our rules found no known attack",
    Verdict.CONCERNS: "Our rules have concerns",
    Verdict.FAIL: "Our rules failed it",
}
_PROVENANCE_WORDS: dict[Provenance, str] = {
    Provenance.VERIFIED: "Its submitter proved control of the repository",
    Provenance.UNKNOWN: "Nobody has proved control of the repository",
    Provenance.CONTRADICTED: "Somebody else proved control of the repository",
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


class TrustReason(msgspec.Struct, frozen=True):
    """One part of the score, in words."""

    points: int
    #: the most that this part can give
    most: int
    text: str


def trust_reasons(facts: TrustFacts) -> tuple[TrustReason, ...]:
    """What the score is made of: its parts add up to it."""
    static = 0 if facts.static is None else STATIC_POINTS[facts.static]
    age, installs = _age_points(facts), sum(facts.installs >= step for step in INSTALL_STEPS)
    days = facts.age_ms // DAY_MS
    return (
        TrustReason(static, STATIC_POINTS[Verdict.PASS], _static_words(facts)),
        TrustReason(_judge_points(facts), _JUDGED, _judge_words(facts)),
        TrustReason(
            _REVIEWED if facts.reviewed else 0,
            _REVIEWED,
            "A reviewer or a trusted vendor vouches for it"
            if facts.reviewed
            else "No person has vouched for it",
        ),
        TrustReason(
            PROVENANCE_POINTS[facts.provenance],
            PROVENANCE_POINTS[Provenance.VERIFIED],
            _PROVENANCE_WORDS[facts.provenance],
        ),
        TrustReason(
            age, 5, f"First published {days} or more days ago" if age else "First published recently"
        ),
        TrustReason(installs, len(INSTALL_STEPS), f"Installed {facts.installs:,} times"),
        TrustReason(
            0 if facts.open_reports else _STANDING,
            _STANDING,
            "A report about it is open" if facts.open_reports else "No report about it is open",
        ),
        TrustReason(
            0 if facts.ever_blocked else _STANDING,
            _STANDING,
            "It was blocked or taken down before" if facts.ever_blocked else "It was never blocked",
        ),
    )


def trust_score(facts: TrustFacts) -> int:
    return max(0, sum(reason.points for reason in trust_reasons(facts)))


def trust_tier(facts: TrustFacts) -> TrustTier:
    """The highest tier whose conditions hold; each tier needs those below it. T0 is for whoever shows a skill that is
    blocked now: a blocked skill has no listing, and so no tier of its own.

    "Static passed" is read as "did not fail": with CONCERNS a skill is only published after a judge or a
    person looked at it, and it is certainly not unscanned.
    """
    points = trust_score(facts)
    if facts.static in (None, Verdict.FAIL) or points < _T2_SCORE or not _is_known(facts):
        return TrustTier.T1
    if points < _T3_SCORE or facts.judge_verdict is Verdict.FAIL:
        return TrustTier.T2
    return TrustTier.T4 if points >= _T4_SCORE and not _lacks_for_t4(facts) else TrustTier.T3


def lacks_for_next_tier(facts: TrustFacts) -> tuple[str, ...]:
    """What keeps it from the next tier, in words; nothing at the highest."""
    tier, points = trust_tier(facts), trust_score(facts)
    if tier is TrustTier.T4:
        return ()
    needed = {TrustTier.T1: _T2_SCORE, TrustTier.T2: _T3_SCORE, TrustTier.T3: _T4_SCORE}[tier]
    missing = [f"{needed} points; it has {points}"] if points < needed else []
    if tier is TrustTier.T1 and facts.static in (None, Verdict.FAIL):
        missing.append("a scan by the rules that it does not fail")
    if tier is TrustTier.T1 and not _is_known(facts):
        days = AGE_STEP_MS // DAY_MS
        missing.append(
            f"a judge or a reviewer who read it, proof of who controls the repository, or {days} days"
        )
    if tier is TrustTier.T2 and facts.judge_verdict is Verdict.FAIL:
        missing.append("a judge that does not fail it")
    return (*missing, *(_lacks_for_t4(facts) if tier is TrustTier.T3 else ()))


def _is_known(facts: TrustFacts) -> bool:
    """Somebody stands behind it, has read it, or had time to: what only our rules passed says little."""
    someone = facts.judge_score is not None or facts.reviewed or facts.provenance is Provenance.VERIFIED
    return someone or facts.age_ms >= AGE_STEP_MS


def _lacks_for_t4(facts: TrustFacts) -> tuple[str, ...]:
    judged = facts.judge_score is not None and facts.judge_score >= _T4_JUDGE
    wanted = {
        f"a judge's score of {_T4_JUDGE}": judged,
        "proof of who controls the repository": facts.provenance is Provenance.VERIFIED,
        "a reviewer or a trusted vendor who vouches for it": facts.reviewed,
    }
    return tuple(words for words, there in wanted.items() if not there)


def _static_words(facts: TrustFacts) -> str:
    return "Not scanned by our rules" if facts.static is None else _STATIC_WORDS[facts.static]


def _judge_words(facts: TrustFacts) -> str:
    if facts.judge_score is None:
        return "The instructions were not read by a judge"
    return f"A judge read the instructions: {facts.judge_score} of 100"


def _judge_points(facts: TrustFacts) -> int:
    """Three tenths of the judge's score, halves rounded up, without floating point."""
    return 0 if facts.judge_score is None else (facts.judge_score * 3 + 5) // 10


def _age_points(facts: TrustFacts) -> int:
    return min(facts.age_ms, FULL_AGE_MS) // AGE_STEP_MS

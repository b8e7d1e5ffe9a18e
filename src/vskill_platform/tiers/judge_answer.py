"""What the judge answers: read strictly, or refused. Nothing of a refused answer is kept but why it was refused.

An answer is refused where it is not exactly of the shape that was asked for, where a critical finding is missing,
and where it shows that the skill spoke through it: it repeats the fence's marker, a sentence of the skill that
tries to steer a review, or any long passage word for word.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from vskill_core.findings import Confirmation, JudgeReport, JudgeStatus, Verdict
from vskill_core.foreign_json import read_json
from vskill_platform.tiers.rubric import RUBRIC, Question

Score = Annotated[int, msgspec.Meta(ge=0, le=100)]
Prose = Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]

#: So many words in a row, the same as in the skill, with so many different steering words among them, are a quoted
#: instruction.
STEERING_ROW, STEERING_LEAST = 8, 2
#: So many words in a row, whatever they are, are a copied passage.
ANY_ROW = 25
#: Words by which a text can try to steer a review. An honest answer uses them too, but in sentences of its own.
STEERING = frozenset(
    (
        *(
            "answer",
            "approve",
            "approved",
            "benign",
            "certified",
            "confirmed",
            "disregard",
            "false",
            "forget",
        ),
        *("harmless", "ignore", "instruction", "instructions", "judge", "malicious", "override", "pass"),
        *(
            "positive",
            "previous",
            "prior",
            "prompt",
            "rating",
            "reviewer",
            "rubric",
            "safe",
            "score",
            "trusted",
        ),
        *("verdict", "verified"),
    )
)
#: Half of the marker is enough to know that it was copied.
MARKER_PART = 16


class AnswerRefused(Exception):
    """The judge answered, but not so that its answer can be used; `kind` is for metrics."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class _Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The judge's word on one finding."""

    finding: str
    confirmed: bool
    why: Prose


class _JudgeAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole answer."""

    score: Score
    verdict: Verdict
    reason: Prose
    findings: tuple[_Word, ...]


def read_answer(content: str, question: Question, model: str) -> JudgeReport:
    """The judge's report; `AnswerRefused` says why there is none."""
    try:
        answer = read_json(content, _JudgeAnswer)
    except msgspec.DecodeError as error:
        raise AnswerRefused(
            "invalid", f"the answer is not of the shape that was asked for: {error}"
        ) from None
    _check_findings(answer, question)
    _check_own_words(answer, question)
    return JudgeReport(
        JudgeStatus.ANSWERED,
        answer.verdict,
        answer.score,
        answer.reason,
        tuple(
            Confirmation(question.asked[word.finding], word.confirmed, word.why) for word in answer.findings
        ),
        model,
        RUBRIC,
        question.partial,
    )


def _check_findings(answer: _JudgeAnswer, question: Question) -> None:
    named = [word.finding for word in answer.findings]
    if len(set(named)) != len(named):
        raise AnswerRefused("invalid", "the answer names a finding twice")
    if set(named) - set(question.asked):
        raise AnswerRefused("invalid", "the answer names a finding that was not asked about")
    missing = sorted(set(question.asked) - set(named))
    if missing:
        raise AnswerRefused("invalid", f"the answer says nothing about {', '.join(missing)}")


def _check_own_words(answer: _JudgeAnswer, question: Question) -> None:
    texts = [answer.reason, *(word.why for word in answer.findings)]
    squeezed = "".join(texts).lower()
    if any(part in squeezed for part in _windows(question.marker, MARKER_PART)):
        raise AnswerRefused("echo", "the answer repeats the marker of the evidence")
    shown = _words(question.shown)
    if _copies(texts, shown, ANY_ROW, steering=0):
        raise AnswerRefused("echo", "the answer copies a passage of the skill")
    if _copies(texts, shown, STEERING_ROW, steering=STEERING_LEAST):
        raise AnswerRefused("echo", "the answer quotes a sentence of the skill that steers a review")


def _copies(texts: Sequence[str], shown: Sequence[str], length: int, *, steering: int) -> bool:
    """Whether so many words in a row, so many of them steering ones, stand in both."""
    rows = {row for text in texts for row in _rows(_words(text), length)}
    said = {row for row in rows if len(STEERING.intersection(row)) >= steering}
    return bool(said) and any(row in said for row in _rows(shown, length))


def _rows(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length)), strict=False)


def _words(text: str) -> list[str]:
    """Letters and digits, without case; what stands between them does not hide a copy."""
    return "".join(char if char.isalnum() else " " for char in text.casefold()).split()


def _windows(text: str, length: int) -> Iterator[str]:
    return (text[start : start + length] for start in range(max(len(text) - length, 0) + 1))

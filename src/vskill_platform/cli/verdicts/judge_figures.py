"""What an evaluation of judges says in figures: per label and in all, how often a judge was right, what it cost and how
long it took. Pure: it counts the answers and knows nothing of who gave them."""

from collections.abc import Container, Iterable, Sequence

import msgspec

from vskill_client.wire.base import Wire
from vskill_platform.cli.verdicts.judge_evaluation import EvaluatedSkill, Evaluation, KeptAnswer
from vskill_platform.domain.judges import JudgeSide, side_of

MILLION = 1_000_000
#: Two judges as the registry uses them: where they disagree, a reviewer decides.
TOGETHER = "together"


class Share(msgspec.Struct, frozen=True):
    """A part of a whole."""

    count: int
    of: int

    def __str__(self) -> str:
        return f"{self.count} of {self.of}" + (f" ({self.count / self.of:.1%})" if self.of else "")


class LabelFigures(Wire, frozen=True):
    """The skills of one part and label."""

    part: str
    label: str
    skills: int
    approved: int
    unsure: int
    rejected: int
    #: it answered, but not so that the answer can be used
    refused: int
    #: the service failed, or the skill could not be read
    not_judged: int
    #: the registry would publish them by itself, with these answers and without a judge
    published: int
    published_unjudged: int
    prompt_tokens: int
    answer_tokens: int
    median_s: float
    p95_s: float


class JudgeFigures(Wire, frozen=True):
    """One judge, or two together."""

    judge: str
    model: str
    labels: tuple[LabelFigures, ...]
    #: malicious skills that it did not approve, of those that it answered about
    recall: Share
    #: honest skills that it did not approve, of those that it answered about
    false_alarms: Share
    prompt_tokens: int
    answer_tokens: int
    #: what all questions took, one after the other
    seconds: float
    #: in the unit of the prices that were given
    cost: float | None = None


class EvaluationFigures(Wire, frozen=True):
    """The whole evaluation."""

    skills: int
    judges: tuple[JudgeFigures, ...]
    #: by skill and judge, why it was not judged
    not_judged: dict[str, dict[str, str]]


class EvaluationTerms(msgspec.Struct, frozen=True):
    """How an evaluation is counted."""

    malicious: str = "malicious"
    honest: str = "honest"
    #: for a million tokens that are read and written
    prices: tuple[float, float] | None = None


class _Answered(msgspec.Struct, frozen=True):
    """What one judge, or two together, did with one skill. One that did not answer leaves it to the other."""

    skill: EvaluatedSkill
    answers: tuple[KeptAnswer, ...]

    @property
    def side(self) -> JudgeSide | None:
        """None where no answer can be used; two that disagree leave it to a reviewer."""
        sides = {
            side_of((answer.score, answer.verdict))
            for answer in self.answers
            if answer.score is not None and answer.verdict is not None
        }
        return JudgeSide.UNSURE if len(sides) > 1 else next(iter(sides), None)

    @property
    def published(self) -> bool:
        """Whether none would keep it back; an answer that cannot be used leaves it to the static scan."""
        return bool(self.answers) and all(answer.published for answer in self.answers)


def count_evaluation(evaluation: Evaluation, terms: EvaluationTerms) -> EvaluationFigures:
    """The figures of each judge, and of two together."""
    views = [(place, model, {place}) for place, model in evaluation.models.items()]
    if len(views) > 1:
        views.append((TOGETHER, " and ".join(evaluation.models.values()), set(evaluation.models)))
    judges = tuple(
        _judge_figures(name, model, [_answered(skill, places) for skill in evaluation.skills], terms)
        for name, model, places in views
    )
    missing = {skill.path: skill.not_judged for skill in evaluation.skills if skill.not_judged}
    return EvaluationFigures(len(evaluation.skills), judges, missing)


def _answered(skill: EvaluatedSkill, places: Container[str]) -> _Answered:
    return _Answered(skill, tuple(answer for place, answer in skill.answers.items() if place in places))


def _judge_figures(
    place: str, model: str, answered: Sequence[_Answered], terms: EvaluationTerms
) -> JudgeFigures:
    labels = sorted({(one.skill.part, one.skill.label) for one in answered})
    of_labels = tuple(
        _label_figures(label, [one for one in answered if (one.skill.part, one.skill.label) == label])
        for label in labels
    )
    prompt = sum(one.prompt_tokens for one in of_labels)
    answer = sum(one.answer_tokens for one in of_labels)
    cost = None
    if terms.prices is not None:
        cost = round((prompt * terms.prices[0] + answer * terms.prices[1]) / MILLION, 4)
    return JudgeFigures(
        judge=place,
        model=model,
        labels=of_labels,
        recall=_not_approved(answered, terms.malicious),
        false_alarms=_not_approved(answered, terms.honest),
        prompt_tokens=prompt,
        answer_tokens=answer,
        seconds=round(sum(_seconds(answered)), 1),
        cost=cost,
    )


def _label_figures(label: tuple[str, str], answered: Sequence[_Answered]) -> LabelFigures:
    sides = [one.side for one in answered]
    seconds = _seconds(answered)
    answers = [answer for one in answered for answer in one.answers]
    return LabelFigures(
        part=label[0],
        label=label[1],
        skills=len(answered),
        approved=sides.count(JudgeSide.APPROVES),
        unsure=sides.count(JudgeSide.UNSURE),
        rejected=sides.count(JudgeSide.REJECTS),
        refused=sum(bool(one.answers) and one.side is None for one in answered),
        not_judged=sum(not one.answers for one in answered),
        published=sum(one.published for one in answered),
        published_unjudged=sum(one.answers[0].published_unjudged for one in answered if one.answers),
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        answer_tokens=sum(answer.answer_tokens for answer in answers),
        median_s=_percentile(seconds, 50),
        p95_s=_percentile(seconds, 95),
    )


def _seconds(answered: Iterable[_Answered]) -> list[float]:
    """Two judges are asked at the same time."""
    return sorted(max(answer.seconds for answer in one.answers) for one in answered if one.answers)


def _percentile(values: Sequence[float], percent: int) -> float:
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else 0.0


def _not_approved(answered: Iterable[_Answered], label: str) -> Share:
    sides = [one.side for one in answered if one.skill.label == label and one.side is not None]
    return Share(sum(side is not JudgeSide.APPROVES for side in sides), len(sides))

"""Asking the configured judges about a folder of labelled skills, as a worker would ask them.

Every answer is a line of the kept file as soon as it is there. A line is of use again while content, rules, model and
rubric are the same, so a run that was interrupted goes on where it stopped.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import InvalidInput, PlatformError
from vskill_core.findings import NO_JUDGE, StaticReport, Verdict
from vskill_core.folders import read_folder
from vskill_platform.bootstrap import open_judges, open_scanner
from vskill_platform.cli.progress import work_visibly
from vskill_platform.cli.verdicts.labelled_skills import Label
from vskill_platform.domain.verdicts.decision import decide, is_automatic
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.observing.logs import logger
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.tiers.contract import Scanner
from vskill_platform.tiers.judge import HttpJudge

#: What a model does with a question; anything else is a failure of the service, and is asked again.
MEASURED = frozenset({"answered", "invalid", "echo", "too_large"})
#: The service failed repeatedly: nothing more is asked.
SKIPPED = "skipped"


class KeptAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What one judge did with one skill: a line of the kept file."""

    #: the skill's folder, below the folder that is evaluated
    skill: str
    digest: str
    ruleset: str
    model: str
    rubric: str
    #: `answered`, or why there is no answer
    outcome: str
    verdict: Verdict | None
    score: int | None
    seconds: float
    prompt_tokens: int
    answer_tokens: int
    #: the registry would publish it by itself with this answer, and without a judge
    published: bool
    published_unjudged: bool
    problem: str = ""


class EvaluatedSkill(msgspec.Struct, frozen=True):
    """One skill of the folder."""

    path: str
    part: str
    label: str
    #: by judge, `first` and `second`; one that did not answer is missing
    answers: dict[str, KeptAnswer]
    #: by judge, why it was not judged
    not_judged: dict[str, str]


class Evaluation(msgspec.Struct, frozen=True):
    """All skills, and the judges' models by their place."""

    models: dict[str, str]
    skills: tuple[EvaluatedSkill, ...]


async def evaluate_judges(
    settings: Settings, folder: Path, skills: Mapping[Path, Label], *, keep: Path | None, at_once: int
) -> Evaluation:
    """Ask each judge about each skill; a judge whose service fails three times in a row is asked no more."""
    kept = await asyncio.to_thread(read_kept, keep) if keep is not None else ()
    async with AsyncExitStack() as stack:
        scanner = await open_scanner(settings, stack)
        judges = await open_judges(settings, stack, clock=SystemClock(), log=logger(), metrics=Metrics())
        work = _Evaluator(folder, scanner, judges, kept, keep)
        evaluated = await work_visibly("judging", work.evaluate, list(skills.items()), at_once)
    return Evaluation({one.place: one.model for one in judges}, tuple(evaluated))


def read_kept(path: Path) -> tuple[KeptAnswer, ...]:
    """The answers of earlier runs; a last line that was cut short is left out."""
    if not path.exists():
        return ()
    *lines, rest = path.read_bytes().split(b"\n")
    if rest:
        # The next answer begins a line of its own.
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    try:
        return tuple(msgspec.json.decode(line, type=KeptAnswer) for line in lines)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fix = "name a file that an earlier run has written, or a new one"
        raise InvalidInput(f"{path} holds no answers of judges: {error}.", field="--keep", fix=fix) from error


class _Evaluator:
    """One run over a folder."""

    def __init__(
        self,
        folder: Path,
        scanner: Scanner,
        judges: Sequence[HttpJudge],
        kept: Sequence[KeptAnswer],
        keep: Path | None,
    ) -> None:
        self._folder = folder
        self._scanner = scanner
        self._judges = judges
        self._kept = {
            (one.digest, one.ruleset, one.model, one.rubric): one for one in kept if one.outcome in MEASURED
        }
        self._keep = keep
        #: Judges that are asked no more, and the last failure of each.
        self._stopped: dict[str, str] = {}
        self._failures: dict[str, str] = {}

    async def evaluate(self, labelled: tuple[Path, Label]) -> EvaluatedSkill:
        place, label = labelled
        path = place.relative_to(self._folder).as_posix()
        try:
            files = await asyncio.to_thread(read_folder, place)
            report = await self._scanner.scan(files)
        except PlatformError as error:
            # A skill that cannot be read says nothing about the judges.
            replies: list[KeptAnswer | str] = [error.message for _ in self._judges]
        else:
            replies = await asyncio.gather(*(self._ask(judge, path, files, report) for judge in self._judges))
        by_judge = {judge.place: reply for judge, reply in zip(self._judges, replies, strict=True)}
        answers = {place: reply for place, reply in by_judge.items() if isinstance(reply, KeptAnswer)}
        not_judged = {place: reply for place, reply in by_judge.items() if isinstance(reply, str)}
        return EvaluatedSkill(path, *label, answers, not_judged)

    async def _ask(
        self, judge: HttpJudge, path: str, files: tuple[SkillFile, ...], report: StaticReport
    ) -> KeptAnswer | str:
        """What the judge did with it, or why it was not judged."""
        digest = digest_of_files(files)
        known = self._kept.get((digest, report.ruleset, judge.model, judge.rubric))
        if known is not None:
            return msgspec.structs.replace(known, skill=path)
        if judge.place in self._stopped:
            return self._stopped[judge.place]
        began = SystemClock().monotonic()
        reply = await judge.ask(files, report)
        if reply.outcome == SKIPPED:
            last = self._failures.get(judge.place, "")
            self._stopped[judge.place] = f"not asked: the judge failed three times in a row ({last})"
            return self._stopped[judge.place]
        if reply.outcome not in MEASURED:
            self._failures[judge.place] = f"{reply.outcome}: {reply.problem}"
            return self._failures[judge.place]
        answer = KeptAnswer(
            skill=path,
            digest=digest,
            ruleset=report.ruleset,
            model=judge.model,
            rubric=judge.rubric,
            outcome=reply.outcome,
            verdict=reply.report.verdict,
            score=reply.report.score,
            seconds=round(SystemClock().monotonic() - began, 3),
            prompt_tokens=reply.tokens.prompt,
            answer_tokens=reply.tokens.answer,
            published=is_automatic(decide(report, reply.report)),
            published_unjudged=is_automatic(decide(report, NO_JUDGE)),
            problem=reply.problem,
        )
        if self._keep is not None:
            await asyncio.to_thread(_append_line, self._keep, msgspec.json.encode(answer))
        return answer


def _append_line(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")

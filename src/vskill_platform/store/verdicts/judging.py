"""Asking the judges: one, two at the same time, or none where no answer could change the decision."""

import asyncio
from collections.abc import Sequence

from vskill_core.content import SkillFile
from vskill_core.findings import NO_JUDGE, JudgeReport, StaticReport
from vskill_platform.domain.verdicts.decision import judge_can_change
from vskill_platform.store.verdicts.decision_inputs import Grounds
from vskill_platform.worker_context import require_env

#: What the first and the second judge said.
Judged = tuple[JudgeReport, JudgeReport]
NOT_ASKED: Judged = (NO_JUDGE, NO_JUDGE)


def is_judge_needed(report: StaticReport, grounds: Grounds) -> bool:
    """Whether a judge is configured whose answer can change the decision."""
    return require_env("judge").judge is not None and judge_can_change(report, **grounds)


async def ask_judges(files: Sequence[SkillFile], report: StaticReport) -> Judged:
    """Two are asked at the same time: the budget of one question holds for both."""
    env = require_env("judge")
    if env.judge is None:
        return NOT_ASKED
    if env.second_judge is None:
        return await env.judge.review(files, report), NO_JUDGE
    first, second = await asyncio.gather(
        env.judge.review(files, report), env.second_judge.review(files, report)
    )
    return first, second

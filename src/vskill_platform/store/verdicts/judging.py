"""What both tiers say about a content, and what else counts for a decision about it: a reviewer's approval of these
bytes, the operator's trust in their owner, and the rules that a reviewer judged false for them. The judges, one or two,
are asked only where an answer could change the decision."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import NO_JUDGE, JudgeReport, StaticReport
from vskill_platform.domain.evidence import Evidence, evidence_of
from vskill_platform.domain.submissions.submission import Approval
from vskill_platform.domain.verdicts.decision import Grounds, judge_can_change
from vskill_platform.store.verdicts.scans import scan_once
from vskill_platform.store.verdicts.suppressions import suppressed_rules
from vskill_platform.worker_context import require_env


class Verdicts(msgspec.Struct, frozen=True):
    """What both tiers say about one content, and what else counts."""

    report: StaticReport
    judge: JudgeReport
    second: JudgeReport
    grounds: Grounds
    evidence: Evidence


async def read_verdicts(
    files: Sequence[SkillFile],
    digest: str,
    approval: Approval | None,
    *,
    trusted_vendor: bool,
    before_judging: Callable[[], Awaitable[None]] | None = None,
) -> Verdicts:
    """Of this content, of an owner whom the policy trusts or not. `before_judging` is called where a judge is asked."""
    report = await scan_once(files, digest)
    # Where nothing was found, no rule of it is looked up.
    suppressed = await suppressed_rules(digest) if report.findings else frozenset()
    approved = approval if approval is not None and approval.digest == digest else None
    grounds = Grounds(
        approved_by=approved.by if approved is not None and not approved.team else None,
        approved_by_team=approved.by if approved is not None and approved.team else None,
        trusted_vendor=trusted_vendor,
        suppressed=suppressed,
    )
    judge, second = NO_JUDGE, NO_JUDGE
    if require_env("judge").judge is not None and judge_can_change(report, **grounds):
        if before_judging is not None:
            await before_judging()
        judge, second = await _ask_judges(files, report)
    evidence = evidence_of(
        digest, report, judge, second=second, suppressed=suppressed, trusted_vendor=trusted_vendor
    )
    return Verdicts(report, judge, second, grounds, evidence)


async def _ask_judges(files: Sequence[SkillFile], report: StaticReport) -> tuple[JudgeReport, JudgeReport]:
    """Two are asked at the same time: the budget of one question holds for both."""
    env = require_env("judge")
    asked = [judge.review(files, report) for judge in (env.judge, env.second_judge) if judge is not None]
    answers = await asyncio.gather(*asked)
    return answers[0], answers[1] if len(answers) > 1 else NO_JUDGE

"""Verdicts that the policy needs before the registry publishes by itself: answers of judges, and clean reports of
analysers.

An analyser that has not reported yet is asked, and the submission is retried until it reports or its deadline passes.
An analyser that was missing is asked once more in a later run: not every worker may have it. A report that is not
clean, or never comes, sends the submission to a reviewer: nothing waits for ever.
"""

from collections.abc import Collection

from vskill_core.errors import SourceUnavailable
from vskill_core.findings import JudgeReport, Verdict
from vskill_platform.domain.judges import missing_answers
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect
from vskill_platform.domain.verdicts.policy import Needs
from vskill_platform.external_scan.dispatch import find_analyser, request_scan
from vskill_platform.store import external_scans


async def unmet_needs(
    needs: Needs, digest: str, judged: Collection[JudgeReport], *, began: int
) -> tuple[MatchedRule, ...]:
    """Why this content may not be published automatically in a run that began then. Raises SourceUnavailable while an
    analyser still has time."""
    unmet = list(missing_answers(judged, needs.judges))
    for name in needs.analysers:
        unmet += await _unmet_report(digest, name, began)
    return tuple(MatchedRule(NEEDS_RULE, RuleEffect.REVIEW, reason) for reason in unmet)


async def _unmet_report(digest: str, name: str, began: int) -> tuple[str, ...]:
    report = await external_scans.get_external_scan(digest, name)
    if report is None or await _may_be_there_now(digest, report, began):
        return await _wait_for_report(digest, name)
    if report.verdict is Verdict.PASS:
        return ()
    if report.verdict is not None:
        found = "1 finding" if sum(report.counts.values()) == 1 else f"{sum(report.counts.values())} findings"
        return (f"{name} must pass it, and says {report.verdict} ({found})",)
    status = report.status.value.replace("_", " ")
    problem = f": {report.problem}" if report.problem else ""
    return (f"{name} must pass it, and has no verdict ({status}{problem})",)


async def _may_be_there_now(digest: str, report: external_scans.ExternalReport, began: int) -> bool:
    """Whether an analyser was missing before this run, and so may be installed now. The task's time decides, because it
    uses the store's clock like the run; the report uses its worker's."""
    if (
        report.status is not external_scans.ExternalStatus.UNAVAILABLE
        or await find_analyser(report.provider) is None
    ):
        return False
    task = await external_scans.read_external_task(digest, report.provider)
    return task is None or task.state.active or task.updated_at < began


async def _wait_for_report(digest: str, name: str) -> tuple[str, ...]:
    task = await external_scans.read_external_task(digest, name)
    if task is not None and task.state is TaskState.FAILED:
        return (f"{name} must pass it, and has no verdict: {task.outcome}",)
    if task is None or not task.state.active:
        await request_scan(digest, name)
    raise SourceUnavailable(f"{name} has not reported yet", host=name)

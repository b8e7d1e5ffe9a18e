"""What the rules found in the content of a run: each place with its file, line and remedy, and the same as SARIF.
Of every run, whether it was published, refused or waits."""

import asyncio
from typing import Any

import msgspec

from vskill_client.wire import findings as findings_calls
from vskill_client.wire.findings import FindingsAnswer, FindingView, FormNoteView, RunFindings
from vskill_client.wire.submissions import SUBMISSIONS
from vskill_core.errors import NotFound
from vskill_core.findings import Finding, ScanStatus, StaticReport
from vskill_platform.actions.action import action, action_for
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.capabilities import card_view
from vskill_platform.actions.submissions.submissions import object_of
from vskill_platform.domain.submissions.attempts import EXHAUSTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.verdicts.scans import get_scan
from vskill_platform.submission_store import get_run, get_submission
from vskill_scan.results.report import Scanned, as_sarif, by_weight
from vskill_scan.rules.ruleset import bundled_rules

SARIF_TYPE = "application/sarif+json"

#: What to do where no rule of the scan says it, by the code in the decision.
REMEDIES = {
    "no_skill_found": "Put a SKILL.md into the folder that you submit, then submit it again.",
    "invalid_manifest": "Correct SKILL.md as the reason says, then submit it again.",
    "source_gone": "Check that the repository exists and is public, then submit it again.",
    "limit_exceeded": "Make the skill smaller: leave out what an agent does not need.",
    "lower_version": "Raise the version in the front matter above the published one.",
    "invalid_input": "Rename or remove the file that the reason names.",
    EXHAUSTED: "Every attempt failed. Submit it again, or appeal.",
}


async def findings(actor: Principal, request: RunFindings) -> FindingsAnswer:
    record = await read_run(actor, request)
    report = await report_of(record)
    ended = report is not None and report.status is ScanStatus.COMPLETE
    result = report if ended and record.state is not State.BLOCKED else None
    return FindingsAnswer(
        id=record.id,
        run=record.run,
        state=record.state.value,
        reason=record.why,
        remedies=remedies_of(record),
        digest=record.digest,
        ruleset=report.ruleset if report else None,
        verdict=result.verdict.value if result else None,
        score=result.score if result else None,
        findings=tuple(FindingView.of(one) for one in ordered_findings(record, report)),
        notes=note_views(report),
        capabilities=card_view(report),
    )


async def sarif(actor: Principal, request: RunFindings) -> dict[str, Any]:
    record = await read_run(actor, request)
    report = await report_of(record)
    if report is None:
        raise NotFound(f"The content of run {record.run} was not scanned.", submission=record.id)
    body = await asyncio.to_thread(lambda: as_sarif([Scanned(record.skill_path, report)], bundled_rules()))
    document: dict[str, Any] = msgspec.json.decode(body)
    return document


async def read_run(reader: Principal, request: RunFindings) -> Submission:
    audiences = audiences_of(reader)
    if request.run is None:
        return await get_submission(request.submission_id, audiences=audiences)
    return await get_run(request.submission_id, request.run, audiences=audiences)


async def report_of(record: Submission) -> StaticReport | None:
    """The stored report that this run was decided by; None where its content was not scanned."""
    evidence = record.evidence
    return None if evidence is None else await get_scan(evidence.digest, evidence.ruleset)


def ordered_findings(record: Submission, report: StaticReport | None) -> tuple[Finding, ...]:
    """Those that the decision names first, then the worst."""
    named = set(record.decision.rule_ids if record.decision else ())
    found = by_weight(report.findings) if report else []
    return tuple(sorted(found, key=lambda finding: finding.rule_id not in named))


def remedies_of(record: Submission) -> tuple[str, ...]:
    """What to do about a refusal that rests on no rule of the scan."""
    if record.decision is None or not record.state.failure:
        return ()
    remedies = (REMEDIES[code] for code in record.decision.rule_ids if code in REMEDIES)
    if not record.identity.is_upload:
        return tuple(remedies)
    return tuple(one.replace("then submit it again", "then upload it again") for one in remedies)


def note_views(report: StaticReport | None) -> tuple[FormNoteView, ...]:
    return tuple(FormNoteView.of(note) for note in report.notes) if report is not None else ()


FINDINGS = action_for(
    findings,
    findings_calls.FINDINGS,
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Read the findings of a run, with file, line and remedy",
)
SARIF = action(
    sarif,
    "submission.sarif",
    f"{SUBMISSIONS}/{{submission_id}}/sarif",
    method="GET",
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    media=SARIF_TYPE,
    summary="Read the findings of a run as SARIF 2.1.0",
)

ACTIONS = (FINDINGS, SARIF)

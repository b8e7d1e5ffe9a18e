"""The pipeline of one submission: fetch, store the content, scan, judge, decide, publish.

Every stage writes its results through the claim, and content is stored by digest before a record refers to it, so
the next attempt continues from the record wherever this one stopped.
"""

import msgspec

from vskill_core.content import SkillFile, digest_of, manifest_of
from vskill_core.errors import (
    Blocked,
    ContentDamaged,
    InvalidInput,
    InvalidManifest,
    LimitExceeded,
    LowerVersion,
    NoSkillFound,
    QuotaExceeded,
    SourceGone,
)
from vskill_core.findings import Severity, StaticReport
from vskill_core.naming import slug_of
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, digest_target, place_target
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission
from vskill_platform.domain.verdicts.decision import BlockScope, Decision, decide, is_automatic
from vskill_platform.external_scan.requirements import unmet_requirements
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.stages.publish import Content, TakenDown, VerifiedContent, publish
from vskill_platform.store.claims import HeldClaim, Passed
from vskill_platform.store.damage import note_damage_in_passing
from vskill_platform.store.people.namespaces import require_as_open
from vskill_platform.store.recall.blocklist import (
    assert_blocklist,
    audience_of_block,
    block_writes,
    find_hits,
    require_unblocked,
    targets_for,
)
from vskill_platform.store.skills.sketches import marks_of
from vskill_platform.store.stored_content import keep_content
from vskill_platform.store.verdicts.capability_signals import capability_signals
from vskill_platform.store.verdicts.decision_inputs import Grounds, grounds_for
from vskill_platform.store.verdicts.judging import NOT_ASKED, Judged, ask_judges, is_judge_needed
from vskill_platform.store.verdicts.registry_signals import registry_signals
from vskill_platform.store.verdicts.rule_figures import count_fired
from vskill_platform.store.verdicts.scans import scan_once
from vskill_platform.worker_context import require_env
from vskill_scan.reading.manifest import admit_skill

#: Another attempt would fail the same way: somebody must change something.
FINAL = (
    *(NoSkillFound, InvalidManifest, SourceGone, LimitExceeded),
    *(LowerVersion, QuotaExceeded, InvalidInput),
)


async def process_submission(claim: HeldClaim) -> None:
    """Run the pipeline to the end of the run; an exception says how this attempt failed."""
    try:
        await _verify_and_publish(claim)
    except Blocked as error:
        await _end_blocked(claim, RecordedDecision(str(error)))


async def _verify_and_publish(claim: HeldClaim) -> None:
    """Raises Blocked wherever the blocklist hits it, also where it would have been rejected."""
    try:
        if claim.record.state is State.AUTO_APPROVED:
            await publish(claim)
        elif (verified := await _verify(claim)) is not None:
            await publish(claim, verified)
    except TakenDown as error:
        await _end(claim, State.NEEDS_REVIEW, RecordedDecision(str(error)))
    except FINAL as error:
        await _end(claim, State.REJECTED, RecordedDecision(str(error), (error.code,)))


async def _verify(claim: HeldClaim) -> VerifiedContent | None:
    """Fetch, scan, judge and decide. What is approved is published next, in one commit with its approval; anything
    else ends the run here. The blocklist comes before the scan: what it hits is BLOCKED even where the scanner
    breaks over it."""
    content = await _fetch(claim)
    unblocked = await require_unblocked(targets_for(claim.record))
    report = await scan_once(content.files, content.digest)
    grounds = await grounds_for(claim.record.identity, content.digest, claim.record.approval, report)
    judge, second = await _judge(claim, content.files, report, grounds)
    evidence = evidence_of(
        content.digest,
        report,
        judge,
        second=second,
        suppressed=grounds["suppressed"],
        trusted_vendor=grounds["trusted_vendor"],
    )
    # The record keeps the findings however this run ends.
    claim.learn(evidence=evidence)
    marks = marks_of(content.files, report.capabilities or ())
    signals = (
        *await capability_signals(claim.record.identity, content.digest, report),
        *await registry_signals(claim.record, content.files, marks),
    )
    if signals:
        claim.learn(evidence=msgspec.structs.replace(evidence, noticed=signals))
    decision = decide(report, judge, second=second, **grounds, signals=signals)
    if is_automatic(decision):
        began = claim.record.history[0].at
        unmet = await unmet_requirements(content.digest, (judge, second), began=began)
        decision = decide(report, judge, second=second, **grounds, signals=signals, unmet=unmet)
    recorded = _record_of(decision)
    if decision.next_state is not State.AUTO_APPROVED:
        await _end(claim, decision.next_state, recorded, decision)
        return None
    approved = Passed(State.AUTO_APPROVED, decision.reason, {"decision": recorded})
    verified = msgspec.structs.replace(content, unblocked=unblocked, report=report, marks=marks)
    return VerifiedContent(verified, approved)


async def _fetch(claim: HeldClaim) -> Content:
    """The files at the place, kept by digest before any record names it. What was learnt is written with the next
    step of the run, so that it costs no write of its own."""
    try:
        fetched = await require_env("sources").sources.fetch(claim.record)
    except ContentDamaged as found:
        await note_damage_in_passing(found)
        raise
    await require_as_open(claim.record.identity, fetched.identity or claim.record.identity)
    manifest = admit_skill(fetched.files, slug_of(claim.record.identity))
    entries = manifest_of(fetched.files)
    digest = digest_of(entries)
    if digest != claim.record.upload:
        await keep_content(digest, fetched.files)
    claim.learn(digest=digest, commit=fetched.commit, declared_name=manifest.name)
    return Content(digest, fetched.files, entries, manifest)


async def _judge(
    claim: HeldClaim, files: tuple[SkillFile, ...], report: StaticReport, grounds: Grounds
) -> Judged:
    """Ask the judges only if an answer can change the decision."""
    if not is_judge_needed(report, grounds):
        return NOT_ASKED
    await claim.move(State.TIER2_SCANNING, "the static scan is done; the judge reads it")
    return await ask_judges(files, report)


def _record_of(decision: Decision) -> RecordedDecision:
    certification = decision.certification.value if decision.certification else None
    return RecordedDecision(decision.reason, decision.rule_ids, certification, decision.score)


async def _end(
    claim: HeldClaim, state: State, decision: RecordedDecision, made: Decision | None = None
) -> None:
    """End the run; a blocklist entry that the decision asks for is written in the same commit.

    Raises Blocked where an entry hits the content by now: no record named its digest until this step, so a pass
    of the blocklist could not see it.
    """

    async def together(record: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
        changes: dict[str, object] = {"decision": decision}
        target = None if made is None else _target(record, made.block)
        if made is not None and target is not None:
            audience = await audience_of_block(target, record.audience)
            written = await block_writes(_entry(record, target, made, audience))
            return (*written, *count_fired(record)), changes
        return (await require_unblocked(targets_for(record)), *count_fired(record)), changes

    await claim.end(state, decision.reason, together)


class _Lifted(Exception):
    """The entry that hit the submission is gone."""


async def _end_blocked(claim: HeldClaim, decision: RecordedDecision) -> None:
    """End the run by the blocklist as it is in that commit. Where no entry hits any more, the run begins again: the
    pass that starts anew what was unblocked may have passed by already."""

    async def together(record: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
        asserted = await assert_blocklist()
        if not await find_hits(targets_for(record)):
            raise _Lifted
        return (asserted,), {"decision": decision}

    try:
        await claim.end(State.BLOCKED, decision.reason, together)
    except _Lifted:
        await claim.hand_back("no entry of the blocklist hits it any more")


def _target(record: Submission, block: BlockScope) -> BlockTarget | None:
    match block:
        case BlockScope.PLACE:
            return place_target(record.identity)
        case BlockScope.DIGEST if record.digest is not None:
            return digest_target(record.digest)
        case _:
            return None


def _entry(record: Submission, target: BlockTarget, decision: Decision, audience: str) -> BlockEntry:
    env = require_env("kv")
    return BlockEntry(
        target=target,
        severity=Severity.CRITICAL,
        reason=decision.reason,
        discovered_by=f"worker:{env.worker_id}",
        discovered_at=env.kv.now(),
        updated_at=env.kv.now(),
        threat_type=decision.worst.category.value if decision.worst else "",
        evidence=decision.rule_ids,
        skill_name=record.skill_name,
        source_url=record.repo_url,
        digest=record.digest or "",
        audience=audience,
        origin=record.audience,
    )

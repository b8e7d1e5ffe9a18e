"""The pipeline of one submission: fetch, store the content, scan, judge, decide, publish.

Every stage writes its results through the claim, and content is stored by digest before a record refers to it, so
the next attempt continues from the record wherever this one stopped.
"""

from functools import partial

import msgspec

from vskill_core.content import digest_of, manifest_of
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
from vskill_core.naming import slug_of
from vskill_platform.domain.evidence import ComparedMemory
from vskill_platform.domain.signals import MatchedRule, RecordedRule, RuleEffect
from vskill_platform.domain.submissions.cooldown import held_until, note_seen
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Attempts, RecordedDecision, Submission
from vskill_platform.domain.verdicts.decision import Decision, can_be_raised, decide, is_automatic
from vskill_platform.domain.verdicts.facts import Facts
from vskill_platform.external_scan.requirements import unmet_needs
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.stages.publish import (
    Content,
    TakenDown,
    VerifiedContent,
    complete_files,
    publish,
    read_stored,
)
from vskill_platform.store.claims import HeldClaim, Passed
from vskill_platform.store.people.namespaces import require_as_open
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.recall import blocklist
from vskill_platform.store.skills.skills import ContentMarks, marks_of, place_of
from vskill_platform.store.stored_content import keep_content, note_damage_in_passing
from vskill_platform.store.verdicts.capability_signals import capability_signals, find_gains
from vskill_platform.store.verdicts.judging import Verdicts, read_verdicts
from vskill_platform.store.verdicts.memory import read_memory
from vskill_platform.store.verdicts.past_decisions import was_rejected
from vskill_platform.store.verdicts.policy import PolicyChanged, PolicyInForce, read_policy
from vskill_platform.store.verdicts.policy_facts import DecisionSubject, gather_facts
from vskill_platform.store.verdicts.registry_signals import registry_signals
from vskill_platform.store.verdicts.rule_figures import count_fired
from vskill_platform.store.verdicts.stored_facts import AskedPolicy, counted_rules
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
    except PolicyChanged:
        await claim.hand_back("the policy has changed; it is decided again")
    except TakenDown as error:
        await _end(claim, State.NEEDS_REVIEW, RecordedDecision(str(error)))
    except FINAL as error:
        await _end(claim, State.REJECTED, RecordedDecision(str(error), (error.code,)))


async def _verify(claim: HeldClaim) -> VerifiedContent | None:
    """Fetch, scan, judge and decide. What is approved is published next, in one commit with its approval; anything
    else ends the run here. The blocklist comes before the scan: what it hits is BLOCKED even where the scanner
    breaks over it."""
    content = await _fetch(claim)
    unblocked, policy = (
        await blocklist.require_unblocked(blocklist.targets_for(claim.record)),
        await read_policy(),
    )
    said = await read_verdicts(
        content.files,
        content.digest,
        claim.record.approval,
        trusted_vendor=policy.policy.trusts(claim.record.identity),
        before_judging=lambda: claim.move(
            State.TIER2_SCANNING, "the static scan is done; the judge reads it"
        ),
    )
    # The record keeps the findings however this run ends.
    claim.learn(evidence=said.evidence)
    marks = marks_of(content.files, said.report.capabilities)
    decision, asked = await _decide(claim, content, said, marks, policy)
    recorded = await _record_of(decision, asked, content.digest)
    if decision.next_state is not State.AUTO_APPROVED:
        await _end(claim, decision.next_state, recorded, decision, asked)
        return None
    approved = Passed(State.AUTO_APPROVED, decision.reason, {"decision": recorded})
    verified = msgspec.structs.replace(content, unblocked=unblocked, report=said.report, marks=marks)
    return VerifiedContent(verified, approved, asked)


async def _decide(
    claim: HeldClaim, content: Content, said: Verdicts, marks: ContentMarks, in_force: PolicyInForce
) -> tuple[Decision, AskedPolicy]:
    """By the table, raised by the policy. What the policy needs is waited for before its rules are looked at."""
    record, policy = claim.record, in_force.policy
    place = await place_of(record.identity)
    gains = await find_gains(place.skill, content.digest, said.report)
    foreign = tuple(host for host in marks.hosts if not policy.owns(host))
    strange, memory = msgspec.structs.replace(marks, hosts=foreign), (await read_memory()).memory
    signals = (
        *capability_signals(gains),
        *await registry_signals(record, place, content.files, strange, said.report, memory),
    )
    decide_by = partial(decide, said.report, said.judge, second=said.second, **said.grounds)
    floor = decide_by()
    unmet: tuple[MatchedRule, ...] = ()
    matched: tuple[MatchedRule, ...] = ()
    facts: Facts | None = None
    if is_automatic(floor) or floor.own_review:
        judged, began = (said.judge, said.second), record.history[0].at
        unmet = await unmet_needs(policy.keys.needs, content.digest, judged, began=began)
    if can_be_raised(floor):
        what = DecisionSubject(record, place, content.files, content.manifest)
        facts = await gather_facts(what, said, signals, gains, policy, memory)
        matched = in_force.match(facts)
    shown = (RuleEffect.NOTE, RuleEffect.WAIT)
    holding = {kind for rule in matched if rule.then not in shown for kind in rule.signals}
    noticed = tuple(msgspec.structs.replace(one, holds=one.holds and one.kind in holding) for one in signals)
    compared = ComparedMemory(memory.date, memory.digest, len(memory))
    claim.learn(evidence=msgspec.structs.replace(said.evidence, noticed=noticed, memory=compared))
    until = held_until(record.first_seen[0], matched, require_env("kv").kv.now())
    matched = (*matched, *unmet)
    recorded = tuple(map(RecordedRule.of, matched))
    asked = AskedPolicy(in_force, floor.next_state, recorded, facts, counted_rules(record))
    return decide_by(matched=matched, held_until=until), asked


async def _fetch(claim: HeldClaim) -> Content:
    """The files at the place, kept by digest before any record names it. What was learnt is written with the next
    step of the run, so that it costs no write of its own. A run that has waited goes on with what was stored then."""
    if claim.record.cooled_by:
        return await read_stored(claim.record)
    try:
        place, private = claim.record.identity, claim.record.with_credential
        fetched = await (await sources_for(place, with_credential=private)).fetch(claim.record)
    except ContentDamaged as found:
        await note_damage_in_passing(found)
        raise
    await require_as_open(claim.record.identity, fetched.identity or claim.record.identity)
    files, kind = await complete_files(claim.record, fetched.files)
    manifest = admit_skill(files, slug_of(claim.record.identity))
    entries = manifest_of(files)
    digest = digest_of(entries)
    if digest != claim.record.upload:
        await keep_content(digest, files)
    seen = note_seen(claim.record.first_seen, digest, require_env("kv").kv.now())
    claim.learn(digest=digest, commit=fetched.commit, declared_name=manifest.name, first_seen=seen)
    return Content(digest, files, entries, manifest, kind)


async def _record_of(decision: Decision, asked: AskedPolicy, digest: str) -> RecordedDecision:
    """With whether maintainers may decide: never about bytes that a reviewer has rejected."""
    return RecordedDecision(
        decision.reason,
        decision.rule_ids,
        decision.certification.value if decision.certification else None,
        decision.score,
        asked.in_force.policy.digest,
        asked.matched,
        decision.own_review and not await was_rejected(digest),
    )


async def _end(
    claim: HeldClaim,
    state: State,
    decision: RecordedDecision,
    made: Decision | None = None,
    asked: AskedPolicy | None = None,
) -> None:
    """End the run, or let it wait; a blocklist entry that the decision asks for is written in the same commit.

    Raises Blocked where an entry hits the content by now: no record named its digest until this step, so a pass
    of the blocklist could not see it. Raises PolicyChanged where another policy is in force by now.
    """

    async def together(record: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
        blocks = () if made is None else await blocklist.decided_block_writes(made, _blocked_by(record))
        grounds = blocks or (await blocklist.require_unblocked(blocklist.targets_for(record)),)
        kept = count_fired(record) if asked is None else await asked.writes(record)
        changes: dict[str, object] = {"decision": decision}
        if made is not None and made.until is not None:
            counts = Attempts(started=record.attempts.started, interrupted=record.attempts.interrupted)
            changes |= {"next_attempt_at": made.until, "cooled_by": decision.policy, "attempts": counts}
        return (*grounds, *kept), changes

    await claim.end(state, decision.reason, together)


class _Lifted(Exception):
    """The entry that hit the submission is gone."""


async def _end_blocked(claim: HeldClaim, decision: RecordedDecision) -> None:
    """End the run by the blocklist as it is in that commit. Where no entry hits any more, the run begins again: the
    pass that starts anew what was unblocked may have passed by already."""

    async def together(record: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
        asserted = await blocklist.assert_blocklist()
        if not await blocklist.find_hits(blocklist.targets_for(record)):
            raise _Lifted
        return (asserted,), {"decision": decision}

    try:
        await claim.end(State.BLOCKED, decision.reason, together)
    except _Lifted:
        await claim.hand_back("no entry of the blocklist hits it any more")


def _blocked_by(record: Submission) -> blocklist.BlockedContent:
    return blocklist.BlockedContent(
        identity=record.identity,
        digest=record.digest or "",
        by=f"worker:{require_env('kv').worker_id}",
        audience=record.audience,
        skill_name=record.skill_name,
        source_url=record.repo_url,
    )

"""Everything that a reviewer looks at before deciding about a submission: what the rules found and where, the files,
what the judge and other analysers said, what is live at its place, and what each decision would do."""

from collections.abc import Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import (
    Blocked,
    ContentDamaged,
    InvalidInput,
    InvalidManifest,
    LowerVersion,
    NoSkillFound,
    PlatformError,
    SourceGone,
)
from vskill_core.findings import Finding, FindingKind, JudgeReport, StaticReport
from vskill_core.identity import SKILL_FILE
from vskill_platform.actions.action import Services
from vskill_platform.actions.changes import require_decider
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.review.review_queue import LiveReview, find_live_review
from vskill_platform.actions.skills.skill_views import CardDifference, compare_cards
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC, may_read
from vskill_platform.domain.signals import Signal
from vskill_platform.domain.skills.skill import PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.records import Skips
from vskill_platform.stages.publish import require_publishable
from vskill_platform.store.external_scans import ExternalReport, list_external_scans
from vskill_platform.store.people.audit import AuditEntry, find_audit
from vskill_platform.store.skills.skills import place_of
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.verdicts.capability_signals import newest_live
from vskill_platform.store.verdicts.past_decisions import SimilarRuling, find_similar, subjects_of
from vskill_platform.store.verdicts.registry_signals import hide_signals, reviewer_signals
from vskill_platform.store.verdicts.rule_figures import RuleFigures, read_rule_figures, rules_that_held
from vskill_platform.store.verdicts.scans import get_scan
from vskill_platform.store.verdicts.suppressions import list_suppressions
from vskill_platform.submission_store import get_run, get_submission, get_submissions
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.results.report import by_weight


class ContentEvidence(msgspec.Struct, frozen=True):
    """What is known about a submission's content."""

    report: StaticReport | None
    #: Those that count for the decision, the worst first.
    findings: tuple[Finding, ...]
    capabilities: tuple[Finding, ...]
    judges: tuple[JudgeReport, ...]
    externals: tuple[ExternalReport, ...]
    suppressed: frozenset[str]
    files: tuple[SkillFile, ...]
    #: Why the files cannot be shown.
    problem: str
    live: PublishedSkill | None
    #: as its SKILL.md has it; empty where there is none
    description: str = ""
    #: How its capability card differs from the live version's; None: nothing is live, or a card is missing.
    cards: CardDifference | None = None
    #: What reviewers decided about what has something in common with it.
    similar: tuple[SimilarRuling, ...] = ()
    #: What only this reviewer is shown of what the registry knows.
    signals: tuple[Signal, ...] = ()
    #: How the rules did here.
    figures: dict[str, RuleFigures] = {}
    #: What sent it to a reviewer, where somebody reported it while it waited by a rule of the policy.
    reported: AuditEntry | None = None


async def read_run(reader: Principal, submission_id: str, run: int | None) -> tuple[Submission, Submission]:
    """The run that is looked at, the current one where none is named, and the submission as it is now: where a live
    version of it is under review, as it waits for that."""
    audiences = audiences_of(reader)
    current = await get_submission(submission_id, audiences=audiences)
    if not reader.is_reviewer:
        await require_decider(reader, current, Step("", 0, "", ""))
    if (live := await find_live_review(current)) is not None:
        current = live.item
    record = current if run is None else await get_run(submission_id, run, audiences=audiences)
    shown, current = await hide_signals([record, current], audiences)
    return shown, current


async def gather_evidence(services: Services, reader: Principal, record: Submission) -> ContentEvidence:
    """All of it; a part that is missing is said, never left out in silence. What was decided elsewhere, how rules did
    everywhere and who reports is for reviewers alone."""
    digest = record.digest
    _, _, live, _ = await place_of(record.identity)
    if live is not None and not may_read(live.audience, audiences_of(reader)):
        live = None
    if digest is None:
        similar = await find_similar(record, subjects_of(record, (), ())) if reader.is_reviewer else ()
        return ContentEvidence(
            None, (), (), (), (), frozenset(), (), "Nothing was fetched in this run.", live, similar=similar
        )
    ruleset = record.evidence.ruleset if record.evidence else services.scanner.ruleset
    report = await get_scan(digest, ruleset)
    found = () if report is None else report.findings
    ordered = by_weight(found)
    files, problem = await read_stored_files(digest)
    suppressions = await list_suppressions(digest)
    return ContentEvidence(
        report=report,
        findings=tuple(one for one in ordered if one.kind is not FindingKind.CAPABILITY),
        capabilities=tuple(one for one in ordered if one.kind is FindingKind.CAPABILITY),
        judges=await _read_judges(services, digest),
        externals=await list_external_scans(digest),
        suppressed=frozenset(one.rule_id for one in suppressions if one.active),
        files=files,
        problem=problem,
        live=live,
        description=_describe(files),
        cards=await _compare_with_live(services, report, live),
        similar=await find_similar(record, subjects_of(record, ordered, files)) if reader.is_reviewer else (),
        signals=await reviewer_signals(record, files, audiences_of(reader)),
        figures=await read_rule_figures() if reader.is_reviewer else {},
        reported=await _find_report(record) if reader.is_reviewer else None,
    )


async def _find_report(record: Submission) -> AuditEntry | None:
    last = record.history[-1]
    by_report = (last.source, last.to) == (State.COOLDOWN, State.NEEDS_REVIEW)
    return await find_audit(last.id) if by_report else None


def _describe(files: tuple[SkillFile, ...]) -> str:
    manifest = next((file.data for file in files if file.path == SKILL_FILE), None)
    try:
        return "" if manifest is None else read_manifest(manifest).description
    except InvalidManifest:
        return ""


async def _compare_with_live(
    services: Services, report: StaticReport | None, live: PublishedSkill | None
) -> CardDifference | None:
    ref = newest_live(live)
    if ref is None or report is None:
        return None
    before = await get_scan(ref.digest, report.ruleset) or await get_scan(
        ref.digest, services.scanner.ruleset
    )
    return compare_cards(before, report)


async def read_stored_files(digest: str) -> tuple[tuple[SkillFile, ...], str]:
    """The files of a content, or none and why they cannot be shown."""
    try:
        return await read_content(digest), ""
    except PlatformError as error:
        return (), error.public_message


async def _read_judges(services: Services, digest: str) -> tuple[JudgeReport, ...]:
    skips = Skips("judge_reports")
    found: list[JudgeReport] = []
    async for page in iterate_pages(services.kv, keys.judge.under(digest)):
        skips.failed(page.failed)
        found += [one for entry in page.items if (one := skips.decode(entry, JudgeReport)) is not None]
    skips.report(services)
    return tuple(found)


class DecisionPreview(msgspec.Struct, frozen=True):
    """What each decision leads to."""

    approve: tuple[str, ...]
    #: why an approval would publish nothing; empty if it would
    problem: str
    reject: tuple[str, ...]


async def preview_decision(reader: Principal, record: Submission) -> DecisionPreview:
    """For a submission that waits, with its bytes as they are stored, or for a live version that newer rules doubt."""
    rejected = _tell_rejection(record)
    live = await find_live_review(await get_submission(record.id, audiences=audiences_of(reader)))
    if live is not None and live.version.digest == record.digest:
        return _preview_live(record, live, rejected)
    try:
        after, before = await require_publishable(record)
    except (
        Blocked,
        LowerVersion,
        SourceGone,
        NoSkillFound,
        InvalidInput,
        InvalidManifest,
        ContentDamaged,
    ) as error:
        return DecisionPreview((), error.public_message, (*rejected, "Nothing is published."))
    current = None if before is None else before.current_version
    kept = f"Version {current} stays live." if current else "Nothing is published."
    approved = _tell_approval(record, before, after, is_team=not reader.is_reviewer)
    return DecisionPreview(approved, "", (*rejected, kept))


async def preview_many(reader: Principal, ids: Sequence[str]) -> list[tuple[Submission, DecisionPreview]]:
    """What a decision about each of these will do; those that do not wait are left out."""
    waiting = []
    for record in await get_submissions(ids, audiences=audiences_of(reader)):
        live = await find_live_review(record)
        if record.state.reviewable or live is not None:
            waiting.append(record if live is None else live.item)
    return [(record, await preview_decision(reader, record)) for record in waiting]


def _preview_live(record: Submission, live: LiveReview, rejected: tuple[str, ...]) -> DecisionPreview:
    number = live.version.number
    kept = f"Version {number} stays live and is no longer marked as under review."
    others = [ref for ref in live.skill.versions if ref.status is VersionStatus.LIVE and ref.number != number]
    left = f"Version {others[-1].number} is the newest then." if others else "Nobody can install it any more."
    down = f"Version {number} is taken down; {_count_installs(live.skill, 'has', 'have')} the skill. {left}"
    return DecisionPreview((kept, *_tell_rules(record, "wrong here")), "", (*rejected, down))


def _tell_approval(
    record: Submission, before: PublishedSkill | None, after: PublishedSkill, *, is_team: bool
) -> tuple[str, ...]:
    number = after.current_version
    readers = "everybody" if record.audience == PUBLIC else "those who may read its namespace"
    readers = "members of its namespace" if is_team else readers
    if before is None or before.current_version is None:
        told = f"Version {number} is published as {after.canonical}; {readers} can install it."
    elif before.current_version == number:
        told = f"Version {number} stays the newest: it has the same bytes."
    else:
        reached = _count_installs(before, "gets", "get")
        told = (
            f"Version {number} becomes the newest after {before.current_version}; {reached} it as an update."
        )
    certified = "It is marked as certified: a person approved exactly these bytes."
    if is_team:
        return told, "The skill stays for members of its namespace until a reviewer of the registry agrees."
    return (told, certified, *_tell_rules(record, "wrong here"))


def _tell_rejection(record: Submission) -> tuple[str, ...]:
    who = record.submitter or "The author"
    told = f"{who} is told your reason; it stands in the public history, without your name."
    block = ("The block stays as it is.",) if record.appeals_block else ()
    return (told, *block, *_tell_rules(record, "right here"))


def _tell_rules(record: Submission, what: str) -> tuple[str, ...]:
    held = rules_that_held(record)
    return (f"The statistics count {', '.join(held)} as {what}.",) if held else ()


def _count_installs(skill: PublishedSkill, one: str, many: str) -> str:
    installs = skill.trust.installs
    return f"1 install {one}" if installs == 1 else f"{installs:,} installs {many}"

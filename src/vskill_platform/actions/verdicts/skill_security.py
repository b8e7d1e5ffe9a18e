"""What is known about the safety of a version: our own verdict with every finding, and what the judge and other
analysers say. Also of what is blocked, since its report is what people want to read. And two skills side by side."""

import msgspec

from vskill_client.wire.base import ActionRequest, SkillName, Wire, iso_time
from vskill_client.wire.skills import CapabilityView, SkillCard
from vskill_client.wire.submissions import FindingView, FormNoteView
from vskill_core.capability import Lack
from vskill_core.errors import Ambiguous, NotFound
from vskill_core.findings import (
    FindingKind,
    JudgeReport,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_core.plural import counted
from vskill_platform.actions.action import Keep, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills import skill_names, skill_views
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.actions.submissions.submissions import note_views
from vskill_platform.domain import keys
from vskill_platform.domain.evidence import JudgeWords, words_of
from vskill_platform.domain.judges import rank_judges
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.domain.skills.trust import Provenance
from vskill_platform.domain.verdicts.verdict_words import VerdictWords, words_for_blocked, words_for_scan
from vskill_platform.external_scan.dispatch import provider_names
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.records import Skips, entries_of
from vskill_platform.store.external_scans import ExternalReport, ExternalStatus, list_external_scans
from vskill_scan.results.report import by_weight

OWN_NAME = "vskill-platform"
JUDGE_NAME = "judge"
PENDING = "PENDING"
#: Rules and models that have looked at one content; more than this many are not listed.
MOST_REPORTS = 50


class ProviderView(Wire, frozen=True):
    """What one analyser says."""

    provider: str
    #: PASS, FAIL, PENDING or TIMED_OUT
    status: str
    #: PASS, CONCERNS or FAIL; null without an answer
    verdict: str | None
    critical_count: int
    finding_count: int
    score: int | None
    #: what went wrong, or what the analyser says in words
    detail: str
    #: rule set, model or version
    made_by: str
    at: str | None


class SecurityAnswer(Wire, frozen=True):
    """The security report of one version."""

    name: str
    version: str
    digest: str
    #: PASS, CONCERNS, FAIL or PENDING; ours, whatever other analysers say
    overall_verdict: str
    #: why it is blocked or taken down
    reason: str | None
    #: what was looked at and what was not, in words
    summary: str
    report_url: str
    #: of the static scan; null where it did not end, and where the version is blocked or taken down
    score: int | None
    ruleset: str | None
    #: of what is blocked or taken down only those that found something
    providers: tuple[ProviderView, ...]
    #: the worst first; capabilities last
    findings: tuple[FindingView, ...]
    #: what its author should correct in SKILL.md
    notes: tuple[FormNoteView, ...]
    #: the capability card: what our rules found that it can do; null where nothing is known
    capabilities: tuple[CapabilityView, ...] | None


class KnownReports(msgspec.Struct, frozen=True):
    """Every stored report about one content."""

    static: StaticReport | None
    #: One for each judge that answered, the one that counts first.
    judges: tuple[JudgeReport, ...]
    others: tuple[ExternalReport, ...]
    #: Analysers whose report is wanted and not there.
    owed: tuple[str, ...]


async def read_security(
    services: Services, reader: Principal, request: skill_names.ReadVersion
) -> SecurityAnswer:
    skill = await skill_names.find_skill(reader, request.skill)
    ref = skill_names.choose_version(skill, request.version)
    known = await read_reports(services, ref.digest)
    return security_of(skill, ref, known, await skill_names.current_blocklist(services))


async def read_static_report(
    services: Services, reader: Principal, name: str, number: str | None
) -> tuple[PublishedSkill, StaticReport]:
    skill = await skill_names.find_skill(reader, name)
    ref = skill_names.choose_version(skill, number)
    report = (await read_reports(services, ref.digest)).static
    if report is None:
        raise NotFound(f"{skill.canonical} {ref.number} has no stored report.", skill=skill.canonical)
    return skill, report


async def read_reports(services: Services, digest: str) -> KnownReports:
    """By our present rules where they have looked, otherwise by the latest that have."""
    scans = await services.kv.scan(keys.scan.under(digest), limit=MOST_REPORTS)
    words = await services.kv.scan(f"{keys.judge.prefix}{digest}:", limit=MOST_REPORTS)
    skips = Skips("security_report")
    newest = _best(entries_of(scans), keys.scan(digest, services.scanner.ruleset))
    others = await list_external_scans(digest)
    said = {one.provider for one in others}
    owed = tuple(name for name in await provider_names() if name not in said)
    static = None if newest is None else skips.decode(newest, StaticReport)
    said_by = {one.model: one for one in _oldest_first(skips, entries_of(words))}
    skips.report(services)
    return KnownReports(static, _present_judges(services, said_by), others, owed)


def _oldest_first(skips: Skips, entries: tuple[Entry, ...]) -> list[JudgeReport]:
    decoded = [skips.decode(entry, JudgeReport) for entry in sorted(entries, key=lambda entry: entry.version)]
    return [one for one in decoded if one is not None and one.answer is not None]


def _present_judges(services: Services, said_by: dict[str, JudgeReport]) -> tuple[JudgeReport, ...]:
    """By the judges that are configured where they have answered, otherwise by the latest that has."""
    settings = services.settings
    present = [
        said_by[name] for name in (settings.judge_model, settings.second_judge_model) if name in said_by
    ]
    found = present or list(said_by.values())[-1:]
    return rank_judges(found[0], found[1]) if len(found) > 1 else tuple(found)


def _best(entries: tuple[Entry, ...], preferred: str) -> Entry | None:
    return max(entries, key=lambda entry: (entry.key == preferred, entry.version), default=None)


def security_of(
    skill: PublishedSkill, ref: VersionRef, known: KnownReports, blocklist: Blocklist
) -> SecurityAnswer:
    hits = blocklist.hits_version(skill, ref)
    taken_down = ref.status is VersionStatus.TAKEN_DOWN
    findings = by_weight(known.static.findings) if known.static else []
    withheld = bool(hits) or taken_down
    ended = known.static is not None and known.static.status is ScanStatus.COMPLETE
    reason = hits[0].reason if hits else ref.reason if taken_down else None
    providers = (
        _own(known.static),
        *map(_judge, known.judges),
        *map(_other, known.others),
        *map(_pending_view, known.owed),
    )
    return SecurityAnswer(
        name=skill.canonical,
        version=ref.number,
        digest=ref.digest,
        overall_verdict=Verdict.FAIL.value if withheld else _overall(known),
        reason=reason,
        summary=_words(known, reason, blocked=bool(hits)).summary,
        report_url=f"/skills/{skill.canonical}?tab=security",
        score=known.static.score if known.static and ended and not withheld else None,
        ruleset=known.static.ruleset if known.static else None,
        providers=_refusing(providers, reason or "") if withheld else providers,
        findings=tuple(FindingView.of(finding) for finding in findings),
        notes=note_views(known.static),
        capabilities=skill_views.card_view(known.static),
    )


def _refusing(providers: tuple[ProviderView, ...], reason: str) -> tuple[ProviderView, ...]:
    """What is blocked shows no pass: ours says that it is blocked, and others are named if they found something."""
    own, *others = providers
    refused = msgspec.structs.replace(
        own, status=Verdict.FAIL.value, verdict=Verdict.FAIL.value, score=None, detail=reason
    )
    return (refused, *(one for one in others if one.verdict == Verdict.FAIL.value or one.finding_count))


def _words(known: KnownReports, reason: str | None, *, blocked: bool) -> VerdictWords:
    if reason is not None:
        return words_for_blocked((reason,), blocked=blocked)
    words = words_of(*known.judges) if known.judges else JudgeWords()
    return words_for_scan(known.static, words)


def _overall(known: KnownReports) -> str:
    if known.static is None or known.static.status is not ScanStatus.COMPLETE:
        return PENDING
    verdicts = [one.answer[1] for one in known.judges if one.answer is not None]
    # Of two judges the harsher verdict is shown; `Verdict` lists the mildest first.
    return max(verdicts or [known.static.verdict], key=list(Verdict).index).value


def _own(report: StaticReport | None) -> ProviderView:
    if report is None:
        return ProviderView(
            OWN_NAME, PENDING, None, 0, 0, None, "these bytes have no stored report", "", None
        )
    counted = [one for one in report.findings if one.kind is not FindingKind.CAPABILITY]
    critical = sum(one.severity is Severity.CRITICAL for one in counted)
    verdict = report.verdict if report.status is ScanStatus.COMPLETE else None
    return ProviderView(
        OWN_NAME, _status(verdict), verdict and verdict.value, critical, len(counted),
        report.score if verdict else None, report.problem, report.ruleset, None,
    )  # fmt: skip


def _judge(report: JudgeReport) -> ProviderView:
    confirmed = sum(word.confirmed for word in report.confirmations)
    name = f"{report.model} {report.rubric}".strip()
    return ProviderView(
        JUDGE_NAME,
        _status(report.verdict),
        report.verdict and report.verdict.value,
        confirmed,
        confirmed,
        report.score,
        report.reason,
        name,
        None,
    )


def _other(report: ExternalReport) -> ProviderView:
    ended = report.status in (ExternalStatus.COMPLETE, ExternalStatus.INCOMPLETE)
    unfinished = PENDING if report.status is ExternalStatus.UNAVAILABLE else "TIMED_OUT"
    return ProviderView(
        provider=report.provider,
        status=_status(report.verdict) if ended and report.verdict else unfinished,
        verdict=report.verdict.value if report.verdict else None,
        critical_count=report.critical,
        finding_count=sum(report.counts.values()),
        score=None,
        detail=report.problem,
        made_by=report.version,
        at=iso_time(report.ended_at),
    )


def _pending_view(provider: str) -> ProviderView:
    return ProviderView(provider, PENDING, None, 0, 0, None, "has not reported yet", "", None)


def _status(verdict: Verdict | None) -> str:
    """The client knows passed and failed; concerns are a pass that says so."""
    if verdict is None:
        return "TIMED_OUT"
    return "FAIL" if verdict is Verdict.FAIL else "PASS"


SECURITY = action(
    read_security,
    "skill.security",
    "/api/v1/skills/{skill}/security",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous),
    keep=Keep.BY_TAG,
    summary="Read the security report of a version",
    mcp="get_security_report",
)


_UNKNOWN = "unknown"


class CompareSkills(ActionRequest, frozen=True, kw_only=True):
    """Two skills, by full name or a short one that means exactly one skill."""

    a: SkillName
    b: SkillName


class ComparedFact(Wire, frozen=True):
    """One fact about both skills, in words."""

    fact: str
    a: str
    b: str
    differs: bool


class SkillComparison(Wire, frozen=True):
    """Two skills, each by its current version, and what they differ in."""

    a: SkillCard
    b: SkillCard
    facts: tuple[ComparedFact, ...]
    #: what only the capability card of b has (`added`) and only that of a (`removed`); null where a card is missing
    capabilities: skill_views.CapabilityChanges | None


async def compare_skills(services: Services, reader: Principal, request: CompareSkills) -> SkillComparison:
    a, facts_a, report_a = await _look(services, reader, request.a)
    b, facts_b, report_b = await _look(services, reader, request.b)
    facts = tuple(
        ComparedFact(fact, value, facts_b[fact], value != facts_b[fact]) for fact, value in facts_a.items()
    )
    return SkillComparison(
        a, b, facts, skill_views.changes_view(skill_views.compare_cards(report_a, report_b))
    )


async def _look(
    services: Services, reader: Principal, name: str
) -> tuple[SkillCard, dict[str, str], StaticReport | None]:
    skill = await with_current_installs(services, await skill_names.find_skill(reader, name))
    blocklist = await skill_names.current_blocklist(services)
    ref = skill_names.choose_version(skill, None)
    known = await read_reports(services, ref.digest)
    files = (await skill_names.read_version(skill, ref)).manifest
    shown = skill_views.card(skill, blocklist)
    owner = "verified" if skill.trust.provenance is Provenance.VERIFIED else "unverified"
    facts = {
        "Verdict": security_of(skill, ref, known, blocklist).overall_verdict.capitalize(),
        "Certification": shown.cert_tier.capitalize(),
        "Trust": f"{shown.trust_tier or _UNKNOWN} ({shown.trust_score} of 100)",
        **{lack.need.capitalize(): _tell_need(shown, lack) for lack in Lack},
        "Licence": shown.licence or _UNKNOWN,
        "Agent": shown.agent or _UNKNOWN,
        "Category": shown.category or _UNKNOWN,
        "Owner": f"{shown.author} ({owner})",
        "Version": f"{ref.number} ({counted(len(skill.versions), 'version')})",
        "Size": f"{counted(len(files), 'file')}, {sum(file.size for file in files) / 1000:,.1f} KB",
        "Installs": f"{shown.vskill_installs:,}",
        "First published": shown.created_at[:10],
        "Changed": shown.updated_at[:10],
    }
    return shown, facts, known.static


def _tell_need(shown: SkillCard, lack: Lack) -> str:
    if shown.without is None:
        return "not read whole"
    return "none found" if lack in shown.without else "yes"


COMPARE = action(
    compare_skills,
    "skill.compare",
    "/api/v1/compare",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous),
    summary="Compare two skills side by side",
)

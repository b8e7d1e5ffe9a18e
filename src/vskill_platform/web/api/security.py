"""What is known about the safety of a version: our own verdict with every finding, what the judge and other analysers
say, the same as SARIF, and a badge for a repository's front page."""

import asyncio
from html import escape

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.findings import SARIF_TYPE, FindingView, finding_view
from vskill_platform.actions.wire import Wire, encode, iso_time
from vskill_platform.domain import keys
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.scan import (
    JudgeReport,
    Kind,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.external_scan.dispatch import provider_names
from vskill_platform.kv.entries import Entry
from vskill_platform.records import Skips
from vskill_platform.scan.report import Scanned, as_sarif, by_weight
from vskill_platform.scan.ruleset import bundled_rules
from vskill_platform.store.external_scans import ExternalReport, ExternalStatus, list_external_scans
from vskill_platform.web.api.files import VersionQuery
from vskill_platform.web.api.names import asked_skill, both, chosen_version
from vskill_platform.web.kept import Blocklist, kept_of
from vskill_platform.web.responses import public_json, tagged
from vskill_platform.web.routing import query_of
from vskill_platform.worker_context import require_env

OWN_NAME = "vskill-platform"
JUDGE_NAME = "judge"
SVG_TYPE = "image/svg+xml"
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
    report_url: str
    score: int | None
    ruleset: str | None
    providers: tuple[ProviderView, ...]
    #: the worst first; capabilities last
    findings: tuple[FindingView, ...]


class Known(msgspec.Struct, frozen=True):
    """Every stored report about one content."""

    static: StaticReport | None
    judge: JudgeReport | None
    others: tuple[ExternalReport, ...]
    #: Analysers whose report is wanted and not there.
    owed: tuple[str, ...]


async def known_about(digest: str) -> Known:
    """By our present rules where they have looked, otherwise by the latest that have."""
    env = require_env("kv")
    scans = await env.kv.scan(keys.scans_of(digest), limit=MOST_REPORTS)
    words = await env.kv.scan(f"{keys.JUDGE}{digest}:", limit=MOST_REPORTS)
    for error in (*scans.failed.values(), *words.failed.values()):
        raise error
    skips = Skips("security_report")
    newest = _best(scans.items, keys.scan(digest, env.scanner.ruleset))
    word = _best(words.items, "")
    others = await list_external_scans(digest)
    said = {one.provider for one in others}
    owed = tuple(name for name in await provider_names() if name not in said)
    static = None if newest is None else skips.decode(newest, StaticReport)
    judge = None if word is None else skips.decode(word, JudgeReport)
    skips.report(env)
    return Known(static, judge, others, owed)


def _best(entries: tuple[Entry, ...], preferred: str) -> Entry | None:
    return max(entries, key=lambda entry: (entry.key == preferred, entry.version), default=None)


def security_of(skill: PublishedSkill, ref: VersionRef, known: Known, blocklist: Blocklist) -> SecurityAnswer:
    """The report as it is shown."""
    hits = blocklist.hits(skill.identity, (skill.name,), ref.digest)
    taken_down = ref.status is VersionStatus.TAKEN_DOWN
    findings = by_weight(known.static.findings) if known.static else []
    return SecurityAnswer(
        name=skill.canonical,
        version=ref.number,
        digest=ref.digest,
        overall_verdict=Verdict.FAIL.value if hits or taken_down else _overall(known),
        reason=hits[0].reason if hits else ref.reason if taken_down else None,
        report_url=f"/skills/{skill.canonical}?tab=security",
        score=known.static.score if known.static else None,
        ruleset=known.static.ruleset if known.static else None,
        providers=(
            _own(known.static),
            *_judge(known.judge),
            *map(_other, known.others),
            *map(_owed, known.owed),
        ),
        findings=tuple(map(finding_view, findings)),
    )


def _overall(known: Known) -> str:
    if known.static is None or known.static.status is not ScanStatus.COMPLETE:
        return PENDING
    answer = known.judge.answer if known.judge else None
    return (answer[1] if answer else known.static.verdict).value


def _own(report: StaticReport | None) -> ProviderView:
    if report is None:
        return ProviderView(
            OWN_NAME, PENDING, None, 0, 0, None, "these bytes have no stored report", "", None
        )
    counted = [one for one in report.findings if one.kind is not Kind.CAPABILITY]
    critical = sum(one.severity is Severity.CRITICAL for one in counted)
    verdict = report.verdict if report.status is ScanStatus.COMPLETE else None
    return ProviderView(
        OWN_NAME, _status(verdict), verdict and verdict.value, critical, len(counted), report.score,
        report.problem, report.ruleset, None,
    )  # fmt: skip


def _judge(report: JudgeReport | None) -> tuple[ProviderView, ...]:
    if report is None or report.answer is None:
        return ()
    points, verdict = report.answer
    confirmed = sum(word.confirmed for word in report.confirmations)
    name = f"{report.model} {report.rubric}".strip()
    view = ProviderView(
        JUDGE_NAME, _status(verdict), verdict.value, confirmed, confirmed, points, report.reason, name, None
    )
    return (view,)


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


def _owed(provider: str) -> ProviderView:
    return ProviderView(provider, PENDING, None, 0, 0, None, "has not reported yet", "", None)


def _status(verdict: Verdict | None) -> str:
    """The client knows passed and failed; concerns are a pass that says so."""
    if verdict is None:
        return "TIMED_OUT"
    return "FAIL" if verdict is Verdict.FAIL else "PASS"


# Views: also of what is blocked, since its report is what people want to read.


async def security_view(request: Request) -> Response:
    skill = await asked_skill(request)
    ref = chosen_version(skill, query_of(request, VersionQuery).version)
    found = security_of(skill, ref, await known_about(ref.digest), await kept_of(request).blocklist())
    return public_json(request, encode(found))


async def sarif_view(request: Request) -> Response:
    skill = await asked_skill(request)
    ref = chosen_version(skill, query_of(request, VersionQuery).version)
    report = (await known_about(ref.digest)).static
    if report is None:
        raise NotFound(f"{skill.canonical} {ref.number} has no stored report.", skill=skill.canonical)
    body = await asyncio.to_thread(lambda: as_sarif([Scanned(skill.identity.path, report)], bundled_rules()))
    return tagged(request, body, SARIF_TYPE)


async def badge_view(request: Request) -> Response:
    skill = await asked_skill(request)
    blocklist = await kept_of(request).blocklist()
    return tagged(request, badge(skill, blocked=bool(blocklist.hits_skill(skill))).encode(), SVG_TYPE)


def badge(skill: PublishedSkill, *, blocked: bool) -> str:
    """A small picture that says how a skill stands."""
    if blocked:
        return _svg("blocked", "#b42318")
    if skill.certification is None:
        return _svg("withdrawn", "#6b7280")
    colours = {"SCANNED": "#2563a8", "VERIFIED": "#0f766e", "CERTIFIED": "#0b6b3a"}
    text = f"{skill.certification.value.lower()} {skill.current_version}"
    return _svg(text, colours[skill.certification.value])


def _svg(text: str, colour: str) -> str:
    left, right = 46, 16 + int(6.4 * len(text))
    total, middle = left + right, left + right / 2
    shown = escape(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" aria-label="skill: {shown}">'
        f"<title>skill: {shown}</title>"
        f'<rect width="{total}" height="20" rx="3" fill="{colour}"/>'
        f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#30363d"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14">skill</text><text x="{middle}" y="14">{shown}</text></g></svg>'
    )


ENDPOINTS = (
    *both(
        "/security",
        security_view,
        query=VersionQuery,
        answer=SecurityAnswer,
        problems=(404,),
        tag="skills",
        summary="Read the security report of a version",
    ),
    *both(
        "/security.sarif",
        sarif_view,
        query=VersionQuery,
        media=SARIF_TYPE,
        problems=(404,),
        tag="skills",
        summary="Read the static scan of a version as SARIF 2.1.0",
    ),
    *both(
        "/badge",
        badge_view,
        media=SVG_TYPE,
        problems=(404,),
        tag="skills",
        summary="Show how a skill stands, as a picture",
    ),
)

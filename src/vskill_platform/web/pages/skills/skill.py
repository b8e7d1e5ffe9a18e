"""The pages about one skill: what it is and how to install it, its versions, and its security report; `skill_files`
shows its files and what changed in them.

Everything shown comes from a `Dossier` and, where the content is shown, from the stored bytes. All of it is foreign
text: templates escape it, and markdown goes through `web.drawing.markdown`.
"""

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import Asked
from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged
from vskill_core.findings import Finding, FindingKind
from vskill_core.identity import SKILL_FILE
from vskill_platform.actions.principal import ActionObject, Right, audiences_of, may, needs_token
from vskill_platform.actions.recall.takedowns import TAKE_DOWN
from vskill_platform.actions.review.reports import FILE, REPORT_KINDS
from vskill_platform.actions.skills.plugin_parts import find_part, list_beside, read_parts
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.skills.versions import RELEASE_NAME
from vskill_platform.actions.submissions.intake import SUBMIT
from vskill_platform.actions.verdicts.dossier import Dossier, look_at_skill, read_dossier, read_dossier_files
from vskill_platform.actions.verdicts.external_scans import list_external_reports
from vskill_platform.domain.evidence import JudgeWords
from vskill_platform.domain.skills.names import listed_name
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.skills.trust import lacks_for_next_tier, trust_reasons, trust_score, trust_tier
from vskill_platform.domain.verdicts.verdict_words import VerdictWords, words_for_blocked, words_for_scan
from vskill_platform.web.api.names import asked_name
from vskill_platform.web.auth import see_other, text_of
from vskill_platform.web.charts import installs_chart
from vskill_platform.web.clients.artifacts import ways_to_install
from vskill_platform.web.drawing.markdown import Rendered, Style, TextHeading, body_of, render_aside
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.pages.acting import act_by_form, page_with_flash
from vskill_platform.web.pages.acting import form as form_of_action
from vskill_platform.web.routing import form, page, query_of
from vskill_scan.results.report import by_weight

PLACE = "/skills/{owner}/{repo}/{slug}"
MOST_REASON = 2_000
#: Of each kind.
MOST_RELATED = 3
#: A text with fewer headings needs no table of contents, and one of many shows the first.
LEAST_HEADINGS, MOST_HEADINGS = 4, 60
#: Headings below these are details.
DEEPEST = 3

_NO_PARTS: dict[str, object] = {"plugin": None, "beside": ()}
#: What a skill's page leaves out where it only says what is wrong with a report.
_REST_OF_SKILL = {
    "readme": None,
    "contents": (),
    "chart": None,
    "related": ((), ()),
    "reported": "",
    **_NO_PARTS,
}

VersionNumber = Annotated[str, msgspec.Meta(max_length=80)]


class ShownVersionQuery(Asked, frozen=True):
    """Which version; none is the current one."""

    version: VersionNumber = ""


class ReportedQuery(Asked, frozen=True):
    """What the page says after a report was filed."""

    reported: Annotated[str, msgspec.Meta(max_length=10)] = ""


async def skill(request: Request) -> Response:
    services = services_of(request)
    look = await look_at_skill(services, principal_of(request), asked_name(request), MOST_RELATED)
    dossier = look.dossier
    files = await _shown_files(dossier)
    plugin = None if files is None else await read_parts(dossier.skill, files)
    text = None if files is None else _skill_text(files)
    place = skill_address(dossier)
    style = Style(shift=2, base=f"{place}/files/", anchors=True, prefix="readme-")
    readme = None if text is None else await render_aside(body_of(text), style)
    today = datetime.fromtimestamp(services.kv.now() / 1000, UTC).date()
    return await render_skill(
        request,
        "skill.html",
        dossier,
        "about",
        readme=readme,
        contents=_contents(readme),
        chart=installs_chart(look.days, today) if look.days and dossier.installable else None,
        related=look.related,
        plugin=plugin,
        beside=await list_beside(principal_of(request), dossier.skill),
        reported=query_of(request, ReportedQuery).reported,
    )


def _contents(readme: Rendered | None) -> tuple[TextHeading, ...]:
    """The headings of a long text that lead somewhere; nothing where it can be seen at a glance."""
    found = tuple(one for one in readme.headings if one.level <= DEEPEST and one.text) if readme else ()
    return found[:MOST_HEADINGS] if len(found) >= LEAST_HEADINGS else ()


async def flat(request: Request) -> Response:
    """A flat name leads to the one skill that has it; of several the error lists them."""
    found = await find_skill(principal_of(request), request.path_params["name"])
    return RedirectResponse(f"/skills/{quote(found.canonical)}", 302, {"cache-control": "no-store"})


async def versions(request: Request) -> Response:
    dossier = await read_asked_dossier(request)
    return await render_skill(request, "skill_versions.html", dossier, "versions")


async def security(request: Request) -> Response:
    dossier = await read_asked_version(request)
    findings = dossier.scan.findings if dossier.scan else ()
    counted = [one for one in findings if one.kind is not FindingKind.CAPABILITY]
    return await render_skill(
        request,
        "skill_security.html",
        dossier,
        "security",
        counted=by_weight(counted),
        capabilities=_by_rule(findings),
        external=await list_external_reports(dossier.ref.digest),
    )


async def report(request: Request) -> Response:
    """A reader's report; what is wrong with the form is said at its fields."""
    dossier = await read_asked_dossier(request)
    values = {name: await text_of(request, name, MOST_REASON) for name in ("category", "reason")}
    errors = {}
    if values["category"] not in REPORT_KINDS:
        errors["category"] = f"Choose one of: {', '.join(REPORT_KINDS)}."
    if not values["reason"]:
        errors["reason"] = "Say what is wrong, in a sentence or two."
    if errors:
        refused = {**_REST_OF_SKILL, "errors": errors, "values": values}
        return await render_skill(request, "skill.html", dossier, "about", 400, **refused)
    filed = await act_by_form(request, FILE, skill=dossier.skill.canonical)
    said = "new" if filed.new else "again"
    return see_other(request, f"{skill_address(dossier)}?reported={said}#report")


async def render_skill(
    request: Request, template: str, dossier: Dossier, tab: str, status: int = 200, **context: Any
) -> Response:
    with_token = needs_token(services_of(request), dossier.skill.audience)
    place = ActionObject(dossier.skill.identity)
    short_name = listed_name(dossier.skill.listed_as, audiences_of(principal_of(request)))
    shown = {"errors": {}, "values": {"category": "", "reason": ""}, **context}
    return page_with_flash(
        request,
        template,
        status,
        dossier=dossier,
        skill=dossier.skill,
        ref=dossier.ref,
        tab=tab,
        place=skill_address(dossier),
        base=public_address(request),
        ways=await ways_to_install(request, dossier.skill) if dossier.installable else (),
        with_token=with_token,
        why=_why_not(dossier),
        words=_words(dossier),
        trust=_trust_figure(dossier, unfolded=tab == "security"),
        report_kinds=[(kind, kind.capitalize()) for kind in REPORT_KINDS],
        can_take_down=TAKE_DOWN.allows(principal_of(request)),
        short_name=short_name,
        can_release=short_name is not None and RELEASE_NAME.allows(principal_of(request)),
        is_owner=await may(principal_of(request), Right.MAINTAINER, place),
        **shown,
    )


async def read_asked_dossier(request: Request, number: str | None = None) -> Dossier:
    return await read_dossier(services_of(request), principal_of(request), asked_name(request), number)


async def read_asked_version(request: Request) -> Dossier:
    return await read_asked_dossier(request, query_of(request, ShownVersionQuery).version or None)


async def _shown_files(dossier: Dossier) -> tuple[SkillFile, ...] | None:
    """None where they are withheld or damaged: the page says the rest."""
    if not dossier.readable:
        return None
    try:
        return await read_dossier_files(dossier)
    except ContentDamaged:
        return None


def _skill_text(files: tuple[SkillFile, ...]) -> str | None:
    return next((one.data.decode("utf-8", "replace") for one in files if one.path == SKILL_FILE), None)


async def part(request: Request) -> Response:
    """The address of a skill in a plugin leads to its file."""
    dossier = await read_asked_dossier(request)
    plugin = await read_parts(dossier.skill, await read_dossier_files(dossier))
    found = find_part(dossier.skill, plugin, request.path_params["part"])
    address = f"{skill_address(dossier)}/files/{quote(found.file)}"
    return RedirectResponse(address, 302, {"cache-control": "no-store"})


def skill_address(dossier: Dossier) -> str:
    return f"/skills/{quote(dossier.skill.canonical)}"


def _why_not(dossier: Dossier) -> tuple[str, ...]:
    """The reasons why it cannot be installed, as entered by those who decided; empty if it can be."""
    if dossier.blocks:
        return tuple(dict.fromkeys(entry.reason for entry in dossier.blocks))
    if dossier.ref.status is VersionStatus.LIVE:
        return ()
    return (dossier.ref.reason or "no reason was recorded",)


def _words(dossier: Dossier) -> VerdictWords:
    reasons = _why_not(dossier)
    if reasons and dossier.ref.status is not VersionStatus.YANKED:
        return words_for_blocked(reasons, blocked=bool(dossier.blocks))
    evidence = dossier.submission.evidence if dossier.submission else None
    if evidence is None or evidence.digest != dossier.ref.digest:
        return words_for_scan(dossier.scan, JudgeWords())
    return words_for_scan(dossier.scan, evidence.judge_words)


def _trust_figure(dossier: Dossier, *, unfolded: bool) -> dict[str, object] | None:
    """The trust figure, with what it is made of and what the next tier needs. Only what can be installed has one."""
    if not dossier.installable or dossier.skill.listing is None:
        return None
    facts = dossier.skill.trust
    return {
        "points": trust_score(facts),
        "tier": trust_tier(facts),
        "reasons": trust_reasons(facts),
        "missing": lacks_for_next_tier(facts),
        "open": unfolded,
    }


def _by_rule(findings: tuple[Finding, ...]) -> list[tuple[Finding, list[Finding]]]:
    """What it can do: one entry per rule, with every place."""
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.kind is FindingKind.CAPABILITY:
            places.setdefault(finding.rule_id, []).append(finding)
    return [(found[0], found) for found in places.values()]


ENDPOINTS = (
    page("/skills/{name}", flat),
    page(PLACE, skill, query=ReportedQuery, shows=("skill.download", "skill.attestation")),
    page(f"{PLACE}/-/{{part}}", part),
    page(f"{PLACE}/versions", versions, shows=("skill.show", "skill.versions")),
    page(
        f"{PLACE}/security",
        security,
        query=ShownVersionQuery,
        shows=("skill.security", "scan.external", "scan.external-report"),
    ),
    form(f"{PLACE}/report", report, action=FILE, allowance=FILE.allowance),
    form_of_action(
        f"{PLACE}/kind", SUBMIT, lambda _, asked: f"It was submitted as a {asked.kind}.", at=PLACE
    ),
)

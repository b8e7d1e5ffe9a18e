"""What is known about the safety of a version as SARIF, and a badge for a repository's front page."""

import asyncio
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.skills.skill_names import current_blocklist
from vskill_platform.actions.submissions.findings import SARIF_TYPE
from vskill_platform.actions.verdicts.skill_security import read_static_report
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.api.files import VersionQuery
from vskill_platform.web.api.names import asked_name, asked_skill, both
from vskill_platform.web.exchange import answer_with_tag, principal_of, services_of
from vskill_platform.web.routing import query_of
from vskill_scan.results.report import Scanned, as_sarif
from vskill_scan.rules.ruleset import bundled_rules

SVG_TYPE = "image/svg+xml"


async def sarif_view(request: Request) -> Response:
    number = query_of(request, VersionQuery).version
    reader = principal_of(request)
    skill, report = await read_static_report(services_of(request), reader, asked_name(request), number)
    body = await asyncio.to_thread(lambda: as_sarif([Scanned(skill.identity.path, report)], bundled_rules()))
    return answer_with_tag(request, body, SARIF_TYPE)


async def badge_view(request: Request) -> Response:
    skill = await asked_skill(request)
    blocklist = await current_blocklist(services_of(request))
    return answer_with_tag(
        request, badge(skill, blocked=bool(blocklist.hits_skill(skill))).encode(), SVG_TYPE
    )


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
        "/security.sarif",
        sarif_view,
        query=VersionQuery,
        media=SARIF_TYPE,
        problems=(404,),
        summary="Read the static scan of a version as SARIF 2.1.0",
    ),
    *both(
        "/badge",
        badge_view,
        media=SVG_TYPE,
        problems=(404,),
        summary="Show how a skill stands, as a picture",
    ),
)

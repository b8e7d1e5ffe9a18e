"""Two skills side by side: what each needs, whose it is, how it was judged, and in what they differ."""

from vskill_client.wire.base import ActionRequest, SkillName, Wire
from vskill_client.wire.skills import SkillCard
from vskill_core.capability import Lack
from vskill_core.errors import Ambiguous, NotFound
from vskill_core.findings import StaticReport
from vskill_core.plural import counted
from vskill_platform.actions.action import Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.capabilities import CapabilityChanges, changes_view, compare_cards
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.actions.skills.skill_contents import read_version
from vskill_platform.actions.skills.skill_names import choose_version, current_blocklist, find_skill
from vskill_platform.actions.skills.skill_views import card
from vskill_platform.actions.verdicts.skill_security import read_reports, security_of
from vskill_platform.domain.skills.trust import Provenance

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
    capabilities: CapabilityChanges | None


async def compare_skills(services: Services, reader: Principal, request: CompareSkills) -> SkillComparison:
    a, facts_a, report_a = await _look(services, reader, request.a)
    b, facts_b, report_b = await _look(services, reader, request.b)
    facts = tuple(
        ComparedFact(fact, value, facts_b[fact], value != facts_b[fact]) for fact, value in facts_a.items()
    )
    return SkillComparison(a, b, facts, changes_view(compare_cards(report_a, report_b)))


async def _look(
    services: Services, reader: Principal, name: str
) -> tuple[SkillCard, dict[str, str], StaticReport | None]:
    skill = await with_current_installs(services, await find_skill(reader, name))
    blocklist = await current_blocklist(services)
    ref = choose_version(skill, None)
    known = await read_reports(services, ref.digest)
    files = (await read_version(skill, ref)).manifest
    shown = card(skill, blocklist)
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

ACTIONS = (COMPARE,)

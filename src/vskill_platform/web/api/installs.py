"""What clients tell and ask after an install: one more was installed, and is there something newer.

Installs are counted by skill and day. Nothing about who installed is kept.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import PLAIN, Sent, Wire
from vskill_client.wire.skills import SKILLS, InstallAnswer
from vskill_core.errors import Ambiguous, InvalidInput, NotFound
from vskill_platform.actions.action import Allowance
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.revocations import RecallView, find_version, recall_by_block, recall_of
from vskill_platform.actions.skills.installs import AT_ONCE, count_install_of, count_installs_of
from vskill_platform.actions.skills.skill_names import current_blocklist, find_skill
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.numbering import parse_semver
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.web.api.names import ANY_NAME, CANONICAL, asked_name
from vskill_platform.web.exchange import json_response, principal_of, services_of
from vskill_platform.web.routing import body_of, decode_body, post, read_body

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
#: A name that is looked up at once; among several, an odd one is told as unknown instead.
PlainName = Annotated[str, msgspec.Meta(min_length=1, max_length=400, pattern=PLAIN)]
MOST_SKILLS = 100


class InstalledName(Sent, frozen=True):
    """One of several skills that were installed together."""

    skill_name: Name
    #: `owner/repo` or a URL: tells skills of one name apart
    repo_url: Annotated[str, msgspec.Meta(max_length=2048)] | None = None


class InstallBody(Sent, frozen=True):
    """What was installed; all of it may be left out where the address names the skill."""

    skill_name: PlainName | None = None
    name: PlainName | None = None
    #: `owner/repo` or a URL: tells skills of one name apart
    repo_url: Annotated[str, msgspec.Meta(max_length=2048)] | None = None
    #: several at once, where the address names none
    skills: Annotated[tuple[InstalledName, ...], msgspec.Meta(max_length=MOST_SKILLS)] = ()


class InstallsAnswer(Wire, frozen=True):
    """Which of several installs were counted."""

    #: by canonical name
    counted: tuple[str, ...]
    #: as they were sent: no skill has this name, or several have it
    unknown: tuple[str, ...]


class Installed(Sent, frozen=True):
    """One skill that a client has."""

    name: Name
    current_version: Annotated[str, msgspec.Meta(max_length=80)] = ""
    #: the content hash of its SKILL.md; equal means that there is no update
    sha: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    #: the digest of all its files
    digest: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class UpdatesBody(Sent, frozen=True):
    """What a client has installed."""

    skills: Annotated[tuple[Installed, ...], msgspec.Meta(max_length=MOST_SKILLS)]


class UpdateView(Wire, frozen=True):
    """What there is for one skill."""

    #: as it was sent
    name: str
    installed: str
    #: null where the skill is unknown, ambiguous, withdrawn or blocked
    latest: str | None
    update_available: bool
    #: major, minor or patch; null where there is no update, or one of the two is no version
    version_bump: str | None
    cert_tier: str | None
    cert_score: int | None
    #: why there is no latest version
    reason: str | None
    #: the version that the client has was blocked, taken down or deleted: remove it
    revoked: bool
    #: why, since when and what to install instead; also where it was only yanked, which is a warning
    recall: RecallView | None


class UpdatesAnswer(Wire, frozen=True):
    """In the order in which they were asked for."""

    results: tuple[UpdateView, ...]


async def install_view(request: Request) -> Response:
    body = await _install_body(request)
    return await _count(request, asked_name(request), body)


async def any_install_view(request: Request) -> Response:
    body = await _install_body(request)
    if body.skills:
        wanted = [(one.skill_name, one.repo_url) for one in body.skills]
        found = await count_installs_of(principal_of(request), wanted)
        counted = tuple(dict.fromkeys(name for name in found if name is not None))
        unknown = tuple(sent for (sent, _), name in zip(wanted, found, strict=True) if name is None)
        return json_response(InstallsAnswer(counted, unknown))
    name = body.skill_name or body.name
    if name is None:
        raise InvalidInput("The body names no skill.", field="skillName", fix="name the skill")
    return await _count(request, name, body)


async def _install_body(request: Request) -> InstallBody:
    """A client that has nothing to add sends no body."""
    data = await read_body(request)
    return decode_body(data, InstallBody) if data.strip() else InstallBody()


async def _count(request: Request, name: str, body: InstallBody) -> Response:
    skill = await count_install_of(principal_of(request), name, body.repo_url)
    return json_response(InstallAnswer(ok=True, name=skill.canonical), 201)


async def updates_view(request: Request) -> Response:
    body = await body_of(request, UpdatesBody)
    blocklist = await current_blocklist(services_of(request))
    reader = principal_of(request)
    found = await some_at_a_time(lambda one: _update(reader, one, blocklist), body.skills, AT_ONCE)
    return json_response(UpdatesAnswer(tuple(found)))


async def _update(reader: Principal, installed: Installed, blocklist: Blocklist) -> UpdateView:
    try:
        skill = await find_skill(reader, installed.name)
    except (NotFound, Ambiguous, InvalidInput) as error:
        return _update_view(installed, None, error.public_message, None)
    hits = blocklist.hits_skill(skill)
    recall = _recall(installed, skill, blocklist)
    if hits or skill.current_version is None:
        return _update_view(installed, None, f"blocked: {hits[0].reason}" if hits else "withdrawn", recall)
    return _update_view(installed, skill, None, recall)


def _recall(installed: Installed, skill: PublishedSkill, blocklist: Blocklist) -> RecallView | None:
    """What became of the version that the client has. Of a version that nobody published here, only a block of the
    whole skill says something."""
    ref = find_version(skill, installed.current_version, installed.digest, installed.sha)
    if ref is not None:
        return recall_of(skill, ref, blocklist)
    hits = blocklist.hits_skill(skill)
    return recall_by_block(hits[0], None) if hits else None


def _update_view(
    installed: Installed, skill: PublishedSkill | None, reason: str | None, recall: RecallView | None
) -> UpdateView:
    """Beside the skill's current version, or with the reason why there is none."""
    latest = None if skill is None else skill.current_version
    newer = skill is not None and _is_newer(installed, skill)
    # Who has a revoked version should install another one, newer or not.
    revoked = recall is not None and recall.revokes
    return UpdateView(
        name=installed.name,
        installed=installed.current_version,
        latest=latest,
        update_available=skill is not None and (newer or revoked),
        version_bump=_bump(installed.current_version, latest or "") if newer else None,
        cert_tier=skill.certification.value if skill and skill.certification else None,
        cert_score=skill.certification.mark(skill.score) if skill and skill.certification else None,
        reason=reason,
        revoked=revoked,
        recall=recall,
    )


def _is_newer(installed: Installed, skill: PublishedSkill) -> bool:
    if installed.sha:
        return installed.sha.removeprefix("sha256:") != skill.content_hash
    latest = skill.current_version or ""
    have, there = parse_semver(installed.current_version), parse_semver(latest, 18)
    if have is None or there is None:
        return installed.current_version != latest
    return there.precedence > have.precedence


def _bump(installed: str, latest: str) -> str | None:
    have, there = parse_semver(installed), parse_semver(latest, 18)
    if have is None or there is None or there.precedence <= have.precedence:
        return None
    if there.major != have.major:
        return "major"
    return "minor" if there.minor != have.minor else "patch"


_COUNTED = {
    "no_scope": "counted as an anonymous request is; who asks is not kept",
    "body": InstallBody,
    "answer": InstallAnswer,
    "status": 201,
    "problems": (404,),
    "allowance": Allowance.INSTALLS,
    "tag": "skills",
}

ENDPOINTS = (
    post(
        f"{SKILLS}/installs",
        any_install_view,
        summary="Count an install, or several, named in the body",
        others={200: InstallsAnswer},
        **_COUNTED,
    ),
    post(f"{CANONICAL}/installs", install_view, summary="Count an install of this skill", **_COUNTED),
    post(f"{ANY_NAME}/installs", install_view, summary="Count an install of this skill", **_COUNTED),
    post(
        f"{SKILLS}/check-updates",
        updates_view,
        no_scope="reads only",
        reads_only=True,
        body=UpdatesBody,
        answer=UpdatesAnswer,
        allowance=Allowance.UPDATES,
        tag="skills",
        summary="Ask for newer versions of installed skills",
    ),
)

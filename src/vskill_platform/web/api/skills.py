"""One skill as the existing client reads it, and what a version holds: its files, one of them, all of them as an
archive, what changed between two versions, its scan as SARIF, and a badge for a repository's front page.

Content is foreign: it is only ever sent as something that a browser shows as text or saves, never as a page.
"""

import asyncio
from collections.abc import Callable
from html import escape
from typing import Annotated, Literal, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, Wire
from vskill_core.archives import tar_archive
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput
from vskill_core.identity import SKILL_FILE
from vskill_platform.actions.principal import audiences_of
from vskill_platform.actions.skills import skill_names, skill_views
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.actions.submissions.submissions import SARIF_TYPE
from vskill_platform.actions.verdicts.skill_security import read_reports, read_static_report
from vskill_platform.actions.wire import encode
from vskill_platform.domain.downloads import TAR_TYPE, ZIP_TYPE, zip_archive
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef
from vskill_platform.web import exchange
from vskill_platform.web.api.names import asked_name, asked_skill, both
from vskill_platform.web.drawing import diffs
from vskill_platform.web.kept import Again, Answer, form_key, kept_of, last_change
from vskill_platform.web.routing import query_of
from vskill_scan.results.report import Scanned, as_sarif
from vskill_scan.rules.ruleset import bundled_rules


async def detail_view(request: Request) -> Response:
    name = asked_name(request)
    if name.count("/") != 2:
        name = (await skill_names.find_skill(exchange.principal_of(request), name)).canonical
    return Again(await _detail(request, name), request)


async def _detail(request: Request, name: str) -> Answer:
    """Kept while nothing in the store has changed, or else neither the record, the installs nor the blocklist has."""
    kept, services, reader = kept_of(request), exchange.services_of(request), exchange.principal_of(request)
    key = form_key(request, None, "skill", name)
    seen = await last_change()
    known = kept.answer(key, seen)
    if known is not None:
        return known
    skill, version, blocklist = await skill_names.find_skill_version(services, reader, name)
    skill = await with_current_installs(services, skill)
    mark = (version, blocklist.version, skill.trust.installs)
    known = kept.same(key, mark, seen)
    if known is not None:
        return known
    gone = skill.current_digest is None or bool(blocklist.hits_skill(skill))
    content = "" if gone else await skill_names.read_skill_text(services, skill.current_digest or "")
    shown = skill_views.detail(skill, blocklist, content, audiences_of(reader))
    return kept.keep(key, encode(skill_views.SkillAnswer(shown)), seen, mark)


SVG_TYPE = "image/svg+xml"


async def sarif_view(request: Request) -> Response:
    number = query_of(request, VersionQuery).version
    reader = exchange.principal_of(request)
    skill, report = await read_static_report(
        exchange.services_of(request), reader, asked_name(request), number
    )
    body = await asyncio.to_thread(lambda: as_sarif([Scanned(skill.identity.path, report)], bundled_rules()))
    return exchange.answer_with_tag(request, body, SARIF_TYPE)


async def badge_view(request: Request) -> Response:
    skill = await asked_skill(request)
    blocklist = await skill_names.current_blocklist(exchange.services_of(request))
    return exchange.answer_with_tag(
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


T = TypeVar("T")

Number = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
#: What is made of more than this is made in a thread.
INLINE_BYTES = 100_000
TEXT_TYPE = "text/plain; charset=utf-8"
BYTES_TYPE = "application/octet-stream"


class VersionQuery(Asked, frozen=True):
    """Which version; the current one where none is named."""

    version: Number | None = None


class FileQuery(Asked, frozen=True):
    """Which file of which version."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=600)] = SKILL_FILE
    version: Number | None = None


class ArchiveQuery(Asked, frozen=True):
    """Which version, in which form."""

    version: Number | None = None
    format: Literal["zip", "tar.gz"] = "zip"


class DiffQuery(Asked, frozen=True):
    """Two versions; both are needed."""

    source: Number | None = msgspec.field(default=None, name="from")
    to: Number | None = None


class DiffAnswer(Wire, frozen=True):
    """What changed in SKILL.md."""

    source: str = msgspec.field(name="from")
    to: str
    diff_summary: str
    #: a unified diff of SKILL.md; empty where it is the same
    content_diff: str


class CompareAnswer(Wire, frozen=True):
    """What changed in every file."""

    source: str = msgspec.field(name="from")
    to: str
    diff_summary: str
    files: tuple[diffs.FileChangeView, ...]
    #: what the capability cards of both differ in; null where a card is missing
    capabilities: skill_views.CapabilityChanges | None


async def file_view(request: Request) -> Response:
    query = query_of(request, FileQuery)
    skill = await asked_skill(request)
    ref = await skill_names.find_installable(exchange.services_of(request), skill, query.version)
    file = await skill_names.read_file(skill, ref, query.path)
    name = file.path.rpartition("/")[2]
    return exchange.foreign_file(request, file.data, f'"{ref.digest[:24]}"', _media(file), name)


def _media(file: SkillFile) -> str:
    try:
        file.data.decode("utf-8")
    except UnicodeDecodeError:
        return BYTES_TYPE
    return TEXT_TYPE


async def archive_view(request: Request) -> Response:
    query = query_of(request, ArchiveQuery)
    skill = await asked_skill(request)
    ref = await skill_names.find_installable(exchange.services_of(request), skill, query.version)
    tag = f'"{ref.digest[:24]}-{query.format}"'
    media = ZIP_TYPE if query.format == "zip" else TAR_TYPE
    name = f"{skill.slug}-{ref.number}.{query.format}"
    if tag in request.headers.get("if-none-match", ""):
        return exchange.with_tag(request, b"", tag, media)
    files = await skill_names.read_files(ref.digest)
    make = zip_archive if query.format == "zip" else tar_archive
    return exchange.attachment(exchange.with_tag(request, await made_of(files, make), tag, media), name)


async def made_of(files: tuple[SkillFile, ...], make: Callable[[tuple[SkillFile, ...]], T]) -> T:
    """What is made of a content's files; of many bytes, in a thread."""
    large = sum(len(file.data) for file in files) > INLINE_BYTES
    return await asyncio.to_thread(make, files) if large else make(files)


# Comparing.


async def diff_view(request: Request) -> Response:
    skill, before, after = await _two_versions(request)
    changes = await _changes(request, before, after)
    change = next((one for one in changes if one.filename == SKILL_FILE), None)
    text = "" if change is None else change.patch or change.note
    answer = DiffAnswer(before.number, after.number, await _summary(skill, before, after), text)
    return exchange.answer_with_tag(request, encode(answer))


async def compare_view(request: Request) -> Response:
    skill, before, after = await _two_versions(request)
    changes = await _changes(request, before, after)
    services = exchange.services_of(request)
    cards = [(await read_reports(services, ref.digest)).static for ref in (before, after)]
    summary = await _summary(skill, before, after)
    answer = CompareAnswer(
        before.number,
        after.number,
        summary,
        changes,
        skill_views.changes_view(skill_views.compare_cards(cards[0], cards[1])),
    )
    return exchange.answer_with_tag(request, encode(answer))


async def _two_versions(request: Request) -> tuple[PublishedSkill, VersionRef, VersionRef]:
    query = query_of(request, DiffQuery)
    skill = await asked_skill(request)
    chosen = []
    blocklist = await skill_names.current_blocklist(exchange.services_of(request))
    for field, number in (("from", query.source), ("to", query.to)):
        if number is None:
            raise InvalidInput(f"The parameter {field!r} is missing.", field=field, fix="name a version")
        ref = skill_names.require_version(skill, number, field)
        skill_names.refuse_blocked(skill, ref, blocklist)
        chosen.append(ref)
    return skill, chosen[0], chosen[1]


async def _changes(
    request: Request, before: VersionRef, after: VersionRef
) -> tuple[diffs.FileChangeView, ...]:
    """The contents never change, so what was compared once is kept."""
    kept = kept_of(request).changes
    key = (before.digest, after.digest)
    found = kept.get(key)
    if found is None:
        old, new = (
            await skill_names.read_files(before.digest),
            await skill_names.read_files(after.digest),
        )
        found = await diffs.compare(old, new, kept_of(request).diff_turn)
        kept.put(key, found, sum(len(one.patch) + len(one.filename) for one in found))
    return found


async def _summary(skill: PublishedSkill, before: VersionRef, after: VersionRef) -> str:
    old = await skill_names.read_version(skill, before)
    new = await skill_names.read_version(skill, after)
    return skill_views.summary_of(old.manifest, new.manifest)


_GONE = (403, 404, 410)


ENDPOINTS = (
    *both(
        "",
        detail_view,
        answer=skill_views.SkillAnswer,
        problems=(404,),
        summary="Read one skill",
        about="A name that nobody holds and several skills declare is a 404 with the header "
        "`X-Legacy-Ambiguous: true`.",
    ),
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
    *both(
        "/file",
        file_view,
        query=FileQuery,
        media="*/*",
        problems=_GONE,
        summary="Read one file of a version",
    ),
    *both(
        "/archive",
        archive_view,
        query=ArchiveQuery,
        media="*/*",
        challenges=True,
        problems=_GONE,
        summary="Download a version as an archive",
        about="The bytes depend on the files alone, so they are those that the attestation names.",
    ),
    *both(
        "/versions/diff",
        diff_view,
        query=DiffQuery,
        answer=DiffAnswer,
        problems=_GONE,
        summary="Show what changed in SKILL.md between two versions",
    ),
    *both(
        "/versions/compare",
        compare_view,
        query=DiffQuery,
        answer=CompareAnswer,
        problems=_GONE,
        summary="Show what changed in every file between two versions",
    ),
)

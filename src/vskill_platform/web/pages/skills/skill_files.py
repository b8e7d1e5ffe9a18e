"""The files of a skill: the list, one file as coloured code with lines that can be linked to, and what changed between
any two versions. A long file is shown in parts, each with its own address, so that no page grows with what a stranger
has written.
"""

from typing import Annotated, Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import Asked
from vskill_core.content import SkillFile
from vskill_core.errors import NotFound
from vskill_platform.actions.skills.skill_views import compare_cards
from vskill_platform.actions.verdicts.dossier import read_dossier_files
from vskill_platform.web.drawing.diffs import compare
from vskill_platform.web.drawing.highlight import CodeLine, Highlighter, shorten
from vskill_platform.web.kept import kept_of
from vskill_platform.web.pages.skills import skill
from vskill_platform.web.render import LINES_PER_PART, at_line
from vskill_platform.web.routing import page, query_of

#: Of one file, in characters; the raw file has the rest.
MOST_SHOWN = 300_000
#: Of one line.
MOST_WIDTH = 1_000
#: Files whose lines wrap.
PROSE = (".md", ".markdown", ".rst", ".txt")

LineNumber = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class ShownFileQuery(skill.ShownVersionQuery, frozen=True):
    """Which part of a file, or which line is looked for."""

    part: LineNumber = 1
    line: LineNumber | None = None


class ChangesQuery(Asked, frozen=True):
    """Which two versions."""

    source: skill.VersionNumber = msgspec.field(default="", name="from")
    to: skill.VersionNumber = ""


class ViewedFile(msgspec.Struct, frozen=True):
    """A file, or a part of it, as the viewer shows it."""

    path: str
    size: int
    #: Where its bytes are.
    raw: str
    #: None: it is not text.
    lines: tuple[CodeLine, ...] | None = None
    #: The number of the first line shown.
    first: int = 1
    #: Lines of the file.
    count: int = 0
    part: int = 1
    parts: int = 1
    #: The file is longer than what all parts show.
    cut: bool = False

    @property
    def is_prose(self) -> bool:
        return self.path.lower().endswith(PROSE)


async def files(request: Request) -> Response:
    dossier = await skill.read_asked_version(request)
    return await skill.render_skill(request, "skill_files.html", dossier, "files", shown=None)


async def file(request: Request) -> Response:
    asked = query_of(request, ShownFileQuery)
    dossier = await skill.read_asked_dossier(request, asked.version or None)
    path = request.path_params["path"]
    here = f"{skill.skill_address(dossier)}/files/{quote(path)}"
    if asked.line is not None:
        query = f"?version={quote(asked.version)}" if asked.version else ""
        return RedirectResponse(here + at_line(query, asked.line), 302, {"cache-control": "no-store"})
    found = await read_dossier_files(dossier)
    wanted = next((one for one in found if one.path == path), None)
    if wanted is None:
        message = f"{dossier.skill.canonical} {dossier.ref.number} has no file {path[:200]}"
        raise NotFound(message, path=path[:200])
    version = urlencode({"path": path, "version": dossier.ref.number})
    raw = f"/api/v1/skills/{quote(dossier.skill.canonical)}/file?{version}"
    shown = await _view(wanted, raw, asked.part, kept_of(request).highlighter)
    return await skill.render_skill(request, "skill_files.html", dossier, "files", shown=shown, here=here)


async def _view(file: SkillFile, raw: str, part: int, highlighter: Highlighter) -> ViewedFile:
    """The asked part of a file; a part that there is not shows the last one."""
    if b"\0" in file.data[:8_000]:
        return ViewedFile(file.path, len(file.data), raw)
    text = file.data.decode("utf-8", "replace")
    (lines,) = await highlighter.highlight([(file.path, text[:MOST_SHOWN])])
    if lines[-1] == ():
        # The last line ends, and nothing follows it.
        lines = lines[:-1]
    parts = max(1, -(-len(lines) // LINES_PER_PART))
    part = min(part, parts)
    first = (part - 1) * LINES_PER_PART
    return ViewedFile(
        path=file.path,
        size=len(file.data),
        raw=raw,
        lines=tuple(shorten(line, MOST_WIDTH) for line in lines[first : first + LINES_PER_PART]),
        first=first + 1,
        count=len(lines),
        part=part,
        parts=parts,
        cut=len(text) > MOST_SHOWN,
    )


async def changes(request: Request) -> Response:
    asked = query_of(request, ChangesQuery)
    before = await skill.read_asked_dossier(request, asked.source or None)
    after = await skill.read_asked_dossier(request, asked.to or None)
    old, new = await read_dossier_files(before), await read_dossier_files(after)
    found = await compare(old, new, kept_of(request).diff_turn)
    cards = compare_cards(before.scan, after.scan)
    shown: dict[str, Any] = {"before": before.ref, "changes": found, "cards": cards}
    return await skill.render_skill(request, "skill_changes.html", after, "versions", **shown)


ENDPOINTS = (
    page(f"{skill.PLACE}/files", files, query=skill.ShownVersionQuery, shows=("skill.files",)),
    page(f"{skill.PLACE}/files/{{path:path}}", file, query=ShownFileQuery),
    page(f"{skill.PLACE}/versions/diff", changes, query=ChangesQuery),
)

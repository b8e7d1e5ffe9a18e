"""Submitting by hand: an address, the skills that are found there, and what became of each that was chosen.

Three forms, each a real one. What goes wrong is said at the field that it is about, with what was typed still in it.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_platform.actions.action import Allowance
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.content import DEFAULT_LIMITS, SkillFile, skill_file_of
from vskill_platform.domain.errors import InvalidInput, PlatformError
from vskill_platform.domain.identity import normalise
from vskill_platform.domain.naming import slugify
from vskill_platform.domain.submission import Source
from vskill_platform.intake.discover import Settled, Wanted, discover, submit_many
from vskill_platform.intake.manifest import read_manifest
from vskill_platform.intake.submit import Submitted, submit_upload
from vskill_platform.sources.archive import read_archive
from vskill_platform.web.auth import form_of, text_of, values_of
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.problems import in_words
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

MOST_URL = 2_048
#: Of one form; a larger repository is submitted folder by folder, or by command.
MOST_CHOSEN = 200
#: An archive is never larger than what may be in it, and a form around it is small.
MOST_UPLOAD = DEFAULT_LIMITS.bytes_total + 100_000


class SubmitQuery(Asked, frozen=True):
    """An address to begin with, as a link elsewhere may give it."""

    repo: Annotated[str, msgspec.Meta(max_length=MOST_URL)] = ""


async def start(request: Request) -> Response:
    return _start(request, values={"repo": query_of(request, SubmitQuery).repo})


async def find(request: Request) -> Response:
    """Every skill at the address; the repository is looked at, and nothing is written."""
    repo = await text_of(request, "repo", MOST_URL)
    if not repo:
        return _start(request, 400, {"repo": repo}, {"repo": "Give the address of a repository."})
    try:
        found = await discover(repo)
    except PlatformError as error:
        return _start(request, error.status, {"repo": repo}, {"repo": in_words(error)})
    # The paths are those from the repository's root, whatever folder the address named.
    root = normalise(repo).url
    return render(request, "submit_found.html", repo=root, asked=repo, found=found, most=MOST_CHOSEN)


async def send(request: Request) -> Response:
    """Submit what was chosen. Sending the form twice is the same submissions again."""
    repo = await text_of(request, "repo", MOST_URL)
    paths = tuple(dict.fromkeys(await values_of(request, "path")))[:MOST_CHOSEN]
    if not paths:
        return _start(request, 400, {"repo": repo}, {"repo": "No skill was chosen; look again and tick one."})
    wanted = [Wanted(repo, path) for path in paths]
    account = principal_of(request).account
    return _done(request, await submit_many(wanted, source=Source.WEB, submitter=account))


async def upload(request: Request) -> Response:
    """An archive of one skill, into the account's own namespace: nobody uploads into somebody else's."""
    account = principal_of(request).name
    name = await text_of(request, "name", 100)
    try:
        submitted = await _uploaded(await form_of(request), name, account)
    except PlatformError as error:
        field = "name" if error.details.get("field") == "slug" else "archive"
        return _start(request, error.status, {"name": name}, {field: in_words(error)})
    finally:
        # What was uploaded may be a file on disk.
        await request.close()
    return _done(request, [Settled(f"upload://{account}", name, submitted)])


async def _uploaded(sent: dict[str, Any], name: str, account: str) -> Submitted:
    archive = sent.get("archive")
    data = await archive.read() if isinstance(archive, UploadFile) else b""
    if not data:
        raise InvalidInput("No file was chosen.", field="archive", fix="choose a .zip or .tar.gz")
    files = await asyncio.to_thread(read_archive, data)
    slug = name or slugify(_declared(files))
    return await submit_upload(files, namespace=account, slug=slug, source=Source.WEB, submitter=account)


def _declared(files: Sequence[SkillFile]) -> str:
    return read_manifest(skill_file_of(files).data).name


def _start(
    request: Request,
    status: int = 200,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    given = {"repo": "", "name": "", **(values or {})}
    hosts = require_env("settings").settings.allowed_hosts
    return render(request, "submit.html", status, values=given, errors=errors or {}, hosts=hosts)


def _done(request: Request, results: Sequence[Settled]) -> Response:
    """One that was accepted is shown at once; of several, the list."""
    first = results[0]
    if len(results) == 1 and first.submitted is not None and first.submitted.submission is not None:
        place = f"/submissions/{first.submitted.submission.id}"
        return RedirectResponse(place, 303, {"cache-control": "no-store"})
    return render(request, "submit_done.html", results=results)


ENDPOINTS = (
    page("/submit", start, query=SubmitQuery),
    form("/submit/find", find, no_scope="looks and writes nothing", allowance=Allowance.DISCOVERIES),
    form("/submit/send", send, scope="submit", allowance=Allowance.SUBMISSIONS),
    form(
        "/submit/upload",
        upload,
        guard=Guard.AUTHOR,
        scope="submit",
        allowance=Allowance.SUBMISSIONS,
        most_body=MOST_UPLOAD,
    ),
)

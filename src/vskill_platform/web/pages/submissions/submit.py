"""Submitting by hand: an address, the skills that are found there, and what became of each that was chosen.

Three forms, each a real one. What goes wrong is said at the field that it is about, with what was typed still in it.
"""

from typing import Annotated

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_client.wire.submissions import UploadSkill
from vskill_core.content import DEFAULT_LIMITS
from vskill_core.errors import PlatformError
from vskill_core.identity import normalise
from vskill_platform.actions.people.namespaces import LIST_NAMESPACES
from vskill_platform.actions.submissions.intake import (
    DISCOVER,
    MOST_BULK,
    SUBMIT_MANY,
    UPLOAD,
    DiscoverSkills,
    PlaceToSubmit,
    SubmitPlaces,
)
from vskill_platform.domain.people.namespace import NamespaceRole, uploader_of
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.web.auth import form_of, see_other, text_of, values_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of

MOST_URL = 2_048
#: An archive is never larger than what may be in it, and a form around it is small.
MOST_UPLOAD = DEFAULT_LIMITS.bytes_total + 100_000


class SubmitQuery(Asked, frozen=True):
    """An address to begin with, as a link elsewhere may give it."""

    repo: Annotated[str, msgspec.Meta(max_length=MOST_URL)] = ""


async def start(request: Request) -> Response:
    return await _start(request, values={"repo": query_of(request, SubmitQuery).repo})


async def find(request: Request) -> Response:
    """Every skill at the address; the repository is looked at, and nothing is written."""
    repo = await text_of(request, "repo", MOST_URL)
    if not repo:
        return await _start(request, 400, {"repo": repo}, {"repo": "Give the address of a repository."})
    try:
        found = await DISCOVER(services_of(request), principal_of(request), DiscoverSkills(repo_url=repo))
    except PlatformError as error:
        return await _start(request, error.status, {"repo": repo}, {"repo": error.in_words})
    # The paths are those from the repository's root, whatever folder the address named.
    root = normalise(repo).url
    return render(request, "submit_found.html", repo=root, asked=repo, found=found, most=MOST_BULK)


async def send(request: Request) -> Response:
    """Submit what was chosen. Sending the form twice is the same submissions again."""
    repo = await text_of(request, "repo", MOST_URL)
    paths = tuple(dict.fromkeys(await values_of(request, "path")))[:MOST_BULK]
    if not paths:
        errors = {"repo": "No skill was chosen; look again and tick one."}
        return await _start(request, 400, {"repo": repo}, errors)
    places = tuple(
        PlaceToSubmit(repo_url=repo, skill_path=path, source=EntryPoint.WEB.value) for path in paths
    )
    done = await SUBMIT_MANY(services_of(request), principal_of(request), SubmitPlaces(submissions=places))
    return see_other(request, done.page)


async def upload(request: Request) -> Response:
    """An archive of one skill, into the account's own namespace or one that it shares."""
    name, namespace = await text_of(request, "name", 100), await text_of(request, "namespace", 100)
    try:
        wanted = UploadSkill(
            archive=await archive_of(request), name=name, namespace=namespace, source=EntryPoint.WEB.value
        )
        done = await UPLOAD(services_of(request), principal_of(request), wanted)
    except PlatformError as error:
        field = "name" if error.details.get("field") in ("slug", "name") else "archive"
        given = {"name": name, "namespace": namespace}
        return await _start(request, error.status, given, {field: error.in_words})
    return see_other(request, str(done.page))


async def archive_of(request: Request) -> bytes:
    """The bytes of the file in a form; empty where none was chosen."""
    try:
        sent = (await form_of(request)).get("archive")
        return await sent.read() if isinstance(sent, UploadFile) else b""
    finally:
        # What was uploaded may be a file on disk.
        await request.close()


async def _start(
    request: Request,
    status: int = 200,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    given = {"repo": "", "name": "", "namespace": "", **(values or {})}
    hosts = services_of(request).settings.allowed_hosts
    return render(
        request,
        "submit.html",
        status,
        values=given,
        errors=errors or {},
        hosts=hosts,
        namespaces=await _upload_namespaces(request),
    )


async def _upload_namespaces(request: Request) -> list[tuple[str, str]]:
    """Where this account may upload, its own first; each twice, as a choice wants it."""
    account = principal_of(request).account
    if account is None:
        return []
    found = await LIST_NAMESPACES(services_of(request), principal_of(request), NoParameters())
    without = (None, NamespaceRole.READER)
    names = (uploader_of(one.name) for one in found.namespaces if one.your_role not in without)
    shown = sorted(filter(None, names), key=lambda name: (name != account, name))
    return [(name, name) for name in shown]


ENDPOINTS = (
    page("/submit", start, query=SubmitQuery, shows=("submission.submit",)),
    form("/submit/find", find, action=DISCOVER, allowance=DISCOVER.allowance),
    form("/submit/send", send, action=SUBMIT_MANY, allowance=SUBMIT_MANY.allowance),
    form("/submit/upload", upload, action=UPLOAD, allowance=UPLOAD.allowance, most_body=MOST_UPLOAD),
)

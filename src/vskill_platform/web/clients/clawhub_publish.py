"""Publishing with the `clawhub` command: an upload like any other, into the namespace that the client calls the owner,
the one that its token is bound to, or the account's own.

The client of today sends each file by itself (`upload-url`, then the bytes), then one document that names them all;
older ones send everything as one multipart form. Either way the answer is immediate (`pending`), and the verdict
follows by the same pipeline. Files that are sent and never published are gone after an hour. A version is the front
matter's, or the next number; the client tells its user the one that it proposed, so another one is refused.
"""

from contextlib import suppress
from typing import Annotated

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Sent
from vskill_core.content import DEFAULT_LIMITS, SkillFile, digest_of_files, skill_file_of
from vskill_core.errors import Blocked, InvalidInput, NotFound
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.submissions.intake import UPLOAD, upload_files, upload_namespace_for
from vskill_platform.actions.submissions.staged_files import read_staged, stage_file, ticket_for
from vskill_platform.domain.skills.skill import VersionRef, VersionStatus
from vskill_platform.domain.skills.skill_changes import number_after
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.submit import IntakeOutcome, Submitted
from vskill_platform.web.clients.clawhub import API
from vskill_platform.web.clients.clawhub_names import UPLOADS
from vskill_platform.web.exchange import json_response, principal_of, public_address, services_of
from vskill_platform.web.routing import body_of, decode_body, post, read_body
from vskill_scan.reading.manifest import read_manifest

#: A form may hold the files and little more.
MOST_FORM = DEFAULT_LIMITS.bytes_total + 2_000_000

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Size = Annotated[int, msgspec.Meta(ge=0, le=DEFAULT_LIMITS.bytes_file)]


class UploadBody(Sent, frozen=True):
    """A file that is about to be sent."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=600)]
    size: Size
    sha256: Sha256


class PublishedFile(Sent, frozen=True):
    """A file that was sent."""

    path: str
    size: Size
    sha256: Sha256


class PublishBody(Sent, frozen=True):
    """What is to be published; what the client says beside it has no place here."""

    slug: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    owner_handle: str = ""
    version: Annotated[str, msgspec.Meta(max_length=80)] = ""
    files: Annotated[tuple[PublishedFile, ...], msgspec.Meta(max_length=DEFAULT_LIMITS.files)] = ()


# Files by themselves.


async def upload_url(request: Request) -> Response:
    """Where to send a file. Its ticket is its size and digest, so that nothing else can be sent there."""
    body = await body_of(request, UploadBody)
    ticket = ticket_for(body.size, body.sha256)
    address = f"{public_address(request)}{API}/uploads/{ticket}"
    return json_response({"uploadUrl": address, "uploadTicket": ticket})


async def upload(request: Request) -> Response:
    ticket = request.path_params["ticket"]
    data = await read_body(request, DEFAULT_LIMITS.bytes_file)
    await stage_file(services_of(request), principal_of(request), ticket, data)
    return json_response({"storageId": ticket})


# Publishing.


async def publish(request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    actor = principal_of(request)
    if kind == "multipart/form-data":
        body, files = await _from_form(request)
    else:
        body = await body_of(request, PublishBody)
        tickets = {file.path: ticket_for(file.size, file.sha256) for file in body.files}
        files = await read_staged(actor, tickets)
    namespace = upload_namespace_for(actor, body.owner_handle.removeprefix("@"))
    await _check_version(actor, namespace, body, files)
    done = await upload_files(actor, files, namespace=namespace, slug=body.slug, source=EntryPoint.CLI)
    return json_response(_answer(body.slug, done))


async def _from_form(request: Request) -> tuple[PublishBody, tuple[SkillFile, ...]]:
    """The field `payload` is the document, every `files` a file whose name is its path."""
    form = await request.form(max_files=DEFAULT_LIMITS.files, max_fields=20)
    try:
        payload = form.get("payload")
        if not isinstance(payload, str):
            raise InvalidInput("The form has no payload.", field="payload", fix="send it as a field of JSON")
        body = decode_body(payload.encode(), PublishBody)
        sent = [one for one in form.getlist("files") if isinstance(one, UploadFile)]
        files = [SkillFile(one.filename or "", "100644", await one.read()) for one in sent]
    finally:
        await request.close()
    return body, tuple(files)


async def _check_version(
    actor: Principal, namespace: str, body: PublishBody, files: tuple[SkillFile, ...]
) -> None:
    """Refuse a proposed version that is not the one that these files would get."""
    if not body.version:
        return
    versions: tuple[VersionRef, ...] = ()
    current = None
    with suppress(NotFound):
        name = f"{UPLOADS}{namespace}/skills/{body.slug}"
        skill = await find_skill(actor, name)
        versions, current = skill.versions, skill.current_version
    same = [ref for ref in versions if ref.digest == digest_of_files(files)]
    if current in [ref.number for ref in same]:
        if current != body.version:
            message = (
                f"These files are {body.slug} {current} already; nothing is published as {body.version}."
            )
            raise InvalidInput(
                message, field="version", fix="change the files, or leave the version as it is"
            )
        return
    if any(ref.status is not VersionStatus.LIVE for ref in same):
        # It keeps its number where it is brought back.
        return
    number, _ = number_after(versions, read_manifest(skill_file_of(files).data).version)
    if number != body.version:
        message = f"{body.slug} would be published as {number}, not as {body.version}."
        fix = f"write version: {body.version} into SKILL.md, or publish with --version {number}"
        raise InvalidInput(message, field="version", fix=fix)


def _answer(slug: str, done: Submitted) -> dict[str, object]:
    """The client knows two outcomes: it is public, or it will be if it passes."""
    if done.outcome is IntakeOutcome.BLOCKED or done.submission is None:
        raise Blocked(f"{slug} is blocked: {done.reason}", skill=slug, reason=done.reason)
    record = done.submission
    status = "published" if done.outcome is IntakeOutcome.ALREADY_VERIFIED else "pending"
    return {
        "ok": True,
        "skillId": record.id,
        "versionId": f"{record.id}:{record.run}",
        "attemptId": record.id,
        "slug": slug,
        "status": status,
        "publicationStatus": status,
    }


_OWN = {"action": UPLOAD, "documented": False}

ENDPOINTS = (
    post(f"{API}/skills/-/upload-url", upload_url, body=UploadBody, **_OWN),
    post(f"{API}/uploads/{{ticket}}", upload, most_body=DEFAULT_LIMITS.bytes_file, **_OWN),
    post(
        f"{API}/skills",
        publish,
        body=PublishBody,
        allowance=UPLOAD.allowance,
        most_body=MOST_FORM,
        **_OWN,
    ),
)

"""What other analysers say about a content, and the door through which remote ones report."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Wire, iso_time
from vskill_platform.blobs.contract import check_address
from vskill_platform.domain.errors import NotFound
from vskill_platform.external_scan.callback import (
    MOST_BODY_BYTES,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    SignedCall,
    receive_report,
)
from vskill_platform.external_scan.dispatch import provider_names
from vskill_platform.store.external_scans import (
    ExternalReport,
    get_external_scan,
    list_external_scans,
    read_external_task,
)
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import get, post, read_body


class ExternalFindingView(Wire, frozen=True):
    """One place that an analyser points at, in its own words."""

    rule_id: str
    severity: str
    file: str
    #: from 1; 0 is the whole file
    line: int
    message: str


class ExternalReportView(Wire, frozen=True):
    """What one analyser says about a content."""

    provider: str
    #: complete, incomplete, error, timed_out or unavailable
    status: str
    #: PASS, CONCERNS or FAIL; null where it did not look at everything
    verdict: str | None
    #: the analyser's own version
    version: str
    #: findings by severity, those that were not kept included
    counts: dict[str, int]
    critical: int
    #: the worst first, and not all of them where there are many
    findings: tuple[ExternalFindingView, ...]
    #: files of a kind that it reads
    files: int
    #: those of them that it could not read
    unread: tuple[str, ...]
    problem: str
    #: whether it ran without a network; null for a remote one
    isolated: bool | None
    started_at: str
    ended_at: str


class Waiting(Wire, frozen=True):
    """An analyser that was asked and has no report yet."""

    provider: str
    #: the task's: active, or failed for good
    state: str
    outcome: str


class ExternalScans(Wire, frozen=True):
    """Every analyser's report about one content, and who still owes one."""

    digest: str
    reports: tuple[ExternalReportView, ...]
    waiting: tuple[Waiting, ...]


class Taken(Wire, frozen=True):
    """The answer to a call of a remote analyser."""

    digest: str
    provider: str
    #: false: it was known already, or a later one is stored
    stored: bool


async def reports(request: Request) -> Response:
    """Every analyser's report about one content, and who still owes one."""
    digest = check_address(request.path_params["digest"])
    found = await list_external_scans(digest)
    known = {report.provider for report in found}
    waiting = [
        one for name in await provider_names() if name not in known and (one := await _task(digest, name))
    ]
    return json_response(ExternalScans(digest, tuple(map(report_view, found)), tuple(waiting)))


async def _task(digest: str, provider: str) -> Waiting | None:
    task = await read_external_task(digest, provider)
    return None if task is None else Waiting(provider, task.state.value, task.outcome)


async def report(request: Request) -> Response:
    """One analyser's report about one content."""
    digest, provider = _address(request)
    found = await get_external_scan(digest, provider)
    if found is None:
        raise NotFound(f"{provider} has not reported about {digest}", digest=digest, provider=provider)
    return json_response(report_view(found))


def report_view(found: ExternalReport) -> ExternalReportView:
    findings = [
        ExternalFindingView(one.rule_id, one.severity.value, one.file, one.line, one.message)
        for one in found.findings
    ]
    return ExternalReportView(
        provider=found.provider,
        status=found.status.value,
        verdict=found.verdict.value if found.verdict else None,
        version=found.version,
        counts=found.counts,
        critical=found.critical,
        findings=tuple(findings),
        files=found.files,
        unread=found.unread,
        problem=found.problem,
        isolated=found.isolated,
        started_at=iso_time(found.started_at),
        ended_at=iso_time(found.ended_at),
    )


async def receive(request: Request) -> Response:
    """A remote analyser's signed report; the signature is what lets it in."""
    digest, provider = _address(request)
    headers = request.headers
    body = await read_body(request, MOST_BODY_BYTES)
    call = SignedCall(headers.get(TIMESTAMP_HEADER, ""), headers.get(SIGNATURE_HEADER, ""), body)
    _, stored = await receive_report(digest, provider, call)
    return json_response(Taken(digest, provider, stored))


def _address(request: Request) -> tuple[str, str]:
    return check_address(request.path_params["digest"]), request.path_params["provider"][:80]


_PLACE = "/api/v1/external-scans/{digest}"

ENDPOINTS = (
    get(
        _PLACE,
        reports,
        answer=ExternalScans,
        tag="external scans",
        summary="Read what other analysers say about one content",
    ),
    get(
        f"{_PLACE}/{{provider}}",
        report,
        answer=ExternalReportView,
        problems=(404,),
        tag="external scans",
        summary="Read one analyser's report",
    ),
    post(
        f"{_PLACE}/{{provider}}",
        receive,
        no_scope="the signature lets in",
        body_media="application/json",
        answer=Taken,
        problems=(404, 409, 422),
        tag="external scans",
        summary="Send a remote analyser's signed report",
        most_body=MOST_BODY_BYTES,
    ),
)

"""What other analysers say about a content."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import NotFound
from vskill_platform.actions.action import Digest, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.external_scan.dispatch import provider_names
from vskill_platform.store import external_scans
from vskill_platform.store.stored_content import may_read_content

EXTERNAL_SCANS = "/api/v1/external-scans/{digest}"


class ListExternalScans(ActionRequest, frozen=True, kw_only=True):
    """The content of one version."""

    digest: Digest


class ReadExternalScan(ListExternalScans, frozen=True, kw_only=True):
    """One analyser's report about one content."""

    #: the analyser's name
    provider: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


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


class WaitingAnalyser(Wire, frozen=True):
    """An analyser that was asked and has no report yet."""

    provider: str
    #: the task's: active, or failed for good
    state: str
    outcome: str


class ExternalScans(Wire, frozen=True):
    """Every analyser's report about one content, and who still owes one."""

    digest: str
    reports: tuple[ExternalReportView, ...]
    waiting: tuple[WaitingAnalyser, ...]


async def list_scans(reader: Principal, request: ListExternalScans) -> ExternalScans:
    if not await may_read_content(request.digest, audiences_of(reader)):
        return ExternalScans(request.digest, (), ())
    found = await list_external_reports(request.digest)
    known = {report.provider for report in found}
    waiting: list[WaitingAnalyser] = []
    for name in await provider_names():
        task = None if name in known else await external_scans.read_external_task(request.digest, name)
        if task is not None:
            waiting.append(WaitingAnalyser(name, task.state.value, task.outcome))
    reports = tuple(ExternalReportView.of(report) for report in found)
    return ExternalScans(request.digest, reports, tuple(waiting))


async def read_scan(reader: Principal, request: ReadExternalScan) -> ExternalReportView:
    digest, provider = request.digest, request.provider[:80]
    is_readable = await may_read_content(digest, audiences_of(reader))
    found = await external_scans.get_external_scan(digest, provider) if is_readable else None
    if found is None:
        raise NotFound(f"{provider} has not reported about {digest}", digest=digest, provider=provider)
    return ExternalReportView.of(found)


async def list_external_reports(digest: str) -> tuple[external_scans.ExternalReport, ...]:
    return await external_scans.list_external_scans(digest)


LIST_EXTERNAL_SCANS = action(
    list_scans,
    "scan.external",
    EXTERNAL_SCANS,
    method="GET",
    right=Right.READER,
    summary="Read what other analysers say about one content",
    command="",
)
READ_EXTERNAL_SCAN = action(
    read_scan,
    "scan.external-report",
    f"{EXTERNAL_SCANS}/{{provider}}",
    method="GET",
    right=Right.READER,
    errors=(NotFound,),
    summary="Read one analyser's report",
    command="",
)

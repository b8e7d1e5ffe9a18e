"""What other analysers say about a content, one record per analyser at `extscan:{digest}:{provider}`.

These reports are shown beside our own verdict: a disagreement is visible, not averaged away.
"""

import enum

import msgspec

from vskill_core.findings import Severity, Verdict
from vskill_platform.domain import keys
from vskill_platform.domain.messages import task_send
from vskill_platform.domain.operation import task as tasks
from vskill_platform.domain.operation.task import Task
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import decode_readable, iter_entries, persist, read_record
from vskill_platform.store.tasks import read_task
from vskill_platform.worker_context import require_env

#: The kind of task that produces these reports.
EXTERNAL_SCAN = "external_scan"


class ExternalStatus(enum.StrEnum):
    """How the analysis itself went; anything but complete is never clean."""

    COMPLETE = "complete"
    #: It ended, but could not read every file that it was given.
    INCOMPLETE = "incomplete"
    ERROR = "error"
    TIMED_OUT = "timed_out"
    #: The analyser is not installed where the work was done.
    UNAVAILABLE = "unavailable"


class ExternalFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place that an analyser points at, in its own words."""

    rule_id: str
    severity: Severity
    file: str = ""
    #: from 1; 0 is the whole file
    line: int = 0
    message: str = ""


class ExternalReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `extscan:{digest}:{provider}`."""

    provider: str
    status: ExternalStatus
    started_at: int
    ended_at: int
    #: The analyser's own version; empty where it did not run.
    version: str = ""
    #: None: there is nothing to say, because it did not look, or not at everything.
    verdict: Verdict | None = None
    #: How many findings there are of each severity, those that were not kept included.
    counts: dict[str, int] = {}
    critical: int = 0
    #: The worst ones first, and not all of them where there are many.
    findings: tuple[ExternalFinding, ...] = ()
    #: How many files of the skill are of a kind that it reads.
    files: int = 0
    #: Those of them that it could not read.
    unread: tuple[str, ...] = ()
    #: What went wrong, or why there was nothing to do.
    problem: str = ""
    #: Whether it ran without a network; None for a remote one.
    isolated: bool | None = None
    #: When a remote analyser signed it, in seconds, and the SHA-256 of what it sent.
    signed_s: int | None = None
    body_sha256: str = ""


def external_task_id(digest: str, provider: str) -> str:
    """One task per content and analyser."""
    return f"{digest}:{provider}"


async def get_external_scan(digest: str, provider: str) -> ExternalReport | None:
    return (await read_record(keys.extscan(digest, provider), ExternalReport))[0]


async def list_external_scans(digest: str) -> tuple[ExternalReport, ...]:
    entries = [entry async for entry in iter_entries(keys.extscan.under(digest))]
    return tuple(decode_readable(entries, ExternalReport, "list_external_scans"))


async def read_external_task(digest: str, provider: str) -> Task | None:
    return (await read_task(EXTERNAL_SCAN, external_task_id(digest, provider)))[0]


def report_write(digest: str, report: ExternalReport, if_version: int | None = None) -> Put:
    """The operation that stores a report; it belongs into the commit that ends the task."""
    return Put(keys.extscan(digest, report.provider), msgspec.json.encode(report), if_version)


async def take_remote_report(digest: str, report: ExternalReport) -> bool:
    """Store what a remote analyser sent and end the task that waits for it, in one commit; whether it was new.

    A report that was sent before, or signed earlier than the stored one, changes nothing, so a replay is harmless.
    """

    async def write() -> bool:
        env = require_env("kv")
        stored, version = await read_record(keys.extscan(digest, report.provider), ExternalReport)
        if stored is not None and not _is_news(report, stored):
            return False
        operations: list[Operation] = [report_write(digest, report, version)]
        task, version = await read_task(EXTERNAL_SCAN, external_task_id(digest, report.provider))
        if task is not None and task.state.active:
            operations += _end_of(task, version, env.kv.now())
        await env.kv.commit(operations)
        return True

    return await persist(write)


def _is_news(report: ExternalReport, stored: ExternalReport) -> bool:
    if stored.signed_s is None or report.signed_s is None:
        return True
    return report.signed_s >= stored.signed_s and report.body_sha256 != stored.body_sha256


def _end_of(task: Task, version: int, now: int) -> tuple[Operation, ...]:
    """End the task. This clears its claim, so the write of a worker that has it now will be refused."""
    ended = tasks.finish(task, "the analyser has reported", now)
    put = Put(ended.key, msgspec.json.encode(ended), version)
    return (put,) if ended.run == task.run else (put, task_send(ended.kind, ended.id, ended.run))

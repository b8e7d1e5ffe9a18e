"""External scans as queue work: which analysers there are, asking for their reports, and producing one.

Each content and analyser is one task with a claim, a budget and recovery like everything on the queue; the commit that
ends the task writes the report. A process runs one analysis at a time unless the operator allows more.
"""

import asyncio
from pathlib import Path

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import PlatformError, SourceUnavailable
from vskill_platform.domain.operation.task import Task
from vskill_platform.external_scan.bandit import Bandit
from vskill_platform.external_scan.contract import Analyser, Unreadable, find_program, summed_up
from vskill_platform.external_scan.layout import Layout, layout_of
from vskill_platform.external_scan.sandbox import EndedAnalyser, SandboxLimits, private_folder, run
from vskill_platform.external_scan.semgrep import Semgrep
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.settings import Settings
from vskill_platform.store.external_scans import (
    EXTERNAL_SCAN,
    ExternalFinding,
    ExternalReport,
    ExternalStatus,
    external_task_id,
    get_external_scan,
    read_external_task,
    report_write,
)
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.tasks import TaskEnd, ask_for
from vskill_platform.worker_context import require_env

#: Every analyser that can run here, if it is installed.
ANALYSERS: tuple[type[Analyser], ...] = (Bandit, Semgrep)
#: Budget of a whole task, including the wait for its turn; the analysis itself has `external_scan_budget_ms`.
TASK_BUDGET_MS = 900_000
#: An analyser that failed is tried once more; after that, its report says that it failed.
DELAYS_MS = (10_000,)
#: A check of a remote analyser's deadline that comes this late does not time it out.
LATE_MS = 60_000
#: How long asking for a version may take.
VERSION_S = 20.0


# Which analysers there are.


async def find_analyser(name: str) -> Analyser | None:
    """The installed program of that name, or None: not one of ours, or not installed here."""
    kind = next((one for one in ANALYSERS if one.name == name), None)
    if kind is None:
        return None
    program = await asyncio.to_thread(find_program, name, require_env("settings").settings)
    return None if program is None else kind(program)


async def installed_analysers() -> tuple[str, ...]:
    found = [kind.name for kind in ANALYSERS if await find_analyser(kind.name) is not None]
    return tuple(found)


def remote_secrets(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Remote analysers with the secrets that they sign with: two for one name while its secret is being replaced."""
    found: dict[str, tuple[str, ...]] = {}
    for pair in settings.external_scan_secrets:
        name, _, secret = pair.partition("=")
        found[name] = (*found.get(name, ()), secret)
    return found


async def provider_names() -> tuple[str, ...]:
    """Every analyser whose report is wanted: installed here, or remote with a secret."""
    return (*await installed_analysers(), *sorted(remote_secrets(require_env("settings").settings)))


# Asking.


async def request_scans(digest: str, *, again: bool = False) -> tuple[Task, ...]:
    """Ask each analyser without a report on this content; with `again`, ask all of them."""
    names = await provider_names()
    owed = [name for name in names if again or await _is_owed(digest, name)]
    return tuple([await request_scan(digest, name) for name in owed])


async def _is_owed(digest: str, name: str) -> bool:
    """Whether there is neither a report nor a task. An analyser that was missing may be installed now."""
    report = await get_external_scan(digest, name)
    if report is not None:
        return report.status is ExternalStatus.UNAVAILABLE
    return await read_external_task(digest, name) is None


async def request_scan(digest: str, name: str) -> Task:
    """Ask one analyser. A remote one has until the deadline: then its task checks whether it has called back."""
    env = require_env("kv")
    remote = name in remote_secrets(env.settings)
    wait_ms = env.settings.external_scan_callback_ms if remote else 0
    subject = {"digest": digest, "provider": name}
    if remote:
        subject["until"] = str(env.kv.now() + wait_ms)
    return await ask_for(EXTERNAL_SCAN, external_task_id(digest, name), subject, delay_ms=wait_ms)


# Doing it.


async def scan(task: Task) -> TaskEnd:
    """Produce the report of one analyser on one content."""
    digest, provider = task.subject["digest"], task.subject["provider"]
    if "until" in task.subject:
        return await _look_for_callback(task, digest, provider)
    analyser = await find_analyser(provider)
    if analyser is None:
        return _finish(digest, _unavailable(provider))
    files = await read_content(digest)
    async with require_env("turns").turns.turn(EXTERNAL_SCAN):
        report = await analyse(analyser, files)
    if report.status is ExternalStatus.ERROR and task.attempts.failed < len(DELAYS_MS):
        raise PlatformError(f"{provider} failed: {report.problem}")
    return _finish(digest, report)


def _finish(digest: str, report: ExternalReport) -> TaskEnd:
    verdict = f", {report.verdict}" if report.verdict else ""
    env = require_env("log")
    env.log.info(
        "external scan ended",
        provider=report.provider,
        digest=digest,
        status=report.status.value,
        duration_ms=report.ended_at - report.started_at,
    )
    return TaskEnd(f"{report.status}{verdict}", (report_write(digest, report),))


async def _look_for_callback(task: Task, digest: str, provider: str) -> TaskEnd:
    """Time out a remote analyser that has not called back by the deadline. If the first check is much too late, because
    this machine was suspended, the analyser could not call, and gets the same time again."""
    if await get_external_scan(digest, provider) is not None:
        return TaskEnd("the analyser has reported")
    env = require_env("kv")
    until = int(task.subject["until"])
    if env.kv.now() < until:
        raise SourceUnavailable(f"{provider} has not called back yet", host=provider)
    if task.attempts.started == 1 and env.kv.now() > until + LATE_MS:
        again_at = env.kv.now() + env.settings.external_scan_callback_ms
        return TaskEnd(f"{provider} could not call back in time", again_at=again_at)
    problem = "it did not call back in time"
    now = env.clock.now()
    report = ExternalReport(provider, ExternalStatus.TIMED_OUT, now, now, problem=problem)
    return TaskEnd(problem, (report_write(digest, report, ABSENT),))


def _unavailable(provider: str) -> ExternalReport:
    now = require_env("clock").clock.now()
    problem = f"{provider} is not installed where the work was done"
    return ExternalReport(provider, ExternalStatus.UNAVAILABLE, now, now, problem=problem)


async def analyse(analyser: Analyser, files: tuple[SkillFile, ...]) -> ExternalReport:
    """Run one analyser over a skill's files; always returns a report, even of a failure."""
    env = require_env("settings")
    began = env.clock.now()
    layout = layout_of(files, analyser.reads)
    report = ExternalReport(analyser.name, ExternalStatus.COMPLETE, began, began, files=len(layout.files))
    if not layout.files:
        return msgspec.structs.replace(report, problem="there is nothing in it that this analyser reads")
    async with private_folder(_root(env.settings)) as folder:
        report = await _run(analyser, layout, folder, report)
    return msgspec.structs.replace(report, ended_at=env.clock.now())


def _root(settings: Settings) -> Path | None:
    return None if settings.store == "memory:" else Path(settings.data_dir) / "analyses"


async def _run(analyser: Analyser, layout: Layout, folder: Path, report: ExternalReport) -> ExternalReport:
    files = folder / "files"
    await asyncio.to_thread(_write, layout, files)
    seconds = require_env("settings").settings.external_scan_budget_ms / 1000
    limits = SandboxLimits(seconds=seconds, cpu_s=max(1, round(seconds)), memory_bytes=analyser.memory_bytes)
    version = await _version(analyser, folder, limits)
    finished = await run(analyser.command(files), folder, limits, analyser.environment)
    report = msgspec.structs.replace(report, version=version, isolated=finished.isolated)
    return _read_report(analyser, layout, finished, limits, report)


def _write(layout: Layout, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    layout.write(folder)


async def _version(analyser: Analyser, folder: Path, limits: SandboxLimits) -> str:
    command = analyser.version_command()
    if command is None:
        return ""
    short = msgspec.structs.replace(limits, seconds=min(VERSION_S, limits.seconds))
    return analyser.parse_version((await run(command, folder, short, analyser.environment)).out)


def _read_report(
    analyser: Analyser, layout: Layout, finished: EndedAnalyser, limits: SandboxLimits, report: ExternalReport
) -> ExternalReport:
    """Make the stored report from the output of a finished process."""
    if finished.timed_out:
        problem = f"it took longer than {limits.seconds:g} s and was ended"
        return msgspec.structs.replace(report, status=ExternalStatus.TIMED_OUT, problem=problem)
    if finished.cut:
        problem = f"it printed more than {limits.out_bytes} bytes and was ended"
        return msgspec.structs.replace(report, status=ExternalStatus.ERROR, problem=problem)
    try:
        parsed = analyser.parse(finished.out, finished.err, finished.code)
    except Unreadable as error:
        return msgspec.structs.replace(report, status=ExternalStatus.ERROR, problem=str(error)[:500])
    unread = tuple(path for name in parsed.unread if (path := layout.path_of(name)))
    status = ExternalStatus.INCOMPLETE if unread else ExternalStatus.COMPLETE
    report = msgspec.structs.replace(
        report, status=status, unread=unread, version=parsed.version or report.version
    )
    return summed_up(report, [_with_path(one, layout) for one in parsed.findings])


def _with_path(finding: ExternalFinding, layout: Layout) -> ExternalFinding:
    return msgspec.structs.replace(finding, file=layout.path_of(finding.file))

"""Rescans: live content judged again, because the rules changed or somebody asked.

A job asks for a task per live version that the current rules have not looked at, a few at a time, until none is
left. Fresh submissions do not wait behind them: so many are under way at the most.
"""

from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.content import SkillFile, unpack
from vskill_platform.domain.decision import RescanOutcome, decide_rescan, judge_can_change
from vskill_platform.domain.errors import (
    BlobUnavailable,
    BudgetExceeded,
    NotFound,
    PlatformError,
    SourceUnavailable,
)
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.scan import NO_JUDGE, JudgeReport, ScanStatus, StaticReport
from vskill_platform.domain.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.domain.submission import Approval
from vskill_platform.domain.task import Task, TaskState
from vskill_platform.kv.collections import TASKS
from vskill_platform.kv.query import Between, Condition, Is
from vskill_platform.store.blocklist import why_version_blocked
from vskill_platform.store.grounds import Grounds, grounds_for
from vskill_platform.store.rescans import apply_rescan
from vskill_platform.store.scans import get_scan, scan_once
from vskill_platform.store.skills import get_skill, iter_skills
from vskill_platform.store.task_kinds import TaskEnd
from vskill_platform.store.tasks import ask_for, read_task
from vskill_platform.submission_store import read_submission
from vskill_platform.worker_context import require_env

RESCAN = "rescan"
#: Tasks of all kinds that may want a worker before no more rescans are asked for.
MOST_OPEN = 50
#: What is due later than this keeps no worker from anything now.
SOON_MS = 60_000


async def request_rescan(skill: PublishedSkill, ref: VersionRef, *, again: bool = True) -> Task:
    """Have one version judged by the current rules."""
    ruleset = require_env("scanner").scanner.ruleset
    subject = {"skill": skill.canonical, "digest": ref.digest}
    return await ask_for(RESCAN, _task_id(skill, ref, ruleset), subject, again=again)


def _task_id(skill: PublishedSkill, ref: VersionRef, ruleset: str) -> str:
    return f"{skill.canonical}:{ref.digest}:{ruleset}"


async def request_due_rescans(finished: str | None) -> str | None:
    """Ask for rescans of what the current rules have not seen; the rules' version once nothing is left.

    `finished` is what the last look returned: while the rules are the same, there is nothing to do.
    """
    env = require_env("scanner")
    ruleset = env.scanner.ruleset
    if finished == ruleset:
        return ruleset
    room = MOST_OPEN - await _open_tasks()
    left = False
    async for skill in iter_skills():
        for ref in skill.versions:
            if ref.status is not VersionStatus.LIVE or await _is_seen(skill, ref, ruleset):
                continue
            left = True
            if room <= 0:
                return None
            await request_rescan(skill, ref, again=False)
            room -= 1
    return None if left else ruleset


async def _open_tasks() -> int:
    """How many tasks want a worker soon, counted no further than matters; those that wait for long do not count."""
    kv = require_env("kv").kv
    soon: dict[str, Condition] = {
        "state": Is(TaskState.ACTIVE.value),
        "due_at": Between(most=kv.now() + SOON_MS),
    }
    page = await kv.select(TASKS.prefix, audiences=EVERYTHING, where=soon, order_by="due_at", limit=MOST_OPEN)
    return len(page.items)


async def _is_seen(skill: PublishedSkill, ref: VersionRef, ruleset: str) -> bool:
    """These rules have looked at it, or a task is there that sees to it."""
    if await get_scan(ref.digest, ruleset) is not None:
        return True
    task, _ = await read_task(RESCAN, _task_id(skill, ref, ruleset))
    return task is not None


async def rescan(task: Task) -> TaskEnd:
    """Judge one live version again, and let the skill follow."""
    canonical, digest = task.subject["skill"], task.subject["digest"]
    try:
        skill = await get_skill(canonical)
    except NotFound as error:
        return TaskEnd(f"nothing to rescan: {error}")
    ref = next((one for one in reversed(skill.versions) if one.digest == digest), None)
    if ref is None or ref.status is VersionStatus.TAKEN_DOWN:
        return TaskEnd("nothing to rescan: the version is not live")
    files = await _files(digest)
    report = await scan_once(files, digest)
    grounds = await grounds_for(skill.identity, digest, await _approval(skill, ref))
    judge = await _judge(files, report, grounds)
    decision = decide_rescan(
        report,
        judge,
        certification=ref.certification,
        blocklist_hit=await why_version_blocked(skill, ref),
        **grounds,
    )
    if decision.outcome is RescanOutcome.UNDECIDED:
        raise _not_yet(report, decision.reason)
    evidence = evidence_of(
        digest,
        report,
        judge,
        suppressed=grounds["suppressed"],
        trusted_vendor=grounds["trusted_vendor"],
    )
    await apply_rescan(canonical, digest, decision, evidence)
    return TaskEnd(f"{decision.outcome}: {decision.reason}")


def _not_yet(report: StaticReport, reason: str) -> PlatformError:
    """Nothing is known, so it is tried again: patiently where the judge is down, a few times where the scan broke."""
    if report.status is ScanStatus.COMPLETE:
        return SourceUnavailable(reason, host="the judge")
    return BudgetExceeded(reason)


async def _judge(files: tuple[SkillFile, ...], report: StaticReport, grounds: Grounds) -> JudgeReport:
    """Ask the judge only if its answer can change the decision."""
    judge = require_env("judge").judge
    if judge is None or not judge_can_change(report, **grounds):
        return NO_JUDGE
    return await judge.review(files, report)


async def _files(digest: str) -> tuple[SkillFile, ...]:
    data = await require_env("blobs").blobs.get(digest)
    if data is None:
        raise BlobUnavailable(f"the bytes of {digest} are not in the blob store")
    return unpack(data, digest)


async def _approval(skill: PublishedSkill, ref: VersionRef) -> Approval | None:
    """A reviewer's approval of the bytes counts for rescans too, whether it was given before or after publishing."""
    if ref.kept_by:
        return Approval(ref.digest, ref.kept_by, ref.published_at)
    found = await read_submission(skill.submission) if skill.submission else None
    return found[0].approval if found else None

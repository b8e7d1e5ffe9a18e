"""Rescans: live content judged again, because the rules changed or somebody asked.

A job asks for a task per live version that the current rules have not looked at, a few at a time, until none is
left. Fresh submissions do not wait behind them: their number is limited.

What new rules would take down is held until all live versions are judged. Then the job asks for these rescans once
more, to be applied, unless there are more than may go without an admin (`domain.verdicts.brake`). So nothing rests
on an old decision: each is made again with the approvals and suppressions of that moment.
"""

from collections.abc import Sequence

import msgspec

from vskill_core.errors import BudgetExceeded, PlatformError, SourceUnavailable, TransitionError
from vskill_core.findings import ScanStatus, StaticReport
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.domain.people.namespace import EVERYTHING, Audiences
from vskill_platform.domain.signals import MatchedRule, RuleEffect
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, VersionRef, VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Approval
from vskill_platform.domain.verdicts.brake import HeldTakeDown, needs_brake
from vskill_platform.domain.verdicts.dry_run import PolicyTrial
from vskill_platform.domain.verdicts.facts import Facts
from vskill_platform.domain.verdicts.policy import Policy
from vskill_platform.domain.verdicts.rescan_decision import RescanOutcome, decide_rescan
from vskill_platform.ledger.kv.collections import SKILLS, TASKS
from vskill_platform.ledger.kv.query import Between, Condition, Is
from vskill_platform.records import Skips, decode, entries_of, iter_entries, iter_selected, read_record
from vskill_platform.store.recall.blocklist import why_version_blocked
from vskill_platform.store.skills.skills import iter_skills, marks_of, read_skill, remember_marks
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.tasks import TaskEnd, ask_for, read_task
from vskill_platform.store.verdicts.brake import (
    count_live_skills,
    forget_brake,
    hold_take_down,
    list_take_downs,
    read_brake,
    settle_take_down,
    stop_rescans,
)
from vskill_platform.store.verdicts.judging import Verdicts, read_verdicts
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.store.verdicts.policy_facts import judge_facts
from vskill_platform.store.verdicts.rescans import apply_rescan
from vskill_platform.store.verdicts.stored_facts import DecidedFacts
from vskill_platform.submission_store import read_submission
from vskill_platform.worker_context import require_env

RESCAN = "rescan"
#: Tasks of all kinds that may want a worker before no more rescans are asked for.
MOST_OPEN = 50
#: In a task's subject: what these rules would take down is held.
HOLD = "hold"
#: In a task's subject: the key of stored facts, which the rules of the policy are asked about.
FACTS = "facts"
#: Skills that one look by the policy goes through: some seconds. And how many are in memory at a time.
MOST_SKILLS, PAGE_SKILLS = 5_000, 20
#: What is due later than this keeps no worker from anything now.
SOON_MS = 60_000


async def request_rescan(skill: PublishedSkill, ref: VersionRef) -> Task:
    """Have one version judged by the current rules, and the skill follow at once."""
    ruleset = require_env("scanner").scanner.ruleset
    subject = {"skill": skill.canonical, "digest": ref.digest}
    return await ask_for(RESCAN, _task_id(skill.canonical, ref.digest, ruleset), subject)


class PolicyRescans(msgspec.Struct):
    """What one look at live versions by the policy has asked for."""

    asked: int = 0
    #: Live versions that nobody approved and whose facts are not kept any more.
    older: int = 0
    #: Where the next look goes on; None at the end.
    after: str | None = None


async def request_policy_rescans(*, audiences: Audiences, after: str | None) -> PolicyRescans:
    """Have live versions judged again that the policy in force would not publish, by the facts of their publication;
    none twice by one policy, and none that a reviewer approved. It stops once no more tasks may be open."""
    room, found = MOST_OPEN - await _open_tasks(), PolicyRescans(after=after)
    if room <= 0:
        raise TransitionError(f"{MOST_OPEN} tasks wait for a worker: ask again once they are done.")
    env, policy = require_env("kv"), (await read_policy()).policy
    trial, skips = PolicyTrial(policy), Skips("policy_rescans")
    for _ in range(0, MOST_SKILLS, PAGE_SKILLS):
        page = await env.kv.select(SKILLS.prefix, audiences=audiences, after=found.after, limit=PAGE_SKILLS)
        for skill in skips.decode_all(entries_of(page), PublishedSkill):
            await _request_by_policy(skill, policy, trial, found, skips)
        found.after = page.after
        if found.after is None or found.asked >= room:
            break
    skips.report(env)
    return found


async def _request_by_policy(
    skill: PublishedSkill, policy: Policy, trial: PolicyTrial, found: PolicyRescans, skips: Skips
) -> None:
    live = [one for one in skill.versions if one.status is VersionStatus.LIVE and not one.review]
    of_runs = keys.facts.under(skill.submission or "")
    runs = {one.key: skips.decode(one, DecidedFacts) async for one in iter_entries(of_runs)} if live else {}
    ruleset = require_env("scanner").scanner.ruleset
    for ref in live:
        decided = [(key, one) for key, one in runs.items() if one is not None and one.digest == ref.digest]
        # One that was decided twice has facts of both days.
        key, stored = min(decided, key=lambda one: abs(one[1].at - ref.published_at), default=("", None))
        is_trusted = stored is not None and stored.facts.owner.trusted
        if ref.kept_by or (ref.certification is Certification.CERTIFIED and not is_trusted):
            continue
        if stored is None:
            found.older += 1
            continue
        # What a rule lets wait is live already: its time is over, or a reviewer let it through.
        if all(rule.then is RuleEffect.WAIT for rule in _holding_rules(trial, stored.facts, skill)):
            continue
        task_id = f"{_task_id(skill.canonical, ref.digest, ruleset)}:{policy.digest[:12]}"
        if (await read_task(RESCAN, task_id))[0] is None:
            # The scanner's rules may be others than at its publication: what they would take down is held.
            subject = {"skill": skill.canonical, "digest": ref.digest, HOLD: ruleset, FACTS: key}
            await ask_for(RESCAN, task_id, subject, again=False)
            found.asked += 1


def _holding_rules(trial: PolicyTrial, facts: Facts, skill: PublishedSkill) -> tuple[MatchedRule, ...]:
    (tried,) = trial.outcomes(State.AUTO_APPROVED, facts, skill.identity)
    return tried.rules


def _task_id(canonical: str, digest: str, ruleset: str) -> str:
    return f"{canonical}:{digest}:{ruleset}"


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
            subject = {"skill": skill.canonical, "digest": ref.digest, HOLD: ruleset}
            task_id = _task_id(skill.canonical, ref.digest, ruleset)
            await ask_for(RESCAN, task_id, subject, again=False)
            room -= 1
    return None if left else ruleset


async def holds_take_downs() -> bool:
    """Whether something that the current rules would take down is held."""
    ruleset = require_env("scanner").scanner.ruleset
    return any(not one.done for one in await list_take_downs(ruleset))


async def release_take_downs() -> bool:
    """Apply what the current rules would take down, once they have judged every live version; whether nothing is left.
    Versions that wait for the judge are not waited for: what follows for them counts with the rest."""
    ruleset = require_env("scanner").scanner.ruleset
    await forget_brake(other_than=ruleset)
    judging, waiting = await _unfinished(ruleset)
    if judging:
        return False
    found = await list_take_downs(ruleset)
    held = [one for one in found if not one.done]
    if not held:
        return not waiting
    if not await _may_go_on(ruleset, found):
        return False
    room = MOST_OPEN - await _open_tasks()
    for one in held[: max(room, 0)]:
        task_id = _task_id(one.canonical, one.digest, ruleset)
        task, _ = await read_task(RESCAN, task_id)
        # One that failed for good is a dead letter, and an operator replays it.
        if task is None or task.state is TaskState.DONE:
            await ask_for(RESCAN, task_id, {"skill": one.canonical, "digest": one.digest})
    return False


async def _may_go_on(ruleset: str, found: Sequence[HeldTakeDown]) -> bool:
    """Whether so few are taken down that nobody need look, or an admin has looked. What these rules took down before
    counts too, so that they cannot go past the limit little by little."""
    brake, _ = await read_brake()
    if brake is not None and brake.ruleset == ruleset and not brake.holds:
        return True
    gone = len({one.canonical for one in found if one.done})
    skills, live = len({one.canonical for one in found}), gone + await count_live_skills()
    if needs_brake(skills, live):
        await stop_rescans(ruleset, skills, live)
        return False
    await forget_brake()
    return True


async def _unfinished(ruleset: str) -> tuple[bool, bool]:
    """Whether tasks of these rules have yet to judge, and whether some wait for the judge."""
    active = {"state": Is(TaskState.ACTIVE.value)}
    entries = iter_selected(TASKS.prefix, audiences=EVERYTHING, where=active, order_by="due_at")
    tasks = [decode(entry, Task) async for entry in entries]
    held = [task for task in tasks if task.kind == RESCAN and task.subject.get(HOLD) == ruleset]
    waiting = [task for task in held if task.attempts.waiting_for is not None]
    return len(waiting) < len(held), bool(waiting)


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
    """These rules judged it for its publication, or a task is there that sees to it. A scan of the same bytes tells
    nothing: it may be another skill's, and this one was not decided about."""
    if ref.ruleset == ruleset:
        return True
    task, _ = await read_task(RESCAN, _task_id(skill.canonical, ref.digest, ruleset))
    return task is not None


async def rescan(task: Task) -> TaskEnd:
    """Judge one live version again, and let the skill follow; a take-down may be held."""
    canonical, digest = task.subject["skill"], task.subject["digest"]
    ruleset = require_env("scanner").scanner.ruleset
    skill, _ = await read_skill(canonical)
    versions = skill.versions if skill is not None else ()
    ref = next((ref for ref in reversed(versions) if ref.digest == digest), None)
    if skill is None or ref is None or ref.status is VersionStatus.TAKEN_DOWN:
        why = f"There is no skill {canonical}." if skill is None else "the version is not live"
        forgotten = await settle_take_down(ruleset, canonical, digest, done=False)
        return TaskEnd(f"nothing to rescan: {why}", forgotten)
    files = await read_content(digest)
    policy = (await read_policy()).policy
    said = await read_verdicts(
        files, digest, await _approval(skill, ref), trusted_vendor=policy.trusts(skill.identity)
    )
    decision = decide_rescan(
        said.report,
        said.judge,
        second=said.second,
        certification=ref.certification,
        matched=await _matched(task, policy, skill, said),
        **said.grounds | {"blocklist_hit": await why_version_blocked(skill, ref)},
    )
    if decision.outcome is RescanOutcome.UNDECIDED:
        raise _not_yet(said.report, decision.reason)
    takes_down = decision.outcome is RescanOutcome.TAKE_DOWN
    if takes_down and HOLD in task.subject and not decision.at_once:
        now = require_env("kv").kv.now()
        held = HeldTakeDown(canonical, digest, ref.number, decision.reason, now, decision.rule_ids)
        return TaskEnd(f"held: {decision.reason}", (hold_take_down(ruleset, held),))
    await apply_rescan(canonical, digest, decision, said.evidence)
    await remember_marks(canonical, digest, marks_of(files, said.report.capabilities))
    settled = await settle_take_down(ruleset, canonical, digest, done=takes_down)
    return TaskEnd(f"{decision.outcome}: {decision.reason}", settled)


async def _matched(
    task: Task, policy: Policy, skill: PublishedSkill, said: Verdicts
) -> tuple[MatchedRule, ...]:
    """The rules of the policy that would not publish it, by the facts that the task names and what judges say now; none
    where it names no facts, since the rules of a policy are not asked about live versions by themselves."""
    stored, _ = await read_record(task.subject[FACTS], DecidedFacts) if FACTS in task.subject else (None, 0)
    if stored is None:
        return ()
    judged = judge_facts(said)
    facts = msgspec.structs.replace(stored.facts, judge=judged) if judged.answered else stored.facts
    return _holding_rules(PolicyTrial(policy), facts, skill)


def _not_yet(report: StaticReport, reason: str) -> PlatformError:
    """Nothing is known, so it is tried again: patiently where the judge is down, a few times where the scan broke."""
    if report.status is ScanStatus.COMPLETE:
        return SourceUnavailable(reason, host="the judge")
    return BudgetExceeded(reason)


async def _approval(skill: PublishedSkill, ref: VersionRef) -> Approval | None:
    """A reviewer's approval of the bytes counts for rescans too, whether it was given before or after publishing."""
    if ref.kept_by:
        return Approval(ref.digest, ref.kept_by, ref.published_at)
    found = await read_submission(skill.submission) if skill.submission else None
    return found[0].approval if found else None

"""Rescans: when the rules change, every live version is judged again, and the skill follows the new verdict."""

import msgspec
import pytest

from tests.support.envs import open_test_env, run_until_quiet
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from vskill_core.content import digest_of_files
from vskill_core.findings import (
    JUDGE_DOWN,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_upload
from vskill_platform.stages.rescan import (
    MOST_OPEN,
    RESCAN,
    release_take_downs,
    request_due_rescans,
    request_rescan,
)
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.tasks import read_task

pytestmark = pytest.mark.anyio


class Rules:
    """A scanner whose rules a test changes."""

    def __init__(self) -> None:
        self.ruleset = "rules-1"
        self.findings: tuple[Finding, ...] = ()
        self.status = ScanStatus.COMPLETE
        #: They hit this content alone.
        self.only: str | None = None
        self.scans = 0

    async def scan(self, files) -> StaticReport:
        self.scans += 1
        hit = self.only in (None, digest_of_files(files))
        return StaticReport(self.ruleset, self.status, self.findings if hit else ())


class Judging:
    def __init__(self) -> None:
        self.answer = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 95, model="m", rubric="r")

    async def review(self, files, report) -> JudgeReport:
        return self.answer


def malice(severity: Severity, rule: str = "X-001") -> Finding:
    return Finding(rule, severity, FindingCategory.EXFILTRATION, FindingKind.MALICE)


#: Four rules of strong malice: the static scan fails it.
FAILING = tuple(malice(Severity.HIGH, f"X-{n}") for n in range(4))
#: Three rules of weak malice: concerns, which a judge can settle.
CONCERNING = tuple(malice(Severity.MEDIUM, f"X-{n}") for n in range(3))


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, scanner=Rules(), judge=Judging()) as env:
        yield env


async def published(env, slug="demo"):
    submitted = await submit_upload(skill_files(slug), namespace="tests", slug=slug)
    assert submitted.submission is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.submission.id)
    assert record.state is State.PUBLISHED
    return record


async def skill():
    return await get_skill("upload~tests/skills/demo")


async def rescan_all(env) -> None:
    await request_due_rescans("rules-1")
    await run_until_quiet(env)
    await release_take_downs()
    await run_until_quiet(env)


async def test_new_rules_look_at_every_live_version_until_none_is_left(env):
    for number in range(MOST_OPEN + 5):
        await published(env, f"demo{number}")
    assert await request_due_rescans("rules-1") == "rules-1"
    env.scanner.ruleset = "rules-2"
    scans = env.scanner.scans
    rounds, finished = 0, None
    while finished is None and rounds < 5:
        finished = await request_due_rescans("rules-1")
        await run_until_quiet(env)
        rounds += 1
    assert (finished, rounds) == ("rules-2", 3)
    assert env.scanner.scans == scans + MOST_OPEN + 5


async def test_a_worse_verdict_takes_the_version_down_and_a_better_one_keeps_it(env):
    record = await published(env)
    env.scanner.ruleset, env.scanner.findings = "rules-2", (malice(Severity.LOW),)
    await rescan_all(env)
    assert (await skill()).current_version == "1.0.0"
    env.scanner.ruleset, env.scanner.findings = "rules-3", FAILING
    await rescan_all(env)
    assert (await skill()).withdrawn
    tainted = await get_submission(record.id)
    assert tainted.state is State.NEEDS_REVIEW and "rescan" in tainted.history[-1].reason


async def test_a_skill_with_the_bytes_of_another_is_judged_too(env):
    """A scan of the same bytes, by whichever way it came, decides about neither."""
    files = skill_files("demo")
    for namespace in ("tests", "others"):
        await submit_upload(files, namespace=namespace, slug="demo")
    await run_until_quiet(env)
    env.scanner.ruleset, env.scanner.findings = "rules-2", FAILING
    scan = StaticReport("rules-2", ScanStatus.COMPLETE, FAILING)
    await env.kv.put(keys.scan(digest_of_files(files), "rules-2"), msgspec.json.encode(scan))
    await rescan_all(env)
    for namespace in ("tests", "others"):
        assert (await get_skill(f"upload~{namespace}/skills/demo")).withdrawn


async def test_a_judge_that_is_down_changes_nothing_and_is_asked_again(env):
    await published(env)
    assert (await skill()).certification is Certification.VERIFIED
    env.scanner.ruleset, env.scanner.findings = "rules-2", CONCERNING
    good, env.judge.answer = env.judge.answer, JUDGE_DOWN
    await rescan_all(env)
    live = await skill()
    assert live.current_version == "1.0.0"
    task, _ = await read_task(RESCAN, f"{live.canonical}:{live.current_digest}:rules-2")
    assert task is not None and task.attempts.waiting_for == "the judge"
    env.judge.answer = good
    env.clock.advance(10_000)
    await run_until_quiet(env)
    task, _ = await read_task(RESCAN, f"{live.canonical}:{live.current_digest}:rules-2")
    assert task is not None and task.state is TaskState.DONE


async def test_a_scan_that_breaks_is_tried_a_few_times_and_then_shows(env):
    await published(env)
    env.scanner.ruleset, env.scanner.status = "rules-2", ScanStatus.TIMED_OUT
    await rescan_all(env)
    for delay in (10_000, 60_000, 300_000):
        env.clock.advance(delay)
        await run_until_quiet(env)
    assert (await skill()).current_version == "1.0.0"
    assert (await env.broker.depth()).dead == 1


async def test_a_rescan_on_demand_of_what_is_gone_is_nothing(env):
    await published(env)
    live = await skill()
    await env.kv.delete(f"skill:{live.canonical}")
    await request_rescan(live, live.versions[0])
    await run_until_quiet(env)
    task, _ = await read_task(RESCAN, f"{live.canonical}:{live.current_digest}:rules-1")
    assert task is not None and "nothing to rescan" in task.outcome

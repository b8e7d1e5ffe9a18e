"""Whatever is published is looked at by every analyser there is, whoever died in between, and a few at a time."""

from pathlib import Path

import pytest

from tests.external_scan.conftest import GOOD_PYTHON, NONE, processes_with, published, script
from tests.processes.workers import REAL_WORKER, until, workers_on
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.faults import HookedKV
from tests.support.memory_env import named_env
from tests.support.patience import PATIENCE_S
from vskill_core.errors import CursorGone, NoEnvironment
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import StatusChange, yank
from vskill_platform.external_scan.dispatch import request_scans
from vskill_platform.external_scan.due import MOST_OPEN, STEP, LookPosition, request_due_scans
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.queue.tasks import KINDS
from vskill_platform.store.external_scans import (
    EXTERNAL_SCAN,
    ExternalStatus,
    get_external_scan,
    list_external_scans,
    read_external_task,
)
from vskill_platform.store.skills.skills import update_skill
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

REPORT = 'print(\'{"results": [], "errors": []}\')'


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, fake):
    """One analyser, which finds nothing."""
    given = {**NONE, "bandit_command": fake(REPORT)}
    async with open_test_env(request.param, tmp_path / "data", **given) as env:
        yield env


async def look(position: LookPosition, env, times: int = 1, step: int = STEP) -> LookPosition:
    for _ in range(times):
        position = await request_due_scans(position, step)
        await run_until_quiet(env)
    return position


async def test_what_was_published_before_the_first_look_and_after_it_is_asked_about_once(env):
    before = await published(env, "before")
    position = await look(LookPosition(), env)
    assert position.walked_to is None
    after = await published(env, "after")
    position = await look(position, env)
    await look(position, env, 2)
    for digest in (before, after):
        report = await get_external_scan(digest, "bandit")
        assert report is not None and report.status is ExternalStatus.COMPLETE
        task = await read_external_task(digest, "bandit")
        assert task is not None and (task.run, task.state) == (1, TaskState.DONE)


async def test_only_a_few_are_under_way_and_none_is_forgotten(env):
    """(k) a window that starves nobody: both the walk and the changes go on where there was no room."""
    early = [await published(env, f"early-{n}") for n in range(MOST_OPEN + 3)]
    position = await request_due_scans(LookPosition(), step=4)
    assert (await env.kv.count_by("task:", "state", audiences=EVERYTHING))["ACTIVE"] == MOST_OPEN
    assert await request_due_scans(position, step=4) == position
    late = [await published(env, f"late-{n}") for n in range(MOST_OPEN + 3)]
    await look(position, env, 4, step=4)
    for digest in (*early, *late):
        assert await get_external_scan(digest, "bandit") is not None


async def test_nobody_is_asked_where_there_is_no_analyser_and_all_are_once_there_is(tmp_path, fake):
    async with open_test_env("sqlite", tmp_path / "data", **NONE) as env:
        digest = await published(env)
        position = await look(LookPosition(), env, 2)
        assert await read_external_task(digest, "bandit") is None
    given = {**NONE, "bandit_command": fake(REPORT)}
    async with open_test_env("sqlite", tmp_path / "data", **given) as env:
        await look(position, env)
        assert await get_external_scan(digest, "bandit") is not None


class ForgetfulKV(HookedKV):
    """A store that keeps no changes any more."""

    async def changes(self, *_, **__):
        raise CursorGone


async def test_a_gap_in_the_changes_is_closed_by_walking_again(env):
    position = await look(LookPosition(), env)
    digest = await published(env)
    with active_env(env, kv=ForgetfulKV(env.kv)):
        position = await request_due_scans(position)
    assert position.cursor is None
    await look(position, env)
    assert await get_external_scan(digest, "bandit") is not None


async def test_only_live_versions_are_asked_about(env):
    digest = await published(env)
    change = StatusChange(StatusRole.OWNER, "user:me", env.kv.now(), "not needed")
    await update_skill("upload~tests/skills/demo", lambda skill: yank(skill, change, number="1.0.0"))
    await look(LookPosition(), env)
    assert await read_external_task(digest, "bandit") is None


async def test_a_malformed_skill_hides_no_other(env):
    digest = await published(env)
    await env.kv.put("skill:a/b/c", b"{broken")
    await look(LookPosition(), env)
    assert await get_external_scan(digest, "bandit") is not None


async def test_the_job_and_the_kind_are_in_the_visible_lists(env):
    digest = await published(env)
    (job,) = [job for job in JOBS if job.name == "external-scans"]
    assert EXTERNAL_SCAN in {kind.name for kind in KINDS}
    assert await run_job(job, forced=True)
    await run_until_quiet(env)
    assert await get_external_scan(digest, "bandit") is not None
    env.clock.advance(job.every_ms)
    assert await run_job(job)


async def test_AC_US3_04_store_and_dispatch_find_their_binding_or_name_it():
    for call, binding in (
        (lambda: get_external_scan("d", "p"), "kv"),
        (lambda: list_external_scans("d"), "kv"),
        (lambda: read_external_task("d", "p"), "kv"),
        (lambda: request_scans("d"), "settings"),
        (lambda: request_due_scans(LookPosition()), "settings"),
    ):
        with pytest.raises(NoEnvironment) as caught:
            await call()
        assert caught.value.details["binding"] == binding


async def test_AC_US3_04_each_sees_the_environment_that_it_runs_in(env):
    digest = await published(env, "demo", script("a.py", GOOD_PYTHON))
    await request_scans(digest)
    await run_until_quiet(env)
    other = named_env("other")
    assert await run_with_worker_env(other, lambda: list_external_scans(digest)) == ()
    with active_env(other):
        assert await get_external_scan(digest, "bandit") is None
    assert len(await list_external_scans(digest)) == 1


@pytest.mark.slow
async def test_B8_a_worker_killed_in_the_middle_of_an_analysis_is_followed_by_another(tmp_path, fake):
    """With the real time limits: the analyser dies with its worker, and the next one finishes its work (b)."""
    started = tmp_path / "started"
    code = (
        f"if not os.path.exists({str(started)!r}):\n"
        f"    open({str(started)!r}, 'w').write(os.readlink('/proc/self'))\n    time.sleep(600)\n{REPORT}"
    )
    program = fake(code)
    given = {**NONE, "bandit_command": program}
    variables = {"VSKILL_BANDIT_COMMAND": program, "VSKILL_SEMGREP_COMMAND": "off"}
    async with (
        open_test_env("sqlite", tmp_path / "data", clock=SystemClock(), **given) as env,
        workers_on(env.settings, tmp_path, **variables) as workers,
    ):
        digest = await published(env, "demo", script("a.py", GOOD_PYTHON))
        victim = await workers.start(REAL_WORKER)
        await victim.until_up()
        await request_scans(digest)
        await until(lambda: _exists(started), PATIENCE_S, "the analyser was not started")
        await victim.kill()
        other = await workers.start()
        await until(lambda: _reported(digest), PATIENCE_S, "nobody finished the analysis")
        task = await read_external_task(digest, "bandit")
        assert task is not None
        assert (task.state, task.attempts.interrupted, task.run) == (TaskState.DONE, 1, 1)
        assert processes_with(program) == []
        assert (await count_submissions(audiences=EVERYTHING)).active == 0
        assert await other.terminate() == 0


async def _exists(path: Path) -> bool:
    return path.exists() and path.read_text() != ""


async def _reported(digest: str) -> bool:
    return await get_external_scan(digest, "bandit") is not None

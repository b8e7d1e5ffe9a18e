"""Real workers that are killed with `kill -9` while they bring 200 skills of an upstream over real git."""

from pathlib import Path

import pytest

from tests.processes.test_kill import SHORT_CLAIM, check_file, check_nothing_owed, check_published_once
from tests.processes.workers import Workers, until, workers_on
from tests.support.envs import open_test_env
from tests.support.git_server import git_server, skill_md
from tests.support.patience import PATIENCE_S
from vskill_core.identity import submission_id, upstream_identity
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.upstream import Intake, Upstream, UpstreamKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.skills import upstreams
from vskill_platform.store.skills.upstreams import UPSTREAM_BRING
from vskill_platform.submission_store import count_submissions, get_submission

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

URL = "https://github.com/vendor/skills"
NAMES = tuple(f"skill-{number:03}" for number in range(200))
#: How many submissions there are when the workers are killed.
KILLED_AT = (1, 60, 150)


async def test_two_hundred_skills_of_an_upstream_come_once_whoever_is_killed(tmp_path: Path) -> None:
    with git_server(tmp_path / "git") as server:
        server.repo("vendor/skills", {f"skills/{name}/SKILL.md": skill_md(name) for name in NAMES})
        rewrite = server.rewrite()
        async with (
            open_test_env("sqlite", tmp_path, clock=SystemClock(), source_rewrites=(rewrite,)) as env,
            workers_on(env.settings, tmp_path, VSKILL_SOURCE_REWRITES=rewrite, **SHORT_CLAIM) as workers,
        ):
            made = Upstream(
                name="vendor", kind=UpstreamKind.REPOSITORY, address=URL, intake=Intake.ALL, by="user:olga"
            )
            note = AuditNote("upstream added", "vendor", "user:olga", "ours")
            await upstreams.change_upstream(note, lambda _: made)
            for most in KILLED_AT:
                await _kill_at(workers, most)
            await workers.start()
            await until(_all_ended, 3 * PATIENCE_S, "some have not ended")
            await check_nothing_owed(env)
            assert len((await env.kv.scan(f"task:{UPSTREAM_BRING}:")).items) == len(NAMES)
            for name in NAMES:
                number = submission_id(upstream_identity("vendor", "skills", name))
                record = await get_submission(number, audiences=EVERYTHING)
                assert (record.state, record.run) == (State.PUBLISHED, 1), (name, record.history[-1])
                await check_published_once(record)
    check_file(tmp_path / "vskill.db")


async def _kill_at(workers: Workers, most: int) -> None:
    """Two workers at once, killed when so many skills have come."""
    both = [await workers.start() for _ in range(2)]

    async def has_come() -> bool:
        return (await count_submissions(audiences=EVERYTHING)).total >= most

    await until(has_come, PATIENCE_S, f"fewer than {most} have come")
    for one in both:
        await one.kill()


async def _all_ended() -> bool:
    counts = await count_submissions(audiences=EVERYTHING)
    return counts.active == 0 and counts.total == len(NAMES)

"""A process that hides a namespace for the first time, killed with `kill -9` in the middle of it."""

from pathlib import Path

import msgspec
import pytest

from tests.processes.workers import until, workers_on
from tests.support.envs import make_submission, open_test_env
from tests.support.patience import PATIENCE_S
from vskill_core.identity import upload_identity
from vskill_platform.actions.principal import ANYBODY, audiences_of, resolve
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.store.people.namespaces import read_namespace
from vskill_platform.worker_context import Env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

OWN = "upload~mia"
AUDIENCE = frozenset({f"ns:{OWN}"})
#: More than a pass gets through between two looks.
MANY = 6_000
HIDE = ("-m", "vskill_platform", "namespace", "visibility", "--yes", "--reason", "a test", OWN, "team")
SCHEDULE = ("-m", "vskill_platform", "schedule")


async def fill(env: Env) -> None:
    records = [
        make_submission(
            f"skill-{number}",
            state=State.REJECTED,
            at=env.kv.now(),
            identity=upload_identity("mia", f"skill-{number}"),
        )
        for number in range(MANY)
    ]
    for begin in range(0, MANY, 1_000):
        batch = records[begin : begin + 1_000]
        await env.kv.commit([Put(one.key, msgspec.json.encode(one), ABSENT) for one in batch])


async def count(env: Env, audiences: frozenset[str]) -> int:
    return sum((await env.kv.count_by(SUBMISSIONS.prefix, "state", audiences=audiences)).values())


async def test_killed_in_the_middle_it_stays_readable_and_the_job_finishes_it(tmp_path: Path) -> None:
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path) as processes,
    ):
        await fill(env)
        victim = await processes.start(HIDE)

        async def begun() -> bool:
            return await count(env, AUDIENCE) > 0

        await until(begun, PATIENCE_S, "nothing got its audience")
        await victim.kill()
        moved = await count(env, AUDIENCE)
        assert 0 < moved < MANY and moved + await count(env, PUBLIC_ONLY) == MANY
        left, _ = await read_namespace(OWN)
        assert (left.visibility, left.preparing) == (Visibility.PUBLIC, Visibility.TEAM)
        assert audiences_of(await resolve(ANYBODY)) == AUDIENCE | PUBLIC_ONLY

        await processes.start(SCHEDULE)

        async def finished() -> bool:
            return (await read_namespace(OWN))[0].preparing is None

        await until(finished, PATIENCE_S, "the job did not finish it")
        assert (await read_namespace(OWN))[0].visibility is Visibility.TEAM
        assert (await count(env, AUDIENCE), await count(env, PUBLIC_ONLY)) == (MANY, 0)
        assert audiences_of(await resolve(ANYBODY)) == PUBLIC_ONLY

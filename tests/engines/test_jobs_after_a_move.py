"""After a move or a restore the scheduled jobs go on where they stopped: what was told is not told again, what waited to
be told is told, and what happens afterwards is not missed, whatever the engines."""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import msgspec
import pytest

from tests.support.acting import take_down
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.receiver import Receiver, receiver
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.installation.backup import back_up, restore
from vskill_platform.installation.migrate import migrate
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.notifications.signature import new_secret
from vskill_platform.queue.job_health import job_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import Settings
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.skills.installs import count_installs
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.skills.vocabulary import read_known_words
from vskill_platform.store.telling.webhooks import add_webhook
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

ENGINES = ("sqlite", "postgresql")
WAYS = list(product(ENGINES, ENGINES, ("migrate", "restore")))
HOUR_MS = 3_600_000
ALL = SubmittedBy(None, EVERYTHING)
EVENTS = tuple(one.value for one in NoticeType if one not in (NoticeType.ALERT_FIRED, NoticeType.ALERT_ENDED))


@pytest.fixture
def inbox():
    with receiver() as state:
        yield state


def told(inbox: Receiver) -> Counter[tuple[str, str]]:
    """How often each notice was delivered, by its type and what it is about."""
    bodies = [json.loads(body) for _, body in inbox.posts]
    return Counter((one["type"], one["data"].get("skillName") or one["data"]["skill"]) for one in bodies)


async def run_jobs(env: Env, clock: ManualClock, *, rounds: int = 1) -> None:
    """All of them, again and again; then everything that they asked for."""
    for _ in range(rounds):
        for job in JOBS:
            assert await run_job(job, forced=True)
        await run_until_quiet(env)
        clock.advance(4 * HOUR_MS)


async def publish(env: Env, name: str, body: str = "") -> None:
    await submit_skill(name, body, by=ALL)
    await run_until_quiet(env)


async def move(way: str, old: Settings, new: Settings, folder: Path) -> None:
    if way == "migrate":
        assert (await migrate(old.store, new.store)).equal
    else:
        await back_up(old, folder / "backup.tar")
        await restore(new, folder / "backup.tar")


@pytest.mark.parametrize(("source", "target", "way"), WAYS)
async def test_jobs_go_on_without_repeats_and_without_gaps(new_store, tmp_path, inbox, source, target, way):
    clock = ManualClock()
    old, new = [
        Settings(
            data_dir=str(tmp_path / name),
            store=await new_store(engine),
            allowed_private_hosts=(inbox.address,),
        )
        for name, engine in (("old", source), ("new", target))
    ]
    if way == "migrate":
        new = msgspec.structs.replace(new, data_dir=old.data_dir)
    async with open_test_env("memory", tmp_path, clock=clock, settings=old) as env:
        await add_webhook(inbox.url, new_secret(), EVENTS, by="admin:command line")
        await run_jobs(env, clock)
        await publish(env, "first")
        await run_jobs(env, clock)
        before = told(inbox)
        assert before[("skill.published", "first")] == 1
        # From here on no job looks any more: all of this waits to be told when the store is moved.
        await publish(env, "twice", "one")
        clock.advance(1_000)
        await submit_skill("twice", "two", by=ALL)
        await publish(env, "zebra")
        await file_report(
            "upload~tests/skills/first", reporter="user:ron", reason="It lies.", audiences=EVERYTHING
        )
        await take_down("upload~tests/skills/first", by="admin:eve", reason="It lies.")
        await count_installs(["upload~tests/skills/zebra"])
    await move(way, old, new, tmp_path)
    async with open_test_env("memory", tmp_path, clock=clock, settings=new) as env:
        # More changes than the old store ever had, before the first job looks.
        await env.kv.commit([Put(f"odd:{n}", b"1") for n in range(500)])
        await publish(env, "later")
        await run_jobs(env, clock, rounds=6)
        assert [(one.name, one.last_error) for one in await job_health() if one.last_error] == []
        assert (await get_skill("upload~tests/skills/zebra")).trust.installs == 1
        assert (await read_known_words()).count_holders("zebra", "") > 0
    after = told(inbox)
    assert after == before + Counter(
        {
            ("submission.decided", "twice"): 2,
            ("skill.published", "twice"): 2,
            ("submission.decided", "zebra"): 1,
            ("skill.published", "zebra"): 1,
            ("report.filed", "upload~tests/skills/first"): 1,
            ("skill.withdrawn", "upload~tests/skills/first"): 1,
            ("submission.decided", "first"): 1,
            ("review.waiting", "first"): 1,
            ("submission.decided", "later"): 1,
            ("skill.published", "later"): 1,
        }
    )

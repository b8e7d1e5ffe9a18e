"""The job of notices gets on, however much waits and whatever is broken: no part of it waits for another."""

import asyncio

import msgspec
import pytest

from tests.support.acting import set_role, take_down
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.notifications.deliveries import (
    DELIVERY,
    STEP,
    find_notices,
    find_recalls,
    find_reports,
    tell_again,
    tell_of_alerts,
)
from vskill_platform.notifications.notices import AlertData, NoticeType, alert_notice
from vskill_platform.notifications.signature import new_secret
from vskill_platform.notifications.telling import TELL
from vskill_platform.queue.jobs import JOBS, NOTICE_STEPS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.operation.jobs import read_job
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.review.reports import ReportStatus, decide_report, file_report
from vskill_platform.store.telling.notifications import watch
from vskill_platform.store.telling.webhooks import add_webhook

pytestmark = pytest.mark.anyio

(NOTICES,) = (job for job in JOBS if job.name == "notices")
LINT = "upload~tests/skills/lint"
REVIEWERS = ("rae", "ron", "ria", "rob", "roy")


class BrokenPart(HookedKV):
    """A store in which the changes of reports cannot be followed: they raise, or never come."""

    def __init__(self, inner, broken: str) -> None:
        super().__init__(inner)
        self.broken = broken
        self.looks = 0
        self.second_look = asyncio.Event()

    async def changes(self, prefix, *, after=None, limit=1000):
        if prefix == keys.report.prefix and self.broken == "raises":
            raise StoreUnavailable("reports are away because a test says so")
        if prefix == keys.report.prefix and self.broken == "hangs":
            await asyncio.Event().wait()
        if prefix != keys.report.prefix:
            self.looks += 1
            if self.looks == 2:
                self.second_look.set()
        return await super().changes(prefix, after=after, limit=limit)


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        for name in REVIEWERS:
            await create_user(name, Role.REVIEWER, by="system", reason="a test")
        yield opened


async def wait_for_review(env, *names: str, **fields) -> None:
    """Store submissions that wait for a reviewer."""
    made = (make_submission(name, state=State.NEEDS_REVIEW, at=env.kv.now(), **fields) for name in names)
    await asyncio.gather(*(put_record(env, one) for one in made))


async def count_below(env, prefix: str) -> int:
    return sum([len(page.items) async for page in iterate_pages(env.kv, prefix)])


async def told(env) -> list[int]:
    """How many notifications each reviewer has."""
    return [await count_below(env, keys.inbox.under(name)) for name in REVIEWERS]


async def run_notices(env) -> bool:
    """Run the job; whether it succeeded."""
    env.clock.advance(1)
    assert await run_job(NOTICES, forced=True)
    record, _ = await read_job(NOTICES.name)
    return record.last_success == record.last_start


async def test_each_run_gets_on_by_a_bounded_number_and_tells_all_of_it_once(env):
    await add_webhook("https://hooks.test/", new_secret(), ("review.waiting",), by="admin:eve")
    assert await run_notices(env)
    one_run = STEP * NOTICE_STEPS
    waiting = one_run + STEP
    await wait_for_review(env, *(f"skill-{number}" for number in range(waiting)))
    kv = HookedKV(env.kv)
    with active_env(env, kv=kv):
        assert await run_notices(env)
        assert await told(env) == [one_run] * len(REVIEWERS)
        assert await run_notices(env)
        assert await run_notices(env)
    assert await told(env) == [waiting] * len(REVIEWERS)
    assert await count_below(env, f"task:{DELIVERY}:") == waiting
    written = [[one for one in commit if is_notification(one)] for commit in kv.commits]
    assert len([puts for puts in written if puts]) == NOTICE_STEPS + 1, "one commit for each step"
    assert sum(map(len, written)) == waiting * len(REVIEWERS)


def is_notification(operation) -> bool:
    return isinstance(operation, Put) and operation.key.startswith(keys.inbox.prefix)


@pytest.mark.parametrize("broken", ["raises", "hangs"])
async def test_a_part_that_fails_takes_nothing_from_the_others_and_goes_on_later(env, broken):
    assert await run_notices(env)
    kv = BrokenPart(env.kv, broken)
    await wait_for_review(env, "one", "two")
    before, _ = await read_job(NOTICES.name)
    with active_env(env, kv=kv):
        running = asyncio.create_task(run_notices(env))
        if broken == "hangs":
            await asyncio.wait_for(kv.second_look.wait(), 30)
            running.cancel()
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert ended is not True
        after, _ = await read_job(NOTICES.name)
        assert after.state["reports"] == before.state["reports"]
        assert after.state["cursor"] != before.state["cursor"]
        assert await told(env) == [2] * len(REVIEWERS)
        kv.broken = ""
        await wait_for_review(env, "three")
        assert await run_notices(env)
    assert await told(env) == [3] * len(REVIEWERS)


async def test_what_no_cursor_leads_back_to_is_told_by_the_records(env):
    """The store was moved, or nobody looked for longer than changes are kept: nothing is missed, nothing is repeated."""
    await add_webhook("https://hooks.test/", new_secret(), ("review.waiting",), by="admin:eve")
    await run_notices(env)
    await wait_for_review(env, "known")
    assert await run_notices(env)
    env.clock.advance(8 * 24 * 3_600_000)
    waiting = STEP + 3
    await wait_for_review(env, *(f"skill-{number}" for number in range(waiting)))
    record, _ = await read_job(NOTICES.name)
    state = {**record.state, "cursor": "of another store", "reports": "of another store"}
    await env.kv.put(
        keys.job(NOTICES.name), msgspec.json.encode(msgspec.structs.replace(record, state=state))
    )
    assert await run_notices(env)
    assert await told(env) == [1 + waiting] * len(REVIEWERS)
    assert await count_below(env, f"task:{DELIVERY}:") == 1 + waiting
    record, _ = await read_job(NOTICES.name)
    assert "owed_since" not in record.state and record.state["told_until"] == record.last_start
    await wait_for_review(env, "later")
    assert await run_notices(env)
    assert await told(env) == [2 + waiting] * len(REVIEWERS)


async def test_records_that_cannot_be_read_are_left_out_and_keep_nobody_from_hearing(env):
    cursor = await find_notices(None)
    await add_webhook("https://hooks.test/", new_secret(), ("submission.decided",), by="admin:eve")
    await watch("rae", "upload~tests")
    for key in (keys.user("broken"), keys.watcher("upload~tests", "broken")):
        await env.kv.put(key, b'{"name": 1}')
    await wait_for_review(env, "one", submitter="broken")
    published = make_submission(
        "two",
        state=State.PUBLISHED,
        at=env.kv.now(),
        published="skill:upload~tests/skills/two",
        published_version="1.0.0",
    )
    await put_record(env, published)
    assert await find_notices(cursor) != cursor
    assert await told(env) == [2, 1, 1, 1, 1]
    assert await count_below(env, f"task:{DELIVERY}:") == 2


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a mistake")])
async def test_accounts_that_cannot_be_told_hold_no_webhook_back(env, error):
    cursor = await find_notices(None)
    await add_webhook("https://hooks.test/", new_secret(), ("review.waiting",), by="admin:eve")
    await wait_for_review(env, "one")
    kv = HookedKV(env.kv)

    async def refuse(operations) -> None:
        if any(map(is_notification, operations)):
            raise error

    kv.before_commit = refuse
    with active_env(env, kv=kv):
        if isinstance(error, StoreUnavailable):
            with pytest.raises(StoreUnavailable):
                await find_notices(cursor)
        else:
            assert await find_notices(cursor) != cursor
    assert await count_below(env, f"task:{DELIVERY}:") == 1
    if isinstance(error, StoreUnavailable):
        await find_notices(cursor)
    else:
        # Nobody looks at it again: the tasks alone keep the promise, and telling twice would be harmless.
        assert await told(env) == [0] * len(REVIEWERS)
        assert {await run_one(env, one) for one in await tasks_to_tell(env)} == {"told"}
    assert await told(env) == [1] * len(REVIEWERS)
    assert await count_below(env, f"task:{DELIVERY}:") == 1


async def tasks_to_tell(env) -> list[Task]:
    entries = [entry async for page in iterate_pages(env.kv, f"task:{TELL}:") for entry in page.items]
    return [msgspec.json.decode(entry.value, type=Task) for entry in entries]


async def run_one(env, task: Task) -> str:
    return (await tell_again(task)).outcome


async def test_every_kind_of_news_that_could_not_be_told_is_told_by_its_task(env):
    """A report, its decision, a recall and an alert, each found again by what its task names."""
    await set_role("rae", Role.ADMIN, by="system", reason="a test")
    await watch("rae", "upload~tests")
    cursors = await find_reports(None), await find_recalls(None)
    await submit_skill("lint", namespace="tests", by=SubmittedBy(None, EVERYTHING))
    await run_until_quiet(env)
    filed = await file_report(LINT, reporter="user:ron", reason="It lies.", audiences=EVERYTHING)
    data = AlertData("disk_filling", "records", "Only 1 MiB is free.", env.kv.now())
    alert = alert_notice(NoticeType.ALERT_FIRED, env.kv.now(), data)
    kv = HookedKV(env.kv)

    async def refuse(operations) -> None:
        if any(map(is_notification, operations)):
            raise RuntimeError("a mistake")

    kv.before_commit = refuse
    env.clock.advance(1)
    with active_env(env, kv=kv):
        cursor = await find_reports(cursors[0])
        await decide_report(filed.report.id, ReportStatus.UPHELD, by="admin:rae", reason="It does.")
        await find_reports(cursor)
        await take_down(LINT, by="admin:eve", reason="It is broken.")
        await find_recalls(cursors[1])
        await tell_of_alerts([alert])
    tasks = await tasks_to_tell(env)
    assert len(tasks) == 4 and await told(env) == [0] * len(REVIEWERS)
    assert {await run_one(env, one) for one in tasks} == {"told"}
    assert await told(env) == [2, 1, 0, 0, 0], "rae the recall and the alert, ron the decision"

"""An alert is told once when it begins and once when it ends, however often it is looked at."""

import json
from collections.abc import Iterable, Sequence

import pytest

from tests.support.acting import set_role
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.receiver import receiver
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.notifications.deliveries import tell_of_alerts
from vskill_platform.notifications.notices import AlertData, AlertNotice, NoticeType, alert_notice
from vskill_platform.notifications.signature import new_secret
from vskill_platform.queue.alerts import Alert, AlertCode, DeadLetters, count_dead_letters
from vskill_platform.queue.firings import GONE_MS, HOLDS_MS, Firing, compare_looks, look_at_alerts
from vskill_platform.store.people.accounts import Role, create_user, get_user
from vskill_platform.store.people.readers import audiences_of_actor
from vskill_platform.store.telling.notifications import list_notifications
from vskill_platform.store.telling.webhooks import add_webhook

pytestmark = pytest.mark.anyio

FULL = Alert(AlertCode.DISK_FILLING, "Only 1 MiB is free.", "records")
STALE = Alert(AlertCode.JOB_STALE, "The job notices has never succeeded.", "notices")


def look_on(looks: Iterable[tuple[int, Sequence[Alert]]]) -> list[AlertNotice]:
    """What is told over these looks."""
    firing: list[Firing] = []
    told: list[AlertNotice] = []
    for at, alerts in looks:
        firing, notices = compare_looks(firing, alerts, at)
        told += notices
    return told


def test_one_firing_is_one_notice_and_its_end_another():
    held = [(at, (FULL,)) for at in range(0, 600_000, 15_000)]
    gone = [(at, ()) for at in range(600_000, 1_200_000, 15_000)]
    told = look_on([*held, *gone])
    assert [(one.type, one.at) for one in told] == [
        (NoticeType.ALERT_FIRED, 0),
        (NoticeType.ALERT_ENDED, 600_000),
    ]
    assert told[0].data.text == FULL.text and told[0].id != told[1].id


def test_what_passes_within_seconds_is_not_told():
    assert look_on([(0, (FULL,)), (15_000, ()), (30_000, (FULL,)), (45_000, ())]) == []


def test_an_alert_that_comes_back_soon_has_not_ended():
    on_and_off = [(at, (FULL,) if at // 60_000 % 2 == 0 else ()) for at in range(0, 1_200_000, 15_000)]
    assert [one.type for one in look_on(on_and_off)] == [NoticeType.ALERT_FIRED]


def test_one_that_ended_and_fires_again_is_told_again():
    told = look_on(
        [
            (0, (FULL,)),
            (HOLDS_MS, (FULL,)),
            (40_000, ()),
            (40_000 + GONE_MS, ()),
            (500_000, (FULL,)),
            (500_000 + HOLDS_MS, (FULL,)),
        ]
    )
    fired, ended = NoticeType.ALERT_FIRED, NoticeType.ALERT_ENDED
    assert [one.type for one in told] == [fired, ended, fired]
    assert len({one.id for one in told}) == 3


def test_alerts_of_one_kind_about_different_things_are_told_apart():
    other = Alert(AlertCode.JOB_STALE, "The job sweep has never succeeded.", "sweep")
    told = look_on([(0, (STALE, other)), (HOLDS_MS, (STALE, other))])
    assert len({one.id for one in told}) == 2


def test_a_look_whose_outcome_was_lost_tells_the_same_again():
    firing, _ = compare_looks([], (FULL,), 0)
    first = compare_looks(firing, (FULL,), HOLDS_MS)[1]
    again = compare_looks(firing, (FULL,), HOLDS_MS + 15_000)[1]
    assert [one.id for one in first] == [one.id for one in again]


def test_a_clock_that_was_set_back_keeps_nothing_waiting():
    assert look_on([(HOLDS_MS * 100, (FULL,)), (0, (FULL,))])[0].type is NoticeType.ALERT_FIRED


@pytest.fixture
def inbox():
    with receiver() as state:
        yield state


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, inbox):
    async with open_test_env(request.param, tmp_path, allowed_private_hosts=(inbox.address,)) as opened:
        for name, role in (("ann", Role.AUTHOR), ("rae", Role.REVIEWER), ("eve", Role.ADMIN)):
            await create_user(name, role, by="system", reason="a test")
        yield opened


async def texts(account: str) -> list[str]:
    audiences = await audiences_of_actor(f"user:{account}")
    found = await list_notifications(await get_user(account), limit=100, audiences=audiences)
    return [one.text for one in found.items]


async def test_a_receiver_that_refuses_an_alert_for_good_raises_no_other_one(env, inbox):
    inbox.statuses += [500] * 10
    await add_webhook(inbox.url, new_secret(), ("alert.fired",), by="admin:eve")
    env.clock.advance(1)
    data = AlertData("disk_filling", "records", "Only 1 MiB is free.", env.kv.now())
    await tell_of_alerts([alert_notice(NoticeType.ALERT_FIRED, env.kv.now(), data)])
    await run_until_quiet(env)
    while not (await env.broker.depth()).dead:
        env.clock.advance(36_000_000)
        assert await run_until_quiet(env)
    assert await count_dead_letters(EVERYTHING) == DeadLetters(1, 0)


async def test_admins_and_webhooks_hear_of_an_alert_and_nobody_else_does(env, inbox):
    """No job has run here, which is one alert."""
    await add_webhook(inbox.url, new_secret(), ("alert.fired",), by="admin:eve")
    firing = await look_at_alerts("[]")
    env.clock.advance(HOLDS_MS)
    again = await look_at_alerts(firing)
    assert await look_at_alerts(firing) == again, "telling twice is harmless"
    await run_until_quiet(env)
    told = await texts("eve")
    assert len(told) == len(set(told)) > 0 and all("No scheduled job" in text for text in told)
    posted = {json.loads(body)["data"]["text"] for _, body in inbox.posts}
    assert posted and posted <= set(told)
    assert await texts("ann") == await texts("rae") == []
    await create_user("ada", Role.ADMIN, by="system", reason="a test")
    await set_role("eve", Role.REVIEWER, by="system", reason="a test")
    assert await texts("eve") == []

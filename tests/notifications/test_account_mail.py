"""Accounts are mailed once a day what they were told, at an address that they confirmed; and only what they may read when
it is sent."""

import re
from email import message_from_string, policy
from email.message import EmailMessage

import msgspec
import pytest

from tests.support.acting import set_disabled, set_role
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.namespaces import manage
from tests.support.smtp_server import smtp_server
from vskill_core.errors import InvalidInput, RateLimited
from vskill_platform.actions.principal import Principal, resolve
from vskill_platform.actions.telling.notifications import (
    CONFIRM_MAIL,
    LIST_NOTIFICATIONS,
    SET_MAIL,
    ConfirmAddress,
    ListNotifications,
    SetAddress,
)
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.telling.notification import (
    DAY_MS,
    DIGEST_GRACE_MS,
    MOST_PROOFS,
    MOST_PROOFS_TO_ADDRESS,
    Notification,
    Topic,
    next_digest_at,
)
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Delete
from vskill_platform.notifications.deliveries import find_notices, find_reports, tell_of_alerts
from vskill_platform.notifications.mail import MOST_IN_DIGEST
from vskill_platform.notifications.notices import AlertData, NoticeType, alert_notice
from vskill_platform.queue.recovery import recover_tasks
from vskill_platform.store.people.accounts import Role, create_user, get_user
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.telling.notifications import (
    MOST_MAILED,
    MOST_RESOLVED,
    list_for_digest,
    tell,
    watch,
)

pytestmark = pytest.mark.anyio

ANN, OPS = "ann@example.org", "ops@example.org"
LINT = "upload~tests/skills/lint"


@pytest.fixture
def room():
    with smtp_server() as running:
        yield running


def mails(room) -> list[tuple[str, EmailMessage]]:
    """Every recipient and message."""
    return [(to, message_from_string(text, policy=policy.default)) for _, to, text in room.mails]


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, room):
    settings = {
        "smtp_url": room.url,
        "mail_from": "registry@example.org",
        "public_url": "https://skills.test",
    }
    async with open_test_env(request.param, tmp_path, **settings) as opened:
        for name, role in (("ann", Role.AUTHOR), ("eve", Role.ADMIN)):
            await create_user(name, role, by="system", reason="a test")
        yield opened


async def who(account: str) -> Principal:
    return await resolve(Principal(account, (await get_user(account)).role))


async def confirm(env, room, account: str = "ann", address: str = ANN) -> None:
    """Give the account an address, by the code that is mailed there."""
    before = len(room.mails)
    await SET_MAIL(env, await who(account), SetAddress(address=address))
    await run_until_quiet(env)
    ((to, message),) = mails(room)[before:]
    assert to == address
    (code,) = re.findall(r"with this code: (\S+)", message.get_content())
    chosen = await CONFIRM_MAIL(env, await who(account), ConfirmAddress(code=code))
    assert (chosen.mail, chosen.unconfirmed) == (address, None)
    room.mails.clear()


async def publish(env, name: str = "lint", body: str = "", namespace: str = "tests", by: str | None = None):
    await submit_skill(name, body, namespace=namespace, by=SubmittedBy(by, EVERYTHING))
    await run_until_quiet(env)


async def pass_to_the_next_digest(env) -> None:
    env.clock.advance(next_digest_at(env.kv.now()) + DIGEST_GRACE_MS + 1 - env.kv.now())
    await recover_tasks()
    await run_until_quiet(env)


async def texts(env, account: str) -> list[str]:
    found = await LIST_NOTIFICATIONS(env, await who(account), ListNotifications())
    return [one.text for one in found.notifications]


async def test_an_address_gets_mail_once_it_is_confirmed(env, room):
    cursor = await find_notices(None)
    await publish(env, by="ann")
    cursor = await find_notices(cursor)
    await run_until_quiet(env)
    assert room.mails == [] and len(await texts(env, "ann")) == 1
    await SET_MAIL(env, await who("ann"), SetAddress(address=ANN))
    for code in ("guessed", "gerätselt"):
        with pytest.raises(InvalidInput, match="confirms no address"):
            await CONFIRM_MAIL(env, await who("ann"), ConfirmAddress(code=code))
    await publish(env, "other", by="ann")
    cursor = await find_notices(cursor)
    await run_until_quiet(env)
    assert [message["Subject"] for _, message in mails(room)] == ["[vskill-platform] confirm your address"]
    room.mails.clear()
    await confirm(env, room)
    await publish(env, "third", by="ann")
    await find_notices(cursor)
    await find_notices(cursor)
    await run_until_quiet(env)
    assert room.mails == []
    await pass_to_the_next_digest(env)
    ((to, message),) = mails(room)
    assert to == ANN and "\n- third: " in f"\n{message.get_content()}"
    assert "https://skills.test/submissions/" in message.get_content()
    assert "https://skills.test/account/notifications" in message.get_content()


async def test_a_notification_and_its_mail_are_asked_for_in_one_commit(env, room):
    """So that neither is lost without the other."""
    await confirm(env, room)
    cursor = await find_notices(None)
    await publish(env, by="ann")
    kv = HookedKV(env.kv)
    with active_env(env, kv=kv):
        await find_notices(cursor)
    (written,) = [one for one in kv.commits if any(getattr(op, "key", "").startswith("inbox:") for op in one)]
    assert any(getattr(op, "key", "").startswith("task:digest:ann:") for op in written)


async def test_what_was_mailed_is_not_mailed_again_though_its_notification_is_gone(env, room):
    """As after a backup was restored, which holds tasks and no notifications."""
    await confirm(env, room)
    cursor = await find_notices(None)
    await publish(env, by="ann")
    await find_notices(cursor)
    await pass_to_the_next_digest(env)
    async for page in iterate_pages(env.kv, keys.inbox.under("ann")):
        await env.kv.commit([Delete(entry.key) for entry in page.items])
    env.clock.advance(-DIGEST_GRACE_MS - 2)
    await find_notices(cursor)
    env.clock.advance(DIGEST_GRACE_MS + 2)
    await recover_tasks()
    await run_until_quiet(env)
    assert len(room.mails) == len(await texts(env, "ann")) == 1


async def test_a_day_of_what_one_watches_is_one_mail(env, room):
    await confirm(env, room)
    await watch("ann", "upload~tests")
    cursor = await find_notices(None)
    env.clock.advance(1)
    for name in ("one", "two"):
        await publish(env, name)
        cursor = await find_notices(cursor)
    await run_until_quiet(env)
    assert room.mails == []
    await pass_to_the_next_digest(env)
    ((to, message),) = mails(room)
    assert to == ANN and message["Subject"] == "[vskill-platform] 2 notifications today"
    for name in ("one", "two"):
        assert f"- upload~tests/skills/{name} 1.0.0 was published." in message.get_content()
    room.mails.clear()
    env.clock.advance(DAY_MS)
    await pass_to_the_next_digest(env)
    assert room.mails == [], "a day without news has no mail"


async def test_a_clock_that_is_set_back_sends_no_mail_of_half_a_day(env, room):
    """The rest of the day would never be mailed."""
    await confirm(env, room)
    env.clock.advance(next_digest_at(env.kv.now()) - env.kv.now())
    await watch("ann", "upload~tests")
    cursor = await find_notices(None)
    env.clock.advance(7_200_000)
    await publish(env, "one")
    cursor = await find_notices(cursor)
    env.clock.advance(-3_600_000)
    await recover_tasks()
    await run_until_quiet(env)
    assert room.mails == []
    await publish(env, "two")
    await find_notices(cursor)
    await pass_to_the_next_digest(env)
    ((_, message),) = mails(room)
    assert message["Subject"] == "[vskill-platform] 2 notifications today"


def news(count: int, at: int, skill: str = LINT) -> list[tuple[str, Notification]]:
    """What ann is told of skills that she watches, or of one skill."""
    return [
        ("ann", Notification(f"e{n}", Topic.WATCHED, "skill.published", at, "news", skill=skill.format(n)))
        for n in range(count)
    ]


async def test_of_very_many_notifications_the_daily_mail_shows_some_and_says_that_there_are_more(env, room):
    await confirm(env, room)
    await publish(env)
    await tell(news(MOST_MAILED + 2, env.kv.now()))
    await pass_to_the_next_digest(env)
    ((_, message),) = mails(room)
    assert message["Subject"] == f"[vskill-platform] more than {MOST_MAILED} notifications today"
    assert message.get_content().count("- news") == MOST_IN_DIGEST
    assert "- and more on your page" in message.get_content()


class NotingKV(HookedKV):
    """Notes the skills that were read."""

    def __init__(self, inner) -> None:
        super().__init__(inner)
        self.skills: list[str] = []

    async def get_many(self, keys):
        wanted = tuple(keys)
        self.skills += [key for key in wanted if key.startswith("skill:")]
        return await super().get_many(wanted)


async def test_for_a_daily_mail_few_skills_are_read_however_much_was_told(env):
    await tell(news(MOST_RESOLVED + 100, env.kv.now(), "gone/a/s{}"))
    kv = NotingKV(env.kv)
    with active_env(env, kv=kv):
        until = next_digest_at(env.kv.now())
        assert await list_for_digest("ann", until, {Topic.WATCHED}, audiences=EVERYTHING) == []
    assert len(kv.skills) == MOST_RESOLVED


async def test_what_became_private_before_it_is_sent_is_left_out(env, room):
    await manage(env, "upload~acme", Visibility.TEAM, "user:ann")
    await confirm(env, room)
    await watch("ann", "upload~acme")
    await watch("ann", "upload~tests")
    cursor = await find_notices(None)
    env.clock.advance(1)
    await publish(env, "canary", namespace="acme")
    await publish(env)
    await find_notices(cursor)
    await manage(env, "upload~acme", Visibility.TEAM)
    await run_until_quiet(env)
    await pass_to_the_next_digest(env)
    ((_, message),) = mails(room)
    assert LINT in message.get_content() and "canary" not in message.as_string()


@pytest.mark.parametrize("gone", ["disabled", "role", "address"])
async def test_who_has_changed_since_is_mailed_nothing(env, room, gone):
    """And nothing is tried again: no dead letter comes of it."""
    await create_user("rae", Role.REVIEWER, by="system", reason="a test")
    await confirm(env, room, "rae", "rae@example.org")
    cursor = await find_notices(None)
    await put_record(env, make_submission(state=State.NEEDS_REVIEW, at=env.kv.now()))
    await find_notices(cursor)
    if gone == "disabled":
        await set_disabled("rae", disabled=True, by="system", reason="a test")
    elif gone == "role":
        await set_role("rae", Role.AUTHOR, by="system", reason="a test")
    else:
        await SET_MAIL(env, await who("rae"), SetAddress(address=""))
    await run_until_quiet(env)
    await pass_to_the_next_digest(env)
    assert room.mails == []
    tasks = [msgspec.json.decode(entry.value, type=Task) for entry in (await env.kv.scan("task:")).items]
    assert "digest" in {task.kind for task in tasks}
    assert {task.state for task in tasks} == {TaskState.DONE}


@pytest.mark.parametrize(
    "address", ["ann", "@", "a b@c", "Ann <ann@example.org>", "a@b\r\nBcc: c@d", "ä@b.org"]
)
async def test_what_is_no_address_is_refused(env, room, address):
    with pytest.raises(InvalidInput, match="not an e-mail address"):
        await SET_MAIL(env, await who("ann"), SetAddress(address=address))


async def test_strangers_are_not_flooded_with_codes_and_a_code_expires(env, room):
    for number in range(MOST_PROOFS):
        await SET_MAIL(env, await who("ann"), SetAddress(address=f"stranger{number}@example.org"))
    with pytest.raises(RateLimited, match="for you"):
        await SET_MAIL(env, await who("ann"), SetAddress(address="another@example.org"))
    await run_until_quiet(env)
    code = re.findall(r"with this code: (\S+)", mails(room)[-1][1].get_content())[0]
    env.clock.advance(DAY_MS)
    with pytest.raises(InvalidInput, match="confirms no address"):
        await CONFIRM_MAIL(env, await who("ann"), ConfirmAddress(code=code))
    room.mails.clear()
    await confirm(env, room)


async def test_many_accounts_do_not_flood_one_stranger_either(env, room):
    for number in range(MOST_PROOFS_TO_ADDRESS + 1):
        await create_user(f"bot{number}", Role.AUTHOR, by="system", reason="a test")
    for number in range(MOST_PROOFS_TO_ADDRESS):
        await SET_MAIL(env, await who(f"bot{number}"), SetAddress(address="stranger@example.org"))
    last = await who(f"bot{MOST_PROOFS_TO_ADDRESS}")
    with pytest.raises(RateLimited, match="to this address"):
        await SET_MAIL(env, last, SetAddress(address="Stranger@Example.org"))
    await SET_MAIL(env, last, SetAddress(address="other@example.org"))
    await run_until_quiet(env)
    assert [to for to, _ in mails(room)].count("stranger@example.org") == MOST_PROOFS_TO_ADDRESS
    env.clock.advance(DAY_MS)
    await SET_MAIL(env, last, SetAddress(address="stranger@example.org"))


async def test_a_code_is_good_for_a_day_from_when_it_was_asked_for(env, room):
    await SET_MAIL(env, await who("ann"), SetAddress(address=ANN))
    env.clock.advance(DAY_MS - 3_600_000)
    await SET_MAIL(env, await who("ann"), SetAddress(address=ANN))
    await run_until_quiet(env)
    env.clock.advance(DAY_MS - 1)
    (code,) = set(re.findall(r"with this code: (\S+)", "".join(one.get_content() for _, one in mails(room))))
    assert (await CONFIRM_MAIL(env, await who("ann"), ConfirmAddress(code=code))).mail == ANN


async def test_a_code_that_is_not_good_any_more_is_not_mailed(env, room):
    await SET_MAIL(env, await who("ann"), SetAddress(address=ANN))
    env.clock.advance(DAY_MS)
    await run_until_quiet(env)
    assert room.mails == []


async def test_without_a_mail_server_no_address_can_be_set(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        await create_user("ann", Role.AUTHOR, by="system", reason="a test")
        with pytest.raises(InvalidInput, match="sends no mail"):
            await SET_MAIL(env, await who("ann"), SetAddress(address=ANN))


async def test_the_operators_address_hears_of_reports_and_alerts(tmp_path, room):
    settings = {"smtp_url": room.url, "mail_from": "registry@example.org", "mail_to": OPS}
    async with open_test_env("sqlite", tmp_path, **settings) as env:
        await publish(env)
        cursor = await find_reports(None)
        await file_report(LINT, reporter="user:ann", reason="It lies.", audiences=EVERYTHING)
        await find_reports(cursor)
        data = AlertData("disk_filling", "records", "Only 1 MiB is free.", env.kv.now())
        for _ in range(2):
            await tell_of_alerts([alert_notice(NoticeType.ALERT_FIRED, env.kv.now(), data)])
        await run_until_quiet(env)
        assert {to for to, _ in mails(room)} == {OPS}
        subjects = sorted(message["Subject"] for _, message in mails(room))
        assert subjects == [
            "[vskill-platform] Only 1 MiB is free.",
            f"[vskill-platform] Somebody reported {LINT}: other.",
        ]
        written = "".join(message.as_string() for _, message in mails(room))
        assert "It lies." not in written
        assert "your page" not in written, "an address without an account has none"

"""With a mail server configured, every decision is told once, by the same queue as everything else."""

import email
import email.policy

import pytest

from tests.support.envs import open_test_env, run_until_quiet
from tests.support.skills import skill_files
from tests.support.smtp_server import smtp_server
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidSettings
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_upload
from vskill_platform.notifications.deliveries import find_notices
from vskill_platform.notifications.mail import compose, recipient
from vskill_platform.notifications.notices import notices_of
from vskill_platform.settings import Settings, load_settings
from vskill_platform.store.tasks import read_task
from vskill_platform.store.telling.notifications import MAIL

pytestmark = pytest.mark.anyio

FROM, OPERATOR = "registry@example.org", "operator@example.org"


@pytest.fixture
def room():
    with smtp_server() as state:
        yield state


@pytest.fixture
async def env(tmp_path, room):
    async with open_test_env("memory", tmp_path, smtp_url=room.url, mail_from=FROM, mail_to=OPERATOR) as env:
        yield env


async def decided(env, slug: str = "demo", submitter: str | None = None):
    """A decision, looked for and its mail worked; the record and the mail's task."""
    cursor = await find_notices(None)
    submitted = await submit_upload(
        skill_files(slug), namespace="tests", slug=slug, by=SubmittedBy(submitter)
    )
    assert submitted.submission is not None
    await run_until_quiet(env)
    for _ in range(2):
        await find_notices(cursor)
        await run_until_quiet(env)
    return await get_submission(submitted.submission.id)


async def task_of(record):
    notice = next(iter(notices_of(record)))
    task, _ = await read_task(MAIL, notice.id)
    return task


async def test_a_decision_is_mailed_once_to_the_operator(env, room):
    record = await decided(env)
    ((sender, to, text),) = room.mails
    assert (sender, to) == (FROM, OPERATOR)
    message = email.message_from_string(text, policy=email.policy.default)
    assert message["Subject"] == "[vskill-platform] demo: published"
    body = message.get_content()
    assert record.id in body and "Why: " in body and "upload~tests/skills/demo 1.0.0" in body
    task = await task_of(record)
    assert (task.state, task.outcome) == (TaskState.DONE, "sent")


async def test_a_submitter_whose_name_is_an_address_is_told_themselves(env, room):
    await decided(env, submitter="ann@example.org")
    assert [to for _, to, _ in room.mails] == ["ann@example.org"]


async def test_a_server_that_says_later_is_tried_again_and_a_refusal_for_good_ends_it(env, room):
    room.answers = ["451 later"]
    record = await decided(env)
    task = await task_of(record)
    assert task.state is TaskState.ACTIVE and "451" in task.outcome and not room.mails
    env.clock.advance(600_000)
    await run_until_quiet(env)
    assert len(room.mails) == 1
    room.answers = ["550 no such person"]
    task = await task_of(await decided(env, "other"))
    assert task.state is TaskState.DONE and "550" in task.outcome


async def test_a_server_that_is_down_is_waited_for(tmp_path):
    async with open_test_env(
        "memory", tmp_path, smtp_url="smtp://127.0.0.1:9", mail_from=FROM, mail_to=OPERATOR
    ) as env:
        task = await task_of(await decided(env))
        assert task.state is TaskState.ACTIVE and task.attempts.waiting_for == "127.0.0.1"


async def test_it_logs_in_and_a_wrong_password_is_said(tmp_path, room):
    for password, state in (("pass", TaskState.DONE), ("wrong", TaskState.ACTIVE)):
        url = f"smtp://user:{password}@127.0.0.1:{room.port}"
        folder = tmp_path / password
        async with open_test_env("memory", folder, smtp_url=url, mail_from=FROM, mail_to=OPERATOR) as env:
            task = await task_of(await decided(env))
            assert task.state is state
            assert "wrong" not in task.outcome or "535" in task.outcome
    assert len(room.mails) == 1


async def test_without_a_mail_server_or_a_recipient_nothing_is_queued(tmp_path, room):
    for more in ({}, {"smtp_url": room.url, "mail_from": FROM}):
        async with open_test_env("memory", tmp_path, **more) as env:
            assert await task_of(await decided(env)) is None
    assert room.mails == []


async def test_what_strangers_write_stays_in_its_line(env):
    record = await decided(env)
    notice = next(iter(notices_of(record)))
    data = type(notice.data)(
        **{
            **{name: getattr(notice.data, name) for name in notice.data.__struct_fields__},
            "skill_name": "x\r\nBcc: eve@example.org",
            "reason": "a\n.\nQUIT",
        }
    )
    message = compose(type(notice)(notice.id, notice.type, notice.at, data), OPERATOR, env.settings)
    assert message["Bcc"] is None
    assert "\n.\n" not in message.get_content()


@pytest.mark.parametrize("name", [None, "ann", "@", "a@b\r\nBcc: c@d", "Ann <ann@example.org>"])
def test_a_name_that_is_no_address_is_not_written_to(name):
    assert recipient(name, Settings(mail_to=OPERATOR)) == OPERATOR
    assert recipient(name, Settings()) is None


def test_the_servers_password_is_never_shown_and_a_sender_is_needed():
    given = {"VSKILL_SMTP_URL": "smtps://user:hunter2@mail.example.org", "VSKILL_MAIL_FROM": FROM}
    assert "hunter2" not in repr(load_settings(given))
    with pytest.raises(InvalidSettings, match="VSKILL_MAIL_FROM"):
        load_settings({"VSKILL_SMTP_URL": "smtp://127.0.0.1:25"})
    with pytest.raises(InvalidSettings) as caught:
        load_settings({"VSKILL_SMTP_URL": "ftp://user:hunter2@host"})
    assert "hunter2" not in caught.value.message

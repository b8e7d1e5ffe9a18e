"""Deliveries: each notice to each webhook is one task, so it is retried, recovered and seen like all queued work; so
is each mail. Accounts are told on their page at once (`telling`).

Notices are found by following the store's changes from where the last look ended, and revocations by their serial. A
look is one step of bounded work, so that whoever looks can keep what it reached before the next one.
Looking twice is harmless: a delivery's id is made of the webhook and the notice. Whether the account that added the
webhook may read what a notice is about is asked when it is delivered, of the account as it is then.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from vskill_platform.domain.audience import Everything
from vskill_platform.domain.errors import CursorGone, InvalidInput, NotFound
from vskill_platform.domain.keys import REPORT, SUB, SUBRUN
from vskill_platform.domain.revocation import Revocation, RevocationKind, steps_by_kind
from vskill_platform.domain.submission import Submission
from vskill_platform.domain.task import Task
from vskill_platform.gate import some_at_a_time
from vskill_platform.kv.entries import Entry
from vskill_platform.notifications.mail import ask_for_mail
from vskill_platform.notifications.notices import (
    Notice,
    RecallNotice,
    ReportNotice,
    notices_of,
    recall_id,
    recall_notices,
    report_notice,
)
from vskill_platform.notifications.post import post
from vskill_platform.notifications.signature import sign
from vskill_platform.notifications.telling import Teller, go_on_without
from vskill_platform.records import Skips
from vskill_platform.store.readers import audiences_of_actor
from vskill_platform.store.reports import Report, get_report
from vskill_platform.store.revocations import list_revocations, read_revocation, read_serial
from vskill_platform.store.skills import find_by_full_name
from vskill_platform.store.task_kinds import TaskEnd
from vskill_platform.store.tasks import ask_for
from vskill_platform.store.webhooks import Webhook, get_webhook, list_webhooks
from vskill_platform.submission_store import get_run
from vskill_platform.worker_context import require_env

DELIVERY = "delivery"
#: Changes, or revocations, looked at in one step.
STEP = 50
#: Notices whose deliveries are asked for at the same time.
AT_ONCE = 16

_OK = range(200, 300)
#: The receiver says that it is gone for good.
_GONE = 410


async def find_notices(cursor: str | None) -> str:
    """Tell of the next decisions after the cursor, and of what began to wait; where the next look goes on.

    None begins now: what was decided before nobody subscribed is nobody's news.
    """
    return await _follow("sub", (SUB, SUBRUN), cursor, _tell_of_submissions)


async def find_reports(cursor: str | None) -> str:
    """The same for reports."""
    return await _follow(REPORT, (REPORT,), cursor, _tell_of_reports)


async def _follow(
    prefix: str,
    wanted: tuple[str, ...],
    cursor: str | None,
    tell: Callable[[Sequence[Entry]], Awaitable[None]],
) -> str:
    """Read the next records of these prefixes that were written after the cursor."""
    kv = require_env("kv").kv
    if cursor is None:
        return await kv.change_cursor()
    try:
        page = await kv.changes(prefix, after=cursor, limit=STEP)
    except CursorGone:
        require_env("log").log.error("notices were missed: nobody looked for longer than changes are kept")
        return await kv.change_cursor()
    keys = {change.key for change in page.items if change.key.startswith(wanted) and not change.deleted}
    if keys:
        settled = await kv.get_many(sorted(keys))
        for error in settled.failed.values():
            raise error
        await tell(list(settled.found.values()))
    return page.after or cursor


async def find_recalls(serial: int | None) -> int:
    """Tell of the next revocations after this serial; where the next look goes on. None begins now."""
    if serial is None:
        return await read_serial()
    events = await list_revocations(serial, STEP)
    if not events:
        return serial
    hooks, teller = await list_webhooks(), Teller()

    async def ask(event: Revocation) -> None:
        for kind in steps_by_kind(event):
            for hook in hooks:
                await _ask_for_recall(hook, event, kind)

    await some_at_a_time(ask, events, AT_ONCE)
    for event in events:
        await go_on_without(teller.tell_of_recall(event), f"revocation {event.serial}")
    await go_on_without(teller.write(), "revocations")
    return events[-1].serial


async def _ask_for_recall(hook: Webhook, event: Revocation, kind: RevocationKind) -> None:
    if kind.value not in hook.events or event.at < hook.created_at:
        return
    notice = recall_id(event, kind)
    subject = {"webhook": hook.id, "notice": notice, "revocation": str(event.serial)}
    await ask_for(DELIVERY, f"{hook.id}:{notice}", subject, again=False)


async def _tell_of_submissions(entries: Sequence[Entry]) -> None:
    env = require_env("kv")
    hooks, teller = await list_webhooks(), Teller()
    skips = Skips("find_notices")
    records = [skips.decode(entry, Submission) for entry in entries]
    skips.report(env)
    noted = [(notice, record) for record in records if record for notice in notices_of(record)]

    async def ask(one: tuple[Notice, Submission]) -> None:
        notice, record = one
        for hook in hooks:
            await _ask_for_delivery(hook, notice)
        await ask_for_mail(notice, record.submitter)

    await some_at_a_time(ask, noted, AT_ONCE)
    for notice, record in noted:
        await go_on_without(teller.tell_of_submission(notice, record), notice.id)
    await go_on_without(teller.write(), "submissions")


async def _tell_of_reports(entries: Sequence[Entry]) -> None:
    hooks, teller = await list_webhooks(), Teller()
    skips = Skips("find_reports")
    reports = [report for entry in entries if (report := skips.decode(entry, Report))]
    skips.report(require_env("kv"))

    async def ask(report: Report) -> None:
        for hook in hooks:
            await _ask_for_report(hook, report_notice(report))

    await some_at_a_time(ask, reports, AT_ONCE)
    for report in reports:
        await go_on_without(teller.tell_of_report(report), report.id)
    await go_on_without(teller.write(), "reports")


async def _ask_for_report(hook: Webhook, notice: ReportNotice) -> None:
    if notice.type.value in hook.events and notice.at >= hook.created_at:
        subject = {"webhook": hook.id, "notice": notice.id, "report": notice.data.report_id}
        await ask_for(DELIVERY, f"{hook.id}:{notice.id}", subject, again=False)


async def _ask_for_delivery(hook: Webhook, notice: Notice) -> None:
    if notice.type.value not in hook.events or notice.at < hook.created_at:
        return
    subject = {
        "webhook": hook.id,
        "notice": notice.id,
        "submission": notice.data.submission_id,
        "run": str(notice.data.run),
    }
    await ask_for(DELIVERY, f"{hook.id}:{notice.id}", subject, again=False)


async def deliver(task: Task) -> TaskEnd:
    """Post one notice to one webhook. Any answer of 2xx is success; 410 ends it; everything else is tried again."""
    try:
        hook = await get_webhook(task.subject["webhook"])
        notice = await _notice_for(task, hook.created_by)
    except NotFound as error:
        return TaskEnd(f"not delivered: {error}")
    if notice is None:
        return TaskEnd("not delivered: the history holds no such event")
    env = require_env("clock")
    body = msgspec.json.encode(notice)
    headers = sign(hook.secret, notice.id, env.clock.now() // 1000, body)
    status = await post(hook.url, body, headers, env.settings.allowed_private_hosts)
    if status in _OK:
        return TaskEnd(f"delivered: {status}")
    if status == _GONE:
        return TaskEnd("the receiver answered 410: it wants no more of these")
    raise InvalidInput(f"the receiver answered {status}", field="url", fix="make it answer with 2xx")


async def _notice_for(task: Task, actor: str) -> Notice | RecallNotice | ReportNotice | None:
    """What is told to an actor; NotFound where it may not read what it is about."""
    audiences = await audiences_of_actor(actor)
    notices: Iterable[Notice | RecallNotice | ReportNotice]
    if "report" in task.subject:
        if not isinstance(audiences, Everything):
            raise NotFound("The webhook's account does not review any more.")
        report = await get_report(task.subject["report"])
        await find_by_full_name(report.skill, audiences=audiences)
        notices = (report_notice(report),)
    elif "revocation" in task.subject:
        event = await read_revocation(int(task.subject["revocation"]))
        if event is None:
            return None
        skill, _ = await find_by_full_name(event.skill, audiences=audiences)
        notices = recall_notices(event, skill)
    else:
        record = await get_run(task.subject["submission"], int(task.subject["run"]), audiences=audiences)
        notices = notices_of(record)
    return next((one for one in notices if one.id == task.subject["notice"]), None)

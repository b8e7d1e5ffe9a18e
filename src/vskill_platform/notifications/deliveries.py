"""Deliveries: each notice to each webhook is one task, so it is retried, recovered and seen like all queued work; so
is each mail. Accounts are told on their page at once (`telling`).

Notices are found by following the store's changes from a cursor, and revocations by their serial. A look is one bounded
step, so that the caller can save its cursor before the next one. Looking twice is harmless: a delivery's id is made of
the webhook and the notice. At delivery we check again whether the account that added the webhook may read what the
notice is about.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.domain.skills.skill import Revocation, steps_by_kind
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, In
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.notifications.mail import ask_for_mail, ask_for_operator_mail
from vskill_platform.notifications.notices import (
    AlertNotice,
    Notice,
    NoticeOf,
    NoticeType,
    ReportNotice,
    notices_of,
    recall_id,
    recall_notices,
    report_notices,
)
from vskill_platform.notifications.post import post
from vskill_platform.notifications.signature import sign
from vskill_platform.notifications.telling import News, tell_accounts, tell_now
from vskill_platform.records import decode_readable, entries_of, read_entries
from vskill_platform.store.people.readers import OPERATOR, audiences_of_actor, read_as
from vskill_platform.store.review.reports import Report, ReportStatus, get_report
from vskill_platform.store.revocations import list_revocations, read_revocation, read_serial
from vskill_platform.store.skills.skills import find_by_full_name
from vskill_platform.store.tasks import TaskEnd, ask_for
from vskill_platform.store.telling.webhooks import Webhook, get_webhook, list_webhooks
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
    """Tell of the next decisions after the cursor, and of what began to wait; returns the next cursor.

    Without a cursor, start now; earlier decisions are not told. After CursorGone, `find_owed` finds what was missed.
    """
    return await _follow("sub", (keys.sub.prefix, keys.subrun.prefix), cursor, _tell_of_submissions)


async def find_reports(cursor: str | None) -> str:
    return await _follow(keys.report.prefix, (keys.report.prefix,), cursor, _tell_of_reports)


async def _follow(
    prefix: str,
    wanted: tuple[str, ...],
    cursor: str | None,
    tell: Callable[[Sequence[Entry]], Awaitable[None]],
) -> str:
    """Tell of the next records of these prefixes that were written after the cursor; returns the next cursor."""
    kv = require_env("kv").kv
    if cursor is None:
        return await kv.change_cursor()
    page = await kv.changes(prefix, after=cursor, limit=STEP)
    changed = {change.key for change in page.items if change.key.startswith(wanted) and not change.deleted}
    if changed:
        await tell(list((await read_entries(sorted(changed))).values()))
    return page.after or cursor


async def find_owed(since: int, after: str | None) -> str | None:
    """Tell of the next decisions and reports since a time, by the records themselves; returns the next cursor, None at
    the end. For a store whose changes cannot be followed from the last cursor."""
    kv = require_env("kv").kv
    if after is None:
        async for reports in iterate_pages(kv, keys.report.prefix):
            await _tell_of_reports(entries_of(reports), since)
    page = await kv.select(
        SUBMISSIONS.prefix,
        audiences=await audiences_of_actor(OPERATOR),
        where={"state": In(tuple(State)), "updated_at": Between(least=since)},
        order_by="updated_at",
        after=after,
        limit=STEP,
    )
    entries = entries_of(page)
    for entry in page.items:
        # A newer run may have replaced one that ended since.
        entries += entries_of(
            await kv.scan(f"{keys.subrun.prefix}{entry.key.removeprefix(keys.sub.prefix)}:")
        )
    await _tell_of_submissions(entries, since)
    return page.after


async def find_recalls(serial: int | None) -> int:
    """Tell of the next revocations after this serial (None: start now); returns the next serial."""
    if serial is None:
        return await read_serial()
    events = await list_revocations(serial, STEP)
    if not events:
        return serial
    hooks = await list_webhooks()

    async def ask(event: Revocation) -> None:
        for kind in steps_by_kind(event):
            await _ask_for_deliveries(
                hooks, recall_id(event, kind), kind.value, event.at, _recall_subject(event)
            )

    await some_at_a_time(ask, events, AT_ONCE)
    await tell_accounts([_news_of_recall(event) for event in events])
    return events[-1].serial


async def tell_of_alerts(notices: Sequence[AlertNotice]) -> None:
    hooks = await list_webhooks() if notices else []
    for notice in notices:
        subject = _alert_subject(notice)
        await _ask_for_deliveries(hooks, notice.id, notice.type.value, notice.at, subject)
        await ask_for_operator_mail(notice.id, subject)
    await tell_accounts([_news_of_alert(notice) for notice in notices])


async def _tell_of_submissions(entries: Sequence[Entry], since: int = 0) -> None:
    hooks = await list_webhooks()
    records = decode_readable(entries, Submission, "find_notices")
    every = ((notice, record) for record in records for notice in notices_of(record))
    noted = [(notice, record) for notice, record in every if notice.at >= since]

    async def ask(one: tuple[Notice, Submission]) -> None:
        notice, record = one
        await _ask_for_deliveries(hooks, notice.id, notice.type.value, notice.at, _submission_subject(notice))
        await ask_for_mail(notice, record.submitter)

    await some_at_a_time(ask, noted, AT_ONCE)
    await tell_accounts([_news_of_submission(notice, record) for notice, record in noted])


async def _tell_of_reports(entries: Sequence[Entry], since: int = 0) -> None:
    hooks = await list_webhooks()
    reports = decode_readable(entries, Report, "find_reports")
    every = ((notice, report) for report in reports for notice in report_notices(report))
    noted = [(notice, report) for notice, report in every if notice.at >= since]

    async def ask(one: tuple[ReportNotice, Report]) -> None:
        notice, report = one
        subject = {"report": report.id}
        await _ask_for_deliveries(hooks, notice.id, notice.type.value, notice.at, subject)
        if notice.type is NoticeType.REPORT_FILED and report.status is ReportStatus.OPEN:
            await ask_for_operator_mail(notice.id, subject)

    await some_at_a_time(ask, noted, AT_ONCE)
    await tell_accounts([_news_of_report(notice, report) for notice, report in noted])


async def _ask_for_deliveries(
    hooks: Iterable[Webhook], notice: str, kind: str, at: int, subject: dict[str, str]
) -> None:
    """One task for each webhook that wants notices of this kind and was added before this happened."""
    for hook in hooks:
        if kind in hook.events and at >= hook.created_at:
            of_hook = {"webhook": hook.id, "notice": notice, **subject}
            await ask_for(DELIVERY, f"{hook.id}:{notice}", of_hook, again=False)


# The subjects by which tasks find a notice again.


def _submission_subject(notice: Notice) -> dict[str, str]:
    return {"submission": notice.data.submission_id, "run": str(notice.data.run)}


def _recall_subject(event: Revocation) -> dict[str, str]:
    return {"revocation": str(event.serial)}


def _alert_subject(notice: AlertNotice) -> dict[str, str]:
    """The whole notice, because an alert has no record."""
    return {"alert": msgspec.json.encode(notice).decode()}


# Accounts.


def _news_of_submission(notice: Notice, record: Submission) -> News:
    return News(
        notice.id, _submission_subject(notice), lambda teller: teller.tell_of_submission(notice, record)
    )


def _news_of_report(notice: ReportNotice, report: Report) -> News:
    return News(notice.id, {"report": report.id}, lambda teller: teller.tell_of_report(notice, report))


def _news_of_recall(event: Revocation) -> News:
    return News(
        f"revocation-{event.serial}", _recall_subject(event), lambda teller: teller.tell_of_recall(event)
    )


def _news_of_alert(notice: AlertNotice) -> News:
    return News(notice.id, _alert_subject(notice), lambda teller: teller.tell_of_alert(notice))


async def tell_again(task: Task) -> TaskEnd:
    try:
        news = await _find_news(task.subject)
    except NotFound as error:
        return TaskEnd(f"not told: {error}")
    await tell_now(one for one in news if one.id == task.id)
    return TaskEnd("told")


async def _find_news(subject: dict[str, str]) -> list[News]:
    if "alert" in subject:
        return [_news_of_alert(msgspec.json.decode(subject["alert"], type=AlertNotice))]
    if "report" in subject:
        report = await get_report(subject["report"])
        return [_news_of_report(notice, report) for notice in report_notices(report)]
    if "revocation" in subject:
        event = await read_revocation(int(subject["revocation"]))
        return [] if event is None else [_news_of_recall(event)]
    everything = await audiences_of_actor(OPERATOR)
    record = await get_run(subject["submission"], int(subject["run"]), audiences=everything)
    return [_news_of_submission(notice, record) for notice in notices_of(record)]


# Webhooks.


async def deliver(task: Task) -> TaskEnd:
    """Post one notice to one webhook. Any answer of 2xx is success; 410 ends it; everything else is tried again."""
    try:
        hook = await get_webhook(task.subject["webhook"])
        notice = await read_as(hook.created_by, lambda audiences: _notice_for(task, audiences))
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


async def _notice_for(task: Task, audiences: Audiences) -> NoticeOf[Any] | None:
    """The notice as readers of these audiences may see it; NotFound if they may not read its subject."""
    notices: Iterable[NoticeOf[Any]]
    if ("report" in task.subject or "alert" in task.subject) and not isinstance(audiences, Everything):
        raise NotFound("The webhook's account does not review any more.")
    if "alert" in task.subject:
        notices = (msgspec.json.decode(task.subject["alert"], type=AlertNotice),)
    elif "report" in task.subject:
        report = await get_report(task.subject["report"])
        await find_by_full_name(report.skill, audiences=audiences)
        notices = report_notices(report)
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

"""E-mail, where a mail server is configured: each is one task, retried like every delivery.

Accounts get a daily digest of their notifications, at an address that they confirmed. Decisions go to submitters whose
name is an address, and otherwise to the operator, who also gets reports and alerts. Everybody gets only what they may
read when it is sent. Sending blocks, so it runs in a thread, with a timeout on every step.
"""

import asyncio
import hashlib
import smtplib
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from urllib.parse import unquote, urlsplit

import msgspec

from vskill_core.errors import InvalidInput, NotFound, SourceUnavailable
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.submissions.submission import ASKED
from vskill_platform.domain.telling import notification
from vskill_platform.notifications import notices
from vskill_platform.notifications.telling import about_alert, about_report
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import User, find_enabled
from vskill_platform.store.people.readers import OPERATOR, read_as
from vskill_platform.store.people.sign_in_rule import standing_of
from vskill_platform.store.review.reports import get_report
from vskill_platform.store.tasks import TaskEnd, ask_for
from vskill_platform.store.telling import notifications
from vskill_platform.submission_store import get_run
from vskill_platform.worker_context import require_env

#: Notifications that one daily mail shows.
MOST_IN_DIGEST = 50
TIMEOUT_S = 15.0
_PORTS = {"smtp": 25, "smtps": 465}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Characters of a server's message that we quote.
_SHOWN = 200
#: Characters of a sentence used as the subject.
_SUBJECT = 120
#: Where accounts set the address, or end the mail.
_PAGE = "/account/notifications"


async def ask_for_mail(notice: notices.Notice, submitter: str | None) -> None:
    """Queue a mail about the decision, once, if mail is configured and there is a recipient."""
    settings = require_env("settings").settings
    to = recipient(submitter, settings)
    if not settings.smtp_url or to is None or notice.type is not notices.NoticeType.SUBMISSION_DECIDED:
        return
    subject = {
        "to": to,
        "notice": notice.id,
        "submission": notice.data.submission_id,
        "run": str(notice.data.run),
    }
    await ask_for(notifications.MAIL, notice.id, subject, again=False)


async def ask_for_operator_mail(notice: str, subject: dict[str, str]) -> None:
    """Queue a mail to the operator's address about a report or an alert, once."""
    settings = require_env("settings").settings
    if settings.smtp_url and settings.mail_to:
        await ask_for(
            notifications.MAIL, notice, {"to": settings.mail_to, "notice": notice, **subject}, again=False
        )


async def send_mail(task: Task) -> TaskEnd:
    """Send one message. Retry if the server is down or answers with a temporary error; a permanent refusal of the
    recipient ends the task."""
    try:
        if "proof" in task.subject:
            return await _send_proof(task.subject["account"], task.subject["proof"])
        if "submission" in task.subject:
            return await _send_decision(task)
        return await _send_to_operator(task)
    except NotFound as error:
        return TaskEnd(f"not sent: {error}")


async def send_digest(task: Task) -> TaskEnd:
    """Send an account's notifications of a day, without those that it may not read now."""
    account, until = task.subject["account"], int(task.subject["until"])
    if require_env("kv").kv.now() < until:
        return TaskEnd("not sent yet: the day is not over", again_at=until + notification.DIGEST_GRACE_MS)
    try:
        user, choices = await _recipient_account(account)
    except NotFound as error:
        return TaskEnd(f"not sent: {error}")
    if not choices.mail:
        return TaskEnd("not sent: the account wants no mail any more")
    topics = notifications.topics_of(await standing_of(user, by_token=True) or user)
    items = await read_as(
        f"user:{account}",
        lambda audiences: notifications.list_for_digest(account, until, topics, audiences=audiences),
    )
    if not items:
        return TaskEnd("not sent: nothing is left to tell")
    settings = require_env("settings").settings
    return await _send("daily", compose_digest(items, choices.mail, until, settings))


async def _send_proof(account: str, address: str) -> TaskEnd:
    _, choices = await _recipient_account(account)
    proof = choices.proof
    if proof is None or proof.address != address:
        return TaskEnd("not sent: another address was given since")
    if require_env("kv").kv.now() >= proof.good_until:
        return TaskEnd("not sent: the code is not good any more")
    settings = require_env("settings").settings
    return await _send("confirmation", compose_proof(account, proof, settings))


async def _send_decision(task: Task) -> TaskEnd:
    settings = require_env("settings").settings
    to = task.subject["to"]
    submission, run = task.subject["submission"], int(task.subject["run"])
    record = await read_as(
        OPERATOR if to == settings.mail_to else f"user:{to}",
        lambda audiences: get_run(submission, run, audiences=audiences),
    )
    notice = next((one for one in notices.notices_of(record) if one.id == task.subject["notice"]), None)
    if notice is None:
        return TaskEnd("not sent: the history holds no such event")
    return await _send("decision", compose(notice, to, settings))


async def _send_to_operator(task: Task) -> TaskEnd:
    if "alert" in task.subject:
        told = about_alert(msgspec.json.decode(task.subject["alert"], type=notices.AlertNotice))
    else:
        report = await get_report(task.subject["report"])
        told = about_report(next(notices.report_notices(report)), report)
    settings = require_env("settings").settings
    return await _send("operator", compose_for_operator(told, task.subject["to"], settings))


async def _recipient_account(name: str) -> tuple[User, notification.AccountChoices]:
    """The account and what it chose; NotFound where it may not sign in."""
    user = await find_enabled(name)
    if user is None:
        raise NotFound(f"There is no account {name!r} that is enabled.", account=name)
    return user, (await notifications.read_choices(name))[0]


async def _send(form: str, message: EmailMessage) -> TaskEnd:
    url = require_env("settings").settings.smtp_url
    if not url:
        return TaskEnd("not sent: no mail server is configured any more")
    outcome = await asyncio.to_thread(_hand_over, message, url)
    require_env("metrics").metrics.mails.labels(form=form, outcome=outcome.partition(":")[0]).inc()
    return TaskEnd(outcome)


def recipient(submitter: str | None, settings: Settings) -> str | None:
    """The recipient: the submitter if their name is an address, else the operator; None if neither."""
    if submitter is not None and "@" in submitter and parseaddr(submitter)[1] == submitter:
        return submitter
    return settings.mail_to or None


def compose(notice: notices.Notice, to: str, settings: Settings) -> EmailMessage:
    data = notice.data
    is_asked = data.reason.startswith(ASKED)
    state = "waiting for your answer" if is_asked else data.state.label.lower()
    lines = [
        f"{data.skill_name} in {data.repo_url} is now {state}{'' if is_asked else f': {data.state.meaning}'}.",
        "",
        f"Why: {data.reason}",
        f"Rules: {', '.join(data.rule_ids)}" if data.rule_ids else None,
        f"Published as: {data.skill} {data.version}" if data.skill and data.version else None,
        "",
        f"Submission {data.submission_id}, run {data.run}.",
    ]
    return _compose(to, f"{data.skill_name}: {state}", lines, notice.id, notice.at, settings)


def compose_for_operator(told: notification.Notification, to: str, settings: Settings) -> EmailMessage:
    lines = [told.text, _link(told.path, settings)]
    return _compose(to, told.text[:_SUBJECT], lines, told.id, told.at, settings)


def compose_digest(
    items: Sequence[notification.Notification], to: str, until: int, settings: Settings
) -> EmailMessage:
    lines: list[str | None] = []
    for one in items[:MOST_IN_DIGEST]:
        lines += [f"- {one.text}", _link(one.path, settings, "  ")]
    count = "1 notification" if len(items) == 1 else f"{len(items)} notifications"
    if len(items) > notifications.MOST_MAILED:
        lines.append("- and more on your page")
        count = f"more than {notifications.MOST_MAILED} notifications"
    elif len(items) > MOST_IN_DIGEST:
        lines.append(f"- and {len(items) - MOST_IN_DIGEST} more on your page")
    message_id = f"digest-{until}-{hashlib.sha256(to.encode()).hexdigest()[:16]}"
    ending = ["", "You can end this mail on your page of notifications.", _link(_PAGE, settings)]
    return _compose(to, f"{count} today", [*lines, *ending], message_id, until, settings)


def compose_proof(account: str, proof: notification.MailProof, settings: Settings) -> EmailMessage:
    until = f"{_datetime(proof.good_until):%Y-%m-%d %H:%M} UTC"
    most = (
        f"at most {notification.MOST_PROOFS_TO_ADDRESS} mails like this one are sent to an address in a day"
    )
    lines = [
        f"Somebody entered this address for the notifications of the account {account}.",
        f"If it was you, confirm it by {until} with this code: {proof.code}",
        _link(_PAGE, settings),
        f"If it was not you, do nothing: without the code no notifications come, and {most}.",
    ]
    message_id = f"proof-{proof.since}-{proof.tries}-{account}"
    return _compose(
        proof.address, "confirm your address", lines, message_id, require_env("kv").kv.now(), settings
    )


def _compose(
    to: str, subject: str, lines: Sequence[str | None], message_id: str, at: int, settings: Settings
) -> EmailMessage:
    """The message; everything that a stranger wrote becomes one line of plain text."""
    message = EmailMessage()
    message["Subject"] = f"[{settings.registry_name}] {_plain(subject)}"
    message["From"] = settings.mail_from
    message["To"] = to
    # The same notice always has the same id, however often it is sent.
    message["Message-ID"] = f"<{message_id}@{settings.mail_from.rpartition('@')[2]}>"
    message["Date"] = format_datetime(_datetime(at))
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join(_plain(line) for line in lines if line is not None) + "\n")
    return message


def _link(path: str, settings: Settings, indent: str = "") -> str | None:
    """An absolute link, if the operator set the registry's address."""
    return f"{indent}{settings.public_url.rstrip('/')}{path}" if settings.public_url else None


def _datetime(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _hand_over(message: EmailMessage, url: str) -> str:
    """Send it; runs in a thread. Returns the outcome, or raises an error that says whether to retry."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        with _connect(parts.scheme, host, parts.port or _PORTS[parts.scheme]) as server:
            if parts.username:
                _log_in(server, host, unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        code, words = next(iter(error.recipients.values()))
        return _raise_refusal(host, code, words)
    except smtplib.SMTPResponseException as error:
        return _raise_refusal(host, error.smtp_code, error.smtp_error)
    except (OSError, smtplib.SMTPException) as error:
        raise SourceUnavailable(f"the mail server {host} cannot be used: {error!r}", host=host) from error
    return "sent"


def _connect(scheme: str, host: str, port: int) -> smtplib.SMTP:
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
    server.ehlo()
    if server.has_extn("starttls"):
        server.starttls(context=ssl.create_default_context())
        server.ehlo()
    return server


def _log_in(server: smtplib.SMTP, host: str, user: str, password: str) -> None:
    """Send the password only over TLS, or to this machine."""
    if not isinstance(server.sock, ssl.SSLSocket) and host not in _LOOPBACK:
        raise InvalidInput(
            f"The mail server {host} offers no TLS, so the password is not sent.",
            field="VSKILL_SMTP_URL",
            fix="use smtps://, or a server that offers STARTTLS",
        )
    server.login(user, password)


def _raise_refusal(host: str, code: int, words: bytes | str) -> str:
    said = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    shown = f"{code} {_plain(said)[:_SHOWN]}"
    if code < 500:
        raise SourceUnavailable(f"the mail server {host} says: {shown}", host=host)
    if code in (530, 534, 535):
        raise InvalidInput(
            f"The mail server {host} refused the sign-in: {shown}",
            field="VSKILL_SMTP_URL",
            fix="correct user name and password",
        )
    return f"not sent: the mail server says {shown}"

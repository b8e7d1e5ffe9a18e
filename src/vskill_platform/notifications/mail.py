"""E-mail about decisions, where a mail server is configured: one task per decision, retried like every delivery.

It goes to the submitter where their name is an address, and to the operator's address otherwise; to the submitter only
what they may read when it is sent. Sending blocks, so it runs in a thread, with a limit on every step.
"""

import asyncio
import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from urllib.parse import unquote, urlsplit

from vskill_platform.domain.errors import InvalidInput, NotFound, SourceUnavailable
from vskill_platform.domain.task import Task
from vskill_platform.notifications.notices import Notice, NoticeType, notices_of
from vskill_platform.settings import Settings
from vskill_platform.store.readers import OPERATOR, audiences_of_actor
from vskill_platform.store.task_kinds import TaskEnd
from vskill_platform.store.tasks import ask_for
from vskill_platform.submission_store import get_run
from vskill_platform.worker_context import require_env

MAIL = "mail"
TIMEOUT_S = 15.0
_PORTS = {"smtp": 25, "smtps": 465}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Where the server's own words are quoted.
_SHOWN = 200


async def ask_for_mail(notice: Notice, submitter: str | None) -> None:
    """Queue a mail about the decision, once, if mail is configured and there is a recipient."""
    settings = require_env("settings").settings
    to = recipient(submitter, settings)
    if not settings.smtp_url or to is None or notice.type is not NoticeType.SUBMISSION_DECIDED:
        return
    subject = {
        "to": to,
        "notice": notice.id,
        "submission": notice.data.submission_id,
        "run": str(notice.data.run),
    }
    await ask_for(MAIL, notice.id, subject, again=False)


async def send_mail(task: Task) -> TaskEnd:
    """Send one decision. A server that is down or says "later" is waited for; a recipient that it refuses for good
    ends the task."""
    env = require_env("settings")
    to = task.subject["to"]
    audiences = await audiences_of_actor(OPERATOR if to == env.settings.mail_to else f"user:{to}")
    try:
        record = await get_run(task.subject["submission"], int(task.subject["run"]), audiences=audiences)
    except NotFound as error:
        return TaskEnd(f"not sent: {error}")
    notice = next((one for one in notices_of(record) if one.id == task.subject["notice"]), None)
    if notice is None:
        return TaskEnd("not sent: the history holds no such event")
    if not env.settings.smtp_url:
        return TaskEnd("not sent: no mail server is configured any more")
    message = compose(notice, to, env.settings)
    return TaskEnd(await asyncio.to_thread(_send, message, env.settings.smtp_url))


def recipient(submitter: str | None, settings: Settings) -> str | None:
    """The recipient: the submitter if their name is an address, else the operator; None if neither."""
    if submitter is not None and "@" in submitter and parseaddr(submitter)[1] == submitter:
        return submitter
    return settings.mail_to or None


def compose(notice: Notice, to: str, settings: Settings) -> EmailMessage:
    """The message; everything that a stranger wrote is one line of plain text in it."""
    data = notice.data
    state = data.state.label.lower()
    message = EmailMessage()
    message["Subject"] = f"[{settings.registry_name}] {_plain(data.skill_name)}: {state}"
    message["From"] = settings.mail_from
    message["To"] = to
    # The same decision is the same message, however often it is sent.
    message["Message-ID"] = f"<{notice.id}@{settings.mail_from.rpartition('@')[2]}>"
    message["Date"] = format_datetime(_datetime(notice.at))
    message["Auto-Submitted"] = "auto-generated"
    lines: list[str | None] = [
        f"{_plain(data.skill_name)} in {_plain(data.repo_url)} is now {state}: {data.state.meaning}.",
        "",
        f"Why: {_plain(data.reason)}",
        f"Rules: {', '.join(data.rule_ids)}" if data.rule_ids else None,
        f"Published as: {data.skill} {data.version}" if data.skill and data.version else None,
        "",
        f"Submission {data.submission_id}, run {data.run}.",
    ]
    message.set_content("\n".join(line for line in lines if line is not None) + "\n")
    return message


def _datetime(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _send(message: EmailMessage, url: str) -> str:
    """In a thread. What became of it, or an error that says whether to come again."""
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
    """A password goes over TLS, or stays on this machine."""
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

"""Who is told what on their page: submitters of decisions, watchers of their skills, reviewers of what waits and was
reported. Telling twice is harmless: a notification's key is made of the notice."""

from collections.abc import Awaitable, Iterable

from vskill_platform.domain.errors import Conflict, StoreUnavailable
from vskill_platform.domain.notification import KEPT_MS, Notification, Topic
from vskill_platform.domain.revocation import Revocation, RevocationKind, steps_by_kind
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission
from vskill_platform.notifications.notices import Notice, NoticeType, recall_id, report_notice
from vskill_platform.store.notifications import find_accounts, find_submitter, find_watchers, tell
from vskill_platform.store.reports import Report, ReportStatus
from vskill_platform.worker_context import require_env

_DONE = {
    RevocationKind.WITHDRAWN: "was withdrawn",
    RevocationKind.RESTORED: "is live again",
    RevocationKind.YANKED: "was yanked by its owner",
}


class Teller:
    """One step through what is new: who has which role is read once for it, and `write` writes all of it together."""

    def __init__(self) -> None:
        self._accounts: dict[Topic, list[str]] = {}
        self._told: list[tuple[str, Notification]] = []

    async def write(self) -> None:
        """Show the accounts what they have been told."""
        await tell(self._told)

    async def tell_of_submission(self, notice: Notice, record: Submission) -> None:
        """Its submitter of a decision, reviewers of what still waits, watchers of a new version."""
        data = notice.data
        if _is_old(notice.at):
            return
        if notice.type is NoticeType.SUBMISSION_DECIDED and record.submitter is not None:
            text = f"{data.skill_name}: {data.state.meaning}."
            told = _about_submission(notice, Topic.OWN, text)
            self._tell_all(await find_submitter(record.submitter), told)
        elif notice.type is NoticeType.REVIEW_WAITING and record.state is State.NEEDS_REVIEW:
            text = f"{data.skill_name} waits for a reviewer: {data.reason}"
            await self._tell_role(_about_submission(notice, Topic.REVIEWS, text))
        elif notice.type is NoticeType.SKILL_PUBLISHED and data.skill and data.version:
            text = f"{data.skill} {data.version} was published."
            told = Notification(
                notice.id, Topic.WATCHED, notice.type.value, notice.at, text, skill=data.skill
            )
            self._tell_all(await find_watchers(data.skill, notice.at), told)

    async def tell_of_recall(self, event: Revocation) -> None:
        """Watchers of a skill whose versions were withdrawn, yanked or restored."""
        watchers = await find_watchers(event.skill, event.at) if event.steps else []
        for kind, steps in steps_by_kind(event).items() if watchers else ():
            numbers = ", ".join(step.version for step in steps)
            text = f"{event.skill} {numbers} {_DONE[kind]}. {steps[0].reason}".strip()
            told = Notification(
                recall_id(event, kind), Topic.WATCHED, kind.value, event.at, text, skill=event.skill
            )
            self._tell_all(watchers, told)

    async def tell_of_report(self, report: Report) -> None:
        """Reviewers and admins of a report that waits for them."""
        if report.status is ReportStatus.OPEN and not _is_old(report.at):
            notice = report_notice(report)
            text = f"Somebody reported {report.skill}: {report.category.value}."
            await self._tell_role(
                Notification(notice.id, Topic.REPORTS, notice.type.value, report.at, text, skill=report.skill)
            )

    async def _tell_role(self, notification: Notification) -> None:
        topic = notification.topic
        if topic not in self._accounts:
            self._accounts[topic] = await find_accounts(topic)
        self._tell_all(self._accounts[topic], notification)

    def _tell_all(self, accounts: Iterable[str], notification: Notification) -> None:
        self._told += ((account, notification) for account in accounts)


async def go_on_without(telling: Awaitable[None], about: str) -> None:
    """Tell accounts; what goes wrong there, and would again, keeps nobody else from hearing of it. While the store is
    away nobody can be told anything: that raises, and the step is repeated."""
    try:
        await telling
    except (StoreUnavailable, Conflict):
        raise
    except Exception:  # noqa: BLE001 - whatever it is, webhooks and mail do not wait for it
        require_env("log").log.exception("accounts not told", about=about)


def _is_old(at: int) -> bool:
    """An account may have been told, and the notification be gone by now."""
    return at < require_env("kv").kv.now() - KEPT_MS


def _about_submission(notice: Notice, topic: Topic, text: str) -> Notification:
    return Notification(
        notice.id, topic, notice.type.value, notice.at, text, submission=notice.data.submission_id
    )

"""Who is told what on their page: submitters of decisions, watchers of their skills, reviewers of what waits and was
reported, reporters and maintainers of what was decided, admins of alerts. Telling twice is harmless: a notification's
key is made of the notice."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from vskill_core.errors import Conflict, NotFound, StoreUnavailable
from vskill_platform.domain.people.namespace import namespace_of
from vskill_platform.domain.review.own_review import reviews_itself, why_not_own
from vskill_platform.domain.skills.skill import Revocation, RevocationKind, steps_by_kind
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import ASKED, Submission
from vskill_platform.domain.telling.notification import KEPT_MS, Notification, Topic
from vskill_platform.notifications import notices
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.owners import find_maintainers, groups_of
from vskill_platform.store.review.reports import Report, ReportStatus
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.tasks import ask_for
from vskill_platform.store.telling.notifications import (
    find_account,
    find_accounts,
    find_watchers,
    take_back,
    tell,
)
from vskill_platform.submission_store import get_submissions_fresh
from vskill_platform.worker_context import require_env

TELL = "tell"

_DONE = {
    RevocationKind.WITHDRAWN: "was withdrawn",
    RevocationKind.RESTORED: "is live again",
    RevocationKind.YANKED: "was yanked by its owner",
}


class Teller:
    """One step of notifications: roles are read once per step, and `write` writes all of them together."""

    def __init__(self) -> None:
        self._accounts: dict[Topic, list[str]] = {}
        self._told: list[tuple[str, Notification]] = []
        self._over: list[tuple[str, Notification]] = []

    async def write(self) -> None:
        """Write the new notifications, and remove those that are over."""
        await tell(self._told)
        await take_back(self._over)

    async def tell_of_submission(self, notice: notices.Notice, record: Submission) -> None:
        """Tell the submitter of a decision and watchers of a new version; tell reviewers of what waits, and remove that
        once it does not."""
        data = notice.data
        if _is_old(notice.at):
            return
        if notice.type is notices.NoticeType.SUBMISSION_DECIDED and record.submitter is not None:
            asks = data.reason.startswith(ASKED)
            text = f"{data.skill_name}: {data.reason if asks else f'{data.state.meaning}.'}"
            told = _about_submission(notice, Topic.OWN, text)
            self._tell_all(await find_account(record.submitter), told)
        elif notice.type is notices.NoticeType.REVIEW_WAITING:
            text = f"{data.skill_name} waits for a reviewer: {data.reason}"
            told = _about_submission(notice, Topic.REVIEWS, text)
            accounts = await self._accounts_for(Topic.REVIEWS)
            own = msgspec.structs.replace(told, topic=Topic.OWN)
            maintainers = await _own_reviewers(record)
            if await _still_waits(notice, record):
                self._tell_all(accounts, told)
                self._tell_all((one for one in maintainers if one not in accounts), own)
            else:
                self._over += ((account, told) for account in (*accounts, *maintainers))
        elif notice.type is notices.NoticeType.SKILL_PUBLISHED and data.skill and data.version:
            text = f"{data.skill} {data.version} was published."
            told = Notification(
                notice.id, Topic.WATCHED, notice.type.value, notice.at, text, skill=data.skill
            )
            self._tell_all(await find_watchers(data.skill, notice.at), told)

    async def tell_of_recall(self, event: Revocation) -> None:
        watchers = await find_watchers(event.skill, event.at) if event.steps else []
        for kind, steps in steps_by_kind(event).items() if watchers else ():
            numbers = ", ".join(step.version for step in steps)
            text = f"{event.skill} {numbers} {_DONE[kind]}. {steps[0].reason}".strip()
            # Not the event's serial, which would reveal how many others there were.
            number = f"revocation-{event.at}-{event.skill}.{kind.value}"
            told = Notification(number, Topic.WATCHED, kind.value, event.at, text, skill=event.skill)
            self._tell_all(watchers, told)

    async def tell_of_report(self, notice: notices.ReportNotice, report: Report) -> None:
        """Tell reviewers and admins of a report that waits; tell its reporter of the decision and, if it was upheld,
        the skill's maintainers. Nobody is told who filed it, and only reviewers see its text: the reasons are for the
        audit. Maintainers are not told of dismissed reports, so that reports cannot be used to pester them."""
        if _is_old(notice.at):
            return
        skill, category, kind = report.skill, report.category.value, notice.type.value
        if notice.type is notices.NoticeType.REPORT_FILED and report.status is ReportStatus.OPEN:
            await self._tell_role(about_report(notice, report))
        elif notice.type is notices.NoticeType.REPORT_DECIDED:
            text = f"A reviewer {report.status.value} your report about {skill}."
            reporter = await find_account(report.reporter.partition(":")[2])
            told = Notification(notice.id, Topic.OWN, kind, notice.at, text, skill=skill)
            self._tell_all(reporter, told)
            if report.status is ReportStatus.UPHELD:
                text = f"A reviewer upheld a report about {skill}, which you maintain: {category}."
                maintainers = await _maintainers_of(skill)
                told = Notification(notice.id, Topic.OWN, kind, notice.at, text, skill=skill)
                self._tell_all((one for one in maintainers if one not in reporter), told)

    async def tell_of_alert(self, notice: notices.AlertNotice) -> None:
        await self._tell_role(about_alert(notice))

    async def _tell_role(self, notification: Notification) -> None:
        self._tell_all(await self._accounts_for(notification.topic), notification)

    async def _accounts_for(self, topic: Topic) -> list[str]:
        if topic not in self._accounts:
            self._accounts[topic] = await find_accounts(topic)
        return self._accounts[topic]

    def _tell_all(self, accounts: Iterable[str], notification: Notification) -> None:
        self._told += ((account, notification) for account in accounts)


class News(msgspec.Struct, frozen=True):
    """One thing to tell accounts."""

    id: str
    #: What a task needs to find it again.
    subject: dict[str, str]
    tell: Callable[[Teller], Awaitable[None]]


async def tell_accounts(news: Sequence[News]) -> None:
    """Tell accounts everything together. An error here does not block webhooks, mail or later news, and loses nothing:
    a task for each piece retries it, and becomes a dead letter that can be replayed. If the store is unavailable, this
    raises, and the step is repeated."""
    try:
        await tell_now(news)
    except (StoreUnavailable, Conflict):
        raise
    except Exception:  # noqa: BLE001 - whatever it is, a task repeats it
        require_env("log").log.exception("accounts not told yet", news=[one.id for one in news])
        for one in news:
            await ask_for(TELL, one.id, one.subject, again=False)


async def tell_now(news: Iterable[News]) -> None:
    """Tell accounts; raises where that fails."""
    teller = Teller()
    for one in news:
        await one.tell(teller)
    await teller.write()


async def _own_reviewers(record: Submission) -> list[str]:
    """The maintainers who may decide about it, or might have, because its namespace reviews itself."""
    directory = await read_directory()
    namespace = directory.namespaces.get(namespace_of(record.identity))
    if namespace is None or not reviews_itself(namespace, directory):
        return []
    found = await find_maintainers(record.identity)
    if record.state is State.NEEDS_REVIEW:
        groups = {one: await groups_of(one) for one in found}
        found = [one for one in found if why_not_own(record, directory, one, groups[one]) is None]
    return [name for one in found for name in await find_account(one)]


async def _maintainers_of(skill: str) -> list[str]:
    """The accounts that maintain a skill; a skill that is gone has none."""
    try:
        place = (await get_skill(skill)).identity
    except NotFound:
        return []
    found = [await find_account(name) for name in await find_maintainers(place)]
    return [name for names in found for name in names]


def about_report(notice: notices.ReportNotice, report: Report) -> Notification:
    text = f"Somebody reported {report.skill}: {report.category.value}."
    return Notification(notice.id, Topic.REPORTS, notice.type.value, notice.at, text, skill=report.skill)


def about_alert(notice: notices.AlertNotice) -> Notification:
    data = notice.data
    minutes = (notice.at - data.since) // 60_000
    ended = f"The alert {data.code} ended after {minutes} min. It said: {data.text}"
    if notice.type is notices.NoticeType.ALERT_ENDED:
        return Notification(notice.id, Topic.ALERTS, notice.type.value, notice.at, ended)
    return Notification(notice.id, Topic.ALERTS, notice.type.value, notice.at, data.text, remedy=data.remedy)


async def _still_waits(notice: notices.Notice, record: Submission) -> bool:
    """Whether the step that the notice is about is the submission's last one."""
    found = await get_submissions_fresh([record.id])
    return any(notice.id == f"{one.history[-1].id}.{notice.type.value}" for one in found)


def _is_old(at: int) -> bool:
    """Whether it is so old that its notification may already have been written and removed."""
    return at < require_env("kv").kv.now() - KEPT_MS


def _about_submission(notice: notices.Notice, topic: Topic, text: str) -> Notification:
    return Notification(
        notice.id, topic, notice.type.value, notice.at, text, submission=notice.data.submission_id
    )

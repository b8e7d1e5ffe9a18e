"""Notices: what others are told. Each is made of one event of a submission's history and carries its id, so the
same decision is the same notice however often it is looked at."""

import enum
from collections.abc import Iterator

import msgspec

from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Event, Submission


class NoticeType(enum.StrEnum):
    """What can be subscribed to."""

    SUBMISSION_DECIDED = "submission.decided"
    SKILL_PUBLISHED = "skill.published"
    SKILL_BLOCKED = "skill.blocked"


class NoticeData(msgspec.Struct, frozen=True, rename="camel"):
    """A decision, for webhooks and mail."""

    submission_id: str
    run: int
    state: State
    reason: str
    repo_url: str
    skill_name: str
    skill_path: str
    digest: str | None
    rule_ids: tuple[str, ...]
    #: The published skill's name and version, where there is one.
    skill: str | None
    version: str | None


class Notice(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a delivery."""

    #: The event's, with the type behind it: receivers drop doubles by it.
    id: str
    type: NoticeType
    at: int
    data: NoticeData


def notices_of(record: Submission) -> Iterator[Notice]:
    """Everything in this run's history that somebody may want to hear of."""
    for event in record.history:
        for kind in _types(event.to):
            yield Notice(f"{event.id}.{kind.value}", kind, event.at, _data(record, event))


def _types(state: State) -> tuple[NoticeType, ...]:
    if not state.ends_run:
        return ()
    more = {State.PUBLISHED: NoticeType.SKILL_PUBLISHED, State.BLOCKED: NoticeType.SKILL_BLOCKED}
    return (NoticeType.SUBMISSION_DECIDED, *((more[state],) if state in more else ()))


def _data(record: Submission, event: Event) -> NoticeData:
    return NoticeData(
        submission_id=record.id,
        run=record.run,
        state=event.to,
        reason=event.reason,
        repo_url=record.repo_url,
        skill_name=record.skill_name,
        skill_path=record.skill_path,
        digest=record.digest,
        rule_ids=record.decision.rule_ids if record.decision else (),
        skill=record.published.removeprefix("skill:") if record.published else None,
        version=record.published_version,
    )

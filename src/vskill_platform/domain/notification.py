"""Notifications: what an account is told, on its page. Each is about a skill or a submission; an
account is shown those that it may read when it looks, whatever it was allowed when they were written."""

import enum

import msgspec

#: Skills and namespaces that one account may watch.
MOST_WATCHED = 200
#: How long a notification is kept; what it tells stays in histories and in the audit log.
KEPT_MS = 30 * 24 * 3_600_000
#: Later than any time, so that keys sort the latest first.
_END_MS = 10**14


class Topic(enum.StrEnum):
    """Why an account is told something."""

    #: It submitted it.
    OWN = "own"
    #: It watches the skill or the namespace.
    WATCHED = "watched"
    #: It reviews, and something waits.
    REVIEWS = "reviews"
    #: It reviews, and somebody reported a skill.
    REPORTS = "reports"


class Notification(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `inbox:{account}:{moment}`."""

    #: That of the notice, so that telling it twice makes one record.
    id: str
    topic: Topic
    #: The notice's type, as webhooks know it.
    type: str
    at: int
    #: One sentence for people.
    text: str
    #: What it is about: the canonical name of a skill, or the id of a submission.
    skill: str = ""
    submission: str = ""
    #: When the account was told, which may be long after it happened; 0 in records of earlier releases.
    told_at: int = 0

    def is_unread(self, seen_at: int) -> bool:
        """Whether the account was told after it last marked everything as read."""
        return (self.told_at or self.at) > seen_at

    @property
    def moment(self) -> str:
        """The last part of its key: sorts the latest first."""
        return f"{_END_MS - self.at:014}-{self.id}"


class AccountWatches(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `watches:{account}`: what it watches, and until when it has read its notifications."""

    #: Canonical names of skills, and names of namespaces, which have no slash.
    watched: tuple[str, ...] = ()
    seen_at: int = 0


def with_watched(watches: AccountWatches, target: str) -> AccountWatches:
    """With one more, in the order of names."""
    return msgspec.structs.replace(watches, watched=tuple(sorted({*watches.watched, target})))


def without_watched(watches: AccountWatches, target: str) -> AccountWatches:
    return msgspec.structs.replace(watches, watched=tuple(one for one in watches.watched if one != target))


def targets_for(canonical: str) -> tuple[str, str]:
    """What one can watch to hear of a skill: the skill, and its namespace."""
    return canonical, canonical.partition("/")[0]

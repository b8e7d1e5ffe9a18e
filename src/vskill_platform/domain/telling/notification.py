"""Notifications: what an account is told, on its page. Each is about a skill, a submission or an alert; an
account is shown those that it may read when it looks, whatever it was allowed when they were written."""

import enum
from urllib.parse import quote

import msgspec

#: Skills and namespaces that one account may watch.
MOST_WATCHED = 200
#: How long a notification is kept; what it tells stays in histories and in the audit log.
KEPT_MS = 30 * 24 * 3_600_000
DAY_MS = 24 * 3_600_000
#: When daily mail is made: at six in the morning, UTC.
DIGEST_AT_MS = 6 * 3_600_000
#: How long after that it is sent: what was being written then is in it.
DIGEST_GRACE_MS = 300_000
#: How long a code confirms an address, and how many are mailed in that time for one account.
PROOF_MS, MOST_PROOFS = DAY_MS, 5
#: How many are mailed to one address in that time, whichever accounts ask.
MOST_PROOFS_TO_ADDRESS = 3
#: Later than any time, so that keys sort the latest first.
_END_MS = 10**14


class Topic(enum.StrEnum):
    """Why an account is told something."""

    #: It submitted, reported or maintains it.
    OWN = "own"
    #: It watches the skill or the namespace.
    WATCHED = "watched"
    #: It reviews, and something waits.
    REVIEWS = "reviews"
    #: It reviews, and somebody reported a skill.
    REPORTS = "reports"
    #: It is an admin, and an alert began or ended.
    ALERTS = "alerts"


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
    #: When the account was told, which may be long after it happened; 0 until then.
    told_at: int = 0
    #: That of what it is about, when the account was told; None: for accounts that read everything.
    audience: str | None = None
    #: Of an alert, the page that says what to do.
    remedy: str = ""

    def is_unread(self, seen_at: int) -> bool:
        """Whether the account was told after it last marked everything as read."""
        return self.told_at > seen_at

    @property
    def path(self) -> str:
        if self.topic is Topic.REPORTS:
            return f"/admin/reports?skill={quote(self.skill)}"
        if self.topic is Topic.ALERTS:
            return self.remedy or "/queue"
        return f"/submissions/{self.submission}" if self.submission else f"/skills/{self.skill}"

    @property
    def moment(self) -> str:
        """The last part of its key: sorts the latest first."""
        return f"{moment_at(self.at)}-{self.id}"


def moment_at(at: int) -> str:
    """How the moments of a time begin."""
    return f"{_END_MS - at:014}"


class SeenUntil(msgspec.Struct, frozen=True):
    """The record at `inbox:{account}:0`, before all notifications: until when the account has read them."""

    at: int


class MailProof(msgspec.Struct, frozen=True):
    """An address that is the account's once it gives the code that was mailed there."""

    address: str
    code: str
    #: When the first of `tries` was asked for.
    since: int
    tries: int
    #: When this code was asked for.
    asked_at: int

    @property
    def good_until(self) -> int:
        """When the code confirms nothing any more."""
        return self.asked_at + PROOF_MS


class AccountChoices(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `watches:{account}`: what it watches, and where its daily mail goes."""

    #: Canonical names of skills, and names of namespaces, which have no slash.
    watched: tuple[str, ...] = ()
    #: The address that it has confirmed; empty: it gets no mail.
    mail: str = ""
    proof: MailProof | None = None


def next_digest_at(now: int) -> int:
    """When the next daily mail is made: it holds what was told until then."""
    return ((now - DIGEST_AT_MS) // DAY_MS + 1) * DAY_MS + DIGEST_AT_MS


def topics_heard(*, reads_all: bool, operates: bool) -> frozenset[Topic]:
    """What an account is told of: what waits and is reported if it reviews, alerts if it is an admin."""
    found = {Topic.OWN, Topic.WATCHED}
    if reads_all:
        found |= {Topic.REVIEWS, Topic.REPORTS}
    return frozenset(found | {Topic.ALERTS} if operates else found)


def with_watched(watches: AccountChoices, target: str) -> AccountChoices:
    return msgspec.structs.replace(watches, watched=tuple(sorted({*watches.watched, target})))


def without_watched(watches: AccountChoices, target: str) -> AccountChoices:
    return msgspec.structs.replace(watches, watched=tuple(one for one in watches.watched if one != target))


def targets_for(canonical: str) -> tuple[str, str]:
    """What one can watch to hear of a skill: the skill, and its namespace."""
    return canonical, canonical.partition("/")[0]

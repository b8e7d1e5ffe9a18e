"""What was refused, counted in the process until it is written into the audit: strangers must not fill the store."""

import enum
from collections import Counter

import msgspec

from vskill_platform.domain.people.token import ActingToken

ANONYMOUS = "user:anonymous"
#: What is wanted by a password, a provider or a code, and by a token.
SIGN_INS = ("sign-in", "token")
#: Kinds of anonymous refusals that a process counts one by one in a minute; what is beyond them is counted together.
MOST_KEPT = 1_000
#: Kinds of one account's refusals that a process writes in a minute; what is beyond them is one line with a count.
MOST_OF_ACCOUNT = 25
#: What such a line says.
MANY = "many"
BEYOND = "more refusals than the audit keeps one by one"


class AuditOutcome(enum.StrEnum):
    """How what somebody wanted ended."""

    DONE = "done"
    REFUSED = "refused"


class RefusedAttempt(msgspec.Struct, frozen=True):
    """One request or sign-in that was refused."""

    #: The actor, as the audit names it.
    by: str
    #: What was wanted: an action's name, `sign-in` or `token`.
    action: str
    target: str
    reason: str
    at: int
    #: Where it came from, and with which request; empty outside of requests.
    address: str = ""
    request_id: str = ""
    #: The account whose name or token was shown by somebody who is not signed in.
    account: str = ""
    token: ActingToken | None = None
    session: str = ""

    @property
    def is_anonymous(self) -> bool:
        return self.by == ANONYMOUS

    @property
    def kind(self) -> tuple[str, ...]:
        """Refusals of one kind in one minute are one line. It has no foreign text but an address, so that an account
        has at most one kind per action and token. Sign-ins and tokens differ by what their reason begins with."""
        token = "" if self.token is None else self.token.id
        how = self.reason.partition(":")[0] if self.action in SIGN_INS else ""
        address = self.address if self.is_anonymous else ""
        return (self.by, address, self.action, how, self.account, token)

    @property
    def rank(self) -> tuple[bool, bool]:
        """Sign-ins to known accounts come first where not every line is written, then other sign-ins."""
        return (not self.account, self.action not in SIGN_INS)


class Counted(msgspec.Struct):
    """A kind of refusal in one minute: the first one, and how many are still to be written."""

    first: RefusedAttempt
    count: int = 0


class RefusalCounts:
    """What one process has counted and not written yet."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, tuple[str, ...]], Counted] = {}
        #: How many kinds somebody has in a minute.
        self._lines = Counter[tuple[int, str]]()
        #: Refusals that are written without their kinds.
        self.others = 0

    def add(self, refusal: RefusedAttempt, minute: int, count: int = 1) -> bool:
        """Count a refusal; whether it is the first of its kind in this minute."""
        place = (minute, refusal.kind)
        known = self._kinds.get(place)
        if known is not None:
            known.count += max(count, 1)
        elif refusal.is_anonymous and len(self._kinds) >= MOST_KEPT:
            self.others += count
        elif not refusal.is_anonymous and self._lines[minute, refusal.by] >= MOST_OF_ACCOUNT:
            beyond = RefusedAttempt(refusal.by, MANY, "", BEYOND, refusal.at)
            self._kinds.setdefault((minute, beyond.kind), Counted(beyond)).count += 1
            return False
        else:
            self._kinds[place] = Counted(refusal, count)
            self._lines[minute, refusal.by] += 1
        return known is None

    def take(self, before: int | None) -> list[Counted]:
        """What was counted, or what was before a minute, the most important first; it is forgotten here."""
        places = [place for place in self._kinds if before is None or place[0] < before]
        taken = [one for place in places if (one := self._kinds.pop(place)).count]
        kept = {
            place: count for place, count in self._lines.items() if before is not None and place[0] >= before
        }
        self._lines = Counter(kept)
        return sorted(taken, key=lambda one: (one.first.rank, -one.count))

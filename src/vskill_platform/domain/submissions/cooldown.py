"""When a wait that the policy asks for ends: not before these bytes were first seen at this place, plus the wait.

One pure function of the digest, the time of its first sight and the longest wait. So a restart, a killed worker, a
rerun, a second decision and a changed policy all come to the same end, and a clock that is set back moves none forward.
"""

from collections.abc import Iterable

import msgspec

from vskill_platform.domain.signals import MatchedRule

#: Contents whose first sight is kept, so that going back to the one before does not begin its wait anew.
MOST_SEEN = 2
#: What comes due at once is spread over this share of the wait.
SPREAD = 0.05


class FirstSeen(msgspec.Struct, frozen=True):
    """When the content with this digest was first seen at the place."""

    digest: str
    at: int


def note_seen(known: tuple[FirstSeen, ...], digest: str, now: int) -> tuple[FirstSeen, ...]:
    """The contents that were seen last, the latest first; one that is known keeps its time."""
    seen = next((one for one in known if one.digest == digest), FirstSeen(digest, now))
    return (seen, *(one for one in known if one.digest != digest))[:MOST_SEEN]


def end_of_wait(seen: FirstSeen, wait_ms: int) -> int:
    """When a wait for this content ends; by its digest, up to 5 % of the wait later."""
    share = int(seen.digest[:8], 16) / 16**8
    return seen.at + wait_ms + int(wait_ms * SPREAD * share)


def held_until(seen: FirstSeen, matched: Iterable[MatchedRule], now: int) -> int | None:
    """Until when the rules that matched hold this content; None where no wait is left."""
    longest = max((rule.wait_ms for rule in matched), default=0)
    end = end_of_wait(seen, longest)
    return end if longest and end > now else None

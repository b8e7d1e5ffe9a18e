"""When a wait by a rule of the policy ends: one pure function of the bytes, their first sight and the longest wait."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from tests.support.envs import make_submission
from vskill_platform.domain.signals import MatchedRule, RuleEffect
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.attempts import claim, claimable
from vskill_platform.domain.submissions.cooldown import (
    MOST_SEEN,
    SPREAD,
    FirstSeen,
    end_of_wait,
    held_until,
    note_seen,
)
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step

HOUR = 3_600_000
TIMES = st.integers(0, 2**43)
WAITS = st.integers(1, 30 * 24).map(lambda hours: hours * HOUR)
DIGESTS = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())


def waiting(*waits_ms: int) -> tuple[MatchedRule, ...]:
    return tuple(MatchedRule("r", RuleEffect.WAIT, "why", wait_ms=wait) for wait in waits_ms)


@given(DIGESTS, TIMES, WAITS)
def test_a_wait_ends_not_before_its_time_and_at_most_a_twentieth_later(digest, at, wait):
    end = end_of_wait(FirstSeen(digest, at), wait)
    assert at + wait <= end <= at + wait * (1 + SPREAD)


@given(DIGESTS, TIMES, st.lists(WAITS, min_size=1), TIMES)
def test_the_longest_wait_counts_and_is_over_at_its_end(digest, at, waits, now):
    seen = FirstSeen(digest, at)
    end = end_of_wait(seen, max(waits))
    assert held_until(seen, waiting(*waits), now) == (end if now < end else None)
    assert held_until(seen, waiting(*waits), end) is None
    assert held_until(seen, waiting(*waits), end - 1) == end


@given(DIGESTS, TIMES, st.lists(WAITS, min_size=1), st.lists(TIMES))
def test_whenever_it_is_asked_and_however_the_clock_goes_the_end_is_the_same(digest, at, waits, looks):
    ends = {held_until(FirstSeen(digest, at), waiting(*waits), now) for now in looks} - {None}
    assert len(ends) <= 1


@given(DIGESTS, TIMES, TIMES)
def test_without_a_rule_that_waits_nothing_is_held_even_after_the_clock_went_back(digest, at, now):
    rules = (MatchedRule("n", RuleEffect.NOTE, "why"), MatchedRule("r", RuleEffect.REVIEW, "why"))
    assert held_until(FirstSeen(digest, at), rules, now) is None


def test_many_that_came_at_once_do_not_end_at_once():
    digests = [hashlib.sha256(bytes([number])).hexdigest() for number in range(200)]
    ends = sorted(end_of_wait(FirstSeen(digest, 0), 24 * HOUR) for digest in digests)
    assert len(set(ends)) == 200 and ends[-1] - ends[0] > HOUR


@given(st.lists(DIGESTS, min_size=1))
def test_the_last_contents_keep_the_time_of_their_first_sight(digests):
    known: tuple[FirstSeen, ...] = ()
    for now, digest in enumerate(digests):
        before = {one.digest: one.at for one in known}
        known = note_seen(known, digest, now)
        assert known[0] == FirstSeen(digest, before.get(digest, now))
        assert len(known) <= MOST_SEEN and len({one.digest for one in known}) == len(known)
        assert all(before.get(one.digest, now) == one.at for one in known)


def test_going_back_to_the_content_before_does_not_begin_its_wait_anew():
    a, b = "a" * 64, "b" * 64
    known = note_seen(note_seen(note_seen((), a, 1), b, 2), a, 3)
    assert known == (FirstSeen(a, 1), FirstSeen(b, 2))


# The record.


@given(TIMES, TIMES)
def test_a_wait_is_claimable_when_its_end_has_come_and_never_before(end, now):
    record = make_submission(state=State.COOLDOWN, next_attempt_at=end)
    assert claimable(record, now) == (end <= now)


def test_its_claim_begins_another_attempt_of_the_same_run():
    record = make_submission(state=State.COOLDOWN, next_attempt_at=5, digest="a" * 64, cooled_by="p")
    taken = claim(record, token="t", worker="w", now=9, event_ids=["1", "2"])
    assert (taken.state, taken.run, taken.digest, taken.cooled_by) == (
        State.TIER1_SCANNING,
        1,
        "a" * 64,
        "p",
    )
    assert taken.held_by("t") and taken.next_attempt_at is None


def test_a_new_run_knows_when_contents_were_first_seen_and_fetches_anew():
    seen = (FirstSeen("a" * 64, 1),)
    ended = make_submission(state=State.REJECTED, first_seen=seen, cooled_by="p", digest="a" * 64)
    following = submission.start_run(ended, Step("x", 9, "system", "again"), submitter=None, upload=None)
    assert (following.first_seen, following.cooled_by, following.digest) == (seen, "", None)

"""The pure functions that lead from one submission record to the next, and the invariant that they keep."""

import functools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.records import submission
from vskill_core.errors import TransitionError
from vskill_core.findings import ScanStatus, Verdict
from vskill_core.identity import normalise
from vskill_core.publisher import Publisher
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.messages import (
    Send,
    SubmissionMessage,
    TaskMessage,
    decode_body,
    submission_send,
    task_send,
)
from vskill_platform.domain.submissions import attempts
from vskill_platform.domain.submissions import submission as domain
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    EXHAUSTED,
    MAX_INTERRUPTED,
    UNAVAILABLE_END_MS,
    UNAVAILABLE_MOST_MS,
    is_suspect,
)
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import (
    Appeal,
    Approval,
    Attempts,
    Claim,
    EntryPoint,
    Event,
    RecordedDecision,
    Rerun,
    Step,
    Submission,
    line_owner,
)

NOW = 50_000


def step(number: int = 1, at: int = NOW, reason: str = "because") -> Step:
    return Step(f"e{number}", at, "system", reason)


def claimed(now: int = NOW) -> Submission:
    return attempts.claim(submission(at=now), token="t", worker="w", now=now, event_ids=["a", "b"])


def test_a_new_submission_waits_for_a_worker_and_is_due_now():
    record = submission(at=NOW)
    assert (record.state, record.run, record.next_attempt_at) == (State.RECEIVED, 1, NOW)
    (event,) = record.history
    assert (event.seq, event.source, event.to, event.reason) == (1, None, State.RECEIVED, "submitted")


def test_a_new_submission_holds_all_that_was_said_at_the_door():
    place = normalise("acme/tools", "skills/pdf")
    record = domain.create(
        submission_id="sub_1",
        identity=place,
        repo_url=place.url,
        skill_name="pdf",
        step=Step("e1", NOW, "user:ann", "submitted"),
        source=EntryPoint.CLI,
        submitter="ann",
        upload="u" * 64,
    )
    assert record == Submission(
        id="sub_1",
        repo_url=place.url,
        identity=place,
        skill_name="pdf",
        skill_path="skills/pdf",
        state=State.RECEIVED,
        run=1,
        created_at=NOW,
        updated_at=NOW,
        history=(Event("e1", 1, NOW, State.RECEIVED, "user:ann", "submitted"),),
        source=EntryPoint.CLI,
        submitter="ann",
        next_attempt_at=NOW,
        upload="u" * 64,
    )
    assert record.key == "sub:sub_1"
    assert record.wrote("e1") and not record.wrote("e2")
    assert not record.held_by("t") and not claimed().held_by("u")


@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize("target", State)
def test_moves_follow_the_table_and_a_refused_one_changes_nothing(source, target):
    record = submission(state=source)
    if not may_move(source, target):
        with pytest.raises(TransitionError, match=f"from {source} to {target}") as caught:
            domain.move(record, target, step())
        assert caught.value.details == {"submission": record.id, "source": source, "to": target}
        return
    moved = domain.move(record, target, step())
    assert moved.state is target
    assert moved.history[-1].source is source
    assert attempts.violation(moved, NOW, 0) is None
    assert (moved.next_attempt_at is not None) == target.active


def test_E7_a_step_without_a_reason_is_refused():
    with pytest.raises(TransitionError, match="reason"):
        domain.move(submission(), State.DEQUEUED, step(reason="  "))


def test_E7_why_it_stands_where_it_does_is_what_a_success_passed_and_otherwise_its_last_reason():
    record = domain.move(claimed(), State.AUTO_APPROVED, step(2, reason="passed"), claim=None)
    record = domain.move(record, State.PUBLISHED, step(3, reason="published"))
    assert record.why == "published"
    decided = msgspec.structs.replace(record, decision=domain.RecordedDecision("passed the static scan"))
    assert decided.why == "passed the static scan"
    assert (
        domain.move(decided, State.NEEDS_REVIEW, step(4, reason="a rescan found more")).why
        == "a rescan found more"
    )


def test_D5_D6_history_counts_on_and_time_never_goes_back():
    record = domain.move(submission(at=NOW), State.DEQUEUED, step(at=NOW - 10_000))
    assert [event.seq for event in record.history] == [1, 2]
    assert record.history[-1].at == NOW == record.updated_at
    again = domain.start_run(record, step(2, at=NOW + 5), submitter=None, upload="u")
    assert [event.seq for event in again.history] == [3]
    assert again.history[0].source is State.DEQUEUED


def test_claiming_what_waits_begins_an_attempt():
    record = claimed()
    assert record.state is State.TIER1_SCANNING and record.held_by("t")
    assert record.claim is not None
    assert (record.claim.until, record.attempts.started) == (NOW + CLAIM_MS, 1)
    assert record.next_attempt_at is None
    assert not attempts.claimable(record, NOW + CLAIM_MS - 1)
    assert attempts.claimable(record, NOW + CLAIM_MS)


def test_a_claim_names_its_worker_and_attempt_and_so_does_the_history():
    record = claim_again(attempts.hand_back(claimed(), step()), 7)
    assert record.claim == Claim("t7", "w", NOW + CLAIM_MS)
    assert record.history[-1] == Event(
        "c7", 4, NOW, State.TIER1_SCANNING, "worker:w", "attempt 2 begins", State.RECEIVED
    )


def test_taking_over_from_a_dead_worker_says_so_and_counts_it():
    later = NOW + CLAIM_MS
    record = attempts.claim(claimed(), token="u", worker="x", now=later, event_ids=["c", "d"])
    assert [(e.source, e.to) for e in record.history[-2:]] == [
        (State.TIER1_SCANNING, State.RECEIVED),
        (State.RECEIVED, State.TIER1_SCANNING),
    ]
    assert record.history[-2].reason == "its worker's claim expired"
    assert [(e.id, e.at, e.actor) for e in record.history[-2:]] == [
        ("c", later, "worker:x"),
        ("d", later, "worker:x"),
    ]
    assert (record.attempts.interrupted, record.attempts.started) == (1, 2)
    assert record.held_by("u")


def test_an_approved_one_that_waits_is_taken_up_where_it_stands():
    waiting = domain.move(claimed(), State.AUTO_APPROVED, step(at=NOW + 7), next_attempt_at=NOW + 9)
    assert waiting.updated_at == NOW + 7
    record = attempts.claim(waiting, token="u", worker="x", now=NOW + 9, event_ids=["c", "d"])
    assert (record.state, record.next_attempt_at, record.attempts.started) == (State.AUTO_APPROVED, None, 2)


@pytest.mark.parametrize(
    "give_up",
    [
        lambda record, at: attempts.record_unavailable(record, at, "the record store"),
        attempts.record_failure,
        attempts.hand_back,
    ],
    ids=["unavailable", "failure", "hand back"],
)
def test_what_a_reviewer_approved_stays_approved_when_an_attempt_ends_early(give_up):
    """The next attempt publishes the stored bytes; a source that is gone or has changed does not matter."""
    approved = domain.move(claimed(), State.AUTO_APPROVED, step(), claim=claimed().claim)
    record = give_up(approved, step(at=NOW + 7))
    assert (record.state, record.claim) == (State.AUTO_APPROVED, None)
    assert record.next_attempt_at is not None and attempts.violation(record, NOW + 8, 0) is None


def test_an_approved_one_is_taken_over_where_it_stands():
    approved = domain.move(claimed(), State.AUTO_APPROVED, step(), claim=claimed().claim)
    record = attempts.claim(approved, token="u", worker="x", now=NOW + CLAIM_MS, event_ids=["c", "d"])
    assert record.state is State.AUTO_APPROVED and record.held_by("u")
    assert (record.attempts.interrupted, record.attempts.started, record.next_attempt_at) == (1, 2, None)
    assert record.history == approved.history


def test_too_many_dead_workers_end_the_run_with_a_person():
    record = claimed()
    for number in range(1, MAX_INTERRUPTED):
        now = NOW + number * CLAIM_MS
        record = attempts.claim(
            record, token=f"t{number}", worker="w", now=now, event_ids=[f"{number}a", f"{number}b"]
        )
        assert record.state is State.TIER1_SCANNING
    record = attempts.claim(record, token="z", worker="w", now=NOW * 10, event_ids=["y", "z"])
    assert record.state is State.NEEDS_REVIEW and record.claim is None
    assert attempts.violation(record, NOW * 10, 0) is None
    assert record.attempts == Attempts(started=MAX_INTERRUPTED, interrupted=MAX_INTERRUPTED)
    last = record.history[-1]
    assert (last.id, last.at, last.actor) == ("y", NOW * 10, "worker:w")
    assert f"died {MAX_INTERRUPTED} times" in last.reason


@pytest.mark.parametrize(
    ("interrupted", "held", "suspect"),
    [(2, False, False), (2, True, True), (3, False, True), (1, True, False)],
)
def test_over_whom_three_workers_have_died_is_suspect_and_a_claim_that_is_left_is_a_death(
    interrupted, held, suspect
):
    record = msgspec.structs.replace(
        claimed(), attempts=Attempts(interrupted=interrupted), claim=claimed().claim if held else None
    )
    assert is_suspect(record) is suspect


def test_renewing_changes_the_deadline_and_nothing_else():
    record = claimed()
    renewed = attempts.renew(record, "t", NOW + 5_000)
    assert renewed.claim is not None and renewed.claim.until == NOW + 5_000 + CLAIM_MS
    assert msgspec.structs.replace(renewed, claim=record.claim) == record
    assert attempts.renew(renewed, "t", NOW + 1_000) == renewed
    for not_held in (record, submission()):
        with pytest.raises(TransitionError) as caught:
            attempts.renew(not_held, "other", NOW)
        assert caught.value.details == {"submission": not_held.id}


@pytest.mark.parametrize(
    ("ahead", "ends"), [(0, 0), (CLOCK_SLACK_MS, CLOCK_SLACK_MS), (CLOCK_SLACK_MS + 1, 0), (-1, 0)]
)
def test_a_renewal_never_shortens_a_claim_but_puts_right_one_from_before_the_clock_went_back(ahead, ends):
    renewed = attempts.renew(claimed(NOW + ahead), "t", NOW)
    assert renewed.claim is not None and renewed.claim.until == NOW + CLAIM_MS + ends


def test_a_clock_that_went_back_makes_no_deadline_unreachable():
    record = claimed(NOW + 3_600_000)
    assert attempts.claimable(record, NOW)
    waiting = submission(next_attempt_at=NOW + UNAVAILABLE_MOST_MS + CLOCK_SLACK_MS + 1)
    assert attempts.claimable(waiting, NOW)
    assert not attempts.claimable(submission(next_attempt_at=NOW + UNAVAILABLE_MOST_MS), NOW)
    assert not attempts.claimable(claimed(NOW + CLOCK_SLACK_MS), NOW)
    assert attempts.claimable(claimed(NOW + CLOCK_SLACK_MS + 1), NOW)
    within = NOW + UNAVAILABLE_MOST_MS + CLOCK_SLACK_MS
    assert not attempts.claimable(submission(next_attempt_at=within), NOW)
    assert not attempts.is_due(submission(next_attempt_at=NOW + CLOCK_SLACK_MS + 9), NOW, 9)
    assert attempts.is_due(submission(next_attempt_at=NOW + CLOCK_SLACK_MS + 10), NOW, 9)


def test_it_is_due_when_its_claim_ends_or_else_at_its_next_attempt():
    assert attempts.due_at(claimed()) == NOW + CLAIM_MS
    assert attempts.due_at(submission(next_attempt_at=NOW)) == NOW
    assert attempts.due_at(submission(next_attempt_at=None)) is None
    assert attempts.claimable(submission(next_attempt_at=NOW), NOW)
    assert not attempts.claimable(submission(next_attempt_at=NOW + 1), NOW)


def test_what_is_at_rest_cannot_be_claimed():
    assert not attempts.claimable(submission(state=State.PUBLISHED), NOW)
    assert not attempts.claimable(submission(next_attempt_at=None), NOW)


def test_failed_attempts_wait_longer_each_time_and_the_fourth_ends_the_run():
    record = submission(at=NOW)
    delays = []
    for number in range(3):
        record = attempts.record_failure(claim_again(record, number), step(number, at=NOW, reason="boom"))
        assert record.next_attempt_at is not None
        delays.append(record.next_attempt_at - NOW)
    assert delays == [10_000, 60_000, 300_000]
    ended = attempts.record_failure(claim_again(record, 9), step(9, reason="boom"))
    assert ended.state is State.REJECTED and ended.decision is not None
    assert ended.decision == RecordedDecision("4 attempts failed; the last one: boom", (EXHAUSTED,))
    assert (ended.history[-1].id, ended.history[-1].reason) == ("e9", ended.decision.reason)
    assert (ended.attempts.failed, ended.attempts.started, ended.attempts.last_error) == (4, 4, "boom")


def claim_again(record: Submission, number: int) -> Submission:
    return attempts.claim(
        record, token=f"t{number}", worker="w", now=NOW, event_ids=[f"c{number}", f"d{number}"]
    )


def test_what_is_unavailable_counts_as_no_attempt_and_a_later_failure_forgets_it():
    record = attempts.record_unavailable(claimed(), step(), "github.com")
    assert record.attempts.failed == 0
    assert (record.attempts.unavailable, record.attempts.waiting_for) == (1, "github.com")
    failed = attempts.record_failure(claim_again(record, 3), step(4))
    assert (failed.attempts.unavailable, failed.attempts.waiting_for) == (0, None)
    late = step(5, at=NOW + UNAVAILABLE_END_MS)
    slept = attempts.record_unavailable(claim_again(record, 5), late, "github.com")
    assert (slept.state, slept.attempts.unavailable) == (State.RECEIVED, 2), "two looks are not a day"
    for number in range(101):
        record = attempts.record_unavailable(claim_again(record, number), step(number), "github.com")
    given_up = attempts.record_unavailable(claim_again(record, 5), late, "github.com")
    assert given_up.state is State.NEEDS_REVIEW
    assert given_up.attempts == Attempts(
        started=103, unavailable=103, unavailable_since=NOW, waiting_for="github.com", last_error="because"
    )
    last = given_up.history[-1]
    assert (last.id, last.reason) == (
        "e5",
        "github.com was unavailable for 24 hours; the last error: because",
    )


def test_what_is_unavailable_is_asked_for_less_and_less_often_until_a_day_is_over():
    record, delays = submission(at=NOW), []
    for number in range(9):
        record = attempts.record_unavailable(claim_again(record, number), step(number), "host")
        assert record.next_attempt_at is not None
        delays.append((record.next_attempt_at - NOW) // 1000)
    assert delays == [10, 20, 40, 80, 160, 320, 640, 900, 900]
    assert (record.attempts.unavailable, record.attempts.unavailable_since) == (9, NOW)
    assert record.attempts.last_error == "because"
    almost = step(10, at=NOW + UNAVAILABLE_END_MS - 1)
    assert attempts.record_unavailable(claim_again(record, 10), almost, "host").state is State.RECEIVED


def test_a_failure_forgets_when_an_outage_began():
    record = attempts.record_unavailable(claimed(), step(), "host")
    failed = attempts.record_failure(claim_again(record, 1), step(2, reason="boom"))
    assert failed.attempts == Attempts(started=2, failed=1, last_error="boom")


def test_handing_back_counts_nowhere():
    record = attempts.hand_back(claimed(), step())
    assert (record.state, record.claim, record.next_attempt_at) == (State.RECEIVED, None, NOW)
    assert (record.attempts.failed, record.attempts.interrupted, record.attempts.unavailable) == (0, 0, 0)


def test_a_new_run_starts_only_when_the_last_one_is_over_and_starts_clean():
    with pytest.raises(TransitionError, match="over"):
        domain.start_run(submission(), step(), submitter=None, upload=None)
    ended = submission(
        state=State.NEEDS_REVIEW,
        next_attempt_at=None,
        digest="d",
        approval=Approval("d", "admin:x", 1),
        published="skill:x",
        submitter="me",
    )
    record = domain.start_run(ended, step(), submitter=None, upload="new")
    assert (record.run, record.state, record.upload, record.digest, record.approval) == (
        2,
        State.RECEIVED,
        "new",
        None,
        None,
    )
    assert record.published == "skill:x" and record.submitter == "me"
    assert (record.next_attempt_at, record.updated_at) == (NOW, NOW)
    assert domain.start_run(ended, step(), submitter="you", upload=None).submitter == "you"


EVIDENCE = Evidence("d", "r1", ScanStatus.COMPLETE, Verdict.PASS, 100)
OF_THE_OLD_CONTENT = {"commit": "c", "digest": "d", "declared_name": "n", "evidence": EVIDENCE}


def test_a_new_run_keeps_the_place_and_nothing_of_the_last_content():
    fresh = submission(at=1, state=State.REJECTED, next_attempt_at=None, published="skill:x")
    used = msgspec.structs.replace(
        fresh,
        claim=Claim("t", "w", 5),
        attempts=Attempts(started=3),
        rerun_requested=Rerun(1),
        approval=Approval("d", "admin:x", 1),
        decision=RecordedDecision("no"),
        publisher=Publisher(repository="github.com/acme/tools", commit="c" * 40),
        **OF_THE_OLD_CONTENT,
    )
    start = functools.partial(domain.start_run, submitter=None, upload="new")
    assert start(used, step()) == start(fresh, step())
    with pytest.raises(TransitionError) as caught:
        start(claimed(), step())
    assert caught.value.details == {"submission": claimed().id}


def test_submitting_again_while_it_waits_forgets_the_old_content_but_not_dead_workers():
    fresh = submission(at=NOW, submitter="me")
    used = msgspec.structs.replace(
        fresh,
        upload="old",
        attempts=Attempts(3, 1, 2, 1, 5, "host", "boom"),
        rerun_requested=Rerun(1),
        **OF_THE_OLD_CONTENT,
    )
    again = domain.refresh(used, now=NOW + 9, submitter=None, upload="new")
    kept = Attempts(started=3, interrupted=2)
    renewed = msgspec.structs.replace(fresh, upload="new", attempts=kept, next_attempt_at=NOW + 9)
    assert again == msgspec.structs.replace(renewed, submitter_unknown=True)


@pytest.mark.parametrize("record", [claimed(), submission(state=State.NEEDS_REVIEW, next_attempt_at=None)])
def test_only_what_waits_for_a_worker_is_refreshed(record):
    with pytest.raises(TransitionError) as caught:
        domain.refresh(record, now=NOW, submitter=None, upload=None)
    assert caught.value.details == {"submission": record.id}


DEAD = Attempts(interrupted=MAX_INTERRUPTED)
ALMOST_DEAD = Attempts(interrupted=MAX_INTERRUPTED - 1)
GAVE_UP = RecordedDecision("4 attempts failed", (EXHAUSTED,))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (submission(state=State.REJECTED, decision=GAVE_UP), "4 attempts failed"),
        (submission(state=State.REJECTED, decision=RecordedDecision("no", ("XX-001",))), None),
        (submission(state=State.REJECTED), None),
        (submission(state=State.BLOCKED, decision=GAVE_UP), None),
        (submission(state=State.NEEDS_REVIEW, attempts=DEAD), "submitted"),
        (submission(state=State.NEEDS_REVIEW, attempts=ALMOST_DEAD), None),
        (submission(state=State.REJECTED, attempts=DEAD), None),
        (submission(state=State.RECEIVED, attempts=DEAD), None),
    ],
)
def test_a_run_is_exhausted_by_failures_or_dead_workers_and_by_nothing_else(record, reason):
    assert attempts.exhaustion(record) == reason


def test_submitting_again_while_it_waits_looks_at_the_new_content_now():
    waiting = attempts.record_failure(claimed(), step())
    record = domain.refresh(waiting, now=NOW + 1, submitter="you", upload="new")
    assert (record.upload, record.next_attempt_at, record.attempts.failed) == ("new", NOW + 1, 0)
    assert record.submitter == "you"
    with pytest.raises(TransitionError):
        domain.refresh(claimed(), now=NOW, submitter=None, upload=None)


def test_a_request_to_run_again_is_remembered_the_latest_wins_and_cancelling_forgets_it():
    record = domain.request_rerun(claimed(), Rerun(1, upload="a"))
    record = domain.request_rerun(record, Rerun(2, upload="b"))
    assert record.rerun_requested == Rerun(2, upload="b")
    assert domain.cancel_rerun(record).rerun_requested is None


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (submission(), None),
        (claimed(), None),
        (submission(next_attempt_at=None), "neither claim nor next attempt"),
        (submission(state=State.PUBLISHED), "at rest"),
        (submission(state=State.PUBLISHED, next_attempt_at=None), None),
        (claimed(NOW - CLAIM_MS - 2_000), "expired 2 s ago"),
        (claimed(NOW - CLAIM_MS - 1), "expired 0 s ago"),
        (claimed(NOW - CLAIM_MS), None),
        (msgspec.structs.replace(claimed(), state=State.PUBLISHED), "at rest"),
    ],
)
def test_a_record_that_breaks_the_invariant_is_named(record, says):
    found = attempts.violation(record, NOW, 0)
    assert found is None if says is None else says in (found or "")


def test_a_claim_that_expired_within_the_grace_is_no_violation():
    assert attempts.violation(claimed(NOW - CLAIM_MS - 700), NOW, 700) is None
    assert attempts.violation(claimed(NOW - CLAIM_MS - 701), NOW, 700)


@given(
    st.lists(
        st.sampled_from(["claim", "failed", "unavailable", "hand_back", "die", "end", "rerun"]), max_size=40
    )
)
def test_whatever_happens_the_invariant_holds_and_history_has_no_gap(actions):
    record, now, seqs = submission(at=NOW), NOW, [1]
    for number, action in enumerate(actions):
        now += 1_000
        before = record
        record = act(record, action, number, now)
        fresh = [e.seq for e in record.history if e.seq > seqs[-1]]
        seqs += fresh
        assert attempts.violation(record, now, CLAIM_MS * 2) is None
        assert record.run - before.run in (0, 1)
    assert seqs == list(range(1, len(seqs) + 1))


def act(record: Submission, action: str, number: int, now: int) -> Submission:
    held = record.claim is not None
    at = step(number, at=now)
    if action == "claim" and attempts.claimable(record, now):
        return attempts.claim(
            record, token=f"t{number}", worker="w", now=now, event_ids=[f"{number}x", f"{number}y"]
        )
    if action == "failed" and held:
        return attempts.record_failure(record, at)
    if action == "unavailable" and held:
        return attempts.record_unavailable(record, at, "host")
    if action == "hand_back" and held:
        return attempts.hand_back(record, at)
    if action == "die" and record.claim is not None:
        expired = msgspec.structs.replace(record, claim=msgspec.structs.replace(record.claim, until=now))
        return attempts.claim(
            expired, token=f"z{number}", worker="w", now=now, event_ids=[f"{number}x", f"{number}y"]
        )
    if action == "end" and record.state.active:
        return domain.move(record, State.REJECTED, at)
    if action == "rerun" and record.state.ends_run:
        return domain.start_run(record, at, submitter=None, upload=None)
    return record


def test_an_old_record_stays_readable():
    """A record of the first release, kept as it was written; `priority` was stored then and never used."""
    old = (
        b'{"id":"sub_1","repo_url":"https://github.com/o/r","identity":{"host":"github.com","owner":"o","repo":"r"},'
        b'"skill_name":"r","skill_path":"","state":"RECEIVED","run":1,"created_at":5,"updated_at":5,'
        b'"history":[{"id":"e","seq":1,"at":5,"to":"RECEIVED","actor":"system","reason":"submitted"}],'
        b'"next_attempt_at":5,"priority":3,"a_field_of_a_later_release":{"x":1}}'
    )
    record = msgspec.json.decode(old, type=Submission)
    assert record.next_attempt_at == 5 and record.history[0].source is None
    assert msgspec.json.decode(msgspec.json.encode(record), type=Submission) == record


def test_a_message_names_the_run_and_its_key():
    send = submission_send("sub_1", 3, delay_ms=7)
    assert (send.key, send.delay_ms) == ("sub_1:3", 7)
    assert decode_body(send.body) == SubmissionMessage("sub_1", 3)
    assert msgspec.json.decode(send.body) == {"kind": "submission", "submission_id": "sub_1", "run": 3}
    assert submission_send("sub_1", 3) == Send(send.body, "sub_1:3")
    assert submission_send("sub_1", 3, first=True, owner="account:ann") == Send(
        send.body, "sub_1:3", first=True, owner="account:ann"
    )


def test_a_submissions_message_is_for_its_run_and_waits_in_its_submitters_line():
    for submitter, owner in (("ann", "account:ann"), (None, "upload/tests")):
        record = submission(submitter=submitter, run=3)
        assert record.message == submission_send(record.id, 3, owner=owner)
    assert line_owner(None, normalise("https://GitHub.com/Acme/Tools")) == "github.com/acme"


def test_a_tasks_message_names_its_kind_id_and_run():
    send = task_send("rescan", "one", 3, delay_ms=7)
    assert (send.key, send.delay_ms) == ("task:rescan:one:3", 7)
    assert decode_body(send.body) == TaskMessage("rescan", "one", 3)
    assert task_send("rescan", "one", 3) == Send(send.body, "task:rescan:one:3", owner="task:rescan")
    assert task_send("rescan", "one", 3, first=True).first


# Who submitted it.


def ended(submitter: str | None = None) -> Submission:
    return submission(at=NOW, state=State.REJECTED, submitter=submitter)


def test_everybody_who_submitted_it_stays_its_submitter_the_latest_first():
    record = domain.start_run(ended(submitter="ann"), step(2), submitter="bob", upload=None)
    assert (record.submitter, record.earlier_submitters) == ("bob", ("ann",))
    again = domain.refresh(record, now=NOW, submitter="ann", upload=None)
    assert again.submitters == ("ann", "bob")
    third = domain.refresh(again, now=NOW, submitter="carl", upload=None)
    assert (third.submitter, third.earlier_submitters) == ("carl", ("ann", "bob"))
    rerun = domain.start_run(
        msgspec.structs.replace(third, state=State.REJECTED), step(3), submitter="dora", upload=None
    )
    assert rerun.submitters == ("dora", "carl", "ann", "bob")


def test_somebody_who_is_not_signed_in_takes_nobodys_place():
    known = domain.refresh(submission(at=NOW, submitter="ann"), now=NOW, submitter=None, upload=None)
    assert known.submitters == ("ann",)
    nobody = domain.refresh(submission(at=NOW), now=NOW, submitter=None, upload=None)
    assert (nobody.submitter, nobody.submitters) == (None, ())
    run = domain.start_run(ended(), step(2), submitter=None, upload=None)
    assert (run.submitter, run.submitters) == (None, ())


# Appeals.


def appealing(against: State, state: State = State.NEEDS_REVIEW) -> Submission:
    return submission(at=NOW, state=state, appeal=Appeal("user:ann", NOW, "it is clean", against))


def test_only_an_appeal_against_a_block_that_waits_for_a_reviewer_holds_the_block_off():
    assert appealing(State.BLOCKED).appeals_block
    assert not appealing(State.TIER1_FAILED).appeals_block
    assert not appealing(State.BLOCKED, state=State.RECEIVED).appeals_block
    assert not submission(at=NOW, state=State.NEEDS_REVIEW).appeals_block


def test_a_new_run_has_no_appeal():
    record = appealing(State.BLOCKED, state=State.REJECTED)
    assert domain.start_run(record, step(2), submitter=None, upload=None).appeal is None


# Making due.


def test_what_waits_for_a_worker_is_made_due_and_its_history_says_who_wanted_it():
    record = submission(at=NOW, next_attempt_at=NOW + 1_000_000)
    due = domain.make_due(record, step(2, at=NOW + 5, reason="asked for it"))
    assert (due.state, due.next_attempt_at, due.updated_at) == (State.RECEIVED, NOW + 5, NOW + 5)
    assert due.history[:-1] == record.history
    assert (due.history[-1].to, due.history[-1].reason) == (State.RECEIVED, "asked for it")


@pytest.mark.parametrize(
    "record", [claimed(), msgspec.structs.replace(claimed(), state=State.RECEIVED), ended()]
)
def test_what_a_worker_holds_and_what_is_over_is_not_made_due(record: Submission):
    with pytest.raises(TransitionError) as refused:
        domain.make_due(record, step(2))
    assert refused.value.details["submission"] == record.id

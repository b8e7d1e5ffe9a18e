"""Tasks: each step by the whole record that it leaves, and when one is due."""

import msgspec
import pytest

from vskill_core.errors import TransitionError
from vskill_platform.domain.operation import task as domain
from vskill_platform.domain.operation.task import LONGEST_DELAY_MS, Task, TaskState
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    MAX_INTERRUPTED,
    UNAVAILABLE_END_MS,
)
from vskill_platform.domain.submissions.submission import Attempts, Claim

NOW = 50_000
DELAYS = (1_000, 2_000)
replaced = msgspec.structs.replace


def waiting() -> Task:
    return domain.create("rescan", "one", {"skill": "a"}, now=NOW)


def held() -> Task:
    return domain.claim(waiting(), token="t", worker="w", now=NOW)


def ended(task: Task, state: TaskState, outcome: str, **more: object) -> Task:
    return replaced(task, state=state, claim=None, next_attempt_at=None, outcome=outcome, **more)


def test_a_new_task_is_due_now_or_after_its_delay():
    assert waiting() == Task(
        "rescan", "one", TaskState.ACTIVE, 1, NOW, NOW, {"skill": "a"}, next_attempt_at=NOW
    )
    assert domain.create("rescan", "one", {}, now=NOW, delay_ms=9).next_attempt_at == NOW + 9
    assert waiting().key == "task:rescan:one"
    assert [state.active for state in TaskState] == [True, False, False]


def test_a_claim_names_its_worker_and_counts_the_attempt():
    assert held() == replaced(
        waiting(), claim=Claim("t", "w", NOW + CLAIM_MS), next_attempt_at=None, attempts=Attempts(started=1)
    )
    assert held().held_by("t")
    assert not held().held_by("u")
    assert not waiting().held_by("t")


def test_a_renewal_changes_the_deadline_and_nothing_else():
    assert domain.renew(held(), NOW + 7) == replaced(held(), claim=Claim("t", "w", NOW + 7 + CLAIM_MS))
    with pytest.raises(TransitionError) as caught:
        domain.renew(waiting(), NOW)
    assert caught.value.details == {"task": "task:rescan:one"}


def test_taking_over_counts_and_too_many_dead_workers_end_it():
    again = domain.claim(held(), token="u", worker="x", now=NOW + CLAIM_MS)
    assert again.claim == Claim("u", "x", NOW + 2 * CLAIM_MS)
    assert again.attempts == Attempts(started=2, interrupted=1)
    almost = replaced(held(), attempts=Attempts(started=9, interrupted=MAX_INTERRUPTED - 2))
    assert domain.claim(almost, token="u", worker="x", now=NOW).state is TaskState.ACTIVE
    last = replaced(held(), attempts=Attempts(started=9, interrupted=MAX_INTERRUPTED - 1))
    attempts = Attempts(started=9, interrupted=MAX_INTERRUPTED)
    outcome = f"its worker died {MAX_INTERRUPTED} times over it"
    assert domain.claim(last, token="u", worker="x", now=NOW + 3) == ended(
        last, TaskState.FAILED, outcome, attempts=attempts, updated_at=NOW + 3
    )


def test_what_is_done_rests():
    assert domain.finish(held(), "nothing new", NOW + 3) == ended(
        held(), TaskState.DONE, "nothing new", updated_at=NOW + 3
    )


def test_failures_wait_as_long_as_their_kind_says_and_end_it_after_the_last():
    task = held()
    for number, delay in enumerate(DELAYS, 1):
        task = domain.record_failure(task, "boom", DELAYS, NOW + 3)
        assert task == replaced(
            held(),
            claim=None,
            next_attempt_at=NOW + 3 + delay,
            outcome="boom",
            updated_at=NOW + 3,
            attempts=Attempts(started=1, failed=number, last_error="boom"),
        )
    assert domain.record_failure(task, "bang", DELAYS, NOW + 4) == ended(
        task,
        TaskState.FAILED,
        "3 attempts failed; the last one: bang",
        attempts=Attempts(started=1, failed=3, last_error="bang"),
        updated_at=NOW + 4,
    )


def test_an_outage_is_asked_about_less_and_less_often_until_a_day_is_over():
    task, delays = held(), []
    for _ in range(9):
        task = domain.record_unavailable(task, "no route", "host", NOW)
        assert task.next_attempt_at is not None
        delays.append((task.next_attempt_at - NOW) // 1000)
    assert delays == [10, 20, 40, 80, 160, 320, 640, 900, 900]
    assert (task.claim, task.outcome, task.updated_at) == (None, "no route", NOW)
    assert task.attempts == Attempts(
        started=1, unavailable=9, unavailable_since=NOW, waiting_for="host", last_error="no route"
    )
    over = NOW + UNAVAILABLE_END_MS
    assert domain.record_unavailable(task, "no route", "host", over).state is TaskState.ACTIVE, "it slept"
    for _ in range(93):
        task = domain.record_unavailable(task, "no route", "host", NOW)
    assert domain.record_unavailable(task, "no route", "host", over - 1).state is TaskState.ACTIVE
    given_up = domain.record_unavailable(task, "no route", "host", over)
    assert (given_up.state, given_up.outcome) == (
        TaskState.FAILED,
        "host was unavailable for 24 hours: no route",
    )
    assert given_up.attempts.unavailable == 103


def test_handing_back_counts_nowhere():
    assert domain.hand_back(held(), "its worker stopped", NOW + 3) == replaced(
        held(), claim=None, next_attempt_at=NOW + 3, outcome="its worker stopped", updated_at=NOW + 3
    )


def test_asking_again_is_a_note_while_held_due_now_while_waiting_and_a_new_run_afterwards():
    subject = {"skill": "b"}
    noted = domain.ask_again(held(), subject, NOW + 3)
    assert noted == replaced(held(), rerun_requested=True, subject=subject)
    delayed = replaced(waiting(), next_attempt_at=NOW + 99)
    assert domain.ask_again(delayed, subject, NOW + 3) == replaced(
        waiting(), subject=subject, next_attempt_at=NOW + 3, updated_at=NOW + 3
    )
    used = replaced(domain.finish(held(), "done", NOW), rerun_requested=True)
    following = replaced(
        waiting(), run=2, subject=subject, next_attempt_at=NOW + 3, updated_at=NOW + 3, outcome="done"
    )
    assert domain.ask_again(used, subject, NOW + 3) == following
    assert domain.finish(noted, "done", NOW + 3) == following


def test_it_is_due_at_its_time_or_once_the_clock_went_back():
    assert domain.is_due(waiting(), NOW)
    assert not domain.is_due(waiting(), NOW - 1)
    assert not domain.is_due(held(), NOW + CLAIM_MS - 1)
    assert domain.is_due(held(), NOW + CLAIM_MS)
    for late, due in (
        (LONGEST_DELAY_MS + CLOCK_SLACK_MS, False),
        (LONGEST_DELAY_MS + CLOCK_SLACK_MS + 1, True),
    ):
        assert domain.is_due(replaced(waiting(), next_attempt_at=NOW + late), NOW) is due
    for written, due in ((CLOCK_SLACK_MS, False), (CLOCK_SLACK_MS + 1, True)):
        delayed = replaced(waiting(), updated_at=NOW + written, next_attempt_at=NOW + 9_000)
        assert domain.is_due(delayed, NOW) is due
    ahead = NOW + CLOCK_SLACK_MS + 1
    assert not domain.is_due(replaced(held(), updated_at=ahead), NOW)
    assert not domain.is_due(replaced(domain.finish(held(), "done", ahead), updated_at=ahead), NOW)


def test_what_came_before_its_time_is_due_then_and_at_most_the_longest_delay_away():
    later = domain.put_off(held(), "not yet", NOW + 5, NOW)
    assert later == msgspec.structs.replace(
        held(), claim=None, next_attempt_at=NOW + 5, outcome="not yet", updated_at=NOW
    )
    assert domain.put_off(held(), "not yet", 10**15, NOW).next_attempt_at == NOW + LONGEST_DELAY_MS

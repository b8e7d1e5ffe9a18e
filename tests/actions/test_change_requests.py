"""A reviewer asks the author for a change: the submission waits for the author, and there is a way out of that for
everybody, and one by itself."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import make_submission, open_test_env, put_record, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.people import make_account
from tests.support.system_reads import get_submission
from vskill_client.wire.submissions import SubmissionRequest
from vskill_core.errors import NotPermitted, TransitionError
from vskill_core.findings import Severity
from vskill_platform.actions.review.review import (
    ANSWER,
    REJECT,
    REQUEST_CHANGE,
    WITHDRAW_REQUEST,
    AnswerRequest,
    DecideSubmission,
    WithdrawRequest,
)
from vskill_platform.actions.review.review_queue import WAITING, ListWaiting
from vskill_platform.actions.submissions.submissions import (
    CANCEL,
    RERUN,
    SHOW,
    CancelSubmission,
    RerunSubmission,
)
from vskill_platform.actions.telling.notifications import LIST_NOTIFICATIONS, ListNotifications
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import ANSWER_MS, Appeal, Submission
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.jobs import notify
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.review.change_requests import end_unanswered

pytestmark = pytest.mark.anyio

ROB, ANN = principal_for("admin:rob"), principal_for("user:ann")
QUESTION = "Why does it need the network?"
DIGEST = "d" * 64


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, clock):
    async with open_test_env(request.param, tmp_path, clock=clock) as opened:
        await make_account(opened, "ann", Role.AUTHOR)
        await make_account(opened, "rob", Role.REVIEWER)
        yield opened


async def waiting(env, name: str = "tidy", **changes) -> Submission:
    record = make_submission(
        name, state=State.NEEDS_REVIEW, at=env.kv.now(), digest=DIGEST, submitter="ann", **changes
    )
    await put_record(env, record)
    return record


def seen(record: Submission, reason: str = QUESTION) -> DecideSubmission:
    return DecideSubmission(submission_id=record.id, run=record.run, digest=record.digest, reason=reason)


async def asked(env, **changes) -> Submission:
    record = await waiting(env, **changes)
    await REQUEST_CHANGE(env, ROB, seen(record))
    return await get_submission(record.id)


async def test_it_waits_for_its_author_with_the_question(env, clock):
    record = await asked(env)
    shown = await SHOW(env, ANN, SubmissionRequest(submission_id=record.id))
    assert (shown.state, shown.meaning) == ("NEEDS_REVIEW", "waiting for its author to answer a reviewer")
    assert shown.change_request is not None and shown.change_request.text == QUESTION
    assert shown.reason == f"a reviewer asks for a change: {QUESTION}"
    assert record.change_request is not None and record.change_request.until == clock.now() + ANSWER_MS
    other = await waiting(env, "other")
    listed = (await WAITING(env, ROB, ListWaiting())).items
    assert [(one.id, one.question) for one in listed] == [(other.id, None), (record.id, QUESTION)]
    health = await queue_health()
    assert health.violations == () or all("sub:" not in one.key for one in health.violations)


async def test_the_author_answers_and_it_waits_for_a_reviewer_again(env):
    record = await asked(env)
    answer = AnswerRequest(submission_id=record.id, reason="It asks for the weather.")
    with pytest.raises(NotPermitted):
        await ANSWER(env, principal_for("user:eve"), answer)
    done = await ANSWER(env, ANN, answer)
    assert (done.meaning, done.change_request) == ("waiting for a reviewer", None)
    assert done.reason == "the author answers: It asks for the weather."
    with pytest.raises(TransitionError, match="No reviewer has asked"):
        await ANSWER(env, ANN, answer)


async def test_the_reviewer_takes_it_back_or_decides(env):
    record = await asked(env)
    withdraw = WithdrawRequest(submission_id=record.id, reason="I see it now.")
    assert (await WITHDRAW_REQUEST(env, ROB, withdraw)).change_request is None
    with pytest.raises(TransitionError, match="No reviewer has asked"):
        await WITHDRAW_REQUEST(env, ROB, withdraw)
    await REQUEST_CHANGE(env, ROB, seen(record))
    assert (await REJECT(env, ROB, seen(record, "no"))).change_request is None


@pytest.mark.parametrize("leave", ["cancel", "submit"])
async def test_leaving_the_state_ends_the_request(env, leave):
    done = await submit_skill("tidy", "one")
    assert done.submission is not None
    record = msgspec.structs.replace(
        make_submission("x", state=State.NEEDS_REVIEW, at=env.kv.now(), digest=DIGEST),
        id=done.submission.id,
        identity=done.submission.identity,
        submitter="ann",
    )
    await put_record(env, record)
    await REQUEST_CHANGE(env, ROB, seen(record))
    if leave == "cancel":
        await CANCEL(env, ANN, CancelSubmission(submission_id=record.id, reason="never mind"))
    else:
        assert (await submit_skill("tidy", "two")).outcome == "requeued"
    left = await get_submission(record.id)
    assert left.change_request is None and left.state is not State.NEEDS_REVIEW


async def test_without_an_answer_it_ends_with_the_reason(env, clock):
    record = await asked(env)
    clock.advance(ANSWER_MS - 1)
    assert await end_unanswered() == 0
    clock.advance(1)
    assert await end_unanswered() == 1
    ended = await get_submission(record.id)
    assert ended.state is State.REJECTED and ended.decision is not None
    assert ended.decision.reason == f"its author did not answer a reviewer within 14 days: {QUESTION}"
    assert await end_unanswered() == 0


async def test_an_unanswered_appeal_against_a_block_ends_as_blocked(env, clock):
    appeal = Appeal("user:ann", env.kv.now(), "it is mine", State.BLOCKED)
    record = await asked(env, appeal=appeal)
    entry = BlockEntry(place_target(record.identity), Severity.HIGH, "theft", "admin:eve", env.kv.now())
    await add_block(entry)
    clock.advance(ANSWER_MS)
    assert await end_unanswered() == 1
    assert (await get_submission(record.id)).state is State.BLOCKED


async def test_what_changed_or_does_not_wait_is_refused(env):
    record = await waiting(env)
    with pytest.raises(TransitionError, match="changed since you opened it"):
        await REQUEST_CHANGE(env, ROB, msgspec.structs.replace(seen(record), digest="e" * 64))
    await REJECT(env, ROB, seen(record, "no"))
    with pytest.raises(TransitionError, match="Only a submission that waits for a reviewer"):
        await REQUEST_CHANGE(env, ROB, seen(record))
    with pytest.raises(NotPermitted):
        await REQUEST_CHANGE(env, ANN, seen(record))


async def told(env, who) -> list[tuple[str, bool]]:
    found = (await LIST_NOTIFICATIONS(env, who, ListNotifications())).notifications
    return [(one.text, one.unread) for one in found]


async def test_the_author_is_told_of_the_question_and_reviewers_of_what_waits_for_them(env, clock):
    state = await notify({})
    record = await waiting(env)
    state = await notify(state)
    (first,) = await told(env, ROB)
    assert first[0].startswith("tidy waits for a reviewer")
    clock.advance(1_000)
    await REQUEST_CHANGE(env, ROB, seen(record))
    state = await notify(state)
    assert await told(env, ROB) == [], "it waits for somebody else"
    assert (await told(env, ANN))[0] == (f"tidy: a reviewer asks for a change: {QUESTION}", True)
    clock.advance(1_000)
    await ANSWER(env, ANN, AnswerRequest(submission_id=record.id, reason="For the weather."))
    state = await notify(state)
    assert await told(env, ROB) == [("tidy waits for a reviewer: the author answers: For the weather.", True)]
    clock.advance(1_000)
    await REJECT(env, ROB, seen(record, "no"))
    await notify(state)
    assert await told(env, ROB) == [], "nothing waits any more"
    assert (await LIST_NOTIFICATIONS(env, ROB, ListNotifications())).unread == 0


async def test_a_run_that_was_followed_by_another_waits_for_nobody(env, clock):
    state = await notify({})
    record = await waiting(env)
    state = await notify(state)
    assert len(await told(env, ROB)) == 1
    clock.advance(1_000)
    await RERUN(env, ROB, RerunSubmission(submission_id=record.id, reason="once more"))
    await notify(state)
    assert await told(env, ROB) == []

"""What reviewers decide: about the run and the bytes that they looked at, alone or in bulk, and not unseen about their
own submissions."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import make_submission, open_test_env, put_record
from tests.support.system_reads import get_submission
from vskill_platform.actions.bulk import BULK, BulkVerb, DecideMany, SeenSubmission
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.review import APPROVE, REJECT, WAITING, DecideSubmission, ListWaiting
from vskill_platform.actions.suppressions import SUPPRESS, SuppressRule
from vskill_platform.domain.errors import NotPermitted, TransitionError
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import RecordedDecision, Submission
from vskill_platform.store.accounts import Role
from vskill_platform.store.audit import list_audit
from vskill_platform.store.suppressions import suppressed_rules

pytestmark = pytest.mark.anyio

DIGEST = "a" * 64
ROB = Principal("rob", Role.REVIEWER)
ADA = principal_for("admin:ada")


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


@pytest.fixture
async def strict(tmp_path):
    """A registry that asks for a second person."""
    async with open_test_env("memory", tmp_path, four_eyes="on") as opened:
        yield opened


async def waiting(env, name: str = "demo", submitter: str | None = None) -> Submission:
    record = make_submission(
        name,
        state=State.NEEDS_REVIEW,
        at=env.kv.now(),
        digest=DIGEST,
        submitter=submitter,
        decision=RecordedDecision("odd", ("DR-009",)),
    )
    await put_record(env, record)
    return record


def about(record: Submission, **changes) -> DecideSubmission:
    asked = DecideSubmission(submission_id=record.id, run=record.run, digest=record.digest, reason="looked")
    return msgspec.structs.replace(asked, **changes)


@pytest.mark.parametrize("action", [APPROVE, REJECT], ids=lambda one: one.name)
@pytest.mark.parametrize("changes", [{"run": 2}, {"digest": "b" * 64}, {"digest": None}], ids=str)
async def test_what_changed_since_the_reviewer_looked_is_not_decided(env, action, changes):
    record = await waiting(env)
    with pytest.raises(TransitionError, match="changed since you opened it"):
        await action(env, ROB, about(record, **changes))
    assert await get_submission(record.id) == record
    assert (await list_audit()).items == ()


async def test_approving_ones_own_submission_is_marked_everywhere(env):
    record = await waiting(env, submitter="rob")
    answer = await APPROVE(env, ROB, about(record))
    assert answer.approved_by_submitter
    assert answer.history[-1].reason == "looked (decided by its submitter)"
    approval = (await get_submission(record.id)).approval
    assert approval is not None and approval.own
    (entry,) = (await list_audit()).items
    assert entry.details["own"] == "yes"


async def test_approving_somebody_elses_is_not_marked(env):
    record = await waiting(env, submitter="ann")
    answer = await APPROVE(env, ROB, about(record))
    assert not answer.approved_by_submitter and answer.history[-1].reason == "looked"
    assert "own" not in (await list_audit()).items[0].details


async def test_four_eyes_forbid_approving_and_suppressing_for_oneself(strict):
    record = await waiting(strict, submitter="rob")
    with pytest.raises(NotPermitted, match="VSKILL_FOUR_EYES"):
        await APPROVE(strict, ROB, about(record))
    with pytest.raises(NotPermitted):
        await SUPPRESS(strict, ROB, SuppressRule(digest=DIGEST, rule="DR-009", reason="mine is fine"))
    assert await suppressed_rules(DIGEST) == frozenset()
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW
    await APPROVE(strict, ADA, about(record))
    assert (await get_submission(record.id)).state is State.AUTO_APPROVED


async def test_ones_own_may_always_be_rejected(strict):
    record = await waiting(strict, submitter="rob")
    await REJECT(strict, ROB, about(record))
    assert (await get_submission(record.id)).state is State.REJECTED


async def test_the_list_has_what_a_decision_names(env):
    first = await waiting(env, "one", submitter="ann")
    await waiting(env, "two")
    page = await WAITING(env, ROB, ListWaiting(limit=1))
    assert page.total == 2 and len(page.items) == 1 and page.after is not None
    rest = await WAITING(env, ROB, ListWaiting(after=page.after))
    listed = {one.id: one for one in (*page.items, *rest.items)}
    assert (listed[first.id].run, listed[first.id].digest) == (1, DIGEST)
    assert listed[first.id].submitter == "ann"


def many(verb: BulkVerb, *records: Submission, **changes) -> DecideMany:
    items = tuple(SeenSubmission(one.id, one.run, one.digest) for one in records)
    return msgspec.structs.replace(DecideMany(verb=verb, items=items, reason="all alike"), **changes)


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        (BulkVerb.APPROVE, State.AUTO_APPROVED),
        (BulkVerb.REJECT, State.REJECTED),
        (BulkVerb.CANCEL, State.DEQUEUED),
        (BulkVerb.AGAIN, State.RECEIVED),
    ],
)
async def test_many_are_decided_and_what_changed_is_left_alone(env, verb, state):
    records = [await waiting(env, name) for name in ("one", "two", "three")]
    changed = msgspec.structs.replace(records[2], digest="b" * 64)
    await put_record(env, changed)
    done = await BULK(env, ADA, many(verb, *records))
    assert done.done == (records[0].id, records[1].id)
    (refused,) = done.refused
    assert refused.id == changed.id and "changed since you opened it" in refused.reason
    for record in records[:2]:
        now = await get_submission(record.id)
        assert (now.state, now.history[-1].actor) == (state, "admin:ada")
        assert "all alike" in now.history[-1].reason
    assert await get_submission(changed.id) == changed
    assert sum(one.action == f"bulk {verb.value}" for one in (await list_audit()).items) == 1


async def test_only_admins_decide_about_many(env):
    record = await waiting(env)
    with pytest.raises(NotPermitted):
        await BULK(env, ROB, many(BulkVerb.APPROVE, record))

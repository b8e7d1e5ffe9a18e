"""A live version that a rescan doubts: it stays live and marked, waits in the review queue, and a reviewer keeps it or
takes it down by the same actions as everything that waits."""

import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.people import browser
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from tests.test_rescan import Rules, malice
from vskill_core.errors import NotPermitted, TransitionError
from vskill_core.findings import ScanStatus, Severity
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.review.evidence import gather_evidence, preview_many, read_run
from vskill_platform.actions.review.review import APPROVE, REJECT, DecideSubmission
from vskill_platform.actions.review.review_queue import WAITING, ListWaiting
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.skill import Certification, is_under_review
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_upload
from vskill_platform.stages.rescan import request_due_rescans
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.verdicts.rule_figures import read_rule_figures
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

ROB = Principal("rob", Role.REVIEWER, audiences=EVERYTHING)
CANONICAL = "upload~tests/skills/demo"
DOUBT = (malice(Severity.HIGH),)


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, scanner=Rules()) as env:
        yield env


async def publish(env, text: str = "Use it well.", submitter: str | None = None):
    files = skill_files("demo", text)
    by = SubmittedBy(account=submitter)
    submitted = await submit_upload(files, namespace="tests", slug="demo", by=by)
    assert submitted.submission is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.submission.id)
    assert record.state is State.PUBLISHED
    return record


async def judge_again(env, ruleset: str, findings=DOUBT, status=ScanStatus.COMPLETE) -> None:
    env.scanner.ruleset, env.scanner.findings, env.scanner.status = ruleset, findings, status
    await request_due_rescans(None)
    await run_until_quiet(env)


async def queue(env):
    return (await WAITING(env, ROB, ListWaiting())).items


def about(item, reason: str = "looked at it") -> DecideSubmission:
    return DecideSubmission(submission_id=item.id, run=item.run, digest=item.digest, reason=reason)


async def test_what_a_rescan_doubts_stays_live_and_waits_in_the_review_queue(env):
    record = await publish(env)
    await judge_again(env, "rules-2")
    skill = await get_skill(CANONICAL)
    assert (skill.current_version, skill.certification) == ("1.0.0", Certification.SCANNED)
    assert is_under_review(skill)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    (item,) = await queue(env)
    assert (item.id, item.run, item.digest) == (record.id, record.run, record.digest)
    assert "needs a reviewer" in item.reason and "stays live" in item.reason
    shown, current = await read_run(ROB, record.id, None)
    assert shown == current and shown.state is State.NEEDS_REVIEW
    assert [one.rule_id for one in (await gather_evidence(env, ROB, shown)).findings] == ["X-001"]


async def test_a_file_that_cannot_be_read_whole_is_reviewed_and_not_tried_for_ever(env):
    await publish(env)
    await judge_again(env, "rules-2", (), ScanStatus.INCOMPLETE)
    (item,) = await queue(env)
    assert "did not finish (incomplete)" in item.reason
    assert (await env.broker.depth()).dead == 0


async def test_an_approval_takes_the_mark_away_and_counts_for_later_rules(env):
    record = await publish(env)
    await judge_again(env, "rules-2")
    (item,) = await queue(env)
    answer = await APPROVE(env, ROB, about(item))
    assert answer.state == State.PUBLISHED
    skill = await get_skill(CANONICAL)
    assert not is_under_review(skill)
    assert (skill.certification, skill.versions[0].kept_by) == (Certification.CERTIFIED, ROB.actor)
    assert await queue(env) == ()
    await judge_again(env, "rules-3")
    assert await queue(env) == ()
    (entry,) = (await list_audit()).items
    assert (entry.action, entry.target, entry.reason) == ("approve", CANONICAL, "looked at it")
    assert await env.kv.get(keys.review(CANONICAL)) is None
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_a_rejection_takes_the_version_down_and_ends_its_submission(env):
    record = await publish(env)
    await judge_again(env, "rules-2")
    (item,) = await queue(env)
    await REJECT(env, ROB, about(item, "it steals"))
    skill = await get_skill(CANONICAL)
    assert skill.withdrawn and skill.versions[0].reason == "it steals" and skill.versions[0].review is None
    rejected = await get_submission(record.id)
    assert [event.to for event in rejected.history[-2:]] == [State.NEEDS_REVIEW, State.REJECTED]
    assert rejected.why == "it steals"
    assert await queue(env) == ()


async def test_a_live_item_is_marked_and_says_what_a_decision_will_do(env):
    """It stands before what is not live and weighs the same, and the decision counts for the rule."""
    record = await publish(env)
    await judge_again(env, "rules-2")
    (item,) = await queue(env)
    assert (item.kind, item.risk) == ("live", "strong-malice")
    ((shown, told),) = await preview_many(ROB, [record.id])
    assert shown.digest == item.digest and told.problem == ""
    assert told.approve[0] == "Version 1.0.0 stays live and is no longer marked as under review."
    assert told.reject[-1].endswith("Nobody can install it any more.")
    await REJECT(env, ROB, about(item))
    figures = (await read_rule_figures())["X-001"]
    assert (figures.agreed, figures.disagreed) == (1, 0)
    assert await preview_many(ROB, [record.id]) == []


async def test_better_rules_take_the_mark_away(env):
    await publish(env)
    await judge_again(env, "rules-2")
    await judge_again(env, "rules-3", ())
    assert await queue(env) == () and not is_under_review(await get_skill(CANONICAL))


async def test_an_older_version_that_is_still_live_is_reviewed_too(env):
    """The submission has moved on to other bytes; the decision is about those that are doubted."""
    first = await publish(env)
    second = await publish(env, "Use it better.")
    assert first.digest != second.digest
    env.scanner.only = first.digest
    await judge_again(env, "rules-2")
    (item,) = await queue(env)
    assert (item.id, item.run, item.digest) == (second.id, second.run, first.digest)
    assert not is_under_review(await get_skill(CANONICAL))
    await REJECT(env, ROB, about(item))
    skill = await get_skill(CANONICAL)
    assert [ref.status for ref in skill.versions] == ["taken_down", "live"]
    assert (await get_submission(second.id)).state is State.PUBLISHED


@pytest.mark.parametrize("action", [APPROVE, REJECT], ids=lambda one: one.name)
async def test_nothing_is_decided_about_other_bytes_or_twice(env, action):
    await publish(env)
    await judge_again(env, "rules-2")
    (item,) = await queue(env)
    wrong = DecideSubmission(submission_id=item.id, run=item.run + 1, digest=item.digest, reason="looked")
    with pytest.raises(TransitionError, match="changed since you opened it"):
        await action(env, ROB, wrong)
    await action(env, ROB, about(item))
    with pytest.raises(TransitionError):
        await action(env, ROB, about(item))


async def test_four_eyes_hold_for_what_is_live(tmp_path):
    async with open_test_env("memory", tmp_path, scanner=Rules(), four_eyes="on") as env:
        await publish(env, submitter="rob")
        await judge_again(env, "rules-2")
        (item,) = await queue(env)
        with pytest.raises(NotPermitted):
            await APPROVE(env, ROB, about(item))
        await APPROVE(env, principal_for("admin:ada"), about(item))


async def test_the_skill_says_that_it_is_under_review(env):
    await publish(env)
    await judge_again(env, "rules-2")
    async with browser(create_app(env)) as client:
        page = (await client.get(f"/skills/{CANONICAL}")).text
        answer = (await client.get(f"/api/v1/skills/{CANONICAL}")).json()
        versions = (await client.get(f"/api/v1/skills/{CANONICAL}/versions")).json()
    assert "This version is under review." in page and "needs a reviewer" in page
    assert answer["skill"]["underReview"] and versions["versions"][0]["underReview"]

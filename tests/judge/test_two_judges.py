"""Two judges in the real wiring: both are asked at the same time, both are shown, and what is required is waited for by
nobody but a reviewer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.incidents.steps import record_of
from tests.judge.server import JudgeServer, Reply, judge_server, replies, says
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.system_reads import get_submission
from vskill_core.findings import JudgeStatus
from vskill_platform.actions.principal import Viewer
from vskill_platform.actions.submissions.submission_views import submission_view
from vskill_platform.actions.verdicts.skill_security import read_reports
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.submissions.statistics import latest_ends
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

REJECTS = says(score=10, verdict="FAIL", reason="It deceives.")
DOWN = replies(Reply(b"{}", 500))


@pytest.fixture
async def servers() -> AsyncIterator[tuple[JudgeServer, JudgeServer]]:
    async with judge_server() as first, judge_server() as second:
        yield first, second


def settings_for(servers: tuple[JudgeServer, JudgeServer]) -> dict[str, Any]:
    first, second = servers
    return {
        "judge_url": first.url,
        "judge_model": "large",
        "second_judge_url": second.url,
        "second_judge_model": "small",
        "second_judge_api_key": "sk-second",
    }


@pytest.fixture
async def judged(servers, tmp_path) -> AsyncIterator[Env]:
    async with open_test_env("sqlite", tmp_path, **settings_for(servers)) as opened:
        yield opened


async def verified(env: Env, name: str = "tidy") -> Submission:
    submitted = record_of(await submit_skill(name))
    await run_until_quiet(env)
    return await get_submission(submitted.id)


async def test_both_are_asked_with_their_own_key_and_model_and_the_lower_score_counts(judged, servers):
    servers[1].answer = says(score=84)
    record = await verified(judged)
    assert (record.state, record.decision and record.decision.certification) == (State.PUBLISHED, "VERIFIED")
    evidence = record.evidence
    assert evidence is not None and evidence.judge is not None and evidence.second_judge is not None
    assert (evidence.judge.model, evidence.judge.score) == ("small", 84)
    assert (evidence.second_judge.model, evidence.second_judge.score) == ("large", 90)
    assert [server.asked[0].body["model"] for server in servers] == ["large", "small"]
    assert "authorization" not in servers[0].asked[0].headers
    assert servers[1].asked[0].headers["authorization"] == "Bearer sk-second"


async def test_they_are_asked_at_the_same_time(judged, servers):
    """Each answers only once the other was asked too."""
    both = asyncio.Barrier(2)

    def waits(answer):
        async def reply(asked):
            await both.wait()
            return await answer(asked)

        return reply

    for server in servers:
        server.answer = waits(says())
    assert (await verified(judged)).state is State.PUBLISHED


async def test_where_they_disagree_a_reviewer_decides_and_sees_both(judged, servers):
    servers[1].answer = REJECTS
    record = await verified(judged)
    assert record.state is State.NEEDS_REVIEW
    assert record.why == "the judges disagree: small: FAIL, score 10 and large: PASS, score 90"
    view = msgspec.json.decode(msgspec.json.encode(submission_view(record, Viewer())))
    assert (view["scan"]["judgeModel"], view["scan"]["judgeVerdict"]) == ("small", "FAIL")
    assert view["scan"]["secondJudge"] == {
        "status": "answered",
        "verdict": "PASS",
        "score": 90,
        "model": "large",
    }
    assert record.digest is not None
    known = await read_reports(judged, record.digest)
    assert [(one.model, one.score) for one in known.judges] == [("small", 10), ("large", 90)]


async def test_what_both_reject_is_rejected(judged, servers):
    for server in servers:
        server.answer = REJECTS
    assert (await verified(judged)).state is State.REJECTED


async def test_one_that_is_down_leaves_it_to_the_other_and_is_seen(judged, servers):
    servers[0].answer = DOWN
    for name in ("one", "two", "three"):
        record = await verified(judged, name)
    assert (record.state, record.decision and record.decision.certification) == (State.PUBLISHED, "VERIFIED")
    assert record.evidence is not None
    assert record.evidence.judge_status is JudgeStatus.ANSWERED
    assert record.evidence.second_judge_status is JudgeStatus.DOWN
    watch = (await latest_ends(audiences=EVERYTHING)).judge
    assert (watch.failing, watch.failed) == (True, 3)
    assert judged.metrics.judge_circuit_open.labels("first")._value.get() == 1
    assert judged.metrics.judge_calls.labels("second", "answered")._value.get() == 3


@pytest.mark.parametrize(
    ("required", "answers", "state", "why"),
    [
        (1, (DOWN, says()), State.PUBLISHED, "passed the static scan and the judge"),
        (2, (DOWN, says()), State.NEEDS_REVIEW, "2 judges must have read it, and 1 did"),
        (1, (DOWN, DOWN), State.NEEDS_REVIEW, "1 judge must have read it, and none did"),
        (0, (DOWN, DOWN), State.PUBLISHED, "passed the static scan; the judge is down"),
        # What the one that answered would not approve stays as it is.
        (2, (DOWN, REJECTS), State.REJECTED, "rejected by the judge"),
    ],
)
async def test_answers_that_are_required_are_needed_for_publishing_alone(
    servers, tmp_path, required, answers, state, why
):
    given = {**settings_for(servers), "policy_text": f"needs: {{judges: {required}}}"}
    for server, answer in zip(servers, answers, strict=True):
        server.answer = answer
    async with open_test_env("sqlite", tmp_path, **given) as env:
        record = await verified(env)
    assert record.state is state and why in record.why


async def test_what_a_service_says_about_its_tokens_is_counted_and_nonsense_is_not(judged, servers):
    servers[0].answer = says(usage={"prompt_tokens": 700, "completion_tokens": 42})
    servers[1].answer = says(usage={"prompt_tokens": None, "completion_tokens": -3})
    assert (await verified(judged)).state is State.PUBLISHED

    def tokens(place):
        return [judged.metrics.judge_tokens.labels(place, kind)._value.get() for kind in ("prompt", "answer")]

    assert (tokens("first"), tokens("second")) == ([700, 42], [0, 0])

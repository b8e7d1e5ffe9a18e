"""A real small model over the real protocol, and in ordinary runs its recorded answers: whatever it says is an answer in
the shape that was asked for, or the judge is down."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.judge.real_model import MODEL, llama_server
from tests.judge.recorded_exchanges import (
    CONTEXT,
    FEW,
    MARKER,
    SCENARIOS,
    STEERING,
    Exchange,
    Recording,
    Scenario,
    read_recording,
    record,
    replay,
    write_recording,
)
from vskill_core.findings import JUDGE_DOWN, JudgeStatus, Verdict
from vskill_platform.cli.verdicts.judge_evaluation import evaluate_judges
from vskill_platform.cli.verdicts.judge_figures import EvaluationTerms, count_evaluation
from vskill_platform.cli.verdicts.labelled_skills import labelled_skills
from vskill_platform.settings import Settings
from vskill_platform.tiers.judge import JudgeReply

pytestmark = pytest.mark.anyio

#: For a real model on a busy machine.
PATIENCE_S = 900
PATIENCE: dict[str, Any] = {
    "judge_budget_ms": PATIENCE_S * 1000,
    "submission_budget_ms": PATIENCE_S * 2_000,
    "stuck_threshold_ms": PATIENCE_S * 3_000,
}


def check_reply(reply: JudgeReply, scenario: Scenario) -> None:
    """What holds whatever a model says."""
    assert reply.outcome in scenario.outcomes
    if reply.outcome != "answered":
        assert reply.report is JUDGE_DOWN and reply.problem
        return
    report = reply.report
    assert report.status is JudgeStatus.ANSWERED and isinstance(report.verdict, Verdict)
    assert report.score is not None and 0 <= report.score <= 100
    assert reply.tokens.prompt > 0 and reply.tokens.answer > 0
    said = " ".join((report.reason, *(word.why for word in report.confirmations)))
    assert MARKER not in said and STEERING not in said
    critical = [finding.key for finding in scenario.report.findings]
    assert [word.finding for word in report.confirmations] == critical


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_recorded_model_answers_in_the_shape_or_is_down(name, open_judge, server):
    recording, scenario = read_recording(name), SCENARIOS[name]
    server.answer = replay(recording)
    judge = await open_judge(new_marker=lambda: MARKER)
    reply = await judge.ask(scenario.files, scenario.report)
    check_reply(reply, scenario)
    assert (reply.outcome, len(server.asked)) == (recording.outcome, len(recording.exchanges))
    assert (reply.tokens.prompt, reply.tokens.answer) == (recording.prompt_tokens, recording.answer_tokens)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Iterator[dict[int, str]]:
    """Servers by how much their model may write."""
    folders = [tmp_path_factory.mktemp("llama") for _ in range(2)]
    with (
        llama_server(folders[0], context=CONTEXT, predict=200) as roomy,
        llama_server(folders[1], context=CONTEXT, predict=FEW) as short,
    ):
        yield {200: roomy, FEW: short}


@pytest.mark.model
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_real_model_answers_in_the_shape_or_is_down(name, models, open_judge, server, request):
    scenario = SCENARIOS[name]
    heard: list[Exchange] = []
    async with httpx2.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
        server.answer = record(models[scenario.predict], client, heard)
        judge = await open_judge(judge_model=MODEL, new_marker=lambda: MARKER, **PATIENCE)
        reply = await judge.ask(scenario.files, scenario.report)
    check_reply(reply, scenario)
    if request.config.getoption("--write-exchanges"):
        tokens = reply.tokens
        write_recording(name, Recording(MODEL, reply.outcome, tokens.prompt, tokens.answer, tuple(heard)))


@pytest.mark.model
async def test_a_real_model_that_takes_too_long_is_down_and_is_asked_again(models, open_judge):
    scenario = SCENARIOS["cut-short"]
    hasty = await open_judge(judge_url=models[FEW], judge_model=MODEL, judge_budget_ms=20)
    for _ in range(2):
        assert (await hasty.ask(scenario.files, scenario.report)).outcome == "timeout"
    patient = await open_judge(judge_url=models[FEW], judge_model=MODEL, **PATIENCE)
    check_reply(await patient.ask(scenario.files, scenario.report), scenario)


@pytest.mark.model
async def test_a_real_model_is_evaluated(models, tmp_path):
    """One that may write so little that no answer of it can be used: that is a measurement too."""
    for place in ("mine/malicious/thief", "mine/honest/tidy"):
        folder = tmp_path / "skills" / place
        folder.mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: Tidies a folder.\n---\n# {folder.name}\n"
        (folder / "SKILL.md").write_text(text)
    settings = Settings(
        store="memory:", scan_processes=1, judge_url=models[FEW], judge_model=MODEL, **PATIENCE
    )
    root = tmp_path / "skills"
    skills = await asyncio.to_thread(labelled_skills, root)
    found = await evaluate_judges(settings, root, skills, keep=tmp_path / "answers.jsonl", at_once=1)
    figures = count_evaluation(found, EvaluationTerms())
    (judge,) = figures.judges
    assert figures.not_judged == {} and judge.prompt_tokens > 0 and judge.seconds > 0
    assert [label.refused for label in judge.labels] == [1, 1]

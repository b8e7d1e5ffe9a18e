"""`judge evaluate`: what it counts, what it keeps, and what it says where a judge cannot be reached."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.judge.server import JudgeServer, Reply, completion, judge_server, replies, says
from vskill_core.errors import InvalidInput
from vskill_core.findings import Verdict
from vskill_platform.cli.verdicts.judge_evaluation import EvaluatedSkill, Evaluation, KeptAnswer, read_kept
from vskill_platform.cli.verdicts.judge_figures import EvaluationTerms, Share, count_evaluation

SKILL = "---\nname: {name}\ndescription: Tidies a folder and says what it moved.\n---\n# {name}\n"


# What is counted.


def answer(
    verdict: Verdict | None, score: int | None, seconds: float = 1.0, *, tokens: int = 100
) -> KeptAnswer:
    outcome = "answered" if verdict else "invalid"
    is_pass = verdict is Verdict.PASS
    return KeptAnswer(
        *("p/l/s", "d", "r", "m", "rubric"),
        outcome=outcome,
        verdict=verdict,
        score=score,
        seconds=seconds,
        prompt_tokens=tokens,
        answer_tokens=tokens // 10,
        published=is_pass,
        published_unjudged=True,
    )


PASSED, UNSURE, FAILED, REFUSED = (
    answer(Verdict.PASS, 90),
    answer(Verdict.CONCERNS, 60),
    answer(Verdict.FAIL, 10),
    answer(None, None),
)


def evaluation(*rows: tuple[str, KeptAnswer | None], second: KeptAnswer | None = None) -> Evaluation:
    """Skills by label with the first judge's answer to each, and the second one's to all."""
    skills = []
    for number, (label, first) in enumerate(rows):
        answers = {place: one for place, one in (("first", first), ("second", second)) if one is not None}
        missing = {} if first is not None else {"first": "timeout: no answer within 30000 ms"}
        skills.append(EvaluatedSkill(f"mine/{label}/{number}", "mine", label, answers, missing))
    models = {"first": "large", **({"second": "small"} if second is not None else {})}
    return Evaluation(models, tuple(skills))


def test_recall_and_false_alarms_count_what_was_answered_and_not_approved():
    rows = [("malicious", one) for one in (FAILED, UNSURE, PASSED, REFUSED, None)]
    rows += [("honest", one) for one in (PASSED, PASSED, UNSURE)]
    figures = count_evaluation(evaluation(*rows), EvaluationTerms())
    (judge,) = figures.judges
    assert (judge.recall, judge.false_alarms) == (Share(2, 3), Share(1, 3))
    honest, malicious = judge.labels
    assert (honest.label, honest.approved, honest.unsure, honest.rejected) == ("honest", 2, 1, 0)
    assert (malicious.skills, malicious.approved, malicious.unsure, malicious.rejected) == (5, 1, 1, 1)
    assert (malicious.refused, malicious.not_judged) == (1, 1)
    assert (malicious.published, malicious.published_unjudged) == (1, 4)
    assert (judge.prompt_tokens, judge.answer_tokens, judge.cost) == (700, 70, None)
    assert figures.not_judged == {"mine/malicious/4": {"first": "timeout: no answer within 30000 ms"}}


def test_cost_and_time_are_those_of_the_questions():
    rows = [("honest", answer(Verdict.PASS, 90, seconds, tokens=1_000_000)) for seconds in (1, 2, 9)]
    (judge,) = count_evaluation(evaluation(*rows), EvaluationTerms(prices=(2.0, 10.0))).judges
    assert judge.cost == 3 * 2.0 + 3 * 0.1 * 10.0
    assert (judge.seconds, judge.labels[0].median_s, judge.labels[0].p95_s) == (12.0, 2.0, 9.0)


def test_two_judges_are_counted_alone_and_together():
    rows = [("malicious", PASSED), ("malicious", FAILED), ("malicious", REFUSED)]
    alone, second, together = count_evaluation(evaluation(*rows, second=FAILED), EvaluationTerms()).judges
    assert (alone.recall, second.recall, together.recall) == (Share(1, 2), Share(3, 3), Share(3, 3))
    (label,) = together.labels
    assert (together.model, label.unsure, label.rejected) == ("large and small", 1, 2)
    assert label.prompt_tokens == 600


def test_a_set_without_one_of_the_labels_has_no_share_of_it():
    (judge,) = count_evaluation(evaluation(("unlabelled", PASSED)), EvaluationTerms()).judges
    assert (str(judge.recall), str(Share(1, 8))) == ("0 of 0", "1 of 8 (12.5%)")


# What is kept.


def test_a_line_that_was_cut_short_is_left_out_and_another_file_is_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    line = msgspec.json.encode(PASSED).decode()
    path.write_text(f"{line}\n{line[:40]}")
    assert read_kept(path) == (PASSED,)
    assert path.read_text() == f"{line}\n"
    path.write_text("# notes\n")
    with pytest.raises(InvalidInput, match="holds no answers of judges"):
        read_kept(path)
    assert read_kept(tmp_path / "new.jsonl") == ()


# The command.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place in ("mine/malicious/thief", "mine/honest/tidy", "mine/honest/acme/sorter"):
        skill = tmp_path / "skills" / place
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL.format(name=skill.name))
    return tmp_path / "skills"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """A judge in a thread of its own, beside the command."""
    ready, ends = threading.Event(), threading.Event()
    found: list[JudgeServer] = []

    async def serve() -> None:
        async with judge_server() as running:
            found.append(running)
            ready.set()
            await asyncio.to_thread(ends.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    yield found[0]
    ends.set()
    thread.join()


async def tells_them_apart(asked):
    if "thief" in asked.user:
        return await says(score=5, verdict="FAIL", reason="It steals.")(asked)
    if "sorter" in asked.user:
        return completion("no JSON at all")
    return await says()(asked)


@pytest.mark.slow
def test_a_judge_is_measured_and_a_judge_that_fails_loses_nothing(run, folder, server, tmp_path, monkeypatch):
    monkeypatch.setenv("VSKILL_JUDGE_URL", server.url)
    monkeypatch.setenv("VSKILL_JUDGE_MODEL", "large")
    kept = tmp_path / "answers.jsonl"
    server.answer = replies(Reply(b"{}", 500))
    down = run("judge", "evaluate", folder, "--keep", kept, code=1).output
    assert "Not judged: 3" in down and "http_error: the judge answers with status 500" in down
    server.answer = tells_them_apart
    shown = run("judge", "evaluate", folder, "--keep", kept, "--prices", 1, 2).output
    assert "Judge: first, large" in shown
    assert "1 of 1 (100.0%) malicious skills not approved" in shown
    assert "0 of 1 (0.0%) honest skills not approved" in shown
    asked = len(server.asked)
    again = run("judge", "evaluate", folder, "--keep", kept, "--format", "json")
    assert len(server.asked) == asked, "what is kept is not asked again"
    figures = json.loads(again.output)
    assert (figures["skills"], figures["notJudged"]) == (3, {})
    (judge,) = figures["judges"]
    assert (judge["recall"], judge["falseAlarms"]) == ({"count": 1, "of": 1}, {"count": 0, "of": 1})
    assert [(one["label"], one["refused"]) for one in judge["labels"]] == [("honest", 1), ("malicious", 0)]
    assert not (tmp_path / "data").exists(), "nothing of the registry is made"


def test_what_is_missing_is_said_with_the_fix(run, folder, tmp_path, monkeypatch):
    assert "set VSKILL_JUDGE_URL and VSKILL_JUDGE_MODEL" in run("judge", "evaluate", folder, code=1).output
    monkeypatch.setenv("VSKILL_JUDGE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("VSKILL_JUDGE_MODEL", "large")
    empty = tmp_path / "empty"
    empty.mkdir()
    told = run("judge", "evaluate", empty, code=1).output
    assert "There is no labelled skill below" in told and "PART/LABEL/NAME" in told
    run("judge", "evaluate", tmp_path / "nowhere", code=2)

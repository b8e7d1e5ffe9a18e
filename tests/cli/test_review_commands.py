"""A reviewer's decisions from the command line: about a submission as it was looked at, and about a rule and one
content."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import run_until_quiet
from vskill_platform.bootstrap import env_for
from vskill_platform.settings import process_settings
from vskill_platform.worker_context import run_with_worker_env

DOUBTFUL = """---
name: tidy
description: Tidies a folder.
---
# Tidy

```bash
pip install reqeusts
pip install numppy
```
"""


def work_the_queue() -> None:
    async def work() -> None:
        async with env_for(settings) as env:
            await run_with_worker_env(env, lambda: run_until_quiet(env))

    settings = process_settings()
    keep_compiled_rules(Path(settings.data_dir))
    asyncio.run(work())


@pytest.fixture
def waiting(run, skill):
    """A submission that waits for a person, by its id."""
    (skill / "SKILL.md").write_text(DOUBTFUL)
    (one,) = json.loads(run("submit", skill, "--json").stdout)
    work_the_queue()
    number = one["submission"]["id"]
    assert json.loads(run("status", number, "--json").stdout)["state"] == "NEEDS_REVIEW"
    return number


def seen(run, number) -> tuple[str, ...]:
    shown = json.loads(run("status", number, "--json").stdout)
    return ("--run", str(shown["run"]), "--digest", shown["digest"])


def submit_other_content(run, skill, number) -> None:
    (skill / "SKILL.md").write_text(DOUBTFUL + "pip install pandsa\n")
    run("submit", skill)
    work_the_queue()
    assert json.loads(run("status", number, "--json").stdout)["state"] == "NEEDS_REVIEW"


def test_a_digest_that_was_given_is_never_replaced_by_another(run, waiting):
    refused = run(
        "review", "approve", waiting, "--digest", "0" * 64, "--reason", "x", code=2, typed="y\n"
    ).stderr
    assert "is not what waits now" in refused


@pytest.mark.parametrize(("verb", "state"), [("approve", "AUTO_APPROVED"), ("reject", "REJECTED")])
def test_a_decision_names_what_was_looked_at(run, skill, waiting, verb, state):
    looked_at = seen(run, waiting)
    submit_other_content(run, skill, waiting)
    refused = run("review", verb, waiting, *looked_at, "--reason", "I read it", code=1).stderr
    assert "changed since you opened it" in refused
    assert state in run("review", verb, waiting, *seen(run, waiting), "--reason", "I read it").stdout


@pytest.mark.parametrize(
    "words", [("approve",), ("reject",), ("suppress", "DR-009")], ids=lambda words: words[0]
)
def test_without_that_it_shows_what_waits_and_asks(run, waiting, words):
    verb, *rest = words
    shown = run("review", verb, waiting, *rest, "--reason", "I read it", code=1).stdout
    run_and_content = " ".join(seen(run, waiting))
    assert run_and_content in shown and "DR-009" in shown and f"/admin/review/{waiting}" in shown
    assert json.loads(run("status", waiting, "--json").stdout)["state"] == "NEEDS_REVIEW"
    run("review", verb, waiting, *rest, "--reason", "I read it", typed="y\n")
    assert json.loads(run("status", waiting, "--json").stdout)["state"] != "NEEDS_REVIEW"


def test_a_rule_that_is_wrong_about_a_content_no_longer_keeps_it_back(run, waiting):
    digest = seen(run, waiting)[-1]
    assert "no longer counts" in run("review", "suppress", digest, "DR-009", "--reason", "a real name").stdout
    work_the_queue()
    assert json.loads(run("status", waiting, "--json").stdout)["state"] == "PUBLISHED"
    listed = run("review", "suppressions", waiting).stdout
    assert "DR-009" in listed and "a real name" in listed
    assert "counts again" in run("review", "unsuppress", waiting, "DR-009", "--reason", "it was right").stdout
    (one,) = json.loads(run("review", "suppressions", waiting, "--json").stdout)["suppressions"]
    assert one["active"] is False and len(one["history"]) == 2


def test_a_misspelt_rule_is_refused_with_those_that_there_are(run, waiting):
    said = run("review", "suppress", waiting, "DR-999", "--reason", "x", code=1, typed="y\n").stderr
    assert "use one of DR-009" in said
    assert (
        "is not suppressed" in run("review", "unsuppress", waiting, "DR-009", "--reason", "x", code=1).stderr
    )


def test_what_has_not_been_scanned_has_no_content_to_speak_of(run, skill):
    (one,) = json.loads(run("submit", skill, "--json").stdout)
    said = run("review", "suppress", one["submission"]["id"], "DR-009", "--reason", "x", code=1).stderr
    assert "not been fetched yet" in said

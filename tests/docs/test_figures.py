"""Figures that a page says in words are those of the code: a constant that changes fails here, with the sentence that
must change with it."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.contracts.conftest import BLOB_ENGINES, BROKER_ENGINES, KV_ENGINES
from tools.files import ROOT
from vskill_core import findings as scan
from vskill_core.findings import Severity
from vskill_platform.domain import judges
from vskill_platform.domain.submissions import attempts
from vskill_platform.external_scan import callback, contract
from vskill_platform.ledger.clock import MAX_SKEW_MS
from vskill_platform.notifications import post
from vskill_platform.queue import alerts, control, jobs, tasks
from vskill_platform.queue.jobs import JOBS
from vskill_platform.store.people import setup
from vskill_platform.tiers import judge, pool
from vskill_platform.web import routing
from vskill_platform.web.streams import stream
from vskill_scan.limits import DEFAULT_LIMITS

S, MIN, H = 1_000, 60_000, 3_600_000
TROUBLESHOOT = "docs/how-to/troubleshoot.md"
WHY = "docs/discussions/why-nothing-gets-stuck.md"
SCORING = "docs/discussions/scoring.md"
RULES = "docs/reference/rules.md"
EVENTS = "docs/reference/events.md"
ANALYSERS = "docs/reference/external-analysers.md"
DELIVERY = next(kind for kind in tasks.KINDS if kind.name == "delivery")

#: The page, what it says, and the code's figures beside those that the sentence was written for.
SAID: tuple[tuple[str, str, object, object], ...] = (
    ("docs/reference/settings.md", "a claim lasts 15 s", attempts.CLAIM_MS, 15 * S),
    ("docs/reference/settings.md", "is renewed every 5 s", attempts.RENEW_EVERY_MS, 5 * S),
    (WHY, "a claim lasts 15 seconds, and a living worker renews it every 5", attempts.CLAIM_MS, 15 * S),
    (WHY, "Four failures of the content itself", len(attempts.FAILED_DELAYS_MS), 3),
    (WHY, "Ten dead workers", attempts.MAX_INTERRUPTED, 10),
    (TROUBLESHOOT, "after 10 s, 1 min and 5 min", attempts.FAILED_DELAYS_MS, (10 * S, MIN, 5 * MIN)),
    (TROUBLESHOOT, "is tried after 10 s and then", attempts.UNAVAILABLE_FIRST_MS, 10 * S),
    (TROUBLESHOOT, "up to 15 minutes", attempts.UNAVAILABLE_MOST_MS, 15 * MIN),
    (TROUBLESHOOT, "After 24 hours a person is asked", attempts.UNAVAILABLE_END_MS, 24 * H),
    (TROUBLESHOOT, "After three deaths it runs alone", attempts.SUSPECT_INTERRUPTED, 3),
    (TROUBLESHOOT, "after ten it waits for a person", attempts.MAX_INTERRUPTED, 10),
    (TROUBLESHOOT, "a link lasts 24 hours", setup.LINK_MS, 24 * H),
    ("docs/how-to/self-host.md", "works once, within 24 hours", setup.LINK_MS, 24 * H),
    ("docs/how-to/operate-the-queue.md", "within the last hour", alerts.RECENT_MS, H),
    ("docs/incidents.md", "at most seven days away", control.LONGEST_PAUSE_MS, 7 * 24 * H),
    ("docs/how-to/scale-out.md", "more than 2 s from the store's", MAX_SKEW_MS, 2 * S),
    (
        "docs/how-to/webhooks-and-mail.md",
        "after 5 s, 5 min, 30 min, 2 h, 5 h and 10 h",
        DELIVERY.delays_ms,
        (5 * S, 5 * MIN, 30 * MIN, 2 * H, 5 * H, 10 * H),
    ),
    ("docs/how-to/webhooks-and-mail.md", "within 10 seconds", post.TIMEOUT_S, 10),
    ("docs/how-to/configure-a-judge.md", "After three failures in a row", judge.FAILURES_TO_OPEN, 3),
    ("docs/how-to/configure-a-judge.md", "alone for 30 seconds", judge.OPEN_S, 30),
    (SCORING, "PASS is 80 and above. FAIL is below 50", (scan.PASS_SCORE, scan.CONCERNS_SCORE), (80, 50)),
    (SCORING, "scores it below 40", judges.JUDGE_REJECTS, 40),
    (SCORING, "clear each one with 60 or more", judges.JUDGE_CLEARS, 60),
    (SCORING, "PASS with 80 or more", judges.JUDGE_APPROVES, 80),
    (
        SCORING,
        "less 25 for each rule with a critical finding, 15 for high, 8 for medium and 3 for low",
        [scan.PENALTY[one] for one in (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)],
        [25, 15, 8, 3],
    ),
    (RULES, "at most 1,000,000 steps", DEFAULT_LIMITS.steps, 1_000_000),
    (RULES, "more than 10 s of processor time", DEFAULT_LIMITS.cpu_s, 10),
    (RULES, "too little of the processor to end within 15 s", DEFAULT_LIMITS.wall_s, 15),
    (RULES, "only the third time", pool.MOST_CUT_OFFS, 3),
    (TROUBLESHOOT, "too little of the processor to end within 15 s", DEFAULT_LIMITS.wall_s, 15),
    (EVENTS, "after 256 KB wait", stream.DEFAULT_LIMITS.most_waiting_bytes, 256 * 1024),
    (EVENTS, "every 15 seconds", stream.DEFAULT_LIMITS.heartbeat_s, 15),
    (EVENTS, "changes of seven days are kept", jobs.CHANGES_KEPT_MS, 7 * 24 * H),
    (ANALYSERS, "the worst 200", contract.MOST_FINDINGS, 200),
    (ANALYSERS, "More than 300 s away", callback.TOLERANCE_S, 300),
    (ANALYSERS, "at most 1 MiB", callback.MOST_BODY_BYTES, 1024 * 1024),
    ("docs/reference/api.md", "at most 1,000,000 bytes", routing.MOST_BODY, 1_000_000),
)


def words(path: str) -> str:
    return " ".join(Path(ROOT, path).read_text("utf-8").split())


@pytest.mark.parametrize(("path", "sentence", "figure", "meant"), SAID, ids=[one[1] for one in SAID])
def test_a_figure_in_words_is_the_codes(path, sentence, figure, meant):
    assert sentence in words(path)
    assert figure == meant, f"{path} still says: {sentence}"


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_scheduled_job_is_documented_with_how_often_it_runs(job):
    every = f"{job.every_ms // MIN} min" if job.every_ms >= MIN else f"{job.every_ms // S} s"
    assert f"| `{job.name}` | {every} |" in words("docs/how-to/operate-the-queue.md")


def test_the_table_of_engines_is_that_of_the_contract_suites():
    """A suite runs over every engine, so what it runs over is all there is."""
    table = words("docs/how-to/add-an-engine.md")
    for contract_of, engines in (
        ("records", KV_ENGINES),
        ("messages", BROKER_ENGINES),
        ("content", BLOB_ENGINES),
    ):
        (listed,) = re.findall(rf"\| {contract_of} \| `[^`]+` \| ([^|]+) \|", table)
        assert set(listed.lower().split(", ")) == set(engines) - {"minimal", "bucket in memory"}


def test_every_extra_is_documented_and_every_extra_in_a_page_is_one():
    project = tomllib.loads(Path(ROOT, "pyproject.toml").read_text("utf-8"))
    extras = set(project["project"]["optional-dependencies"])
    pages = " ".join(words(str(path.relative_to(ROOT))) for path in Path(ROOT, "docs").rglob("*.md"))
    grouped = re.findall(r"vskill-platform\[([\w,]+)\]", pages)
    named = {one for group in grouped for one in group.split(",")} | set(re.findall(r"extra `(\w+)`", pages))
    assert named == extras

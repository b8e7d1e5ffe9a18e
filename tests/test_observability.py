"""Logs that machines and people can read, and metrics that are all documented."""

import errno
import io
import json
import logging

import httpx2
import pytest
import structlog

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import TroubledScanner
from vskill_core.errors import PlatformError
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.observing.logs import configure_logging
from vskill_platform.observing.metrics import DECLARED, Metrics, add_counts, without_gauges
from vskill_platform.queue.jobs import Job
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import require_env


@pytest.fixture(autouse=True)
def logging_as_it_was():
    """Logging is configured for the whole process: put back what the other tests had."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


def written(settings: Settings, write) -> str:
    out = io.StringIO()
    write(configure_logging(settings, out))
    return out.getvalue()


def test_a_json_log_line_is_one_object_with_its_fields_and_the_bound_context():
    def write(log):
        with structlog.contextvars.bound_contextvars(request_id="r1"):
            log.info("submission published", duration_ms=12)

    line = json.loads(written(Settings(log_format="json"), write))
    assert line["event"] == "submission published"
    assert (line["level"], line["duration_ms"], line["request_id"]) == ("info", 12, "r1")
    assert line["timestamp"].endswith("Z")


def test_context_bound_for_one_task_is_gone_after_it():
    def write(log):
        with structlog.contextvars.bound_contextvars(request_id="r1"):
            log.info("inside")
        log.info("outside")

    inside, outside = map(json.loads, written(Settings(log_format="json"), write).splitlines())
    assert inside["request_id"] == "r1"
    assert "request_id" not in outside


def test_a_console_line_shows_event_and_fields():
    line = written(Settings(), lambda log: log.warning("records skipped", count=2))
    assert "records skipped" in line
    assert "count=2" in line
    assert "\x1b" not in line, "no colours where nobody looks at a terminal"


def test_lines_below_the_level_are_not_written():
    def write(log):
        log.debug("d")
        log.info("i")
        log.warning("w")

    lines = written(Settings(log_format="json", log_level="warning"), write).splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["w"]


def test_a_traceback_is_written_without_local_variables():
    def write(log):
        secret_token = f"hunter-{1 + 1}"
        try:
            int(secret_token[:6])
        except ValueError:
            log.exception("request failed")

    for style in ("json", "console"):
        text = written(Settings(log_format=style), write)
        assert "ValueError" in text
        assert "hunter-2" not in text


def test_lines_of_other_packages_have_the_same_form():
    out = io.StringIO()
    configure_logging(Settings(log_format="json"), out)
    logging.getLogger("uvicorn.error").warning("invalid request from %s", "peer")
    assert json.loads(out.getvalue())["event"] == "invalid request from peer"


class FullDisk(io.StringIO):
    """A file that cannot grow."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_ends_nobodys_work():
    """A worker once died of the line that said why its store was away: both were on the same full disk."""
    log = configure_logging(Settings(), FullDisk())
    log.warning("cannot receive")
    logging.getLogger("asyncio").warning("nor this")


def test_two_environments_count_for_themselves():
    one, two = Metrics(), Metrics()
    one.transitions.labels("PUBLISHED").inc()
    assert b'vskill_transitions_total{to="PUBLISHED"} 1.0' in one.render()
    assert b"PUBLISHED" not in two.render()


def test_what_the_process_beside_counted_is_added_up():
    own, beside = Metrics(), Metrics()
    for metrics in (own, beside):
        metrics.transitions.labels("RECEIVED").inc(2)
        metrics.stage_duration.labels("RECEIVED").observe(0.2)
    beside.transitions.labels("PUBLISHED").inc()
    beside.batch_in_flight.set(3)
    own.connections_open.set(5)
    beside.connections_open.set(2)
    # Of what is no amount, the later or worse is shown.
    own.judge_circuit_open.labels("first").set(1)
    beside.judge_circuit_open.labels("first").set(1)
    # What the store and the disk say, whoever asks them, is the answer of the one that was asked.
    own.queue_violations.set(0)
    beside.queue_violations.set(7)
    beside.disk_free.labels("data").set(9)
    shown = own.render(beside.counts()).decode().splitlines()
    for line in (
        'vskill_transitions_total{to="RECEIVED"} 4.0',
        'vskill_transitions_total{to="PUBLISHED"} 1.0',
        'vskill_stage_duration_seconds_bucket{le="0.1",state="RECEIVED"} 0.0',
        'vskill_stage_duration_seconds_bucket{le="0.25",state="RECEIVED"} 2.0',
        'vskill_stage_duration_seconds_count{state="RECEIVED"} 2.0',
        "vskill_batches_in_flight 3.0",
        "vskill_connections_open 7.0",
        'vskill_judge_circuit_open{judge="first"} 1.0',
        "vskill_queue_violations 0.0",
    ):
        assert line in shown
    assert "disk_free_bytes{" not in "".join(shown)


def test_a_process_that_ended_leaves_what_it_counted_and_nothing_of_what_it_was():
    ended, present = Metrics(), Metrics()
    ended.transitions.labels("PUBLISHED").inc(2)
    ended.batch_in_flight.set(3)
    present.transitions.labels("PUBLISHED").inc()
    kept = without_gauges(ended.counts())
    shown = Metrics().render(add_counts(kept, present.counts()))
    assert b'vskill_transitions_total{to="PUBLISHED"} 3.0' in shown
    assert b"vskill_batches_in_flight 0.0" in shown


def test_C4_counts_that_are_unknown_are_absent_and_not_zero():
    metrics = Metrics()
    metrics.show_submissions({"RECEIVED": 0, "PUBLISHED": 7})
    assert b'vskill_submissions{state="RECEIVED"} 0.0' in metrics.render()
    metrics.show_submissions(None)
    assert b"vskill_submissions{" not in metrics.render()


def test_a_metric_is_exposed_as_it_is_declared():
    """The reference is generated from the declarations, so it says what `/metrics` says."""
    metrics = Metrics()
    exposed = {family.name: family for family in metrics.registry.collect()}
    assert len(DECLARED) == len(exposed)
    for facts in DECLARED:
        family = exposed[facts.name.removesuffix("_total")]
        assert (facts.kind, facts.sentence) == (family.type, family.documentation)
        assert facts.sentence.endswith(".")


@pytest.mark.anyio
async def test_log_lines_carry_the_ids_of_the_request_the_submission_and_the_job(tmp_path):
    """Whoever searches the log for one of them finds every line that belongs to it."""

    async def noisy(state):
        require_env("log").log.info("said by the job")
        return state

    out = io.StringIO()
    configure_logging(Settings(log_format="json", log_level="debug"), out)
    async with open_test_env("memory", tmp_path, clock=SystemClock(), log_level="debug") as env:
        submitted = (await submit_skill("logged")).submission
        assert submitted is not None
        broken = TroubledScanner(env.scanner, b"#", PlatformError("said by the scanner"))
        with active_env(env, scanner=broken) as failing:
            await run_until_quiet(failing)
        await run_job(Job("logged-job", "for this test", 1_000, 1_000, "", noisy))
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(create_app(env)), base_url="http://t"
        ) as client:
            await client.get("/healthz", headers={"x-request-id": "request-7"})
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    by_event = {line["event"]: line for line in lines}
    assert (by_event["attempt failed"]["submission_id"], by_event["attempt failed"]["run"]) == (
        submitted.id,
        1,
    )
    assert by_event["said by the job"]["job"] == "logged-job"
    assert by_event["request answered"]["request_id"] == "request-7"
    assert "submission_id" not in by_event["request answered"]

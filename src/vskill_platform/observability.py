"""What a process tells its operators: log lines, and metrics in a registry of their own.

Logs are structured: a static event text with fields, the unit in a field's name. Context that belongs to one
batch, job or request is bound with `structlog.contextvars`, so that it ends with it.
`docs/reference/metrics.md` describes every metric.
"""

import contextlib
import io
import logging
import math
import sys
from collections.abc import Mapping
from typing import Generic, TextIO, TypeVar, cast

import msgspec
import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from structlog.typing import FilteringBoundLogger, Processor

from vskill_platform.settings import Settings

#: What `/metrics` answers with.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Seconds; from a read by key to the longest request that a client still waits for.
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


#: Seconds; from a scan that was cached to work that waited for a day.
STAGE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0)


M = TypeVar("M", Counter, Histogram)


class Labelled(Generic[M]):
    """A metric that is raised often: finding its child for a label is one look into a dict. The few values that a
    label has are written in the code, so the dict stays small."""

    def __init__(self, metric: M) -> None:
        self.metric: M = metric
        self._children: dict[str, M] = {}

    def labels(self, value: str) -> M:
        child = self._children.get(value)
        if child is None:
            child = self._children[value] = self.metric.labels(value)
        return child


class QueueFigures(msgspec.Struct, frozen=True):
    """What a scrape shows of the queue, as the web side computes it from the store."""

    violations: int = 0
    oldest_waiting_s: float = 0
    #: NaN where the queue could not be asked.
    dead_letters: float = 0
    judge_last_answer_s: float = 0
    messages: Mapping[str, float] = {}
    stale_jobs: Mapping[str, float] = {}
    job_successes: Mapping[str, float] = {}
    alerts: Mapping[str, float] = {}


class Metrics:
    """Every metric of a process, in one registry that no other process or test shares."""

    def __init__(self) -> None:
        # A creation time beside every counter doubles the page and says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        #: Records that a read had to leave out, by operation and by why (failed, missing, malformed).
        self.records_skipped = self._counter(
            "records_skipped", "Records that a read had to leave out.", "operation", "reason"
        )
        #: Steps of submissions, by the state that they led to.
        self.transitions = Labelled(self._counter("transitions", "Steps of submissions, by new state.", "to"))
        #: Tries to take a submission up, by how they ended.
        self.claims = Labelled(self._counter("claims", "Tries to claim a submission, by outcome.", "outcome"))
        #: Attempts at submissions, by how they ended.
        self.attempts = self._counter("attempts", "Attempts at submissions, by outcome.", "outcome")
        #: Messages handled, by how they were settled.
        self.messages = Labelled(self._counter("messages", "Messages handled, by settlement.", "outcome"))
        #: Submissions for which recovery sent a message.
        self.recovered = self._counter("recovered", "Submissions that recovery sent a message for.")
        #: Runs of scheduled jobs, by job and by how they ended.
        self.job_runs = self._counter("job_runs", "Runs of scheduled jobs.", "job", "outcome")
        #: When a scheduled job last succeeded, in seconds since the epoch.
        self.job_last_success = self._gauge(
            "job_last_success_timestamp_seconds", "When a scheduled job last succeeded.", "job"
        )
        #: Submissions that break the queue's invariant, as queue health last counted them; 0 is the promise.
        self.queue_violations = self._gauge(
            "queue_violations", "Submissions that break the queue's invariant."
        )
        #: Submissions by state, counted at each scrape; absent while the store cannot be read.
        self.submissions = self._gauge(
            "submissions", "Submissions by state, counted at each scrape.", "state"
        )
        #: Batches that this worker process handles at the moment.
        self.batch_in_flight = self._gauge("batches_in_flight", "Batches that are being handled.")
        #: Static scans that a submission needed, by whether rules ran or a stored report was there.
        self.scans = Labelled(self._counter("scans", "Static scans that were needed.", "outcome"))
        #: Questions to the judge, by outcome: answered, cached, skipped, or why it counts as down.
        self.judge_calls = self._counter("judge_calls", "Questions to the judge, by outcome.", "outcome")
        #: When the judge last gave this process a valid answer, in seconds since the epoch; 0 is never.
        self.judge_last_success = self._gauge(
            "judge_last_success_timestamp_seconds", "When the judge last gave a valid answer."
        )
        #: 1 while this process leaves the judge alone after repeated failures.
        self.judge_circuit_open = self._gauge(
            "judge_circuit_open", "Whether the judge is left alone after repeated failures."
        )
        #: How long the submission that waits longest has been due, in seconds; 0 where none waits, NaN unknown.
        self.oldest_waiting = self._gauge(
            "oldest_waiting_seconds", "How long the submission that waits longest has been due."
        )
        #: Messages in the queue at each scrape, by what they wait for; absent while it cannot be read.
        self.queue_messages = self._gauge("queue_messages", "Messages in the queue at each scrape.", "which")
        #: Messages that were set aside for a person, at each scrape; NaN while the queue cannot be read.
        self.dead_letters = self._gauge("dead_letters", "Messages that were set aside for a person.")
        #: 1 for a scheduled job that has not succeeded for too long; absent while the store cannot be read.
        self.job_stale = self._gauge(
            "job_stale", "Whether a scheduled job has not succeeded for too long.", "job"
        )
        #: 1 for an alert that holds at the scrape; absent while the store cannot be read.
        self.alerts = self._gauge("alerts", "Whether an alert holds at the scrape.", "alert")
        #: When a run with an answer of the judge last ended, by the records of every process; 0 is never, NaN unknown.
        self.judge_last_answer = self._gauge(
            "judge_last_answer_timestamp_seconds", "When a run with an answer of the judge last ended."
        )
        #: How long submissions stood in a state before this process moved them on, in seconds, by that state.
        self.stage_duration = Labelled(
            Histogram(
                "vskill_stage_duration_seconds",
                "How long submissions stood in a state before they were moved on.",
                ("state",),
                buckets=STAGE_BUCKETS,
                registry=self.registry,
            )
        )
        #: Event streams that are open in this process.
        self.streams_open = self._gauge("streams_open", "Event streams that are open.")
        #: Event streams that this process ended, because their client was too slow to read them.
        self.streams_dropped = self._counter(
            "streams_dropped", "Event streams of clients that were too slow."
        )
        #: Requests answered, by route and status.
        self.http_requests = self._counter("http_requests", "Requests answered.", "route", "status")
        #: How long requests took until their first byte was ready, in seconds, by route.
        self.http_request_duration = Histogram(
            "vskill_http_request_duration_seconds",
            "How long requests took until their first byte was ready.",
            ("route",),
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )

    def show_submissions(self, counts: Mapping[str, int] | None) -> None:
        """Counts for the next scrape; None removes them, because unknown is not 0 (C4)."""
        self.submissions.clear()
        for state, count in (counts or {}).items():
            self.submissions.labels(state=state).set(count)

    def show_queue(self, figures: "QueueFigures | None") -> None:
        """What the records and the queue say at this scrape; None removes it all, because unknown is not 0 (C4)."""
        unknown = figures is None
        shown = QueueFigures() if figures is None else figures
        for gauge, value in (
            (self.oldest_waiting, shown.oldest_waiting_s),
            (self.dead_letters, shown.dead_letters),
            (self.judge_last_answer, shown.judge_last_answer_s),
            (self.queue_violations, shown.violations),
        ):
            gauge.set(math.nan if unknown else value)
        for labelled, values in (
            (self.queue_messages, shown.messages),
            (self.job_stale, shown.stale_jobs),
            (self.alerts, shown.alerts),
        ):
            labelled.clear()
            for name, value in values.items():
                labelled.labels(name).set(value)
        for job, at in shown.job_successes.items():
            self.job_last_success.labels(job).set(at)

    def render(self) -> bytes:
        """Everything, in the text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"vskill_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"vskill_{name}", help_text, labels, registry=self.registry)


def configure_logging(settings: Settings, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Send every log line of this process, other packages' included, to one stream in one form."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    out = cast("TextIO", SteadyStream(stream or sys.stderr))
    structlog.configure(
        processors=[*_common(), *_rendering(settings, out)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _route_standard_logging(settings, out, level)
    return logger()


class SteadyStream(io.TextIOBase):
    """Where log lines go. One that cannot be written (the log's own disk is full, its reader has gone) is lost, and
    does not end the work that it tells of: a worker must outlive the disk of its log."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._out.flush()

    def isatty(self) -> bool:
        return self._out.isatty()


def logger(**fields: object) -> FilteringBoundLogger:
    """The process's logger. Below the configured level a call costs next to nothing."""
    return cast("FilteringBoundLogger", structlog.get_logger().bind(**fields))


def _common() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(settings: Settings, out: TextIO) -> list[Processor]:
    if settings.log_format == "json":
        # Local variables of a traceback may hold tokens, so they stay out of the log.
        transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(transform),
            structlog.processors.JSONRenderer(default=str),
        ]
    colours = out.isatty()
    return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)]


def _route_standard_logging(settings: Settings, out: TextIO, level: int) -> None:
    """Give the lines of packages that use the standard library (uvicorn, asyncio) the same form."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_common(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(settings, out),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.INFO))

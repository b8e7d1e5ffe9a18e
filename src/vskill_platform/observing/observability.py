"""What a process tells its operators: log lines, and metrics in a registry of their own.

Logs are structured: a static event text with fields, the unit in a field's name. Context that belongs to one
batch, job or request is bound with `structlog.contextvars`, so that it ends with it.
"""

import functools
import io
import itertools
import logging
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TextIO, TypeVar, cast

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
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
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
    damaged: int = 0
    workers_alive: int = 0
    oldest_waiting_s: float = 0
    #: NaN where the queue could not be asked.
    dead_letters: float = 0
    judge_last_answer_s: float = 0
    messages: Mapping[str, float] = {}
    stale_jobs: Mapping[str, float] = {}
    job_successes: Mapping[str, float] = {}
    alerts: Mapping[str, float] = {}


class MetricFacts(msgspec.Struct, frozen=True):
    """One metric as it is declared."""

    name: str
    kind: str
    labels: tuple[str, ...]
    sentence: str


class Count(msgspec.Struct, frozen=True, array_like=True):
    """One number that a process has counted, as the process beside it adds it to its own."""

    family: str
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    #: Whether it tells of the process as it is now; otherwise it only grows.
    is_gauge: bool


def add_counts(*several: Iterable[Count]) -> tuple[Count, ...]:
    """One of each: what grows is added up, and of what holds now it is the greater."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Count] = {}
    for count in itertools.chain.from_iterable(several):
        key = count.name, count.labels
        if (other := found.get(key)) is None:
            found[key] = count
        else:
            value = max(other.value, count.value) if count.is_gauge else other.value + count.value
            found[key] = msgspec.structs.replace(count, value=value)
    return tuple(found.values())


def without_gauges(counts: Iterable[Count]) -> tuple[Count, ...]:
    """What is left of a process that has ended."""
    return tuple(count for count in counts if not count.is_gauge)


class _Together(Collector):
    """The metrics of a process with the counts of the one beside it."""

    def __init__(self, registry: CollectorRegistry, beside: Iterable[Count]) -> None:
        self._registry = registry
        self._beside = tuple(beside)

    def collect(self) -> Iterator[Metric]:
        by_family: dict[str, list[Count]] = {}
        for count in self._beside:
            by_family.setdefault(count.family, []).append(count)
        for metric in self._registry.collect():
            if (added := by_family.get(metric.name)) is not None:
                metric.samples = [
                    Sample(one.name, dict(one.labels), one.value)
                    for one in add_counts(_counts_of(metric), added)
                ]
            yield metric


def _counts_of(metric: Metric) -> Iterator[Count]:
    for sample in metric.samples:
        labels = tuple(sorted(sample.labels.items()))
        yield Count(metric.name, sample.name, labels, sample.value, metric.type == "gauge")


async def _read_nothing() -> Sequence[Count]:
    return ()


class Metrics:
    """Every metric of a process, in one registry that no other process or test shares. Each is declared here once:
    name, sentence, labels. `/metrics` and `docs/reference/metrics.md` say what stands here."""

    def __init__(self) -> None:
        # A creation time beside every counter doubles the page and says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.facts: list[MetricFacts] = []
        #: Gauges that tell of one process; the others tell of the store or the disk, whoever is asked.
        self._of_process: set[str] = set()
        #: What the process beside this one has counted, where there is one.
        self.read_beside: Callable[[], Awaitable[Sequence[Count]]] = _read_nothing
        self.records_skipped = self._counter(
            "records_skipped",
            "Records that a read left out, by operation and reason (failed, missing, malformed).",
            "operation",
            "reason",
        )
        self.transitions = Labelled(
            self._counter("transitions", "State changes of submissions, by new state.", "to")
        )
        self.claims = Labelled(
            self._counter("claims", "Attempts to claim a submission, by outcome.", "outcome")
        )
        self.attempts = self._counter(
            "attempts",
            "Attempts at submissions that ended without a decision: failed or unavailable.",
            "outcome",
        )
        self.messages = Labelled(self._counter("messages", "Messages handled, by outcome.", "outcome"))
        self.recovered = self._counter("recovered", "Submissions for which recovery sent a message.")
        self.job_runs = self._counter(
            "job_runs", "Runs of scheduled jobs, by job and outcome.", "job", "outcome"
        )
        self.job_last_success = self._gauge(
            "job_last_success_timestamp_seconds", "Unix time of a scheduled job's last success.", "job"
        )
        self.notifications = self._counter(
            "notifications",
            "Notifications written for accounts, by topic: own, watched, reviews, reports, alerts.",
            "topic",
        )
        self.mails = self._counter(
            "mails",
            "Mails by form (daily, confirmation, decision, operator) and outcome: sent, not sent.",
            "form",
            "outcome",
        )
        self.content_checked_bytes = self._counter(
            "content_checked_bytes", "Bytes of stored content that the scrub has read and verified."
        )
        self.content_damaged_found = self._counter(
            "content_damaged_found", "Damaged content that was found, by kind: missing, cut, changed.", "kind"
        )
        self.content_mended = self._counter("content_mended", "Damaged content that became whole again.")
        self.content_collected = self._counter(
            "content_collected",
            "Content that no record names, by step: set aside, deleted, brought back.",
            "step",
        )
        self.queue_violations = self._gauge(
            "queue_violations",
            "Submissions that break the queue's invariant, counted at each scrape; must be 0. NaN is unknown.",
        )
        self.damaged_content = self._gauge(
            "damaged_content",
            "Pieces of stored content that are missing or damaged at each scrape; must be 0. NaN is unknown.",
        )
        self.workers_alive = self._gauge(
            "workers_alive", "Workers that gave a sign of life in the last 25 s; NaN if unknown."
        )
        self.submissions = self._gauge(
            "submissions",
            "Submissions by state, counted at each scrape; absent while the store cannot be read.",
            "state",
        )
        self.batch_in_flight = self._gauge_of_process(
            "batches_in_flight", "Batches that this worker process is handling."
        )
        self.scans = Labelled(
            self._counter("scans", "Static scans that submissions needed: scanned or cached.", "outcome")
        )
        self.judge_calls = self._counter(
            "judge_calls",
            "Requests to a judge (first or second), by outcome: answered, cached, skipped, or why it failed.",
            "judge",
            "outcome",
        )
        self.judge_tokens = self._counter(
            "judge_tokens",
            "Tokens that a judge (first or second) says it has read (prompt) and written (answer).",
            "judge",
            "kind",
        )
        self.judge_last_success = self._gauge_of_process(
            "judge_last_success_timestamp_seconds",
            "Unix time of a judge's last valid answer to this process; absent before the first.",
            "judge",
        )
        self.judge_circuit_open = self._gauge_of_process(
            "judge_circuit_open",
            "1 while this process does not ask a judge (first or second) after repeated failures.",
            "judge",
        )
        self.oldest_waiting = self._gauge(
            "oldest_waiting_seconds",
            "Seconds that the oldest waiting submission has been due; 0 if none waits, NaN if unknown.",
        )
        self.queue_messages = self._gauge(
            "queue_messages",
            "Messages in the queue at each scrape: ready, delayed or leased; absent while it cannot be read.",
            "which",
        )
        self.dead_letters = self._gauge(
            "dead_letters", "Dead letters at each scrape; NaN while the queue cannot be read."
        )
        self.job_stale = self._gauge(
            "job_stale",
            "1 for a scheduled job without a success for too long; absent while the store cannot be read.",
            "job",
        )
        self.alerts = self._gauge(
            "alerts",
            "1 for an alert that holds at the scrape; absent while the store cannot be read.",
            "alert",
        )
        self.judge_last_answer = self._gauge(
            "judge_last_answer_timestamp_seconds",
            "Unix time at which a run with an answer of a judge last ended, in any process; 0 is never, NaN unknown.",
        )
        self.stage_duration = Labelled(
            self._histogram(
                "stage_duration_seconds",
                "Seconds that submissions spent in a state before this process moved them on, by that state.",
                STAGE_BUCKETS,
                "state",
            )
        )
        self.streams_open = self._gauge("streams_open", "Event streams that are open in this process.")
        self.streams_dropped = self._counter(
            "streams_dropped", "Event streams that this process ended because the client read too slowly."
        )
        self.disk_free = self._gauge(
            "disk_free_bytes",
            "Bytes free at each scrape where this process keeps data, records or content.",
            "kept",
        )
        self.disk_size = self._gauge(
            "disk_size_bytes",
            "Size of the file system where this process keeps data, records or content.",
            "kept",
        )
        self.connections_open = self._gauge(
            "connections_open", "Client connections that are open in this process."
        )
        self.requests_running = self._gauge("requests_running", "Requests that this process is handling.")
        self.requests_waiting = self._gauge("requests_waiting", "Requests that wait for their turn.")
        self.refused = Labelled(
            self._counter(
                "refused",
                "Connections and requests that the web server refused or gave up, by the code of the reason.",
                "reason",
            )
        )
        self.http_requests = self._counter(
            "http_requests", "Requests answered, by route and status.", "route", "status"
        )
        self.http_request_duration = self._histogram(
            "http_request_duration_seconds",
            "Seconds until a response's first byte was ready, by route.",
            LATENCY_BUCKETS,
            "route",
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
            (self.damaged_content, shown.damaged),
            (self.workers_alive, shown.workers_alive),
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

    def counts(self) -> tuple[Count, ...]:
        """What this process knows and no other one."""
        return tuple(
            count
            for metric in self.registry.collect()
            if metric.type != "gauge" or metric.name in self._of_process
            for count in _counts_of(metric)
        )

    def render(self, beside: Iterable[Count] = ()) -> bytes:
        """Everything, with what the process beside this one has counted, in the text format that Prometheus scrapes."""
        return generate_latest(_Together(self.registry, beside))

    def _counter(self, name: str, sentence: str, *labels: str) -> Counter:
        self._declare(f"{name}_total", "counter", labels, sentence)
        return Counter(f"vskill_{name}", sentence, labels, registry=self.registry)

    def _gauge_of_process(self, name: str, sentence: str, *labels: str) -> Gauge:
        self._of_process.add(f"vskill_{name}")
        return self._gauge(name, sentence, *labels)

    def _gauge(self, name: str, sentence: str, *labels: str) -> Gauge:
        self._declare(name, "gauge", labels, sentence)
        return Gauge(f"vskill_{name}", sentence, labels, registry=self.registry)

    def _histogram(self, name: str, sentence: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        self._declare(name, "histogram", labels, sentence)
        return Histogram(f"vskill_{name}", sentence, labels, buckets=buckets, registry=self.registry)

    def _declare(self, name: str, kind: str, labels: tuple[str, ...], sentence: str) -> None:
        self.facts.append(MetricFacts(f"vskill_{name}", kind, labels, sentence))


def configure_logging(settings: Settings, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Send every log line of this process, other packages' included, to one stream in one form."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    stream = stream or sys.stderr
    rendering = _rendering(settings, colours=stream is not None and stream.isatty())
    out = cast("TextIO", SteadyStream(stream, functools.partial(_loss_line, rendering)))
    structlog.configure(
        processors=[*_common(), *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _route_standard_logging(rendering, out, level)
    return logger()


class SteadyStream(io.TextIOBase):
    """Where log lines and the start-up banner go. A write that fails (the disk is full, the reader has gone, the stream
    was never open) is dropped and counted, and does not end the work that it tells of. The first write that succeeds
    again is preceded by the line that `describe_loss` makes of the count.

    It writes to the descriptor itself: a failed line must not stay in a buffer, to fail again at exit.
    """

    def __init__(self, out: TextIO | None, describe_loss: Callable[[int], str] = lambda _: "") -> None:
        self._out = out
        self._describe_loss = describe_loss
        self._lock = threading.Lock()
        self._lost = 0
        #: The last write stopped in the middle of a line.
        self._cut = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return getattr(self._out, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        with self._lock:
            if self._lost and self._try_write(self._describe_loss(self._lost)):
                self._lost = 0
            if self._lost or not self._try_write(text):
                self._lost += 1
        return len(text)

    def isatty(self) -> bool:
        return self._out is not None and self._out.isatty()

    def _try_write(self, text: str) -> bool:
        if self._out is None:
            return False
        try:
            self._write_bytes(self._out.fileno(), text.encode(self.encoding, "backslashreplace"))
        except io.UnsupportedOperation:  # not a file of the system, as in tests
            return self._try_write_text(self._out, text)
        except (OSError, ValueError):
            return False
        return True

    def _write_bytes(self, descriptor: int, data: bytes) -> None:
        rest = b"\n" + data if self._cut else data
        while rest:
            rest = rest[os.write(descriptor, rest) :]
            self._cut = bool(rest)

    def _try_write_text(self, out: TextIO, text: str) -> bool:
        try:
            out.write(text)
        except (OSError, ValueError):
            return False
        return True


def _loss_line(rendering: Sequence[Processor], lost: int) -> str:
    """What a log says in place of lines that could not be written, in the form of all others."""
    event: Any = {"event": "log lines could not be written", "lines": lost}
    for process in (*_common()[1:], *rendering):
        event = process(None, "warning", event)
    return f"{event}\n"


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


def _rendering(settings: Settings, *, colours: bool) -> list[Processor]:
    if settings.log_format == "json":
        # Local variables of a traceback may hold tokens, so they stay out of the log.
        transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(transform),
            structlog.processors.JSONRenderer(default=str),
        ]
    return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)]


def _route_standard_logging(rendering: Sequence[Processor], out: TextIO, level: int) -> None:
    """Give the lines of packages that use the standard library (uvicorn, asyncio) the same form."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_common(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *rendering,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.INFO))

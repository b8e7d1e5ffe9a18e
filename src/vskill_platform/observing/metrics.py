"""The metrics of a process, in a registry of their own."""

import enum
import itertools
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
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

#: What `/metrics` answers with.
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Seconds; from a read by key to the longest request that a client still waits for.
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: Seconds; from a scan that was cached to work that waited for a day.
STAGE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0)

M = TypeVar("M", Counter, Histogram)
D = TypeVar("D")


class Merge(enum.Enum):
    """How processes that answer as one show a gauge that each has."""

    ADD = enum.auto()
    GREATEST = enum.auto()


class Labelled(Generic[M]):
    """A metric that is raised often: its child for a label comes from a dict. The few values of a label are constants
    in the code, so the dict stays small."""

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


class Count(msgspec.Struct, frozen=True, array_like=True):
    """One count of a process, which the process beside it adds to its own."""

    family: str
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    #: Whether it tells of the process as it is now; otherwise it only grows.
    is_gauge: bool


def add_counts(*several: Iterable[Count]) -> tuple[Count, ...]:
    """Merge counts: counters are added, and gauges of what each process has some of; of other gauges the greater one
    wins."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Count] = {}
    for count in itertools.chain.from_iterable(several):
        key = count.name, count.labels
        if (other := found.get(key)) is None:
            found[key] = count
        else:
            greater = count.is_gauge and count.family not in _ADDED_GAUGES
            value = max(other.value, count.value) if greater else other.value + count.value
            found[key] = msgspec.structs.replace(count, value=value)
    return tuple(found.values())


def without_gauges(counts: Iterable[Count]) -> tuple[Count, ...]:
    """The counts of a process that has ended."""
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


class DeclaredMetric(Generic[D]):
    """A metric that every `Metrics` has. It is named like its attribute unless `name` says otherwise."""

    def __init__(
        self,
        make: Callable[..., Any],
        sentence: str,
        *labels: str,
        name: str = "",
        of_process: Merge | None = None,
        busy: bool = False,
        **options: Any,
    ) -> None:
        self.kind = make.__name__.lower()
        self.sentence = sentence
        self.labels = labels
        #: How a gauge of one process is merged with those of others; one without it describes the store or the disk,
        #: whichever process is asked.
        self.of_process = of_process
        self._make = make
        self._own_name = name
        self._busy = busy
        self._options = options

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute
        self.family = f"vskill_{self._own_name or attribute}"

    @property
    def name(self) -> str:
        """As `/metrics` shows it."""
        return f"{self.family}_total" if self.kind == "counter" else self.family

    def add_to(self, metrics: "Metrics") -> None:
        made = self._make(self.family, self.sentence, self.labels, registry=metrics.registry, **self._options)
        setattr(metrics, self._attribute, Labelled(made) if self._busy else made)

    def __get__(self, metrics: "Metrics", owner: type) -> D:
        """Only for the type checker: an instance has the metric itself under this name."""
        raise AttributeError(self._attribute)


def _counter(sentence: str, *labels: str) -> DeclaredMetric[Counter]:
    return DeclaredMetric(Counter, sentence, *labels)


def _busy_counter(sentence: str, label: str) -> DeclaredMetric[Labelled[Counter]]:
    return DeclaredMetric(Counter, sentence, label, busy=True)


def _gauge(
    sentence: str, *labels: str, name: str = "", of_process: Merge | None = None
) -> DeclaredMetric[Gauge]:
    return DeclaredMetric(Gauge, sentence, *labels, name=name, of_process=of_process)


class Metrics:
    """Every metric of a process, in one registry that no other process or test shares. Each is declared here once:
    sentence and labels. `/metrics` and `docs/reference/metrics.md` are made of that."""

    records_skipped = _counter(
        "Records that a read left out, by operation and reason (failed, missing, malformed).",
        "operation",
        "reason",
    )
    transitions = _busy_counter("State changes of submissions, by new state.", "to")
    claims = _busy_counter("Attempts to claim a submission, by outcome.", "outcome")
    attempts = _counter(
        "Attempts at submissions that ended without a decision: failed or unavailable.", "outcome"
    )
    messages = _busy_counter("Messages handled, by outcome.", "outcome")
    policy_rule_failures = _counter(
        "Rules of the policy that could not be evaluated, and so asked for a reviewer."
    )
    followed_folders = _counter(
        "Folders of followed repositories, by what a check found: new, changed, gone, refused.", "what"
    )
    push_deliveries = _counter(
        "Deliveries of push webhooks, by forge and outcome: checked, ignored, repeated, refused, unsigned.",
        "forge",
        "outcome",
    )
    recovered = _counter("Submissions for which recovery sent a message.")
    job_runs = _counter("Runs of scheduled jobs, by job and outcome.", "job", "outcome")
    job_last_success = _gauge(
        "Unix time of a scheduled job's last success.", "job", name="job_last_success_timestamp_seconds"
    )
    notifications = _counter(
        "Notifications written for accounts, by topic: own, watched, reviews, reports, alerts.", "topic"
    )
    mails = _counter(
        "Mails by form (daily, confirmation, decision, operator) and outcome: sent, not sent.",
        "form",
        "outcome",
    )
    content_requests = _counter(
        "Requests to the S3 server that keeps the content, by kind: put, get, head, copy, delete, list.",
        "kind",
    )
    content_checked_bytes = _counter("Bytes of stored content that the scrub has read and verified.")
    content_damaged_found = _counter(
        "Damaged content that was found, by kind: missing, cut, changed.", "kind"
    )
    content_mended = _counter("Damaged content that became whole again.")
    content_collected = _counter(
        "Content that no record names, by step: set aside, deleted, brought back.", "step"
    )
    queue_violations = _gauge(
        "Submissions that break the queue's invariant, counted at each scrape; must be 0. NaN is unknown."
    )
    damaged_content = _gauge(
        "Pieces of stored content that are missing or damaged at each scrape; must be 0. NaN is unknown."
    )
    workers_alive = _gauge("Workers that gave a sign of life in the last 25 s; NaN if unknown.")
    submissions = _gauge(
        "Submissions by state, counted at each scrape; absent while the store cannot be read.", "state"
    )
    batch_in_flight = _gauge(
        "Batches that this worker process is handling.", name="batches_in_flight", of_process=Merge.ADD
    )
    scans = _busy_counter("Static scans that submissions needed: scanned or cached.", "outcome")
    judge_calls = _counter(
        "Requests to a judge (first or second), by outcome: answered, cached, skipped, or why it failed.",
        "judge",
        "outcome",
    )
    judge_tokens = _counter(
        "Tokens that a judge (first or second) says it has read (prompt) and written (answer).",
        "judge",
        "kind",
    )
    judge_last_success = _gauge(
        "Unix time of a judge's last valid answer to this process; absent before the first.",
        "judge",
        name="judge_last_success_timestamp_seconds",
        of_process=Merge.GREATEST,
    )
    judge_circuit_open = _gauge(
        "1 while this process does not ask a judge (first or second) after repeated failures.",
        "judge",
        of_process=Merge.GREATEST,
    )
    oldest_waiting = _gauge(
        "Seconds that the oldest waiting submission has been due; 0 if none waits, NaN if unknown.",
        name="oldest_waiting_seconds",
    )
    queue_messages = _gauge(
        "Messages in the queue at each scrape: ready, delayed or leased; absent while it cannot be read.",
        "which",
    )
    dead_letters = _gauge("Dead letters at each scrape; NaN while the queue cannot be read.")
    job_stale = _gauge(
        "1 for a scheduled job without a success for too long; absent while the store cannot be read.", "job"
    )
    alerts = _gauge(
        "1 for an alert that holds at the scrape; absent while the store cannot be read.", "alert"
    )
    judge_last_answer = _gauge(
        "Unix time at which a run with an answer of a judge last ended, in any process; 0 is never, NaN unknown.",
        name="judge_last_answer_timestamp_seconds",
    )
    stage_duration: DeclaredMetric[Labelled[Histogram]] = DeclaredMetric(
        Histogram,
        "Seconds that submissions spent in a state before this process moved them on, by that state.",
        "state",
        name="stage_duration_seconds",
        buckets=STAGE_BUCKETS,
        busy=True,
    )
    streams_open = _gauge("Event streams that are open.", of_process=Merge.ADD)
    streams_dropped = _counter("Event streams that were ended because the client read too slowly.")
    disk_free = _gauge(
        "Bytes free at each scrape where this process keeps data, records or content.",
        "kept",
        name="disk_free_bytes",
    )
    disk_size = _gauge(
        "Size of the file system where this process keeps data, records or content.",
        "kept",
        name="disk_size_bytes",
    )
    connections_open = _gauge("Client connections that are open.", of_process=Merge.ADD)
    requests_running = _gauge("Requests that are being handled.", of_process=Merge.ADD)
    requests_waiting = _gauge("Requests that wait for their turn.", of_process=Merge.ADD)
    refused = _busy_counter(
        "Connections and requests that the web server refused or gave up, by the code of the reason.",
        "reason",
    )
    refusals = _counter(
        "Requests, sign-ins and tokens that were refused and that the audit counts: to an account or anonymous.",
        "to",
    )
    http_requests = _counter("Requests answered, by route and status.", "route", "status")
    http_request_duration: DeclaredMetric[Histogram] = DeclaredMetric(
        Histogram,
        "Seconds until a response's first byte was ready, by route.",
        "route",
        name="http_request_duration_seconds",
        buckets=LATENCY_BUCKETS,
    )

    def __init__(self) -> None:
        # Creation times of counters would double the page and are not needed.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        #: What the process beside this one has counted, where there is one.
        self.read_beside: Callable[[], Awaitable[Sequence[Count]]] = _read_nothing
        for metric in DECLARED:
            metric.add_to(self)

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
        """The metrics that only this process knows."""
        return tuple(
            count
            for metric in self.registry.collect()
            if metric.type != "gauge" or metric.name in _OF_PROCESS
            for count in _counts_of(metric)
        )

    def render(self, beside: Iterable[Count] = ()) -> bytes:
        """Everything, with what the process beside this one has counted, in the text format that Prometheus scrapes."""
        return generate_latest(_Together(self.registry, beside))


#: Every metric, in the order of its declaration.
DECLARED: tuple[DeclaredMetric[Any], ...] = tuple(
    one for one in vars(Metrics).values() if isinstance(one, DeclaredMetric)
)
_OF_PROCESS = frozenset(metric.family for metric in DECLARED if metric.of_process)
_ADDED_GAUGES = frozenset(metric.family for metric in DECLARED if metric.of_process is Merge.ADD)

"""What an operator must look at, computed from the records and the queue alone: no worker need be alive to say that
none is (B7). `queue.health` gathers the facts; pages, metrics and the API show the answer.

An alert is true now, and gone when its cause is; nothing is remembered between two looks.
"""

import enum
from collections.abc import Iterator, Sequence

import msgspec

from vskill_core.errors import QueueUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences, Everything
from vskill_platform.domain.messages import Body, SubmissionMessage, TaskMessage, decode_body
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.domain.verdicts.brake import Brake
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.machine.disk_space import DiskSpace
from vskill_platform.notifications.deliveries import DELIVERY
from vskill_platform.notifications.notices import is_alert_id
from vskill_platform.notifications.telling import TELL
from vskill_platform.queue.job_health import JobHealth
from vskill_platform.records import readable
from vskill_platform.store.submissions.statistics import JudgeWatch
from vskill_platform.store.telling.notifications import MAIL
from vskill_platform.worker_context import require_env

#: Dead letters that are younger than this are a queue that loses work now.
RECENT_MS = 3_600_000
#: A claim is renewed by writes: those that take this share of its time put it at risk.
SLOW_MS = CLAIM_MS // 15
#: Preparing a namespace takes seconds; the job that finishes it runs every ten.
PREPARING_MS = 600_000
#: Dead letters that are looked at one by one; there are never many, and beyond it the number is "at least".
MOST_LETTERS = 1_000
#: Where the documents say what to do about each alert, in a section with its name.
REMEDIES = "/docs/docs/how-to/operate-the-queue.md#"
#: Tasks that tell of one thing each.
_TELLING = frozenset({DELIVERY, MAIL, TELL})


class AlertCode(enum.StrEnum):
    """Every alert there is, by the name that metrics and programs know it by."""

    STORE_REPLACED = "store_replaced"
    NO_WORKER = "no_worker"
    WORKER_LACKS = "worker_lacks"
    QUEUE_AWAY = "queue_away"
    OLDEST_WAITING = "oldest_waiting"
    NO_COMPLETION = "no_completion"
    SCHEDULE_STOPPED = "schedule_stopped"
    JOB_STALE = "job_stale"
    DEAD_LETTERS_GROWING = "dead_letters_growing"
    JUDGE_STALE = "judge_stale"
    NAMESPACE_PREPARING = "namespace_preparing"
    RESCANS_STOPPED = "rescans_stopped"
    CONTENT_DAMAGED = "content_damaged"
    DISK_FILLING = "disk_filling"
    SLOW_WRITES = "slow_writes"

    @property
    def meaning(self) -> str:
        """When it holds."""
        return MEANING[self]


MEANING: dict[AlertCode, str] = {
    AlertCode.STORE_REPLACED: "a file of the record store was deleted or replaced while the web process had it open",
    AlertCode.NO_WORKER: "no worker has given a sign of life for 25 s",
    AlertCode.QUEUE_AWAY: "the queue's server does not answer; submissions are accepted and kept",
    AlertCode.WORKER_LACKS: "a worker lacks temporary files, child processes, git, the scanner or a store",
    AlertCode.SCHEDULE_STOPPED: "no scheduled job has started for a minute, and no_worker does not hold",
    AlertCode.OLDEST_WAITING: "a submission has waited longer than the stuck threshold, and the queue is not paused; "
    "not while no worker can work",
    AlertCode.NO_COMPLETION: "as oldest_waiting, and no run has ended for as long: perhaps no worker is alive",
    AlertCode.JOB_STALE: "a scheduled job has not succeeded for three intervals and its budget, while others start",
    AlertCode.DEAD_LETTERS_GROWING: "a message became a dead letter within the last hour, unless it told of an alert",
    AlertCode.NAMESPACE_PREPARING: "a namespace that is to be hidden has waited for its records for ten minutes",
    AlertCode.RESCANS_STOPPED: "new rules would take down more than 1 % of the live skills; an admin must look first",
    AlertCode.CONTENT_DAMAGED: "stored files of a version or a submission are missing or damaged",
    AlertCode.DISK_FILLING: "a disk with records or content has less than 2 GiB free",
    AlertCode.SLOW_WRITES: "a worker's last write to the record store took a second or more; a claim lasts 15",
    AlertCode.JUDGE_STALE: "most of the last runs that asked a judge got no answer of one",
}


class Alert(msgspec.Struct, frozen=True):
    """One thing that is wrong now."""

    code: AlertCode
    #: What is wrong and what to look at, in a sentence.
    text: str
    #: What it is about, where there can be several: the job's name.
    subject: str = ""

    @property
    def remedy(self) -> str:
        """The section of the documents that says what to do, as a path of the registry."""
        return REMEDIES + self.code


class DeadLetters(msgspec.Struct, frozen=True):
    """How many messages were set aside for a person."""

    total: int
    #: Within the last hour. Those that were to tell of an alert are left out: each would raise another one.
    recent: int


class AlertFacts(msgspec.Struct, frozen=True):
    """What the alerts are computed from."""

    stuck_threshold_ms: int
    oldest_waiting_ms: int | None
    stalled: bool
    paused: bool
    jobs: tuple[JobHealth, ...]
    #: Or why the queue could not be asked.
    dead_letters: DeadLetters | QueueUnavailable
    judge: JudgeWatch
    #: Why this process cannot write any more; None where it can.
    store_replaced: str | None = None
    #: Why nobody is there to work; None where somebody is.
    deserted: str | None = None
    #: What keeps workers from working, in a sentence; None where nothing does.
    lacking: str | None = None
    #: No worker can work, for one of these two reasons.
    idle: bool = False
    #: No scheduled job has started lately, so none of them can have succeeded.
    schedule_stopped: bool = False
    #: How long the last write took that a worker measured.
    write_ms: int = 0
    #: How long a namespace has been prepared, the longest; None where none is.
    preparing_ms: int | None = None
    #: The rule set that stopped before its first take-down; None where none has.
    brake: Brake | None = None
    #: How many pieces of stored content are missing or damaged.
    damaged: int = 0
    #: Disks with less room than the settings ask for.
    filling: tuple[DiskSpace, ...] = ()


async def look_at_dead_letters(audiences: Audiences) -> DeadLetters | QueueUnavailable:
    """Return the error instead of raising it: an unreachable queue must not hide the health of the records."""
    try:
        return await count_dead_letters(audiences)
    except QueueUnavailable as error:
        return error


async def count_dead_letters(audiences: Audiences) -> DeadLetters:
    """All of them by the queue's own count, the recent ones one by one. For who may not read everything, those that are
    about a submission that they may read."""
    env = require_env("broker")
    total = await env.broker.dead_letter_count()
    if not total:
        return DeadLetters(0, 0)
    since = env.kv.now() - RECENT_MS
    seen = shown = recent = 0
    after: int | None = None
    while seen < MOST_LETTERS:
        page = await env.broker.dead_letters(after=after)
        seen += len(page.items)
        letters = await _readable_letters(page.items, audiences)
        shown += len(letters)
        recent += sum(letter.died_at >= since and not _tells_of_alert(letter) for letter in letters)
        after = page.after
        if after is None:
            break
    return DeadLetters(total if isinstance(audiences, Everything) else shown, recent)


async def _readable_letters(letters: Sequence[DeadLetter], audiences: Audiences) -> Sequence[DeadLetter]:
    if isinstance(audiences, Everything):
        return letters
    about = {letter.id: key for letter in letters if (key := _submission_key(letter)) is not None}
    settled = await require_env("kv").kv.get_many(about.values())
    for error in settled.failed.values():
        raise error
    found = {key for key, entry in settled.found.items() if readable(entry, audiences)}
    return [letter for letter in letters if about.get(letter.id) in found]


def _submission_key(letter: DeadLetter) -> str | None:
    """The record of the submission that it is about; None for everything else, whose texts can hold any name."""
    body = _body(letter)
    return keys.sub(body.submission_id) if isinstance(body, SubmissionMessage) else None


def _tells_of_alert(letter: DeadLetter) -> bool:
    """The id of a task that tells of something ends with the id of the notice."""
    body = _body(letter)
    return isinstance(body, TaskMessage) and body.task in _TELLING and is_alert_id(body.id.rpartition(":")[2])


def _body(letter: DeadLetter) -> Body | None:
    try:
        return decode_body(letter.body)
    except msgspec.DecodeError:
        return None


def find_alerts(facts: AlertFacts) -> tuple[Alert, ...]:
    """Every alert that holds, the gravest first."""
    return (
        *_of_the_store(facts),
        *_of_disks(facts),
        *_of_writes(facts),
        *_of_content(facts),
        *_of_workers(facts),
        *_of_the_queue(facts),
        *_of_the_line(facts),
        *_of_jobs(facts),
        *_of_the_judge(facts),
        *_of_namespaces(facts),
        *_of_rescans(facts),
    )


def _of_the_store(facts: AlertFacts) -> Iterator[Alert]:
    if facts.store_replaced is not None:
        yield Alert(AlertCode.STORE_REPLACED, facts.store_replaced)


def _of_writes(facts: AlertFacts) -> Iterator[Alert]:
    if facts.write_ms >= SLOW_MS:
        text = (
            f"Writes to the record store take {facts.write_ms / 1000:.1f} s, and claims last {CLAIM_MS // 1000} s. "
            "Look at the store's disk or server: work is slow, and some of it is done again."
        )
        yield Alert(AlertCode.SLOW_WRITES, text)


def _of_content(facts: AlertFacts) -> Iterator[Alert]:
    if facts.damaged:
        text = f"{facts.damaged} pieces of stored content are missing or damaged; /admin/content lists them."
        yield Alert(AlertCode.CONTENT_DAMAGED, text)


def _of_workers(facts: AlertFacts) -> Iterator[Alert]:
    if facts.deserted is not None:
        yield Alert(AlertCode.NO_WORKER, facts.deserted)
    if facts.lacking is not None:
        yield Alert(AlertCode.WORKER_LACKS, facts.lacking)


def _of_disks(facts: AlertFacts) -> Iterator[Alert]:
    for disk in facts.filling:
        text = (
            f"Only {disk.free_bytes // 1_048_576:,} MiB are free for {disk.kept}. Make room, or enlarge the disk: once "
            "it is full, nothing can be submitted."
        )
        yield Alert(AlertCode.DISK_FILLING, text, disk.kept)


def _of_the_line(facts: AlertFacts) -> Iterator[Alert]:
    """Where no worker can work, an alert says that, and this would say it again."""
    waited = facts.oldest_waiting_ms
    if facts.paused or facts.idle or waited is None:
        return
    minutes = waited // 60_000
    if facts.stalled:
        text = f"Work has waited for {minutes} min and nothing has ended since; are workers running?"
        yield Alert(AlertCode.NO_COMPLETION, text)
    if waited > facts.stuck_threshold_ms:
        text = f"The oldest submission has waited for {minutes} min; start more workers, or look for a stuck one."
        yield Alert(AlertCode.OLDEST_WAITING, text)


def _of_jobs(facts: AlertFacts) -> Iterator[Alert]:
    """One for each job that fails; one alone where nobody runs them, and none beside the worker that ran them too."""
    if facts.schedule_stopped:
        if facts.deserted is None:
            text = "No scheduled job has started for a minute. Start the schedule: vskill-platform schedule."
            yield Alert(AlertCode.SCHEDULE_STOPPED, text)
        return
    for job in facts.jobs:
        if job.stale:
            error = f"; its last error: {job.last_error}" if job.last_error else ""
            never = "has never succeeded" if job.last_success is None else "has not succeeded for too long"
            text = f"The job {job.name} {never}{error}. Until it does, {job.consequence}."
            yield Alert(AlertCode.JOB_STALE, text, job.name)


def _of_the_queue(facts: AlertFacts) -> Iterator[Alert]:
    letters = facts.dead_letters
    if isinstance(letters, QueueUnavailable):
        text = f"The queue's server does not answer; new submissions wait for it. {letters.public_message}"
        yield Alert(AlertCode.QUEUE_AWAY, text)
    elif letters.recent:
        text = f"{letters.recent} dead letters in the last hour, {letters.total} in total; find the cause, then replay."
        yield Alert(AlertCode.DEAD_LETTERS_GROWING, text)


def _of_the_judge(facts: AlertFacts) -> Iterator[Alert]:
    judge = facts.judge
    if judge.failing:
        text = f"A judge failed in {judge.failed} of the last {judge.failed + judge.answered} runs that asked one."
        yield Alert(AlertCode.JUDGE_STALE, text)


def _of_namespaces(facts: AlertFacts) -> Iterator[Alert]:
    """Without its name: everybody reads the alerts."""
    if facts.preparing_ms is not None and facts.preparing_ms > PREPARING_MS:
        minutes = facts.preparing_ms // 60_000
        text = f"A namespace has been prepared for {minutes} min and is not hidden yet; look at the job namespaces."
        yield Alert(AlertCode.NAMESPACE_PREPARING, text)


def _of_rescans(facts: AlertFacts) -> Iterator[Alert]:
    brake = facts.brake
    if brake is not None and brake.holds:
        text = (
            f"The rules {brake.ruleset} would take down {brake.skills} of {brake.live} live skills; none is taken down "
            "until an admin looks at the list and continues."
        )
        yield Alert(AlertCode.RESCANS_STOPPED, text, brake.ruleset)

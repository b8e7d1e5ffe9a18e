"""What an operator must look at, computed from the records and the queue alone, so the alert that no worker is alive
needs no live worker (B7). `queue.health` gathers the facts; pages, metrics and the API show the answer.

An alert holds while its cause does; nothing is remembered between two looks.
"""

import enum
from collections.abc import Iterator, Sequence
from typing import Self

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.messages import Body, SubmissionMessage, TaskMessage, decode_body
from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.domain.verdicts.brake import Brake
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.machine.disk_space import DiskSpace
from vskill_platform.notifications.deliveries import DELIVERY
from vskill_platform.notifications.notices import is_alert_id
from vskill_platform.notifications.telling import TELL
from vskill_platform.queue.control import Pause
from vskill_platform.queue.job_health import JobHealth
from vskill_platform.records import read_entries, readable
from vskill_platform.store.operation.workers import WorkersSeen
from vskill_platform.store.submissions.statistics import JudgeWatch
from vskill_platform.store.telling.notifications import MAIL
from vskill_platform.worker_context import require_env

#: Dead letters younger than this raise an alert: the queue is failing now.
RECENT_MS = 3_600_000
#: A claim is renewed by a write, so writes that take this share of its length put it at risk.
SLOW_MS = CLAIM_MS // 15
#: Preparing a namespace takes seconds; the job that finishes it runs every ten.
PREPARING_MS = 600_000
#: At most this many dead letters are read one by one; beyond it the number is "at least".
MOST_LETTERS = 1_000
#: Where the documents say what to do about each alert, in a section with its name.
REMEDIES = "/docs/docs/how-to/operate-the-queue.md#"
#: Tasks that send notices or notifications.
_TELLING = frozenset({DELIVERY, MAIL, TELL})


class AlertCode(enum.StrEnum):
    """Every alert there is, by the name that metrics and programs know it by, and when it holds."""

    _value_: str
    meaning: str

    def __new__(cls, code: str, meaning: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    STORE_REPLACED = (
        "store_replaced",
        "a file of the record store was deleted or replaced while the web process had it open",
    )
    NO_WORKER = "no_worker", "no worker has given a sign of life for 25 s"
    WORKER_LACKS = (
        "worker_lacks",
        "a worker lacks temporary files, child processes, git, the scanner or a store",
    )
    QUEUE_AWAY = "queue_away", "the queue's server does not answer; submissions are accepted and kept"
    OLDEST_WAITING = (
        "oldest_waiting",
        (
            "a submission has waited longer than the stuck threshold, and the queue is not paused; not while no "
            "worker can work"
        ),
    )
    NO_COMPLETION = (
        "no_completion",
        "as oldest_waiting, and no run has ended for as long: perhaps no worker is alive",
    )
    SCHEDULE_STOPPED = (
        "schedule_stopped",
        "no scheduled job has started for a minute, and no_worker does not hold",
    )
    JOB_STALE = (
        "job_stale",
        "a scheduled job has not succeeded for three intervals and its budget, while others start",
    )
    DEAD_LETTERS_GROWING = (
        "dead_letters_growing",
        "a message became a dead letter within the last hour, unless it told of an alert",
    )
    JUDGE_STALE = "judge_stale", "most of the last runs that asked a judge got no answer of one"
    NAMESPACE_PREPARING = (
        "namespace_preparing",
        "a namespace that is to be hidden has waited for its records for ten minutes",
    )
    RESCANS_STOPPED = (
        "rescans_stopped",
        "new rules would take down more than 1 % of the live skills; an admin must look first",
    )
    POLICY_RULE_FAILS = (
        "policy_rule_fails",
        "a rule of the policy in force could not be evaluated yesterday or today, or the policy cannot be read",
    )
    CONTENT_DAMAGED = "content_damaged", "stored files of a version or a submission are missing or damaged"
    DISK_FILLING = "disk_filling", "a disk with records or content has less than 2 GiB free"
    SLOW_WRITES = (
        "slow_writes",
        "a worker's last write to the record store took a second or more; a claim lasts 15",
    )


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


class WorkState(msgspec.Struct, frozen=True):
    """Whether work is done, and if not, why."""

    #: Something has waited for the stuck threshold, nothing has ended for as long, and nobody paused it (B7).
    stalled: bool
    #: No scheduled job has started lately, so none of them can have succeeded.
    schedule_stopped: bool
    #: Why nobody is there to work; None where somebody is.
    deserted: str | None
    #: What keeps workers from working, in a sentence; None where nothing does.
    lacking: str | None
    #: No worker can work, for one of these two reasons.
    idle: bool


class CooldownState(msgspec.Struct, frozen=True):
    """What waits by a rule of the policy."""

    count: int
    #: When the next of them is decided.
    next_at: int | None


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the records, the queue and the workers found: what the alerts are computed from."""

    #: When it was, on the store's clock.
    at: int
    stuck_threshold_ms: int
    #: Milliseconds since the submission that waits longest was due; None where none waits.
    oldest_waiting_ms: int | None
    #: When a run last ended, by the records; None where none has.
    last_ended_at: int | None
    pause: Pause | None
    jobs: tuple[JobHealth, ...]
    workers: WorkersSeen
    work: WorkState
    #: Why this process cannot write any more; None where it can.
    store_replaced: str | None
    #: Disks with less room than the settings ask for.
    filling: tuple[DiskSpace, ...]
    #: None where the queue could not be asked; `queue_away` says why.
    dead_letters: DeadLetters | None
    queue_away: str | None
    judge: JudgeWatch
    #: How long a namespace has been prepared, the longest; None where none is.
    preparing_ms: int | None
    #: The rule set that stopped before its first take-down; None where none has.
    brake: Brake | None
    #: Rules of the policy that cannot be evaluated, each of which sends skills to a reviewer.
    failing_rules: tuple[str, ...] = ()
    #: None where nothing waits by a rule of the policy. Meant, so never an alert.
    cooldown: CooldownState | None = None
    #: Pieces of stored content that are missing or damaged; each is a violation too.
    damaged: int = 0


async def count_dead_letters(audiences: Audiences) -> DeadLetters:
    """The queue counts the total; recent ones are read one by one. Readers who may not read everything get only those
    about submissions that they may read."""
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
    stored = await read_entries(about.values())
    found = {key for key, entry in stored.items() if readable(entry, audiences)}
    return [letter for letter in letters if about.get(letter.id) in found]


def _submission_key(letter: DeadLetter) -> str | None:
    """The key of the submission that the letter is about; None for other letters, whose texts can hold any name."""
    body = _body(letter)
    return keys.sub(body.submission_id) if isinstance(body, SubmissionMessage) else None


def _tells_of_alert(letter: DeadLetter) -> bool:
    """Such a task's id ends with the id of its notice."""
    body = _body(letter)
    return isinstance(body, TaskMessage) and body.task in _TELLING and is_alert_id(body.id.rpartition(":")[2])


def _body(letter: DeadLetter) -> Body | None:
    try:
        return decode_body(letter.body)
    except msgspec.DecodeError:
        return None


def find_alerts(look: QueueState) -> tuple[Alert, ...]:
    return (*_of_storage(look), *_of_the_queue(look), *_of_jobs(look), *_of_decisions(look))


def _of_storage(look: QueueState) -> Iterator[Alert]:
    if look.store_replaced is not None:
        yield Alert(AlertCode.STORE_REPLACED, look.store_replaced)
    for disk in look.filling:
        text = (
            f"Only {disk.free_bytes // 1_048_576:,} MiB are free for {disk.kept}. Make room, or enlarge the disk: once "
            "it is full, nothing can be submitted."
        )
        yield Alert(AlertCode.DISK_FILLING, text, disk.kept)
    write_ms = look.workers.write_ms
    if write_ms >= SLOW_MS:
        text = (
            f"Writes to the record store take {write_ms / 1000:.1f} s, and claims last {CLAIM_MS // 1000} s. "
            "Look at the store's disk or server: work is slow, and some of it is done again."
        )
        yield Alert(AlertCode.SLOW_WRITES, text)
    if look.damaged:
        text = f"{look.damaged} pieces of stored content are missing or damaged; /admin/content lists them."
        yield Alert(AlertCode.CONTENT_DAMAGED, text)


def _of_the_queue(look: QueueState) -> Iterator[Alert]:
    work, letters = look.work, look.dead_letters
    if work.deserted is not None:
        yield Alert(AlertCode.NO_WORKER, work.deserted)
    if work.lacking is not None:
        yield Alert(AlertCode.WORKER_LACKS, work.lacking)
    if letters is None:
        text = f"The queue's server does not answer; new submissions wait for it. {look.queue_away}"
        yield Alert(AlertCode.QUEUE_AWAY, text)
    elif letters.recent:
        text = f"{letters.recent} dead letters in the last hour, {letters.total} in total; find the cause, then replay."
        yield Alert(AlertCode.DEAD_LETTERS_GROWING, text)
    waited = look.oldest_waiting_ms
    # Where no worker can work, another alert already says so.
    if look.pause is not None or work.idle or waited is None:
        return
    minutes = waited // 60_000
    if work.stalled:
        text = f"Work has waited for {minutes} min and nothing has ended since; are workers running?"
        yield Alert(AlertCode.NO_COMPLETION, text)
    if waited > look.stuck_threshold_ms:
        text = f"The oldest submission has waited for {minutes} min; start more workers, or look for a stuck one."
        yield Alert(AlertCode.OLDEST_WAITING, text)


def _of_jobs(look: QueueState) -> Iterator[Alert]:
    """One alert per failing job; only one if no schedule runs, and none if no worker is alive either."""
    if look.work.schedule_stopped:
        if look.work.deserted is None:
            text = "No scheduled job has started for a minute. Start the schedule: vskill-platform schedule."
            yield Alert(AlertCode.SCHEDULE_STOPPED, text)
        return
    for job in look.jobs:
        if job.stale:
            error = f"; its last error: {job.last_error}" if job.last_error else ""
            never = "has never succeeded" if job.last_success is None else "has not succeeded for too long"
            text = f"The job {job.name} {never}{error}. Until it does, {job.consequence}."
            yield Alert(AlertCode.JOB_STALE, text, job.name)


def _of_decisions(look: QueueState) -> Iterator[Alert]:
    judge, brake = look.judge, look.brake
    if judge.failing:
        text = f"A judge failed in {judge.failed} of the last {judge.failed + judge.answered} runs that asked one."
        yield Alert(AlertCode.JUDGE_STALE, text)
    if look.preparing_ms is not None and look.preparing_ms > PREPARING_MS:
        # Without the namespace's name: everybody may read alerts.
        minutes = look.preparing_ms // 60_000
        text = f"A namespace has been prepared for {minutes} min and is not hidden yet; look at the job namespaces."
        yield Alert(AlertCode.NAMESPACE_PREPARING, text)
    if brake is not None and brake.holds:
        text = (
            f"The rules {brake.ruleset} would take down {brake.skills} of {brake.live} live skills; none is taken down "
            "until an admin looks at the list and continues."
        )
        yield Alert(AlertCode.RESCANS_STOPPED, text, brake.ruleset)
    for rule in look.failing_rules:
        text = f"The policy's rule {rule} cannot be evaluated, so skills go to a reviewer; /admin/policy changes it."
        yield Alert(AlertCode.POLICY_RULE_FAILS, text, rule)

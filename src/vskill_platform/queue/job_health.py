"""What each scheduled job is for, how often it is due, what goes wrong without it, and its health by its record.
`jobs` holds the functions; this module does not import them, so that one job can look at the health of all."""

from collections.abc import Sequence

import msgspec

from vskill_platform.store.operation.jobs import JobRecord, read_jobs
from vskill_platform.store.skills.vocabulary import EVERY_MS as WORDS_EVERY_MS
from vskill_platform.upkeep import collector
from vskill_platform.upkeep import scrub as scrubbing
from vskill_platform.worker_context import require_env

#: A job that has not succeeded for this many intervals is stale.
STALE_INTERVALS = 3


class JobSpec(msgspec.Struct, frozen=True):
    """Everything about a job but what it does."""

    name: str
    #: One line for people.
    purpose: str
    every_ms: int
    budget_ms: int
    #: What goes wrong while it does not run.
    consequence: str


JOB_SPECS = (
    JobSpec(
        "recovery",
        "requeues submissions whose claim has expired or whose attempt is due",
        5_000,
        30_000,
        "work whose message or worker was lost, and every retry, starts late or never",
    ),
    JobSpec(
        "blocklist",
        "applies the blocklist to what is queued and published",
        10_000,
        600_000,
        "blocked skills are not published or served, but submissions and skills keep their old status",
    ),
    JobSpec(
        "policy",
        "has what waits by a rule decided again when the policy has changed",
        10_000,
        600_000,
        "what waits by a rule is decided by a new policy only when its wait is over",
    ),
    JobSpec(
        "notices",
        "queues webhooks and mail for every decision, and tells accounts what concerns them",
        2_000,
        60_000,
        "no webhook, mail or notification reports a decision",
    ),
    JobSpec(
        "alerts",
        "tells admins of alerts that began or ended",
        15_000,
        60_000,
        "no webhook, mail or notification reports an alert",
    ),
    JobSpec(
        "rescans",
        "queues rescans of versions that the current rules have not scanned",
        10_000,
        600_000,
        "new rules do not reach live skills",
    ),
    JobSpec(
        "repositories",
        "queues a daily check of followed repositories and those of live skills",
        10_000,
        60_000,
        "new commits and vanished repositories are not noticed",
    ),
    JobSpec(
        "upstreams",
        "queues a daily look at each upstream",
        60_000,
        60_000,
        "new and changed skills of upstreams are not noticed",
    ),
    JobSpec(
        "external-scans",
        "queues scans of published versions by other analysers",
        5_000,
        600_000,
        "other analysers do not scan new versions",
    ),
    JobSpec(
        "namespaces",
        "finishes namespaces that are managed for the first time",
        10_000,
        600_000,
        "a namespace whose owner began to hide it stays readable if that process died",
    ),
    JobSpec(
        "names",
        "names skills whose namespace was opened by a process that died before it could",
        3_600_000,
        600_000,
        "such skills are missing from the marketplaces and indexes of their new readers",
    ),
    JobSpec(
        "standing",
        "updates each skill's trust from installs, reports and age",
        600_000,
        600_000,
        "trust scores do not follow age, installs and reports",
    ),
    JobSpec(
        "installs",
        "takes over new installs into the lists",
        30_000,
        60_000,
        "lists show older numbers of installs than a skill's page, by ten minutes at most",
    ),
    JobSpec(
        "vocabulary",
        "counts the words of public skills, by which a search weighs words and suggests what was meant",
        WORDS_EVERY_MS,
        600_000,
        "a search takes words of new skills for rare ones, and does not suggest them",
    ),
    JobSpec(
        "answers",
        "ends submissions whose author did not answer a reviewer in time",
        600_000,
        60_000,
        "submissions wait for an author who does not answer",
    ),
    JobSpec(
        "scrub",
        "reads stored content and verifies it by its digest",
        scrubbing.EVERY_MS,
        600_000,
        "damaged content is noticed only when somebody reads it",
    ),
    JobSpec(
        "collector",
        "deletes content that no record has named for eight days",
        collector.EVERY_MS,
        3_600_000,
        "content of refused uploads stays on the disk",
    ),
    JobSpec(
        "credentials",
        "seals credentials with the newest key, and finds those that cannot be opened",
        3_600_000,
        60_000,
        "credentials stay sealed with an old key, and nobody notices that a key is missing",
    ),
    JobSpec(
        "sweep",
        "removes expired caches and changes older than seven days",
        60_000,
        60_000,
        "expired caches and old changes stay on the disk",
    ),
)


class JobHealth(JobRecord, frozen=True, kw_only=True):
    """A job's record, and how the job is doing; stale means that it has not succeeded for three intervals and its
    budget."""

    purpose: str
    consequence: str
    stale: bool


async def job_health(jobs: Sequence[JobSpec] = JOB_SPECS) -> tuple[JobHealth, ...]:
    """Every job, whether or not it ever ran."""
    now = require_env("kv").kv.now()
    records = await read_jobs(job.name for job in jobs)
    return tuple(_health(job, records[job.name], now) for job in jobs)


def _health(job: JobSpec, record: JobRecord, now: int) -> JobHealth:
    allowed = STALE_INTERVALS * job.every_ms + job.budget_ms
    stale = record.last_success is None or now - record.last_success > allowed
    facts = msgspec.structs.asdict(record)
    return JobHealth(**facts, purpose=job.purpose, consequence=job.consequence, stale=stale)

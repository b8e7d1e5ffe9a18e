"""Scheduled jobs: how each is doing, and running one now."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import JobFailed, NotFound
from vskill_platform.actions.action import NoParameters, action
from vskill_platform.actions.operation.queue import ADMIN_QUEUE, JobView
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.queue.job_health import job_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.people.audit import note

JOBS_PATH = f"{ADMIN_QUEUE}/jobs"


class RunJob(ActionRequest, frozen=True, kw_only=True):
    """A job that is to run now."""

    #: its name, as the list shows it
    job: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class JobList(Wire, frozen=True):
    """Every scheduled job."""

    jobs: tuple[JobView, ...]


class JobRun(Wire, frozen=True):
    """Whether the job has run, and how it is doing now."""

    #: false: it is running elsewhere, and was left alone
    ran: bool
    job: JobView


async def list_jobs(_request: NoParameters) -> JobList:
    return JobList(tuple(JobView.of(job) for job in await job_health()))


async def run(actor: Principal, request: RunJob) -> JobRun:
    """In this process, within the job's own budget. What a job does has commits of its own, so the audit entry is
    written before it begins."""
    job = next((job for job in JOBS if job.name == request.job), None)
    if job is None:
        known = ", ".join(job.name for job in JOBS)
        raise NotFound(f"There is no job {request.job!r}.", job=request.job, fix=f"choose one of {known}")
    await note("job run", job.name, by=actor.actor, reason="asked for it")
    outcome = await run_job(job, forced=True)
    if outcome is not None and outcome.error is not None:
        raise JobFailed(f"The job {job.name} failed: {outcome.error}", job=job.name)
    (health,) = await job_health((job,))
    return JobRun(outcome is not None, JobView.of(health))


LIST_JOBS = action(
    list_jobs,
    "job.list",
    JOBS_PATH,
    method="GET",
    right=Right.ADMIN,
    summary="List scheduled jobs with their last success and error",
    command="queue jobs list",
)
RUN_JOB = action(
    run,
    "job.run",
    f"{JOBS_PATH}/{{job}}/run",
    right=Right.ADMIN,
    errors=(NotFound, JobFailed),
    summary="Run a job now",
    about="It runs in the process that gets the request, within its time budget. Nothing happens if it already runs.",
    command="queue jobs run",
)

ACTIONS = (LIST_JOBS, RUN_JOB)

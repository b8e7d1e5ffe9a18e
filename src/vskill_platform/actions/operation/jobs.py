"""Scheduled jobs: their state, and running one now; and rescans that stopped because new rules would take down many
live skills."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_core.errors import JobFailed, NotFound, TransitionError
from vskill_platform.actions.action import Reason, action
from vskill_platform.actions.operation.queue import ADMIN_QUEUE, JobView
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.verdicts.brake import Brake
from vskill_platform.queue.job_health import job_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.people.audit import note
from vskill_platform.store.verdicts.brake import continue_rescans, list_take_downs, read_brake

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
    """Run the job in this process, within its budget. The job commits separately, so the audit entry is written
    first."""
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


RESCANS = f"{ADMIN_QUEUE}/rescans"
#: How many take-downs an answer lists; the number is always whole.
MOST_LISTED = 1_000


class ContinueRescans(ActionRequest, frozen=True, kw_only=True):
    """Rules that are to go on."""

    #: the rules that stopped, as the list names them
    ruleset: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    #: why; it stands in the audit
    reason: Reason


class HeldView(Wire, frozen=True):
    """A version that the rules would take down."""

    skill: str
    version: str
    digest: str
    reason: str
    rule_ids: tuple[str, ...]
    #: it was taken down meanwhile
    done: bool


class BrakeView(Wire, frozen=True):
    """The rules that stopped before their first take-down; all empty where none did."""

    #: nothing is taken down until an admin continues
    stopped: bool
    ruleset: str | None
    #: how many skills they would take down, and how many are live
    skills: int
    live: int
    since: str | None
    #: the admin who let them go on
    continued_by: str | None
    #: what they would take down or took down, at most 1,000
    take_downs: tuple[HeldView, ...]


async def show(_request: NoParameters) -> BrakeView:
    brake, _ = await read_brake()
    return await _view(brake)


async def go_on(actor: Principal, request: ContinueRescans) -> BrakeView:
    return await _view(await continue_rescans(request.ruleset, by=actor.actor, reason=request.reason))


async def _view(brake: Brake | None) -> BrakeView:
    if brake is None:
        return BrakeView(False, None, 0, 0, None, None, ())
    held = (await list_take_downs(brake.ruleset))[:MOST_LISTED]
    take_downs = tuple(HeldView.of(one, skill=one.canonical, version=one.number) for one in held)
    return BrakeView.of(brake, stopped=brake.holds, take_downs=take_downs)


SHOW_RESCANS = action(
    show,
    "rescan.show",
    RESCANS,
    right=Right.ADMIN,
    summary="Show what new rules would take down, where they stopped before it",
    command="queue rescans show",
)
CONTINUE_RESCANS = action(
    go_on,
    "rescan.continue",
    f"{RESCANS}/continue",
    right=Right.ADMIN,
    errors=(TransitionError,),
    summary="Let new rules take down what they stopped at",
    about="New rules that would take down more than 1 % of the live skills, and more than 5, stop before the first. "
    "Each version is judged once more before it is taken down.",
    command="queue rescans continue",
)

"""The queue, for operators: what is stuck, what was set aside, pausing with an end, and the jobs. Each button calls the
very function that the schedule and the command line call (B12)."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.dead_letters import replay_dead_letter
from vskill_platform.actions.submissions import CANCEL, RERUN
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.states import State
from vskill_platform.queue.control import current_pause, pause_queue, resume_queue
from vskill_platform.queue.dead_letters import discard_dead_letter, list_dead_letters
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import recover_stuck_submissions, recover_tasks
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.audit import note
from vskill_platform.submission_store import get_stuck_submissions
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import (
    act_by_form,
    acting,
    admin_page,
    back_of,
    number_of,
    reason_of,
    require_confirmed,
)
from vskill_platform.web.pages.admin_review import rerun_words
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page
from vskill_platform.worker_context import require_env

PLACE = "/admin/queue"
JOBS_PLACE = "/admin/jobs"
#: Of what is stuck or set aside, how many are listed; the number is always whole.
MOST_SHOWN = 200
MINUTE_MS = 60_000


async def queue(request: Request) -> Response:
    env = require_env("kv")
    stuck = await get_stuck_submissions(threshold_ms=env.settings.stuck_threshold_ms)
    letters = await list_dead_letters()
    return admin_page(
        request,
        "queue.html",
        stuck=stuck[:MOST_SHOWN],
        stuck_count=len(stuck),
        letters=letters[:MOST_SHOWN],
        letter_count=len(letters),
        pause=await current_pause(),
        depth=await env.broker.depth(),
        threshold_ms=env.settings.stuck_threshold_ms,
        received=State.RECEIVED,
    )


@acting(PLACE)
async def requeue_one(request: Request) -> Response:
    submission_id = await text_of(request, "submission", 100)
    record = await act_by_form(request, RERUN, submission_id=submission_id)
    return see_other(request, await back_of(request, PLACE), rerun_words(record))


@acting(PLACE)
async def requeue_all(request: Request) -> Response:
    """Recovery, to the end: a message for everything that is owed work."""
    found = sent = 0
    after: str | None = None
    while True:
        done = await recover_stuck_submissions(after=after)
        if done.paused:
            return see_other(request, PLACE, "The queue is paused: resume it first.", "bad")
        found, sent, after = found + done.found, sent + done.sent, done.after
        if after is None:
            break
    tasks = await recover_tasks()
    await note("requeue all", "queue", by=principal_of(request).actor, reason="asked for it")
    text = f"{found + tasks.found} are owed work; {sent + tasks.sent} messages were missing and are sent."
    return see_other(request, PLACE, text)


@acting(PLACE)
async def cancel_one(request: Request) -> Response:
    submission_id = await text_of(request, "submission", 100)
    await require_confirmed(request)
    record = await act_by_form(request, CANCEL, submission_id=submission_id)
    return see_other(request, await back_of(request, PLACE), f"{record.skill_name} is cancelled.")


@acting(PLACE)
async def pause(request: Request) -> Response:
    """Always with its end (B3)."""
    actor, reason = principal_of(request).actor, await reason_of(request)
    minutes = await number_of(request, "minutes")
    await pause_queue(minutes * MINUTE_MS, reason=reason, by=actor)
    return see_other(
        request, PLACE, f"The queue is paused for {minutes} minutes, and then goes on by itself."
    )


@acting(PLACE)
async def resume(request: Request) -> Response:
    was_paused = await resume_queue(by=principal_of(request).actor)
    return see_other(request, PLACE, "The queue goes on." if was_paused else "The queue was not paused.")


@acting(PLACE)
async def replay(request: Request) -> Response:
    letter_id = await number_of(request, "letter")
    runs = await replay_dead_letter(require_env(), principal_of(request), letter_id)
    return see_other(request, PLACE, f"Replayed: {runs}.")


@acting(PLACE)
async def discard(request: Request) -> Response:
    letter_id = await number_of(request, "letter")
    await require_confirmed(request)
    await discard_dead_letter(letter_id, by=principal_of(request).actor)
    return see_other(request, PLACE, f"Dead letter {letter_id} is gone; its record stays as it is.")


async def jobs(request: Request) -> Response:
    health = await queue_health()
    return admin_page(request, "jobs.html", jobs=health.jobs)


@acting(JOBS_PLACE)
async def run_now(request: Request) -> Response:
    """In this process, within the job's own budget; one that runs elsewhere is left alone."""
    name = await text_of(request, "job", 100)
    job = next((one for one in JOBS if one.name == name), None)
    if job is None:
        raise NotFound(f"There is no job {name!r}.")
    await note("job run", name, by=principal_of(request).actor, reason="asked for it")
    ran = await run_job(job, forced=True)
    text = f"{name} has run; the table says how it went." if ran else f"{name} is running already."
    return see_other(request, JOBS_PLACE, text)


ENDPOINTS = (
    page(PLACE, queue, guard=Guard.ADMIN),
    form(f"{PLACE}/requeue", requeue_one, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/requeue-all", requeue_all, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/cancel", cancel_one, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/pause", pause, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/resume", resume, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/replay", replay, guard=Guard.ADMIN, scope="admin"),
    form(f"{PLACE}/discard", discard, guard=Guard.ADMIN, scope="admin"),
    page(JOBS_PLACE, jobs, guard=Guard.ADMIN),
    form(f"{JOBS_PLACE}/run", run_now, guard=Guard.ADMIN, scope="admin"),
)

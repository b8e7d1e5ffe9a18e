"""The queue, for operators: what is stuck, what was set aside, pausing with an end, and the jobs."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import InvalidInput, JobFailed
from vskill_core.plural import counted
from vskill_platform.actions.operation.dead_letters import DISCARD, LIST_LETTERS, REPLAY, ListLetters
from vskill_platform.actions.operation.jobs import CONTINUE_RESCANS, LIST_JOBS, RUN_JOB, SHOW_RESCANS
from vskill_platform.actions.operation.queue import PAUSE, RECOVER, RESUME, STATUS, STUCK, ListStuck
from vskill_platform.web.auth import see_other, text_of
from vskill_platform.web.pages.acting import act_by_form, answer_page, form

PLACE = "/admin/queue"
JOBS_PLACE = "/admin/jobs"
#: Of what is stuck or set aside, how many are listed; the number is always whole.
MOST_SHOWN = 200
MINUTE_MS = 60_000


async def recover(request: Request) -> Response:
    done = await act_by_form(request, RECOVER)
    if done.paused:
        return see_other(request, PLACE, "The queue is paused: resume it first.", "bad")
    text = f"Pending submissions and tasks: {done.found}. Missing messages sent: {done.sent}."
    return see_other(request, PLACE, text)


async def pause(request: Request) -> Response:
    """A pause always has an end (B3)."""
    minutes = await text_of(request, "minutes", 20)
    if not (minutes.isascii() and minutes.isdigit()):
        raise InvalidInput("minutes is not a number", field="minutes", fix="write a whole number")
    await act_by_form(request, PAUSE, duration_ms=int(minutes) * MINUTE_MS)
    text = f"The queue is paused for {int(minutes)} min; it resumes automatically."
    return see_other(request, PLACE, text)


ENDPOINTS = (
    answer_page(
        PLACE,
        "queue.html",
        messages=STATUS,
        stuck=(STUCK, ListStuck(limit=MOST_SHOWN)),
        letters=(LIST_LETTERS, ListLetters(limit=MOST_SHOWN)),
    ),
    form(f"{PLACE}/requeue-all", RECOVER, at=PLACE, view=recover),
    form(f"{PLACE}/pause", PAUSE, at=PLACE, view=pause),
    form(
        f"{PLACE}/resume",
        RESUME,
        lambda done, _: "The queue is running again." if done.was_paused else "The queue was not paused.",
        at=PLACE,
    ),
    form(f"{PLACE}/replay", REPLAY, lambda done, _: f"Replayed: {done.id}, run {done.run}.", at=PLACE),
    form(
        f"{PLACE}/discard",
        DISCARD,
        "The dead letter was discarded; the submission stays as it is.",
        at=PLACE,
        confirm=True,
    ),
    answer_page(JOBS_PLACE, "jobs.html", found=LIST_JOBS, rescans=SHOW_RESCANS),
    form(
        f"{JOBS_PLACE}/run",
        RUN_JOB,
        lambda done, _: f"{done.job.name} has run." if done.ran else f"{done.job.name} is running already.",
        at=JOBS_PLACE,
        tells=(JobFailed,),
    ),
    form(
        f"{JOBS_PLACE}/continue-rescans",
        CONTINUE_RESCANS,
        lambda done, _: (
            f"The rules {done.ruleset} go on: {counted(done.skills, 'skill')} judged once more and taken down."
        ),
        at=JOBS_PLACE,
        confirm=True,
    ),
)

"""The commands of the queue, its dead letters and its scheduled jobs."""

import sys
from typing import Any

import click

from vskill_client.output import UNKNOWN, print_table
from vskill_platform.actions.operation.dead_letters import (
    DISCARD,
    LIST_LETTERS,
    REPLAY,
    LetterList,
    LetterReplayed,
)
from vskill_platform.actions.operation.jobs import LIST_JOBS, RUN_JOB, JobList, JobRun
from vskill_platform.actions.operation.queue import (
    HEALTH,
    PAUSE,
    RECOVER,
    RESUME,
    STATS,
    STATUS,
    STUCK,
    HealthAnswer,
    JobView,
    PauseView,
    QueueRecovered,
    QueueResumed,
    QueueStats,
    QueueStatus,
    StuckList,
)
from vskill_platform.actions.operation.rescans import CONTINUE_RESCANS, SHOW_RESCANS, BrakeView
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import Duration, show_duration, show_text_time


def show_status(found: QueueStatus) -> None:
    rows = [(name, getattr(found.depth, name)) for name in found.depth.__struct_fields__]
    print_table("Messages", ("which", "count"), rows)
    show_pause(found.pause)


def show_pause(pause: PauseView | None) -> None:
    if pause is None:
        click.echo("The queue is not paused.")
    else:
        click.echo(f"Paused by {pause.by} until {show_text_time(pause.until)} UTC: {pause.reason}")


def show_paused(done: QueueStatus) -> None:
    show_pause(done.pause)


def show_stuck(found: StuckList) -> None:
    rows = [(one.id, one.state, show_duration(one.stuck_for_ms), one.repo_url) for one in found.submissions]
    print_table(f"{found.total} stuck", ("submission", "state", "for", "place"), rows)
    if found.total > len(rows):
        click.echo(f"The longest {len(rows)} are shown.")


def show_stats(found: QueueStats) -> None:
    ended, speed = found.ended_last_hour, found.per_minute
    rows = [
        ("submissions", found.counts.total),
        ("active", found.counts.active),
        ("ended in the last hour", UNKNOWN if ended is None else ended),
        ("ended a minute", UNKNOWN if speed is None else f"{speed:.1f}"),
        ("half decided within", show_duration(found.p50_ms)),
        ("95 % decided within", show_duration(found.p95_ms)),
    ]
    print_table(f"The queue at {show_text_time(found.at)}", ("", ""), rows)


def show_recovery(done: QueueRecovered) -> None:
    if done.paused:
        click.echo("The queue is paused, so nothing was sent; 'queue resume' ends the pause.")
    else:
        click.echo(f"Pending submissions and tasks: {done.found}. Missing messages sent: {done.sent}.")


def show_resumed(done: QueueResumed) -> None:
    click.echo("The queue is running again." if done.was_paused else "The queue was not paused.")


def show_health(found: HealthAnswer) -> None:
    more = " and more" if found.truncated else ""
    rows = [(one.key, one.problem) for one in found.violations]
    print_table(f"{len(rows)}{more} violations", ("record", "problem"), rows)
    click.echo(f"\n{found.counts.active} active; oldest has waited {show_duration(found.oldest_waiting_ms)}")
    click.echo(f"last run ended at {show_text_time(found.last_ended_at)}")
    show_pause(found.pause)
    for alert in found.alerts:
        click.echo(f"Alert ({alert.code}): {alert.text} What to do: {alert.remedy}")
    _print_jobs("\nScheduled jobs", found.jobs)


def show_letters(found: LetterList) -> None:
    rows = [
        (one.id, one.key, show_text_time(one.died_at), one.deliveries, one.reason) for one in found.letters
    ]
    print_table(f"{found.total} dead letters", ("id", "key", "died (UTC)", "deliveries", "reason"), rows)
    if found.after is not None:
        click.echo(f"More: --after {found.after}")


def show_replayed(done: LetterReplayed) -> None:
    click.echo(f"{done.id}: run {done.run}, {done.state}")


def show_discarded(_done: None) -> None:
    click.echo("The dead letter was removed.")


def show_jobs(found: JobList) -> None:
    _print_jobs(f"{len(found.jobs)} scheduled jobs", found.jobs)


def show_run(done: JobRun) -> None:
    if not done.ran:
        click.echo(f"{done.job.name} is running elsewhere already, so it was left alone.")
        return
    _print_jobs(f"{done.job.name} has run.", (done.job,))


def show_rescans(found: BrakeView) -> None:
    if found.ruleset is None:
        click.echo("No rules have stopped.")
        return
    rows = [
        (one.skill, one.version, "taken down" if one.done else "live", one.reason) for one in found.take_downs
    ]
    title = f"The rules {found.ruleset} would take down {found.skills} of {found.live} live skills"
    print_table(title, ("skill", "version", "state", "reason"), rows)
    if found.stopped:
        click.echo(f"Stopped. To go on: queue rescans continue --ruleset {found.ruleset} --reason WHY")
    else:
        click.echo(f"{found.continued_by} let them go on.")


def _print_jobs(title: str, jobs: tuple[JobView, ...]) -> None:
    rows = [
        (job.name, "stale" if job.stale else "ok", show_text_time(job.last_success), job.last_error)
        for job in jobs
    ]
    print_table(title, ("job", "state", "last success (UTC)", "last error"), rows)


def _health_command() -> click.Command:
    command = command_for(HEALTH, show_health, about="Exit code 1 where something is stuck.")
    look = command.callback

    def look_and_tell(**given: Any) -> None:
        if look is not None and not look(**given).healthy:
            sys.exit(1)

    command.callback = look_and_tell
    return command


_DURATION = click.Option(
    ["--for", "duration_ms"], type=Duration(), required=True, help="How long, such as 30s, 10m or 2h."
)

COMMANDS = (
    command_for(STATUS, show_status),
    command_for(STATS, show_stats),
    command_for(STUCK, show_stuck),
    command_for(RECOVER, show_recovery),
    command_for(PAUSE, show_paused, options={"duration_ms": _DURATION}),
    command_for(RESUME, show_resumed),
    _health_command(),
    click.Group(
        "dead-letters",
        help="Look at messages that failed for good.",
        commands=[
            command_for(LIST_LETTERS, show_letters),
            command_for(REPLAY, show_replayed),
            command_for(DISCARD, show_discarded),
        ],
    ),
    click.Group(
        "jobs",
        help="Look at the scheduled jobs, and run one now.",
        commands=[command_for(LIST_JOBS, show_jobs), command_for(RUN_JOB, show_run)],
    ),
    click.Group(
        "rescans",
        help="Look at what new rules would take down, and let them go on.",
        commands=[command_for(SHOW_RESCANS, show_rescans), command_for(CONTINUE_RESCANS, show_rescans)],
    ),
)

"""`queue`: what an operator asks of the queue and does to it. Each command calls the very function that the
schedule or the web side calls, so what is tested is what is used."""

from typing import TYPE_CHECKING

import click

from vskill_platform.cli.dead_letters import dead_letters
from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import (
    Duration,
    json_option,
    print_json,
    print_table,
    show_duration,
    show_time,
)
from vskill_platform.cli.process import OPERATOR, run_in_env

if TYPE_CHECKING:
    from vskill_platform.broker.contract import Depth
    from vskill_platform.queue.control import Pause
    from vskill_platform.queue.health import QueueHealth
    from vskill_platform.queue.recovery import Recovered


@click.group(cls=PlatformGroup)
def queue() -> None:
    """Look at the queue, recover, pause and resume it."""


@queue.command("status")
@json_option
def status(*, as_json: bool) -> None:
    """Show how many messages there are and whether the queue is paused."""
    from vskill_platform.queue.control import current_pause
    from vskill_platform.worker_context import require_env

    async def look() -> "tuple[Depth, Pause | None]":
        return await require_env("broker").broker.depth(), await current_pause()

    depth, pause = run_in_env(look)
    if as_json:
        print_json({"depth": depth, "pause": pause})
        return
    rows = [(name, getattr(depth, name)) for name in depth.__struct_fields__]
    print_table("Messages", ("which", "count"), rows)
    click.echo(_pause_line(pause))


@queue.command("stuck")
@json_option
def stuck(*, as_json: bool) -> None:
    """List submissions that have stood in one state for longer than the threshold."""
    from vskill_platform.submission_store import get_stuck_submissions
    from vskill_platform.worker_context import require_env

    found = run_in_env(
        lambda: get_stuck_submissions(threshold_ms=require_env("settings").settings.stuck_threshold_ms)
    )
    if as_json:
        print_json(found)
        return
    rows = [(one.id, one.state, show_duration(one.stuck_for_ms), one.repo_url) for one in found]
    print_table(f"{len(found)} stuck", ("submission", "state", "for", "place"), rows)


@queue.command("recover")
@json_option
def recover(*, as_json: bool) -> None:
    """Send a message for every submission that is owed work; harmless at any time."""
    recovered = run_in_env(_recover_all)
    if as_json:
        print_json(recovered)
    elif recovered.paused:
        click.echo("The queue is paused, so nothing was sent; 'queue resume' ends the pause.")
    else:
        click.echo(
            f"{recovered.found} submissions are owed work; {recovered.sent} messages were missing and sent."
        )


async def _recover_all() -> "Recovered":
    """Page after page, to the end."""
    from vskill_platform.queue.recovery import Recovered, recover_stuck_submissions

    found = sent = 0
    after: str | None = None
    while True:
        page = await recover_stuck_submissions(after=after)
        found, sent, after = found + page.found, sent + page.sent, page.after
        if page.paused or after is None:
            return Recovered(found, sent, page.paused)


@queue.command("pause")
@click.option(
    "--for", "duration_ms", type=Duration(), required=True, help="How long, such as 30s, 10m or 2h."
)
@click.option("--reason", required=True, help="Why, for whoever finds it paused.")
@json_option
def pause(*, duration_ms: int, reason: str, as_json: bool) -> None:
    """Stop taking new work for a while; it goes on by itself."""
    from vskill_platform.queue.control import pause_queue

    paused = run_in_env(lambda: pause_queue(duration_ms, reason=reason, by=OPERATOR))
    print_json(paused) if as_json else click.echo(_pause_line(paused))


@queue.command("resume")
def resume() -> None:
    """End a pause now."""
    from vskill_platform.queue.control import resume_queue

    was_paused = run_in_env(lambda: resume_queue(by=OPERATOR))
    click.echo("The queue goes on." if was_paused else "The queue was not paused.")


@queue.command("health")
@json_option
def health(*, as_json: bool) -> None:
    """List every violation of the queue's invariant; exit code 1 if there is one."""
    from vskill_platform.queue.health import queue_health

    found = run_in_env(queue_health)
    if as_json:
        print_json(found)
    else:
        _print_health(found)
    if not found.healthy:
        raise SystemExit(1)


def _print_health(found: "QueueHealth") -> None:
    more = " and more" if found.truncated else ""
    print_table(
        f"{len(found.violations)}{more} violations",
        ("record", "problem"),
        [(one.key, one.problem) for one in found.violations],
    )
    click.echo(
        f"\n{found.counts.active} active; oldest waiting since {show_duration(found.oldest_waiting_ms)}"
    )
    click.echo(f"last run ended at {show_time(found.last_ended_at)}")
    click.echo(_pause_line(found.pause))
    for alert in found.alerts:
        click.echo(f"Alert ({alert.code}): {alert.text}")
    rows = [
        (job.name, "stale" if job.stale else "ok", show_time(job.last_success), job.last_error)
        for job in found.jobs
    ]
    print_table("\nScheduled jobs", ("job", "state", "last success (UTC)", "last error"), rows)


def _pause_line(pause: "Pause | None") -> str:
    if pause is None:
        return "The queue is not paused."
    return f"Paused by {pause.by} until {show_time(pause.until)} UTC: {pause.reason}"


queue.add_command(dead_letters)

"""The commands of the queue, its dead letters and its scheduled jobs."""

import click

from vskill_client.output import print_table
from vskill_platform.actions.operation import dead_letters, jobs, queue
from vskill_platform.cli.action_commands import Part, command_for, details, each, table, when
from vskill_platform.cli.output import Duration


def show_depth(status: queue.QueueStatus) -> None:
    rows = [(name, getattr(status.depth, name)) for name in status.depth.__struct_fields__]
    print_table("Messages", ("which", "count"), rows)


_PAUSE = when(
    "pause", "Paused by {pause.by} until {pause.until} UTC: {pause.reason}", "The queue is not paused."
)
_STATS = details(
    "The queue at {at}",
    ("submissions", "counts.total"),
    ("active", "counts.active"),
    ("ended in the last hour", "ended_last_hour"),
    ("ended a minute", lambda stats: None if stats.per_minute is None else f"{stats.per_minute:.1f}"),
    ("half decided within", "p50_ms"),
    ("95 % decided within", "p95_ms"),
)
_STUCK: Part = (
    table(
        "{total} stuck",
        "submissions",
        ("submission", "id"),
        "state",
        ("for", "stuck_for_ms"),
        ("place", "repo_url"),
    ),
    when(lambda stuck: stuck.total > len(stuck.submissions), "The longest {#submissions} are shown."),
)
_JOB = (
    ("job", "name"),
    ("state", lambda job: "stale" if job.stale else "ok"),
    ("last success (UTC)", "last_success"),
    ("last error", "last_error"),
)
_VIOLATIONS = (("record", "key"), "problem")
_HEALTH: Part = (
    when(
        "truncated",
        table("{#violations} and more violations", "violations", *_VIOLATIONS),
        table("{#violations} violations", "violations", *_VIOLATIONS),
    ),
    "\n{counts.active} active; oldest has waited {oldest_waiting_ms}",
    when("cooldown", "{cooldown.count} wait by a rule of the policy; the next until {cooldown.next_at} UTC"),
    "last run ended at {last_ended_at}",
    _PAUSE,
    each("alerts", "Alert ({code}): {text} What to do: {remedy}"),
    table("\nScheduled jobs", "jobs", *_JOB),
)
_RESCANS = when(
    "ruleset",
    (
        table(
            "The rules {ruleset} would take down {skills} of {live} live skills",
            "take_downs",
            "skill",
            "version",
            ("state", lambda skill: "taken down" if skill.done else "live"),
            "reason",
        ),
        when(
            "stopped",
            "Stopped. To go on: queue rescans continue --ruleset {ruleset} --reason WHY",
            "{continued_by} let them go on.",
        ),
    ),
    "No rules have stopped.",
)
_LETTERS = table(
    "{total} dead letters",
    "letters",
    *("id", "key", ("died (UTC)", "died_at"), "deliveries", "reason"),
)
_DURATION = click.Option(
    ["--for", "duration_ms"], type=Duration(), required=True, help="How long, such as 30s, 10m or 2h."
)

COMMANDS = (
    command_for(queue.STATUS, show_depth, _PAUSE),
    command_for(queue.STATS, _STATS),
    command_for(queue.STUCK, _STUCK),
    command_for(
        queue.RECOVER,
        when(
            "paused",
            "The queue is paused, so nothing was sent; 'queue resume' ends the pause.",
            "Pending submissions and tasks: {found}. Missing messages sent: {sent}.",
        ),
    ),
    command_for(queue.PAUSE, _PAUSE, options={"duration_ms": _DURATION}),
    command_for(queue.RESUME, when("was_paused", "The queue is running again.", "The queue was not paused.")),
    command_for(
        queue.HEALTH,
        _HEALTH,
        about="Exit code 1 where something is stuck.",
        fails=lambda health: not health.healthy,
    ),
    click.Group(
        "dead-letters",
        help="Look at messages that failed for good.",
        commands=[
            command_for(dead_letters.LIST_LETTERS, _LETTERS),
            command_for(dead_letters.REPLAY, "{id}: run {run}, {state}"),
            command_for(dead_letters.DISCARD, "The dead letter was removed."),
        ],
    ),
    click.Group(
        "jobs",
        help="Look at the scheduled jobs, and run one now.",
        commands=[
            command_for(jobs.LIST_JOBS, table("{#jobs} scheduled jobs", "jobs", *_JOB)),
            command_for(
                jobs.RUN_JOB,
                when(
                    "ran",
                    table("{job.name} has run.", lambda done: (done.job,), *_JOB),
                    "{job.name} is running elsewhere already, so it was left alone.",
                ),
            ),
        ],
    ),
    click.Group(
        "rescans",
        help="Look at what new rules would take down, and let them go on.",
        commands=[
            command_for(jobs.SHOW_RESCANS, _RESCANS),
            command_for(jobs.CONTINUE_RESCANS, _RESCANS),
        ],
    ),
)

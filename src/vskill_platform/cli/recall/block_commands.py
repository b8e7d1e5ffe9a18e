"""The commands of the blocklist: block, lift a block, and list what is blocked."""

from vskill_platform.actions.recall import blocklist
from vskill_platform.cli.action_commands import command_for, each, table, when

COMMANDS = (
    command_for(
        blocklist.BLOCK,
        "Blocked: {entry.kind} {entry.target}",
        each("submissions", "  submission {}"),
        each("skills", "  skill {}"),
        when(lambda done: done.submissions or done.skills, "  versions: {versions}", "It hits nothing yet."),
        arguments=("kind", "target"),
    ),
    command_for(
        blocklist.LIFT,
        "No longer blocked: {kind} {target}",
        each("skills", "  back: {}"),
        arguments=("kind", "target"),
    ),
    command_for(
        blocklist.BLOCKS,
        table(
            "{#entries:entry/entries}",
            "entries",
            *(("target", "{kind} {target}"), "severity", ("since (UTC)", "since"), "by", "reason"),
        ),
    ),
)

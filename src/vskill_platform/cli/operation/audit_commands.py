"""The commands of `audit`."""

from vskill_platform.actions.operation import audit
from vskill_platform.cli.action_commands import command_for, table

_ENTRIES = table(
    "{#items:entry/entries}",
    "items",
    *(("at (UTC)", "at"), ("by", "who"), ("what", "action"), "target", "reason"),
)

COMMANDS = (command_for(audit.READ_AUDIT, _ENTRIES),)

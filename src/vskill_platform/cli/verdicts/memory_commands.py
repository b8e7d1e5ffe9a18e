"""The commands of the memory: show what submissions are compared with, and set another file."""

import click

from vskill_platform.actions.verdicts import memory
from vskill_platform.cli.action_commands import command_for, when

_FILE = click.Argument(
    ["data"],
    metavar="FILE",
    type=click.File("rb"),
    callback=lambda _context, _parameter, file: file.read(),
)
_SHOWN = (
    when("problem", "The file that was set cannot be used, so the release's own is in force: {problem}"),
    "Submissions are compared with {words}: {hosts} hosts, {names} names.",
    when("set_by", "Set by {set_by}, {set_at}: {reason}", "It is this release's own."),
    when(lambda shown: shown.packaged_date > shown.date, "This release has a newer one, of {packaged_date}."),
    "Digest {digest}, made with the rules {ruleset}",
)

COMMANDS = (
    command_for(memory.SHOW_MEMORY, *_SHOWN),
    command_for(memory.UPDATE_MEMORY, *_SHOWN, options={"data": _FILE}),
)

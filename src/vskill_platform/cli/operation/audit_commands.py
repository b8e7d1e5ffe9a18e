"""The commands of `audit`."""

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.operation.audit import READ_AUDIT, AuditAnswer
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_audit(found: AuditAnswer) -> None:
    rows = [(show_text_time(one.at), one.who, one.action, one.target, one.reason) for one in found.items]
    print_table(counted(len(rows), "entry", "entries"), ("at (UTC)", "by", "what", "target", "reason"), rows)
    if found.before is not None:
        click.echo(f"Older ones: --before {found.before}")
    if found.skipped:
        click.echo(f"{counted(found.skipped, 'record')} could not be read; the log names them.", err=True)


COMMANDS = (command_for(READ_AUDIT, show_audit),)

"""The commands of `notification`."""

import click

from vskill_platform.actions.notifications import LIST_NOTIFICATIONS, READ_NOTIFICATIONS, NotificationsAnswer
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import print_table, show_text_time


def show_notifications(found: NotificationsAnswer) -> None:
    rows = [
        (show_text_time(one.at), "new" if one.unread else "", one.topic.value, one.text)
        for one in found.notifications
    ]
    print_table(f"{found.unread} unread notifications", ("when (UTC)", "", "why", "what"), rows)
    if found.after:
        click.echo(f"More: --after {found.after}")


COMMANDS = (
    command_for(LIST_NOTIFICATIONS, show_notifications),
    command_for(READ_NOTIFICATIONS, lambda _: click.echo("All are marked as read.")),
)

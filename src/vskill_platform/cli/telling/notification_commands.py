"""The commands of `notification`."""

import click

from vskill_client.output import print_table
from vskill_platform.actions.telling.notifications import (
    CONFIRM_MAIL,
    LIST_NOTIFICATIONS,
    READ_NOTIFICATIONS,
    SET_MAIL,
    SHOW_MAIL,
    MailSettings,
    NotificationsAnswer,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_notifications(found: NotificationsAnswer) -> None:
    rows = [
        (show_text_time(one.at), "new" if one.unread else "", one.topic.value, one.text)
        for one in found.notifications
    ]
    print_table(f"{found.unread} unread notifications", ("when (UTC)", "", "why", "what"), rows)
    if found.after:
        click.echo(f"More: --after {found.after}")


def show_mail(found: MailSettings) -> None:
    click.echo(
        f"Mail goes to {found.mail} once a day."
        if found.mail
        else "No mail is sent: you have confirmed no address."
    )
    if found.unconfirmed:
        click.echo(f"Confirm {found.unconfirmed} with: notification confirm CODE")


COMMANDS = (
    command_for(LIST_NOTIFICATIONS, show_notifications),
    command_for(READ_NOTIFICATIONS, lambda _: click.echo("All are marked as read.")),
    command_for(SHOW_MAIL, show_mail),
    command_for(SET_MAIL, show_mail, arguments=("address",)),
    command_for(CONFIRM_MAIL, show_mail, arguments=("code",)),
)

"""The commands of `notification`."""

from vskill_platform.actions.telling import notifications
from vskill_platform.cli.action_commands import Part, command_for, table, when

_NOTIFICATIONS = table(
    "{unread} unread notifications",
    "notifications",
    ("when (UTC)", "at"),
    ("", lambda notification: "new" if notification.unread else ""),
    ("why", "topic"),
    ("what", "text"),
)
_MAIL: Part = (
    when("mail", "Mail goes to {mail} once a day.", "No mail is sent: you have confirmed no address."),
    when("unconfirmed", "Confirm {unconfirmed} with: notification confirm CODE"),
)

COMMANDS = (
    command_for(notifications.LIST_NOTIFICATIONS, _NOTIFICATIONS),
    command_for(notifications.READ_NOTIFICATIONS, "All are marked as read."),
    command_for(notifications.SHOW_MAIL, _MAIL),
    command_for(notifications.SET_MAIL, _MAIL, arguments=("address",)),
    command_for(notifications.CONFIRM_MAIL, _MAIL, arguments=("code",)),
)
